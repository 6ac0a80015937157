//! One setting, and the parsing of common kinds of values.

use std::time::Duration;

use super::config::Config;

/// A setting that can be given by its name.
pub(super) struct Setting {
    pub name: &'static str,
    /// Description, for `--help`.
    pub about: &'static str,
    /// Allowed values, for `--help` and error messages.
    pub allowed: &'static str,
    pub set: fn(&mut Config, &str) -> Result<(), String>,
}

pub(super) fn put<T>(target: &mut T, value: Result<T, String>) -> Result<(), String> {
    *target = value?;
    Ok(())
}

pub(super) fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("not a whole number".to_owned()),
    }
}

/// Returns a number that may be 0.
pub(super) fn count_or_zero(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a whole number".to_owned())
}

/// Splits a text into its number and its unit.
fn measure<'a>(text: &'a str, what: &str) -> Result<(usize, &'a str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number = digits.parse().map_err(|_| format!("not {what}"))?;
    Ok((number, unit.trim()))
}

pub(super) fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = measure(text, "a size")?;
    let factor: usize = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(format!("unknown unit {unit}")),
    };
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = measure(text, "a time")?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "" => return Err("the unit is missing".to_owned()),
        _ => return Err(format!("unknown unit {unit}")),
    };
    let millis = u64::try_from(number)
        .ok()
        .and_then(|number| number.checked_mul(millis));
    match millis {
        Some(0) => Err("it must be longer than nothing".to_owned()),
        Some(millis) => Ok(Duration::from_millis(millis)),
        None => Err("too long".to_owned()),
    }
}
