//! Parsing of numbers and durations in the usual forms of stress tools: `10M`, `1B`, `30m`, `1d 3h 15m`, `90`.

use std::time::Duration;

/// Parses a whole number with an optional suffix in either case: `k` thousand, `M` million, `B` billion.
pub fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = split(text);
    let bad = || format!("{text:?} is not a number like 5000, 10k, 1.5M or 2B");
    let whole = digits.replace('_', "");
    if let Ok(number) = whole.parse::<u64>() {
        return number.checked_mul(factor).ok_or_else(bad);
    }
    let fraction: f64 = whole.parse().map_err(|_| bad())?;
    let number = (fraction * factor as f64).round();
    if factor == 1 || !(0.0..=u64::MAX as f64).contains(&number) {
        return Err(bad());
    }
    Ok(number as u64)
}

/// Parses a number of requests per second, with the suffixes of [`count`]. 0 means no rate.
pub fn rate(text: &str) -> Result<f64, String> {
    let (digits, factor) = split(text);
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number * factor as f64),
        _ => Err(format!("{text:?} is not a rate like 500, 2.5k or 1M")),
    }
}

fn split(text: &str) -> (&str, u64) {
    let text = text.trim();
    for (suffix, factor) in [('k', 1_000), ('m', 1_000_000), ('b', 1_000_000_000)] {
        if let Some(digits) = text.strip_suffix([suffix, suffix.to_ascii_uppercase()]) {
            return (digits.trim_end(), factor);
        }
    }
    (text, 1)
}

/// Parses a duration: `30m`, `1h 30m`, `1d3h`, `250ms`, or plain seconds such as `90` and `2.5`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a duration like 90, 30m, 1h 30m or 1d 3h 15m");
    let parsed = match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| bad())?,
        // An `M` would be a month for the parser, and is meant as minutes.
        Err(_) => humantime::parse_duration(&text.to_ascii_lowercase()).map_err(|_| bad())?,
    };
    if parsed.is_zero() { Err(bad()) } else { Ok(parsed) }
}

/// Parses a share of all operations, from 0 to 1.
pub fn ratio(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err(format!("{text:?} is not a part from 0 to 1, like 0.2")),
    }
}

/// Parses a range of whole numbers: `100..200`, whose end is exclusive, `100..` or `..200`.
pub fn range(text: &str) -> Result<(u64, Option<u64>), String> {
    let bad = || format!("{text:?} is not a range like 0..1M, 500k.. or ..200");
    let (start, end) = text.split_once("..").ok_or_else(bad)?;
    let start = if start.is_empty() { 0 } else { count(start)? };
    let end = if end.is_empty() { None } else { Some(count(end)?) };
    match end {
        Some(end) if end < start => Err(bad()),
        _ => Ok((start, end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_the_suffixes_of_tlp_stress_and_fractions() {
        for (text, number) in [
            ("0", 0),
            ("500", 500),
            ("1k", 1_000),
            ("10M", 10_000_000),
            ("10m", 10_000_000),
            ("1B", 1_000_000_000),
            ("2b", 2_000_000_000),
            ("1.5M", 1_500_000),
            ("1_000", 1_000),
            (" 3 k ", 3_000),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "k", "1.5", "-1", "1T", "99999999999B", "NaNk", "-3k"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_may_be_fractions() {
        assert_eq!(rate("0.5"), Ok(0.5));
        assert_eq!(rate("2.5k"), Ok(2_500.0));
        assert!(rate("-1").is_err());
        assert!(rate("infk").is_err());
    }

    #[test]
    fn durations_are_units_or_plain_seconds() {
        for (text, seconds) in [
            ("30m", 1_800.0),
            ("30M", 1_800.0),
            ("1d 3h 15m", 98_100.0),
            ("1h30m", 5_400.0),
            ("90", 90.0),
            ("2.5", 2.5),
            ("250ms", 0.25),
        ] {
            assert_eq!(duration(text).map(|d| d.as_secs_f64()), Ok(seconds), "{text}");
        }
        for text in ["", "0", "0s", "-5", "abc", "5 parsecs", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_leave_out_either_end() {
        assert_eq!(range("5..1k"), Ok((5, Some(1_000))));
        assert_eq!(range("1M.."), Ok((1_000_000, None)));
        assert_eq!(range("..7"), Ok((0, Some(7))));
        assert!(range("9..3").is_err());
        assert!(range("9").is_err());
    }
}
