//! `time`: nanoseconds since midnight (Cassandra's `TimeSerializer`).

use super::civil::NANOS_PER_DAY;

/// Returns the time as `hh:mm:ss.fffffffff`.
pub fn to_text(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (hours, minutes, fraction) = (seconds / 3_600 % 24, seconds / 60 % 60, nanos % 1_000_000_000);
    format!("{hours:02}:{minutes:02}:{:02}.{fraction:09}", seconds % 60)
}

/// Reads `hh:mm:ss[.fffffffff]`, or the raw number of nanoseconds.
///
/// # Errors
/// `(TimeType) Unable to coerce '…' to a formatted time (long)`, `Unable to make long (for time) from: '…'`.
pub fn parse(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .ok()
            .filter(|nanos| (0..NANOS_PER_DAY).contains(nanos))
            .ok_or_else(|| format!("Unable to make long (for time) from: '{text}'"));
    }
    parse_clock(text.trim_matches(|c: char| c <= ' '))
        .ok_or_else(|| format!("(TimeType) Unable to coerce '{text}' to a formatted time (long)"))
}

fn parse_clock(text: &str) -> Option<i64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (seconds, nanos) = match seconds.split_once('.') {
        Some((seconds, fraction)) => (seconds, parse_fraction(fraction)?),
        None => (seconds, 0),
    };
    let field = |text: &str, limit: i64| {
        text.parse::<i32>()
            .ok()
            .map(i64::from)
            .filter(|value| (0..limit).contains(value))
    };
    let total = field(hours, 24)? * 3_600 + field(minutes, 60)? * 60 + field(seconds, 60)?;
    Some(total * 1_000_000_000 + nanos)
}

fn parse_fraction(fraction: &str) -> Option<i64> {
    let valid = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if valid {
        format!("{fraction:0<9}").parse().ok()
    } else {
        None
    }
}
