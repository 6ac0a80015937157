//! `Math`, and the static methods of the boxed number types.

use helenus_cql::value::java;
use num_bigint::BigInt;

use crate::ast::{Operator, Type};
use crate::error::Failure;
use crate::number::{binary, convert};
use crate::statics::{number_format, order, unknown};
use crate::text;
use crate::value::{EvalResult, Value};

pub(crate) fn math(method: &str, arguments: &[Value]) -> EvalResult {
    if arguments.iter().any(Value::is_null) {
        return Err(Failure::null_pointer());
    }
    let unknown = || unknown("Math", method, arguments);
    let double = |at: usize| arguments.get(at).and_then(Value::as_double).ok_or_else(unknown);
    let same = |value: &Value| match value {
        Value::Long(_) | Value::Float(_) | Value::Double(_) => Some(value.clone()),
        other => convert(other, &Type::Int),
    };
    match (method, arguments) {
        ("random", []) => Ok(Value::Double(rand::random())),
        ("max" | "min", [left, right]) => {
            let nan = double(0)?.is_nan() || double(1)?.is_nan();
            let is_left = match binary(Operator::Less, left, right)? {
                Value::Boolean(is_less) => is_less == (method == "min"),
                _ => false,
            };
            let both = binary(Operator::Add, left, right)?;
            if nan {
                return Ok(both);
            }
            // The result has the type to which both operands are promoted.
            let ty = match both {
                Value::Long(_) => Type::Long,
                Value::Float(_) => Type::Float,
                Value::Double(_) => Type::Double,
                _ => Type::Int,
            };
            convert(if is_left { left } else { right }, &ty).ok_or_else(unknown)
        }
        ("abs", [value]) => match same(value).ok_or_else(unknown)? {
            Value::Int(value) => Ok(Value::Int(value.wrapping_abs())),
            Value::Long(value) => Ok(Value::Long(value.wrapping_abs())),
            Value::Float(value) => Ok(Value::Float(value.abs())),
            other => Ok(Value::Double(other.as_double().unwrap_or_default().abs())),
        },
        ("round", [Value::Float(value)]) => Ok(Value::Int((f64::from(*value) + 0.5).floor() as i32)),
        ("round", [_]) => Ok(Value::Long((double(0)? + 0.5).floor() as i64)),
        ("addExact", [left, right]) => exact(left, right, i64::checked_add),
        ("subtractExact", [left, right]) => exact(left, right, i64::checked_sub),
        ("multiplyExact", [left, right]) => exact(left, right, i64::checked_mul),
        ("toIntExact", [Value::Long(value)]) => {
            let value = i32::try_from(*value);
            value
                .map(Value::Int)
                .map_err(|_| Failure::thrown("java.lang.ArithmeticException", "integer overflow"))
        }
        ("floorMod", [left, right]) => floor(left, right, i64::rem_euclid),
        ("floorDiv", [left, right]) => floor(left, right, |a, b| {
            let quotient = a.wrapping_div(b);
            if a % b != 0 && (a < 0) != (b < 0) {
                quotient - 1
            } else {
                quotient
            }
        }),
        _ => {
            let one: Option<fn(f64) -> f64> = match method {
                "sin" => Some(f64::sin),
                "cos" => Some(f64::cos),
                "tan" => Some(f64::tan),
                "asin" => Some(f64::asin),
                "acos" => Some(f64::acos),
                "atan" => Some(f64::atan),
                "sinh" => Some(f64::sinh),
                "cosh" => Some(f64::cosh),
                "tanh" => Some(f64::tanh),
                "exp" => Some(f64::exp),
                "expm1" => Some(f64::exp_m1),
                "log" => Some(f64::ln),
                "log10" => Some(f64::log10),
                "log1p" => Some(f64::ln_1p),
                "sqrt" => Some(f64::sqrt),
                "cbrt" => Some(f64::cbrt),
                "ceil" => Some(f64::ceil),
                "floor" => Some(f64::floor),
                "rint" => Some(f64::round_ties_even),
                "signum" => Some(|value| {
                    if value == 0.0 || value.is_nan() {
                        value
                    } else {
                        value.signum()
                    }
                }),
                "toDegrees" => Some(f64::to_degrees),
                "toRadians" => Some(f64::to_radians),
                _ => None,
            };
            let two: Option<fn(f64, f64) -> f64> = match method {
                "pow" => Some(f64::powf),
                "atan2" => Some(f64::atan2),
                "hypot" => Some(f64::hypot),
                _ => None,
            };
            match (one, two, arguments.len()) {
                (Some(function), _, 1) => Ok(Value::Double(function(double(0)?))),
                (_, Some(function), 2) => Ok(Value::Double(function(double(0)?, double(1)?))),
                _ => Err(unknown()),
            }
        }
    }
}

