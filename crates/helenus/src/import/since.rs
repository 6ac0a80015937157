//! The time of `--since`: a second import takes only what was written since the first.

use std::str::FromStr;

use anyhow::{Error, anyhow};
use helenus_cql::value::timestamp;
use helenus_import::TableName;

/// The time from which on cells and deletions are imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The time in µs since 1970, as write times are.
    pub us: i64,
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Since, String> {
        let refused = || {
            format!(
                "'{text}' is no time; give one such as '2026-11-30 14:00:00' (UTC), or microseconds since 1970"
            )
        };
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let us = text.parse().map_err(|_| refused())?;
            return Ok(Since { us });
        }
        // CQL reads other numbers as milliseconds, and `now` as the present time.
        if !text.contains('-') || text.starts_with('-') {
            return Err(refused());
        }
        let millis = timestamp::parse(text, || 0).map_err(|_| refused())?;
        let us = millis.checked_mul(1000).ok_or_else(refused)?;
        Ok(Since { us })
    }
}

/// Returns the error of a table of counters.
pub fn refused_counters(table: &TableName) -> Error {
    anyhow!(
        "{table}: --since can't be used for counters, because their totals need all increments. Leave the table out with --exclude {table}, and \
         import it in whole with --counters replace"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_microseconds() {
        let us = |text: &str| text.parse::<Since>().map(|since| since.us);
        assert_eq!(us("1780000000000000"), Ok(1_780_000_000_000_000));
        for text in [
            "2026-05-28 20:26:40",
            "2026-05-28T20:26:40.000Z",
            "2026-05-28 22:26:40+0200",
        ] {
            assert_eq!(us(text), Ok(1_780_000_000_000_000), "{text}");
        }
        assert_eq!(us("2026-05-28"), Ok(1_779_926_400_000_000));
        for wrong in ["", "-5", "now", "yesterday", "2026-13-01", "99999999999999999999"] {
            assert!(us(wrong).unwrap_err().contains(wrong));
        }
    }
}
