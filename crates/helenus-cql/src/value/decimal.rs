//! Decimals as Java's `BigDecimal`: an unscaled integer and a scale, `unscaled * 10^-scale`.

use std::cmp::Ordering;
use std::fmt;

use bytes::Bytes;
use num_bigint::{BigInt, Sign};
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::{DIGITS_MAX, exactly};

/// Maximum bytes of a decimal's unscaled value and of a varint. Showing a number or changing its scale takes time quadratic in its length.
pub const NUMBER_BYTES_MAX: usize = 64 << 10;

/// A decimal. Equality is that of the representation (`1.0 != 1.00`, as `BigDecimal.equals`). [`Decimal::compare`] is the numeric order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    pub unscaled: BigInt,
    pub scale: i32,
}

impl Decimal {
    pub fn new(unscaled: impl Into<BigInt>, scale: i32) -> Decimal {
        Decimal {
            unscaled: unscaled.into(),
            scale,
        }
    }

    /// Decodes a serialized decimal. `None` if there are fewer than 4 bytes. Without digits, the value is zero.
    pub fn from_bytes(bytes: &[u8]) -> Option<Decimal> {
        let (scale, unscaled) = bytes.split_at_checked(4)?;
        let scale = i32::from_be_bytes(exactly(scale)?);
        Some(Decimal {
            unscaled: BigInt::from_signed_bytes_be(unscaled),
            scale,
        })
    }

    pub fn to_bytes(&self) -> Bytes {
        let mut out = self.scale.to_be_bytes().to_vec();
        out.extend_from_slice(&self.unscaled.to_signed_bytes_be());
        out.into()
    }

