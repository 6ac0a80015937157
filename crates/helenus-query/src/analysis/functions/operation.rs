//! The operators `+ - * / %` and negation (Cassandra's `OperationFcts`).

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::decimal::NUMBER_BYTES_MAX;
use helenus_cql::value::{Decimal, Duration, date};
use num_bigint::BigInt;
use num_traits::Zero;

use super::NativeFunction;
use super::native::ColumnName;
use super::number::{NUMERIC, Number, is_floating_point, size};
use super::time::millis_of;

/// Maximum number of digits of sums and products of decimals.
const DECIMAL_PRECISION_MAX: i64 = 10_000;
/// Minimum number of digits, and minimum and maximum number of decimals, of a quotient of decimals.
const QUOTIENT_DIGITS_MIN: i64 = 32;
const QUOTIENT_SCALE_MIN: i64 = 32;
const QUOTIENT_SCALE_MAX: i64 = 1_000;

const BY_ZERO: &str = "/ by zero";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Operator {
    const ALL: [Operator; 5] = [
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Divide,
        Operator::Modulo,
    ];

    fn symbol(self) -> char {
        match self {
            Operator::Add => '+',
            Operator::Subtract => '-',
            Operator::Multiply => '*',
            Operator::Divide => '/',
            Operator::Modulo => '%',
        }
    }

    fn function_name(self) -> &'static str {
        match self {
            Operator::Add => "_add",
            Operator::Subtract => "_substract",
            Operator::Multiply => "_multiply",
            Operator::Divide => "_divide",
            Operator::Modulo => "_modulo",
        }
    }
}

/// Returns the symbol of the operator that a native function computes.
pub fn symbol_of(function: &str) -> Option<char> {
    Operator::ALL
        .into_iter()
        .find(|operator| operator.function_name() == function)
        .map(Operator::symbol)
}

/// Returns all operators for every pair of types.
pub fn functions() -> Vec<NativeFunction> {
    let mut functions = Vec::new();
    for left in NUMERIC {
        for right in NUMERIC {
            for operator in Operator::ALL {
                functions.push(numeric(operator, left, right));
            }
        }
        functions.push(negation(left));
    }
    for operator in [Operator::Add, Operator::Subtract] {
        functions.push(on_timestamp(operator));
        functions.push(on_date(operator));
    }
    for (left, right) in [
        (CqlType::TEXT, CqlType::TEXT),
        (CqlType::ASCII, CqlType::ASCII),
        (CqlType::ASCII, CqlType::TEXT),
        (CqlType::TEXT, CqlType::ASCII),
    ] {
        functions.push(concatenation(left, right));
    }
    functions
}

fn infix(operator: Operator, function: NativeFunction) -> NativeFunction {
    function.named_as(ColumnName::Infix(operator.symbol()))
}

/// Returns the error of an operation that failed (`OperationExecutionException`).
fn failure(operator: Operator, left: &CqlType, right: &CqlType, reason: &str) -> CqlError {
    CqlError::FunctionFailure {
        message: format!(
            "the operation '{left} {} {right}' failed: {reason}",
            operator.symbol()
        ),
        keyspace: "system".to_owned(),
        function: operator.function_name().to_owned(),
        arg_types: vec![left.to_string(), right.to_string()],
    }
}

fn result_type(left: NativeType, right: NativeType) -> NativeType {
    let larger = match (size(left), size(right)) {
        (Some(left), Some(right)) => Some(left.max(right)),
        _ => None,
    };
    if is_floating_point(left) || is_floating_point(right) {
        return match larger {
            Some(4) => NativeType::Float,
            Some(8) => NativeType::Double,
            _ => NativeType::Decimal,
        };
    }
    match larger {
        Some(1) => NativeType::Tinyint,
        Some(2) => NativeType::Smallint,
        Some(4) => NativeType::Int,
        Some(_) => NativeType::Bigint,
        None => NativeType::Varint,
    }
}

