//! The exponential and the logarithms of decimals, with 32 digits or as many as the argument has.
//!
//! The results are computed on integers scaled by a power of ten, with more digits than the result keeps.

use helenus_cql::value::Decimal;
use helenus_cql::value::decimal::power_of_ten;
use num_bigint::BigInt;

use num_traits::{One, Signed, ToPrimitive, Zero};

const PRECISION_MIN: i64 = 32;
/// Maximum number of digits. Cassandra computes up to 10,000 digits. The limit here is lower, because a query must not run long.
const PRECISION_MAX: i64 = 1_000;
const GUARD_DIGITS: i64 = 12;
/// Maximum exponent. A larger one would take the result out of the range of a decimal's scale.
const EXPONENT_MAX: f64 = 4e9;

fn precision_of(value: &Decimal) -> i64 {
    value.precision().clamp(PRECISION_MIN, PRECISION_MAX)
}

/// Returns the value as a fixed-point number with `decimals` decimals, truncated.
fn fixed(value: &Decimal, decimals: i64) -> Option<BigInt> {
    let shift = decimals - i64::from(value.scale);
    if shift >= 0 {
        Some(&value.unscaled * power_of_ten(shift.unsigned_abs())?)
    } else {
        match power_of_ten(shift.unsigned_abs()) {
            Some(power) => Some(&value.unscaled / power),
            None => Some(BigInt::zero()),
        }
    }
}

/// Returns e to the power of the number. `None` if the result is out of range.
///
/// `e^x = 10^k * e^r` with r between 0 and ln 10, so that no more digits are computed than are kept.
pub fn exp(value: &Decimal) -> Option<Decimal> {
    if value.unscaled.is_zero() {
        return Some(Decimal::new(1, 0));
    }
    let approximate = value.to_double();
    if !approximate.is_finite() || approximate.abs() > EXPONENT_MAX {
        return None;
    }
    let precision = precision_of(value);
    let decimals = precision + 2 * GUARD_DIGITS;
    let one = power_of_ten(decimals.unsigned_abs())?;
    let ten = ln_small(&(&one * 10), &one, decimals)?;
    let power = (approximate / std::f64::consts::LN_10).floor() as i64;
    let rest = fixed(value, decimals)? - ten * power;
    let scale = i32::try_from(decimals - power).ok()?;
    Some(Decimal::new(exp_of_fixed(&rest, &one), scale).round_to_precision(precision))
}

fn exp_series(x: &BigInt, one: &BigInt) -> BigInt {
    let (mut sum, mut term) = (one.clone(), one.clone());
    let mut n = 1u32;
    while !term.is_zero() && n < 100_000 {
        term = &term * x / one / n;
        sum += &term;
        n += 1;
    }
    sum
}

/// Returns the natural logarithm of a positive number, in fixed point. The number 1 is represented by ten to the power of `decimals`.
fn ln_fixed(value: &Decimal, decimals: i64) -> Option<BigInt> {
    let one = power_of_ten(decimals.unsigned_abs())?;
    // value = mantissa * 10^exponent, mantissa in [0.1, 1).
    let exponent = value.precision() - i64::from(value.scale);
    let mantissa = fixed(
        &Decimal::new(value.unscaled.clone(), i32::try_from(value.precision()).ok()?),
        decimals,
    )?;
    let ten = ln_small(&(&one * 10), &one, decimals)?;
    Some(ln_small(&mantissa, &one, decimals)? + ten * exponent)
}

/// Returns the natural logarithm by Newton's method on e^y = x. The first approximation is a double, and each step doubles the number of
/// correct digits.
fn ln_small(x: &BigInt, one: &BigInt, decimals: i64) -> Option<BigInt> {
    let approximate = Decimal::new(x.clone(), i32::try_from(decimals).ok()?)
        .to_double()
        .ln();
    let mut y = fixed(&Decimal::from_double(approximate)?, decimals)?;
    let mut right_digits = 14;
    while right_digits < 2 * decimals {
        let power = exp_of_fixed(&y, one);
        // y + 2 (x - e^y) / (x + e^y)
        y += (x - &power) * 2 * one / (x + &power);
        right_digits *= 2;
    }
    Some(y)
}

