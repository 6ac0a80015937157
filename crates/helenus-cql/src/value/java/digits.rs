//! The digits of floating-point numbers as computed by Java up to version 18 (`FloatingDecimal.dtoa`). They are mostly, but not always, the
//! fewest that read back as the number. Newer versions of Java compute other digits, but Cassandra 5 does not run on them.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

/// Bits of a double's fraction.
const FRACTION_BITS: i32 = 52;
const EXPONENT_BIAS: i32 = 1023;
/// Bits of a float's fraction.
const FLOAT_FRACTION_BITS: i32 = 23;
const FLOAT_EXPONENT_BIAS: i32 = 127;
/// Number of powers of five that fit into a long.
const LONG_POWERS: i32 = 27;

/// The decimal digits of a number: `0.d1d2d3… * 10^exponent`.
#[derive(Debug, PartialEq, Eq)]
pub struct Digits {
    pub digits: Vec<u8>,
    pub exponent: i32,
}

/// A finite number other than zero: `fraction * 2^(exponent - 52)`. The fraction has 53 bits, of which the highest is set.
struct Binary {
    fraction: u64,
    exponent: i32,
    significant_bits: i32,
}

impl Digits {
    /// Returns the digits of a finite number other than zero. The sign is ignored.
    pub fn of_double(value: f64) -> Digits {
        let bits = value.to_bits();
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        let exponent = (bits >> FRACTION_BITS & 0x7ff) as i32;
        Binary::normal(fraction, exponent, FRACTION_BITS, EXPONENT_BIAS).digits()
    }

    /// Returns the digits of a finite number other than zero. The sign is ignored.
    pub fn of_float(value: f32) -> Digits {
        let bits = value.to_bits();
        let fraction = u64::from(bits & ((1 << FLOAT_FRACTION_BITS) - 1));
        let exponent = (bits >> FLOAT_FRACTION_BITS & 0xff) as i32;
        Binary::normal(fraction, exponent, FLOAT_FRACTION_BITS, FLOAT_EXPONENT_BIAS).digits()
    }

    /// Adds one to the last digit.
    fn round_up(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        if let Some(first) = self.digits.first_mut() {
            *first = 1;
        }
        self.exponent += 1;
    }
}

impl Binary {
    fn normal(fraction: u64, exponent: i32, fraction_bits: i32, bias: i32) -> Binary {
        let widened = FRACTION_BITS - fraction_bits;
        if exponent == 0 {
            let significant_bits = 64 - fraction.leading_zeros() as i32;
            let shift = fraction_bits + 1 - significant_bits;
            return Binary {
                fraction: fraction << (shift + widened),
                exponent: 1 - shift - bias,
                significant_bits,
            };
        }
        Binary {
            fraction: (fraction | 1 << fraction_bits) << widened,
            exponent: exponent - bias,
            significant_bits: fraction_bits + 1,
        }
    }

    fn digits(&self) -> Digits {
        let trailing_zeros = self.fraction.trailing_zeros() as i32;
        let fraction_bits = FRACTION_BITS + 1 - trailing_zeros;
        // Number of bits behind the point.
        let tiny_bits = (fraction_bits - self.exponent - 1).max(0);
        if tiny_bits == 0 && self.exponent <= 62 {
            return self.whole();
        }
        self.divided(self.fraction >> trailing_zeros, fraction_bits, tiny_bits)
    }

    /// Returns the digits of a whole number that fits into a long. Digits below the number's precision are rounded off.
    fn whole(&self) -> Digits {
        let shift = self.exponent - FRACTION_BITS;
        let mut value = match shift >= 0 {
            true => self.fraction << shift,
            false => self.fraction >> -shift,
        };
        let mut exponent = 1;
        let excess = (self.exponent - self.significant_bits - 1).max(0);
        // Number of decimal digits below the number's precision.
        let insignificant = (f64::from(excess) * std::f64::consts::LOG10_2) as u32;
        if insignificant > 0 {
            let power = 10_u64.pow(insignificant);
            let residue = value % power;
            value = value / power + u64::from(residue >= power / 2);
            exponent += insignificant as i32;
        }
        while value % 10 == 0 {
            value /= 10;
            exponent += 1;
        }
        let digits: Vec<u8> = value.to_string().bytes().map(|digit| digit - b'0').collect();
        Digits {
            exponent: exponent - 1 + digits.len() as i32,
            digits,
        }
    }