/// Returns true if neither integer is a `long`. The result is an `int` then.
fn is_int(left: &Value, right: &Value) -> bool {
    !matches!(left, Value::Long(_)) && !matches!(right, Value::Long(_))
}

pub(crate) fn longs(left: &Value, right: &Value) -> Result<(i64, i64), Failure> {
    let long = |value: &Value| {
        value
            .as_long()
            .ok_or_else(|| Failure::class_cast(&value.class_name(), "java.lang.Long"))
    };
    Ok((long(left)?, long(right)?))
}

fn exact(left: &Value, right: &Value, operate: fn(i64, i64) -> Option<i64>) -> EvalResult {
    let (a, b) = longs(left, right)?;
    let is_int = is_int(left, right);
    let result = operate(a, b).filter(|result| !is_int || i32::try_from(*result).is_ok());
    let what = if is_int {
        "integer overflow"
    } else {
        "long overflow"
    };
    let result = result.ok_or_else(|| Failure::thrown("java.lang.ArithmeticException", what))?;
    Ok(if is_int {
        Value::Int(result as i32)
    } else {
        Value::Long(result)
    })
}

fn floor(left: &Value, right: &Value, operate: fn(i64, i64) -> i64) -> EvalResult {
    let (a, b) = longs(left, right)?;
    match b {
        0 => Err(Failure::thrown("java.lang.ArithmeticException", "/ by zero")),
        // This is the only quotient that does not fit. Its remainder is 0.
        -1 if a == i64::MIN => Ok(Value::Long(if operate(1, -1) == 0 { 0 } else { a })),
        _ if is_int(left, right) => Ok(Value::Int(operate(a, b) as i32)),
        _ => Ok(Value::Long(operate(a, b))),
    }
}

