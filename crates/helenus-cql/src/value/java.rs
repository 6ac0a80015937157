//! Numbers as Java parses and prints them, for places where CQL shows Java's text.

mod digits;

use digits::Digits;

use super::DIGITS_MAX;

/// Implements `Double.toString`, which uses scientific notation below 1e-3 and from 1e7.
pub fn double_to_string(value: f64) -> String {
    float_text(value, || Digits::of_double(value))
}

/// Implements `Float.toString`, with the rules of [`double_to_string`] for 32 bits.
pub fn float_to_string(value: f32) -> String {
    float_text(f64::from(value), || Digits::of_float(value))
}

fn float_text(value: f64, digits: impl FnOnce() -> Digits) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    format!("{sign}{}", place_point(&digits()))
}

fn place_point(Digits { digits, exponent }: &Digits) -> String {
    let digits: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    let or_zero = |text: &str| match text {
        "" => "0".to_owned(),
        text => text.to_owned(),
    };
    if !(-2..8).contains(exponent) {
        let (head, tail) = digits.split_at(1.min(digits.len()));
        return format!("{head}.{}E{}", or_zero(tail), exponent - 1);
    }
    let Ok(whole @ 1..) = usize::try_from(*exponent) else {
        return format!("0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize));
    };
    let padded = format!("{digits:0<whole$}");
    let (head, tail) = padded.split_at(whole);
    format!("{head}.{}", or_zero(tail))
}

/// Implements `Double.parseDouble`.
pub fn parse_double(text: &str) -> Option<f64> {
    if let Some(hex) = Hexadecimal::parse(text) {
        return Some(hex.scaled(hex.digits as f64));
    }
    let value: f64 = java_float_body(text)?.parse().ok()?;
    Some(if value.is_nan() { f64::NAN } else { value })
}

/// Implements `Float.parseFloat`.
pub fn parse_float(text: &str) -> Option<f32> {
    if let Some(hex) = Hexadecimal::parse(text) {
        // The digits are rounded once, to the precision of a float. Multiplying by a power of two does not round again.
        return Some(hex.scaled(f64::from(hex.digits as f32)) as f32);
    }
    let value: f32 = java_float_body(text)?.parse().ok()?;
    Some(if value.is_nan() { f32::NAN } else { value })
}

/// A number like `0x1.8p-1`: `digits` times two to the power of `exponent`.
struct Hexadecimal {
    is_negative: bool,
    /// The first 15 or 16 digits. Of the further ones, only a bit is kept that is set if one is not zero, which is enough to round.
    digits: u64,
    exponent: i32,
}

impl Hexadecimal {
    fn parse(text: &str) -> Option<Hexadecimal> {
        let text = text.trim_matches(|c: char| c <= ' ');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let body = unsigned
            .strip_prefix("0x")
            .or_else(|| unsigned.strip_prefix("0X"))?;
        let (mantissa, power) = body.split_once(['p', 'P'])?;
        let power = power.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(power);
        if !is_integer(power) {
            return None;
        }
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: u64 = 0;
        let mut dropped: i64 = 0;
        let mut count = 0_usize;
        for digit in whole.chars().chain(fraction.chars()) {
            let digit = u64::from(digit.to_digit(16)?);
            count += 1;
            if digits >> 60 == 0 {
                digits = digits << 4 | digit;
            } else {
                digits |= u64::from(digit != 0);
                dropped += 4;
            }
        }
        let fraction_bits = i64::try_from(fraction.len()).ok()?.checked_mul(4)?;
        // Powers out of range are replaced by one beyond any double's exponent.
        let power = power.parse::<i64>().unwrap_or(match power.starts_with('-') {
            true => i64::from(i32::MIN),
            false => i64::from(i32::MAX),
        });
        let exponent = power.saturating_sub(fraction_bits).saturating_add(dropped);
        (count > 0).then_some(Hexadecimal {
            is_negative: text.starts_with('-'),
            digits,
            exponent: exponent.clamp(-2000, 2000) as i32,
        })
    }

    fn scaled(&self, digits: f64) -> f64 {
        if self.digits == 0 {
            return if self.is_negative { -0.0 } else { 0.0 };
        }
        // The power is multiplied in two steps, since it may be out of range when the product is not.
        let half = self.exponent / 2;
        let value = digits * 2_f64.powi(half) * 2_f64.powi(self.exponent - half);
        if self.is_negative { -value } else { value }
    }
}

/// Returns the part of a Java floating-point number that Rust parses to the same value.
fn java_float_body(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, "NaN" | "Infinity") {
        return Some(text);
    }
    let body = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    let numeric = body
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    (numeric && body.bytes().any(|byte| byte.is_ascii_digit())).then_some(body)
}

/// Returns true for an optional sign and ASCII digits, which Java's integer parsers accept.
pub fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a number as `new BigInteger(text)`. `None` if it is not one, or has more than [`DIGITS_MAX`] digits.
pub fn parse_big_integer(text: &str) -> Option<num_bigint::BigInt> {
    let is_short = text.len() <= DIGITS_MAX as usize + 1;
    if is_short && is_integer(text) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_read_as_by_java() {
        for (text, value) in [
            ("0.5", 0.5),
            (" .5 ", 0.5),
            ("0.5f", 0.5),
            ("5.D", 5.0),
            ("1e-1", 0.1),
            ("+2", 2.0),
            ("0x1p-1", 0.5),
            ("-0X.8P4d", -8.0),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffff7ffffffffp0", 2.0 - f64::EPSILON),
            ("0x1p-1074", 5e-324),
            ("0x1p1024", f64::INFINITY),
            ("0x0p99999999999", 0.0),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_double(text), Some(value), "{text}");
        }
        for text in [
            "", " ", "f", "inf", "infinity", "nan", "0.5ff", "1e", "0,5", "5 f", ".", "0x1", "0xp1", "0x1p",
            "1p1",
        ] {
            assert_eq!(parse_double(text), None, "{text}");
        }
        assert!(parse_double("-NaN").is_some_and(f64::is_nan));
        assert_eq!(parse_float("0x1.000001p0"), Some(1.0));
        assert_eq!(parse_float("0x1.0000011p0"), Some(1.0 + f32::EPSILON));
    }
}
