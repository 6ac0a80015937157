//! `date`: days as an unsigned 32-bit number with 2^31 at 1970-01-01 (Cassandra's `SimpleDateSerializer`).

use super::civil::{self, MILLIS_PER_DAY};

const EPOCH: i64 = 1 << 31;

/// Returns the days since 1970-01-01 of a `date`.
pub fn days_since_epoch(date: u32) -> i64 {
    i64::from(date) - EPOCH
}

/// Returns the `date` of a time in milliseconds since 1970. Times out of range wrap around, as in Cassandra's cast to int.
pub fn from_millis(millis: i64) -> u32 {
    // Java rounds down to seconds, and then Duration.toDays rounds towards zero.
    let seconds = millis.div_euclid(1_000);
    (seconds / 86_400).wrapping_add(EPOCH) as u32
}

/// Returns midnight (UTC) of a `date`, in milliseconds since 1970.
pub fn to_millis(date: u32) -> i64 {
    days_since_epoch(date) * MILLIS_PER_DAY
}

/// Returns the date as `yyyy-MM-dd`.
pub fn to_text(date: u32) -> String {
    civil::date_text(days_since_epoch(date))
}

/// Reads `yyyy-MM-dd`, or the raw unsigned number.
///
/// # Errors
/// `Unable to coerce '…' to a formatted date (long)`, `Unable to make unsigned int (for date) from: '…'`,
/// `Input date … is less than min supported date …`.
pub fn parse(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .map_err(|_| format!("Unable to make unsigned int (for date) from: '{text}'"));
    }
    let days = parse_iso_local_date(text)
        .filter(|days| days.checked_mul(MILLIS_PER_DAY).is_some())
        .ok_or_else(|| format!("Unable to coerce '{text}' to a formatted date (long)"))?;
    if days < -EPOCH {
        return Err(format!(
            "Input date {text} is less than min supported date -5877641-06-23T00:00Z"
        ));
    }
    u32::try_from(days + EPOCH)
        .map_err(|_| format!("Input date {text} is greater than max supported date +5881580-07-11T00:00Z"))
}

/// Parses an `ISO_LOCAL_DATE` strictly: the day must exist, and the year has four digits, or more with a sign.
fn parse_iso_local_date(text: &str) -> Option<i64> {
    let (sign, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.chars().next(), rest),
        None => (None, text),
    };
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.next().is_some() || !digits(year) || !digits(month) || !digits(day) {
        return None;
    }
    let plus_fits = match sign {
        Some('+') => year.len() > 4,
        Some(_) => true,
        None => year.len() == 4,
    };
    if !plus_fits || !(4..=10).contains(&year.len()) || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let year: i64 = year.parse().ok()?;
    let year = if sign == Some('-') { -year } else { year };
    let (month, day): (i64, i64) = (month.parse().ok()?, day.parse().ok()?);
    let real = (1..=12).contains(&month)
        && (1..=civil::days_in_month(year, month)).contains(&day)
        && year.abs() <= 999_999_999;
    real.then(|| civil::days_from_civil(year, month, day))
}