fn numeric(operator: Operator, left: NativeType, right: NativeType) -> NativeFunction {
    let result = result_type(left, right);
    let (left, right) = (CqlType::Native(left), CqlType::Native(right));
    let types = [left.clone(), right.clone()];
    let name = operator.function_name();
    let function = NativeFunction::new(name, types, CqlType::Native(result), move |args, _| {
        let [a, b] = args else { return Ok(None) };
        let (Some(a), Some(b)) = (
            Number::decode(&left, a.as_ref()),
            Number::decode(&right, b.as_ref()),
        ) else {
            return Ok(None);
        };
        match compute(operator, result, &a, &b) {
            Ok(number) => Ok(Some(number.encode())),
            Err(reason) => Err(failure(operator, &left, &right, &reason)),
        }
    });
    infix(operator, function)
}

fn compute(operator: Operator, result: NativeType, a: &Number, b: &Number) -> Result<Number, String> {
    Ok(match result {
        NativeType::Tinyint => {
            Number::Byte(on_longs(operator, i64::from(a.to_byte()), i64::from(b.to_byte()))? as i8)
        }
        NativeType::Smallint => {
            Number::Short(on_longs(operator, i64::from(a.to_short()), i64::from(b.to_short()))? as i16)
        }
        NativeType::Int => {
            Number::Int(on_longs(operator, i64::from(a.to_int()), i64::from(b.to_int()))? as i32)
        }
        NativeType::Float => {
            let (a, b) = (a.to_float(), b.to_float());
            Number::Float(match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide => a / b,
                Operator::Modulo => a % b,
            })
        }
        NativeType::Double => {
            let (a, b) = (a.to_double(), b.to_double());
            Number::Double(match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide => a / b,
                Operator::Modulo => a % b,
            })
        }
        NativeType::Varint => Number::Varint(on_varints(operator, &a.to_varint(), &b.to_varint())?),
        NativeType::Decimal => Number::Decimal(on_decimals(operator, &a.to_decimal()?, &b.to_decimal()?)?),
        _ => Number::Long(on_longs(operator, a.to_long(), b.to_long())?),
    })
}

/// Computes an operation that wraps around, as in Java.
fn on_longs(operator: Operator, a: i64, b: i64) -> Result<i64, String> {
    match operator {
        Operator::Add => Ok(a.wrapping_add(b)),
        Operator::Subtract => Ok(a.wrapping_sub(b)),
        Operator::Multiply => Ok(a.wrapping_mul(b)),
        _ if b == 0 => Err(BY_ZERO.to_owned()),
        Operator::Divide => Ok(a.wrapping_div(b)),
        Operator::Modulo => Ok(a.wrapping_rem(b)),
    }
}

fn on_varints(operator: Operator, a: &BigInt, b: &BigInt) -> Result<BigInt, String> {
    match operator {
        Operator::Add => Ok(a + b),
        Operator::Subtract => Ok(a - b),
        // Java has this error at a greater size. The limit here is lower, because a chain of products must not grow without end.
        Operator::Multiply if (a.bits() + b.bits()).div_ceil(8) > NUMBER_BYTES_MAX as u64 => {
            Err("BigInteger would overflow supported range".to_owned())
        }
        Operator::Multiply => Ok(a * b),
        _ if b.is_zero() => Err("BigInteger divide by zero".to_owned()),
        Operator::Divide => Ok(a / b),
        Operator::Modulo => Ok(a % b),
    }
}

fn on_decimals(operator: Operator, a: &Decimal, b: &Decimal) -> Result<Decimal, String> {
    let too_large = || "Overflow".to_owned();
    let round = |decimal: Decimal| decimal.round_to_precision(DECIMAL_PRECISION_MAX);
    match operator {
        Operator::Add => a.add(b).map(round).ok_or_else(too_large),
        Operator::Subtract => a.subtract(b).map(round).ok_or_else(too_large),
        Operator::Multiply => a.multiply(b).map(round).ok_or_else(too_large),
        Operator::Divide if b.unscaled.is_zero() => Err("BigInteger divide by zero".to_owned()),
        Operator::Divide => quotient(a, b).ok_or_else(too_large),
        Operator::Modulo if b.unscaled.is_zero() => Err("Division by zero".to_owned()),
        Operator::Modulo => a.remainder(b).ok_or_else(too_large),
    }
}