fn exp_of_fixed(y: &BigInt, one: &BigInt) -> BigInt {
    const HALVINGS: u32 = 8;
    let scaled_one = one << 64;
    let mut result = exp_series(&((y << 64) >> HALVINGS), &scaled_one);
    for _ in 0..HALVINGS {
        result = &result * &result / &scaled_one;
    }
    result >> 64
}

/// Returns the natural logarithm of a positive number.
pub fn ln(value: &Decimal) -> Option<Decimal> {
    ln_to(value, precision_of(value))
}

fn ln_to(value: &Decimal, precision: i64) -> Option<Decimal> {
    if value.compare(&Decimal::new(1, 0)).is_eq() {
        return Some(Decimal::new(0, 0));
    }
    let decimals = precision + GUARD_DIGITS + digits_lost_near_one(value);
    let result = ln_fixed(value, decimals)?;
    Some(Decimal::new(result, i32::try_from(decimals).ok()?).round_to_precision(precision))
}

/// Returns the decimal logarithm of a positive number: the quotient of two rounded logarithms, as in Cassandra. The rounding decides for
/// which powers of ten the result has zeros behind the decimal point.
pub fn log10(value: &Decimal) -> Option<Decimal> {
    const DIGITS_MORE: i64 = 2;
    let precision = precision_of(value);
    let dividend = ln_to(value, precision + DIGITS_MORE)?;
    let divisor = ln_to(&Decimal::new(10, 0), precision + DIGITS_MORE)?;
    Some(quotient(&dividend, &divisor, precision + DIGITS_MORE)?.round_to_precision(precision))
}

/// Returns `dividend.divide(divisor, new MathContext(precision, HALF_UP))`. An exact quotient has the scale nearest to the difference of
/// the two scales.
fn quotient(dividend: &Decimal, divisor: &Decimal, precision: i64) -> Option<Decimal> {
    let preferred = i64::from(dividend.scale) - i64::from(divisor.scale);
    if dividend.unscaled.is_zero() {
        return Some(Decimal::new(0, i32::try_from(preferred).ok()?));
    }
    let magnitude =
        dividend.precision() - i64::from(dividend.scale) - divisor.precision() + i64::from(divisor.scale);
    let scale = i32::try_from(precision + 1 - magnitude).ok()?;
    let rounded = dividend
        .divide_half_up(divisor, scale)?
        .round_to_precision(precision);
    if rounded.multiply(divisor)?.compare(dividend).is_ne() {
        return Some(rounded);
    }
    let stripped = rounded.strip_trailing_zeros();
    stripped.with_scale_half_up(stripped.scale.max(i32::try_from(preferred).ok()?))
}

/// Returns how many more decimals are needed for a value near 1. The logarithm of 1 + d is about d, so one more decimal is needed for each
/// zero at the front of d.
fn digits_lost_near_one(value: &Decimal) -> i64 {
    let Some(distance) = value.subtract(&Decimal::new(BigInt::one(), 0)) else {
        return 0;
    };
    let zeros = i64::from(distance.scale) - distance.precision();
    if distance.unscaled.abs().to_u8() == Some(0) {
        0
    } else {
        zeros.max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log10_of(text: &str) -> String {
        log10(&Decimal::parse(text).unwrap()).unwrap().to_string()
    }

    #[test]
    fn powers_of_ten_have_the_scales_of_quotients() {
        assert_eq!(log10_of("100"), "2");
        assert_eq!(log10_of("0.1"), "-1");
        assert_eq!(log10_of("1e10"), "1E+1");
        assert_eq!(log10_of("1.0"), "0E+33");
        assert_eq!(log10_of("1000"), format!("3.{}", "0".repeat(31)));
        assert_eq!(log10_of("2000"), "3.3010299956639811952137388947245");
    }
}