    /// Parses a number as `new BigDecimal(text)`. `None` if it is not one, or has more than [`DIGITS_MAX`] digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                if !super::java::is_integer(exponent) {
                    return None;
                }
                (mantissa, exponent.parse::<i32>().ok()?)
            }
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let unsigned = whole.strip_prefix(['+', '-']).unwrap_or(whole);
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let count = unsigned.len() + fraction.len();
        if !digits(unsigned) || !digits(fraction) || count == 0 || count > DIGITS_MAX as usize {
            return None;
        }
        let scale = i64::try_from(fraction.len()).ok()? - i64::from(exponent);
        let unscaled: BigInt = format!("{whole}{fraction}").parse().ok()?;
        Some(Decimal {
            unscaled,
            scale: i32::try_from(scale).ok()?,
        })
    }

    /// Returns `BigDecimal.valueOf(double)`, which has the digits of `Double.toString`. `None` for NaN and infinities.
    pub fn from_double(value: f64) -> Option<Decimal> {
        if value.is_finite() {
            Decimal::parse(&super::java::double_to_string(value))
        } else {
            None
        }
    }

    /// Returns the nearest double, as `BigDecimal.doubleValue`.
    pub fn to_double(&self) -> f64 {
        format!("{}e{}", self.unscaled, -i64::from(self.scale))
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// Returns the nearest float, as `BigDecimal.floatValue`.
    pub fn to_float(&self) -> f32 {
        format!("{}e{}", self.unscaled, -i64::from(self.scale))
            .parse()
            .unwrap_or(f32::NAN)
    }

    /// Returns the number of digits of the unscaled value (1 for zero).
    pub fn precision(&self) -> i64 {
        digits_of(&self.unscaled)
    }

    /// Returns the integer part, as `BigDecimal.toBigInteger`. `None` if more than [`DIGITS_MAX`] zeros would be appended.
    pub fn to_big_int(&self) -> Option<BigInt> {
        if self.scale <= 0 {
            return Some(&self.unscaled * power_of_ten(i64::from(self.scale).unsigned_abs())?);
        }
        if i64::from(self.scale) >= self.precision() {
            return Some(BigInt::zero());
        }
        Some(&self.unscaled / power_of_ten(u64::from(self.scale.unsigned_abs()))?)
    }

    /// Returns the unscaled value at a larger scale. `None` if more than [`DIGITS_MAX`] digits would be added.
    fn scaled_up(&self, scale: i64) -> Option<BigInt> {
        let missing = u64::try_from(scale - i64::from(self.scale)).ok()?;
        Some(&self.unscaled * power_of_ten(missing)?)
    }

    /// Returns both unscaled values at the larger of the two scales, and that scale.
    fn aligned(&self, other: &Decimal) -> Option<(BigInt, BigInt, i32)> {
        let scale = self.scale.max(other.scale);
        Some((
            self.scaled_up(i64::from(scale))?,
            other.scaled_up(i64::from(scale))?,
            scale,
        ))
    }

    /// Returns the sum, at the larger scale.
    pub fn add(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Decimal::new(a + b, scale))
    }

    /// Returns the difference, at the larger scale.
    pub fn subtract(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Decimal::new(a - b, scale))
    }

    /// Returns the product. Its scale is the sum of both scales.
    pub fn multiply(&self, other: &Decimal) -> Option<Decimal> {
        let scale = self.scale.checked_add(other.scale)?;
        Some(Decimal::new(&self.unscaled * &other.unscaled, scale))
    }

    /// Returns the remainder, as `BigDecimal.remainder`, with the sign of the dividend. `None` for a zero divisor.
    pub fn remainder(&self, other: &Decimal) -> Option<Decimal> {
        let quotient = self.divide_to_integral(other)?;
        self.subtract(&quotient.multiply(other)?)
    }

    /// Returns the integer part of the quotient, as `BigDecimal.divideToIntegralValue`. Its scale is as near as possible to the difference
    /// of the scales.
    fn divide_to_integral(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, _) = self.aligned(other)?;
        if b.is_zero() {
            return None;
        }
        let preferred = i32::try_from(i64::from(self.scale) - i64::from(other.scale)).ok()?;
        let quotient = Decimal::new(a / b, 0);
        if quotient.unscaled.is_zero() {
            return Some(Decimal::new(0, preferred));
        }
        if preferred >= 0 {
            return Some(Decimal::new(quotient.scaled_up(i64::from(preferred))?, preferred));
        }
        let stripped = quotient.strip_trailing_zeros();
        let scale = stripped.scale.max(preferred);
        Some(Decimal::new(stripped.scaled_up(i64::from(scale))?, scale))
    }

    pub fn negate(&self) -> Decimal {
        Decimal::new(-&self.unscaled, self.scale)
    }

    pub fn abs(&self) -> Decimal {
        Decimal::new(self.unscaled.abs(), self.scale)
    }

    /// Implements `setScale` with `RoundingMode.HALF_UP`.
    pub fn with_scale_half_up(&self, scale: i32) -> Option<Decimal> {
        if scale >= self.scale {
            return Some(Decimal::new(self.scaled_up(i64::from(scale))?, scale));
        }
        let dropped = i64::from(self.scale) - i64::from(scale);
        if dropped > self.precision() {
            return Some(Decimal::new(0, scale));
        }
        let divisor = power_of_ten(dropped.unsigned_abs())?;
        Some(Decimal::new(divide_half_up(&self.unscaled, &divisor), scale))
    }

    /// Implements `divide(other, scale, RoundingMode.HALF_UP)`. `None` for a zero divisor.
    pub fn divide_half_up(&self, other: &Decimal, scale: i32) -> Option<Decimal> {
        let (dividend, divisor) = self.quotient_parts(other, scale)?;
        Some(Decimal::new(divide_half_up(&dividend, &divisor), scale))
    }

    /// Implements `divide(other, scale, RoundingMode.HALF_EVEN)`. `None` for a zero divisor.
    pub fn divide_half_even(&self, other: &Decimal, scale: i32) -> Option<Decimal> {
        let (dividend, divisor) = self.quotient_parts(other, scale)?;
        Some(Decimal::new(divide_half_even(&dividend, &divisor), scale))
    }

    /// Returns a dividend and a divisor whose rounded quotient is the unscaled value of the result at that scale. `None` for a zero
    /// divisor.
    pub fn quotient_parts(&self, other: &Decimal, scale: i32) -> Option<(BigInt, BigInt)> {
        if other.unscaled.is_zero() {
            return None;
        }
        // The unscaled result is unscaled / other * 10^(scale - self.scale + other.scale).
        let shift = i64::from(scale) - i64::from(self.scale) + i64::from(other.scale);
        let power = power_of_ten(shift.unsigned_abs())?;
        Some(if shift >= 0 {
            (&self.unscaled * power, other.unscaled.clone())
        } else {
            (self.unscaled.clone(), &other.unscaled * power)
        })
    }

    /// Implements `round(new MathContext(precision, HALF_UP))`.
    pub fn round_to_precision(&self, precision: i64) -> Decimal {
        let excess = self.precision() - precision;
        let Ok(scale) = i32::try_from(i64::from(self.scale) - excess) else {
            return self.clone();
        };
        if excess <= 0 {
            return self.clone();
        }
        let Some(rounded) = self.with_scale_half_up(scale) else {
            return self.clone();
        };
        // Rounding may add a digit: 9.99 becomes 10.0.
        if rounded.precision() > precision {
            rounded.round_to_precision(precision)
        } else {
            rounded
        }
    }

    /// Returns the number without the zeros at the end of the unscaled value. Zero becomes `0`.
    pub fn strip_trailing_zeros(&self) -> Decimal {
        if self.unscaled.is_zero() {
            return Decimal::new(0, 0);
        }
        let digits = self.unscaled.to_string();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let room = i64::from(self.scale) - i64::from(i32::MIN);
        let zeros = zeros.min(usize::try_from(room).unwrap_or(0));
        let kept = digits.get(..digits.len() - zeros).unwrap_or(&digits);
        Decimal::new(
            kept.parse::<BigInt>().unwrap_or_default(),
            self.scale.wrapping_sub(zeros as i32),
        )
    }

    /// Implements `BigDecimal.toPlainString`, which has no exponent. Beyond [`DIGITS_MAX`] digits, the result is that of [`fmt::Display`].
    pub fn to_plain_string(&self) -> String {
        if self.scale.unsigned_abs() > DIGITS_MAX {
            return self.to_string();
        }
        if self.scale <= 0 {
            let zeros = if self.unscaled.is_zero() {
                0
            } else {
                self.scale.unsigned_abs() as usize
            };
            return format!("{}{}", self.unscaled, "0".repeat(zeros));
        }
        let scale = self.scale.unsigned_abs() as usize;
        let digits = format!(
            "{:0>width$}",
            self.unscaled.magnitude().to_string(),
            width = scale + 1
        );
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        format!("{}{whole}.{fraction}", sign_text(&self.unscaled))
    }
}