fn quotient(a: &Decimal, b: &Decimal) -> Option<Decimal> {
    let (a_scale, b_scale) = (i64::from(a.scale), i64::from(b.scale));
    let first_digit = (a.precision() - a_scale) - (b.precision() - b_scale);
    let scale = (QUOTIENT_DIGITS_MIN - first_digit)
        .max(a_scale)
        .max(b_scale)
        .clamp(QUOTIENT_SCALE_MIN, QUOTIENT_SCALE_MAX);
    Some(
        a.divide_half_up(b, i32::try_from(scale).ok()?)?
            .strip_trailing_zeros(),
    )
}

fn negation(native: NativeType) -> NativeFunction {
    let ty = CqlType::Native(native);
    let arg = ty.clone();
    let function = NativeFunction::new("_negate", [ty.clone()], ty, move |args, _| {
        let number = args
            .first()
            .and_then(|value| Number::decode(&arg, value.as_ref()));
        Ok(number.map(|number| negate(number).encode()))
    });
    function.named_as(ColumnName::Prefix('-'))
}

fn negate(number: Number) -> Number {
    match number {
        Number::Byte(value) => Number::Byte(value.wrapping_neg()),
        Number::Short(value) => Number::Short(value.wrapping_neg()),
        Number::Int(value) => Number::Int(value.wrapping_neg()),
        Number::Long(value) => Number::Long(value.wrapping_neg()),
        Number::Float(value) => Number::Float(-value),
        Number::Double(value) => Number::Double(-value),
        Number::Varint(value) => Number::Varint(-value),
        Number::Decimal(value) => Number::Decimal(value.negate()),
    }
}

fn moved(operator: Operator, duration: Duration, millis: i64) -> i64 {
    if operator == Operator::Add {
        duration.add_to(millis)
    } else {
        duration.subtract_from(millis)
    }
}

fn on_timestamp(operator: Operator) -> NativeFunction {
    let ty = CqlType::TIMESTAMP;
    let types = [ty.clone(), CqlType::DURATION];
    let function = NativeFunction::strict(operator.function_name(), types, ty.clone(), move |args, _| {
        let (millis, duration) = temporal_args(&ty, args)?;
        if !duration.has_millisecond_precision() {
            let reason = format!("The duration must have a millisecond precision. Was: {duration}");
            return Err(failure(operator, &ty, &CqlType::DURATION, &reason));
        }
        Ok(Some(Bytes::copy_from_slice(
            &moved(operator, duration, millis).to_be_bytes(),
        )))
    });
    infix(operator, function)
}

fn on_date(operator: Operator) -> NativeFunction {
    let ty = CqlType::DATE;
    let types = [ty.clone(), CqlType::DURATION];
    let function = NativeFunction::strict(operator.function_name(), types, ty.clone(), move |args, _| {
        let (millis, duration) = temporal_args(&ty, args)?;
        if !duration.has_day_precision() {
            let reason = format!("The duration must have a day precision. Was: {duration}");
            return Err(failure(operator, &ty, &CqlType::DURATION, &reason));
        }
        let day = date::from_millis(moved(operator, duration, millis));
        Ok(Some(Bytes::copy_from_slice(&day.to_be_bytes())))
    });
    infix(operator, function)
}

fn temporal_args(ty: &CqlType, args: &[Bytes]) -> Result<(i64, Duration), CqlError> {
    let read = || {
        let [temporal, duration] = args else { return None };
        Some((millis_of(ty, temporal)?, Duration::from_bytes(duration)?))
    };
    read().ok_or_else(|| CqlError::Server("a damaged date, timestamp or duration".to_owned()))
}

fn concatenation(left: CqlType, right: CqlType) -> NativeFunction {
    let result = if left == right {
        left.clone()
    } else {
        CqlType::TEXT
    };
    let function = NativeFunction::strict(Operator::Add.function_name(), [left, right], result, |args, _| {
        Ok(Some(args.concat().into()))
    });
    infix(Operator::Add, function)
}