pub(crate) fn boxes(class: &str, method: &str, arguments: &[Value]) -> EvalResult {
    let unknown = || unknown(class, method, arguments);
    let ty = Type::class(class).unboxed().ok_or_else(unknown)?;
    if arguments.iter().any(Value::is_null) {
        return Err(match (method, class) {
            ("parseInt" | "parseLong" | "valueOf", "Integer" | "Long") => {
                Failure::thrown("java.lang.NumberFormatException", "Cannot parse null string")
            }
            _ => Failure::null_pointer(),
        });
    }
    match (method, arguments) {
        (
            "valueOf" | "parseInt" | "parseLong" | "parseShort" | "parseByte" | "parseDouble" | "parseFloat"
            | "parseBoolean",
            [Value::String(text)],
        ) => parse(&ty, text, 10),
        ("valueOf" | "parseInt" | "parseLong", [Value::String(text), radix]) => {
            parse(&ty, text, radix.to_int()?)
        }
        ("valueOf", [Value::Boolean(value)]) => Ok(Value::Boolean(*value)),
        ("valueOf", [value]) => convert(value, &ty).ok_or_else(unknown),
        ("toString", [value, radix]) => {
            let value = value.as_long().ok_or_else(unknown)?;
            let radix = u32::try_from(radix.to_int()?)
                .ok()
                .filter(|radix| (2..=36).contains(radix))
                .unwrap_or(10);
            Ok(Value::string(BigInt::from(value).to_str_radix(radix)))
        }
        ("toString", [value]) => text::of(value).map(Value::string),
        ("toHexString", [Value::Long(value)]) => Ok(Value::string(format!("{value:x}"))),
        ("toHexString", [value]) => Ok(Value::string(format!("{:x}", value.to_int()?))),
        ("toBinaryString", [Value::Long(value)]) => Ok(Value::string(format!("{value:b}"))),
        ("toBinaryString", [value]) => Ok(Value::string(format!("{:b}", value.to_int()?))),
        ("bitCount", [Value::Long(value)]) => Ok(Value::Int(value.count_ones() as i32)),
        ("bitCount", [value]) => Ok(Value::Int(value.to_int()?.count_ones() as i32)),
        ("compare", [left, right]) => crate::methods::compare(left, right).map(order),
        ("max" | "min" | "abs", _) => math(method, arguments),
        ("sum", [left, right]) => binary(Operator::Add, left, right),
        ("signum", [value]) => Ok(Value::Int(value.as_long().ok_or_else(unknown)?.signum() as i32)),
        ("isNaN", [value]) => Ok(Value::Boolean(value.as_double().ok_or_else(unknown)?.is_nan())),
        ("isInfinite", [value]) => Ok(Value::Boolean(
            value.as_double().ok_or_else(unknown)?.is_infinite(),
        )),
        ("isFinite", [value]) => Ok(Value::Boolean(value.as_double().ok_or_else(unknown)?.is_finite())),
        ("doubleToLongBits" | "doubleToRawLongBits", [Value::Double(value)]) => {
            Ok(Value::Long(value.to_bits() as i64))
        }
        ("longBitsToDouble", [value]) => Ok(Value::Double(f64::from_bits(
            value.as_long().ok_or_else(unknown)? as u64,
        ))),
        (
            "isDigit" | "isLetter" | "isLetterOrDigit" | "isWhitespace" | "isUpperCase" | "isLowerCase",
            [Value::Char(unit)],
        ) => {
            let char = char::from_u32(u32::from(*unit)).unwrap_or_default();
            Ok(Value::Boolean(match method {
                "isDigit" => char.is_numeric(),
                "isLetter" => char.is_alphabetic(),
                "isLetterOrDigit" => char.is_alphanumeric(),
                "isWhitespace" => char.is_whitespace(),
                "isUpperCase" => char.is_uppercase(),
                _ => char.is_lowercase(),
            }))
        }
        ("toUpperCase" | "toLowerCase", [Value::Char(unit)]) => {
            let char = char::from_u32(u32::from(*unit)).unwrap_or_default();
            let other = match method {
                "toUpperCase" => char.to_uppercase().next(),
                _ => char.to_lowercase().next(),
            };
            Ok(Value::Char(
                other
                    .and_then(|other| u16::try_from(other as u32).ok())
                    .unwrap_or(*unit),
            ))
        }
        ("getNumericValue", [Value::Char(unit)]) => {
            let char = char::from_u32(u32::from(*unit)).unwrap_or_default();
            Ok(Value::Int(char.to_digit(36).map_or(-1, |digit| digit as i32)))
        }
        _ => Err(unknown()),
    }
}

fn parse(ty: &Type, text: &str, radix: i32) -> EvalResult {
    let error = || number_format(text);
    let radix = u32::try_from(radix)
        .ok()
        .filter(|radix| (2..=36).contains(radix))
        .ok_or_else(error)?;
    let integer = || i64::from_str_radix(text, radix).map_err(|_| error());
    Ok(match ty {
        Type::Boolean => Value::Boolean(text.eq_ignore_ascii_case("true")),
        Type::Byte => Value::Byte(i8::try_from(integer()?).map_err(|_| error())?),
        Type::Short => Value::Short(i16::try_from(integer()?).map_err(|_| error())?),
        Type::Int => Value::Int(i32::try_from(integer()?).map_err(|_| error())?),
        Type::Long => Value::Long(integer()?),
        Type::Float => Value::Float(java::parse_float(text).ok_or_else(error)?),
        Type::Double => Value::Double(java::parse_double(text).ok_or_else(error)?),
        Type::Char | Type::Class(..) | Type::Array(_) => return Err(error()),
    })
}
