//! `RoundingMode`, and rounding of `BigDecimal`.

use std::cmp::Ordering;

use helenus_cql::value::Decimal;
use num_bigint::{BigInt, Sign};

use crate::error::Failure;

/// The treatment of digits that a scale has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundingMode {
    Up,
    Down,
    Ceiling,
    Floor,
    HalfUp,
    HalfDown,
    HalfEven,
    Unnecessary,
}

const NAMES: &[(&str, RoundingMode)] = &[
    ("UP", RoundingMode::Up),
    ("DOWN", RoundingMode::Down),
    ("CEILING", RoundingMode::Ceiling),
    ("FLOOR", RoundingMode::Floor),
    ("HALF_UP", RoundingMode::HalfUp),
    ("HALF_DOWN", RoundingMode::HalfDown),
    ("HALF_EVEN", RoundingMode::HalfEven),
    ("UNNECESSARY", RoundingMode::Unnecessary),
];

impl RoundingMode {
    pub fn named(name: &str) -> Option<RoundingMode> {
        let found = NAMES.iter().find(|(other, _)| *other == name);
        found.map(|(_, mode)| *mode)
    }

    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(_, mode)| *mode == self);
        found.map_or("", |(name, _)| name)
    }
}

/// Implements `dividend.divide(divisor, scale, mode)`.
///
/// # Errors
/// If the divisor is zero, if the mode does not allow rounding but digits would be lost, or if the result is too large.
pub(crate) fn divide(
    dividend: &Decimal,
    divisor: &Decimal,
    scale: i32,
    mode: RoundingMode,
) -> Result<Decimal, Failure> {
    let arithmetic = |message: &str| Failure::thrown("java.lang.ArithmeticException", message);
    if divisor.unscaled == BigInt::ZERO {
        return Err(arithmetic("/ by zero"));
    }
    let parts = dividend.quotient_parts(divisor, scale);
    let (dividend, divisor) = parts.ok_or_else(|| arithmetic("the result is too large"))?;
    let (quotient, rest) = (&dividend / &divisor, &dividend % &divisor);
    if rest == BigInt::ZERO {
        return Ok(Decimal::new(quotient, scale));
    }
    let is_negative = (dividend.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
    // Order of the discarded digits relative to half a unit of the last digit.
    let half = (rest.magnitude() * 2u32).cmp(divisor.magnitude());
    let is_odd = quotient.bit(0);
    let is_away = match mode {
        RoundingMode::Up => true,
        RoundingMode::Down => false,
        RoundingMode::Ceiling => !is_negative,
        RoundingMode::Floor => is_negative,
        RoundingMode::HalfUp => half != Ordering::Less,
        RoundingMode::HalfDown => half == Ordering::Greater,
        RoundingMode::HalfEven => half == Ordering::Greater || half == Ordering::Equal && is_odd,
        RoundingMode::Unnecessary => return Err(arithmetic("Rounding necessary")),
    };
    let step = if is_negative { -1 } else { 1 };
    let rounded = if is_away { quotient + step } else { quotient };
    Ok(Decimal::new(rounded, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_where_the_mode_says() {
        let rounded = |text: &str, mode: &str| {
            let number = Decimal::parse(text).unwrap();
            let mode = RoundingMode::named(mode).unwrap();
            divide(&number, &Decimal::new(1, 0), 1, mode)
                .map(|number| number.to_string())
                .ok()
        };
        let all = |text: &str| {
            let modes = NAMES.iter().filter(|(name, _)| *name != "UNNECESSARY");
            modes
                .map(|(name, _)| rounded(text, name).unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(all("1.25"), "1.3 1.2 1.3 1.2 1.3 1.2 1.2");
        assert_eq!(all("-1.25"), "-1.3 -1.2 -1.2 -1.3 -1.3 -1.2 -1.2");
        assert_eq!(all("1.35"), "1.4 1.3 1.4 1.3 1.4 1.3 1.4");
        assert_eq!(all("1.21"), "1.3 1.2 1.3 1.2 1.2 1.2 1.2");
        assert_eq!(rounded("1.21", "UNNECESSARY"), None);
        assert_eq!(rounded("1.20", "UNNECESSARY"), Some("1.2".to_owned()));
    }
}
