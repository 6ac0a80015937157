//! `abs`, `exp`, `log`, `log10` and `round` (Cassandra's `MathFcts`).

use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::Decimal;
use num_bigint::{BigInt, Sign};
use num_traits::Signed;

use super::number::{NUMERIC, Number};
use super::{NativeFunction, decimal_math};

/// Returns every function for every numeric type.
pub fn functions() -> Vec<NativeFunction> {
    let mut functions = Vec::new();
    for native in NUMERIC {
        for (name, body) in [
            ("abs", abs as fn(&Number) -> Result<Number, String>),
            ("exp", exp),
            ("log", log),
            ("log10", log10),
            ("round", round),
        ] {
            functions.push(function(name, native, body));
        }
    }
    functions
}

fn function(name: &str, native: NativeType, body: fn(&Number) -> Result<Number, String>) -> NativeFunction {
    let ty = CqlType::Native(native);
    let arg = ty.clone();
    NativeFunction::new(name, [ty.clone()], ty, move |args, _| {
        let Some(number) = args
            .first()
            .and_then(|value| Number::decode(&arg, value.as_ref()))
        else {
            return Ok(None);
        };
        // Java's ArithmeticException becomes a server error, as in Cassandra.
        Ok(Some(body(&number).map_err(CqlError::Server)?.encode()))
    })
}

fn abs(number: &Number) -> Result<Number, String> {
    Ok(match number {
        Number::Byte(value) => Number::Byte(value.wrapping_abs()),
        Number::Short(value) => Number::Short(value.wrapping_abs()),
        Number::Int(value) => Number::Int(value.wrapping_abs()),
        Number::Long(value) => Number::Long(value.wrapping_abs()),
        Number::Float(value) => Number::Float(value.abs()),
        Number::Double(value) => Number::Double(value.abs()),
        Number::Varint(value) => Number::Varint(value.abs()),
        Number::Decimal(value) => Number::Decimal(value.abs()),
    })
}

/// Computes on doubles, and converts the result back to the type of the number.
fn through_double(number: &Number, body: fn(f64) -> f64) -> Number {
    let result = Number::Double(body(number.to_double()));
    match number {
        Number::Byte(_) => Number::Byte(result.to_byte()),
        Number::Short(_) => Number::Short(result.to_short()),
        Number::Int(_) => Number::Int(result.to_int()),
        Number::Float(_) => Number::Float(result.to_float()),
        Number::Double(_) => result,
        _ => Number::Long(result.to_long()),
    }
}

/// Computes on decimals if the number is a decimal or varint, and on doubles otherwise. A varint gets the integer part of the result.
fn through_decimal(
    number: &Number,
    plain: fn(f64) -> f64,
    body: fn(&Decimal) -> Option<Decimal>,
) -> Result<Number, String> {
    let overflow = || "Overflow".to_owned();
    Ok(match number {
        Number::Decimal(value) => Number::Decimal(body(value).ok_or_else(overflow)?),
        Number::Varint(value) => {
            let result = body(&Decimal::new(value.clone(), 0)).ok_or_else(overflow)?;
            Number::Varint(result.to_big_int().ok_or_else(overflow)?)
        }
        other => through_double(other, plain),
    })
}

fn exp(number: &Number) -> Result<Number, String> {
    through_decimal(number, f64::exp, decimal_math::exp)
}

fn refuse_not_positive(number: &Number, function: &str) -> Result<(), String> {
    let unscaled: &BigInt = match number {
        Number::Varint(value) => value,
        Number::Decimal(value) => &value.unscaled,
        _ => return Ok(()),
    };
    if unscaled.sign() == Sign::Plus {
        Ok(())
    } else {
        Err(format!("{function} of number zero or less"))
    }
}

fn log(number: &Number) -> Result<Number, String> {
    refuse_not_positive(number, "Natural log")?;
    through_decimal(number, f64::ln, decimal_math::ln)
}

fn log10(number: &Number) -> Result<Number, String> {
    refuse_not_positive(number, "Log10")?;
    through_decimal(number, f64::log10, decimal_math::log10)
}

fn round(number: &Number) -> Result<Number, String> {
    Ok(match number {
        // As in Java's Math.round, halves are rounded up, and the result is an int or a long.
        Number::Float(value) => Number::Float(((f64::from(*value) + 0.5).floor() as i32) as f32),
        Number::Double(value) => Number::Double(round_double(*value) as f64),
        Number::Decimal(value) => {
            Number::Decimal(value.with_scale_half_up(0).ok_or_else(|| "Overflow".to_owned())?)
        }
        other => other.clone(),
    })
}

/// Rounds as `Math.round(double)` does. `value + 0.5` alone would round the largest double below a half up.
fn round_double(value: f64) -> i64 {
    let floor = value.floor();
    (if value - floor >= 0.5 { floor + 1.0 } else { floor }) as i64
}