    /// Computes digit by digit, until the rest is less than half of the last bit's value.
    fn divided(&self, fraction: u64, fraction_bits: i32, tiny_bits: i32) -> Digits {
        let mut decimal = self.estimated_exponent();
        // The number is numerator / denominator * 10^decimal. Half of its last bit is half / denominator * 10^decimal.
        let numerator_fives = (-decimal).max(0);
        let mut numerator_twos = numerator_fives + tiny_bits + self.exponent;
        let denominator_fives = decimal.max(0);
        let mut denominator_twos = denominator_fives + tiny_bits;
        let mut half_twos = numerator_twos - self.significant_bits;
        numerator_twos -= fraction_bits - 1;
        let common = numerator_twos.min(denominator_twos);
        numerator_twos -= common;
        denominator_twos -= common;
        half_twos -= common;
        if fraction_bits == 1 {
            half_twos -= 1;
        }
        if half_twos < 0 {
            numerator_twos -= half_twos;
            denominator_twos -= half_twos;
            half_twos = 0;
        }
        let is_narrow = fraction_bits + numerator_twos + bits_of_fives(numerator_fives) < 64
            && denominator_twos + 1 + bits_of_fives(denominator_fives + 1) < 64;
        let scaled = |factor: u64, fives: i32, twos: i32| {
            (BigUint::from(factor) * BigUint::from(5_u32).pow(fives.unsigned_abs())) << twos.unsigned_abs()
        };
        let denominator = scaled(1, denominator_fives, denominator_twos);
        let ten = &denominator * 10_u32;
        let mut rest = scaled(fraction, numerator_fives, numerator_twos);
        let mut half = scaled(1, numerator_fives, half_twos);
        let mut next = |rest: &mut BigUint| {
            let digit = &*rest / &denominator;
            *rest = (&*rest - &digit * &denominator) * 10_u32;
            half *= 10_u32;
            let sum = &*rest + &half;
            // Java compares with `>` when it computes in longs, and with `>=` in its big integers.
            let is_high = if is_narrow { sum > ten } else { sum >= ten };
            (digit.to_u8().unwrap_or_default(), *rest < half, is_high)
        };
        let mut digits = Vec::with_capacity(18);
        let (first, mut is_low, mut is_high) = next(&mut rest);
        if first == 0 && !is_high {
            decimal -= 1;
        } else {
            digits.push(first);
        }
        // Scientific notation has at least one digit behind the point.
        if !(-3..8).contains(&decimal) {
            (is_low, is_high) = (false, false);
        }
        while !is_low && !is_high {
            let digit;
            (digit, is_low, is_high) = next(&mut rest);
            digits.push(digit);
        }
        let mut found = Digits {
            digits,
            exponent: decimal + 1,
        };
        let is_odd = found.digits.last().is_some_and(|digit| digit % 2 == 1);
        let is_up = match (rest * 2_u32).cmp(&ten) {
            _ if !is_high => false,
            _ if !is_low => true,
            std::cmp::Ordering::Equal => is_odd,
            order => order.is_gt(),
        };
        if is_up {
            found.round_up();
        }
        found
    }

    /// Returns the decimal exponent of the first digit, or that exponent plus one.
    fn estimated_exponent(&self) -> i32 {
        #[expect(clippy::approx_constant, reason = "as Java has it, a digit short")]
        const LOG10_2: f64 = 0.301029995663981;
        let one = (EXPONENT_BIAS as u64) << FRACTION_BITS;
        let mantissa = f64::from_bits(one | (self.fraction & ((1 << FRACTION_BITS) - 1)));
        let estimate = (mantissa - 1.5) * 0.289529654 + 0.176091259 + f64::from(self.exponent) * LOG10_2;
        estimate.floor() as i32
    }
}

/// Returns the number of bits of a power of five. The result is approximate for high powers.
fn bits_of_fives(power: i32) -> i32 {
    match power {
        0 => 0,
        1..LONG_POWERS => 64 - 5_u64.pow(power.unsigned_abs()).leading_zeros() as i32,
        _ => power * 3,
    }
}

#[cfg(test)]
mod tests {
    use super::Digits;

    fn double(value: f64) -> (String, i32) {
        let found = Digits::of_double(value);
        (
            found.digits.iter().map(ToString::to_string).collect(),
            found.exponent,
        )
    }

    #[test]
    fn digits_are_those_of_java() {
        for (value, digits, exponent) in [
            (1.0, "1", 1),
            (0.1, "1", 0),
            (100.0, "1", 3),
            (5007494523874035768.0, "50074945238740357", 19),
            (1988355078652859101.0, "198835507865285914", 19),
            (8e16, "8", 17),
            (2e-3, "2", -2),
            (f64::MAX, "17976931348623157", 309),
            (5e-324, "49", -323),
        ] {
            assert_eq!(double(value), (digits.to_owned(), exponent), "{value}");
        }
    }
}