fn sign_text(value: &BigInt) -> &'static str {
    if value.sign() == Sign::Minus { "-" } else { "" }
}

/// Returns 10 to that power. `None` beyond [`DIGITS_MAX`].
pub fn power_of_ten(exponent: u64) -> Option<BigInt> {
    let exponent = u32::try_from(exponent)
        .ok()
        .filter(|exponent| *exponent <= DIGITS_MAX)?;
    Some(BigInt::from(10).pow(exponent))
}

/// Returns the number of decimal digits of the magnitude. 1 for zero.
pub fn digits_of(value: &BigInt) -> i64 {
    if let Some(small) = value.magnitude().to_u64() {
        return i64::from(small.checked_ilog10().unwrap_or(0)) + 1;
    }
    value.magnitude().to_string().len() as i64
}

fn divide_half_even(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let rounded = divide_half_up(dividend, divisor);
    let is_half = ((dividend % divisor).abs() * 2) == divisor.abs();
    // Half up has rounded away from zero. If that result is odd, the even one is a step nearer to zero.
    if is_half && rounded.bit(0) {
        dividend / divisor
    } else {
        rounded
    }
}

fn divide_half_up(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let quotient = dividend / divisor;
    let remainder = dividend % divisor;
    if remainder.abs() * 2 >= divisor.abs() {
        let away = if (dividend.sign() == Sign::Minus) == (divisor.sign() == Sign::Minus) {
            BigInt::one()
        } else {
            -BigInt::one()
        };
        return quotient + away;
    }
    quotient
}

impl Decimal {
    /// Compares numerically, as `BigDecimal.compareTo`: `1.0` and `1.00` compare as equal, although they are not `==`.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        let signs = self.unscaled.sign().cmp(&other.unscaled.sign());
        if signs.is_ne() || self.unscaled.is_zero() {
            return signs;
        }
        let magnitude = |decimal: &Decimal| decimal.precision() - i64::from(decimal.scale);
        let order = magnitude(self).cmp(&magnitude(other)).then_with(|| {
            // The magnitudes are equal, so the scales differ no more than the precisions do.
            let scale = i64::from(self.scale.max(other.scale));
            let widen = |decimal: &Decimal| {
                let missing = u32::try_from(scale - i64::from(decimal.scale)).unwrap_or(0);
                decimal.unscaled.abs() * BigInt::from(10).pow(missing)
            };
            widen(self).cmp(&widen(other))
        });
        if self.unscaled.is_negative() {
            order.reverse()
        } else {
            order
        }
    }
}

impl fmt::Display for Decimal {
    /// Writes `BigDecimal.toString`: plain if the scale is not negative and the exponent is at least -6, and scientific otherwise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.unscaled);
        }
        let digits = self.unscaled.magnitude().to_string();
        let exponent = digits.len() as i64 - 1 - i64::from(self.scale);
        if self.scale > 0 && exponent >= -6 {
            return f.write_str(&self.to_plain_string());
        }
        let (head, tail) = digits.split_at(1.min(digits.len()));
        let point = if tail.is_empty() { "" } else { "." };
        let sign = sign_text(&self.unscaled);
        if exponent == 0 {
            return write!(f, "{sign}{head}{point}{tail}");
        }
        write!(f, "{sign}{head}{point}{tail}E{exponent:+}")
    }
}
