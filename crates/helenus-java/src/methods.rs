//! Methods of values.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use helenus_cql::value::{Decimal, civil, uuid};
use num_bigint::{BigInt, Sign};

use crate::ast::Type;
use crate::budget;
use crate::classes::whole_name;
use crate::error::Failure;
use crate::limits::TEXT_MAX;
use crate::number::convert;
use crate::rounding::{self, RoundingMode};
use crate::statics::order;
use crate::value::{EvalResult, Value, copied};
use crate::{buffer, collections, fields, strings, text};

/// Calls a method of `object`.
///
/// # Errors
/// The exception that the method throws, or an error if there is no such method.
pub(crate) fn call(object: &Value, method: &str, arguments: &[Value]) -> EvalResult {
    match (method, arguments) {
        _ if object.is_null() => return Err(Failure::null_pointer()),
        ("equals", [other]) => return Ok(Value::Boolean(object.equals(other))),
        ("toString", []) => return Ok(Value::string(text::of(object)?)),
        ("hashCode", []) => return Ok(Value::Int(hash(object))),
        ("getClass", []) => return Ok(Value::Class(Type::class(object.simple_class()))),
        ("compareTo" | "compareToIgnoreCase", [other])
            if !matches!(
                object,
                Value::String(_) | Value::ByteBuffer(_) | Value::Temporal(_)
            ) =>
        {
            return compare(object, other).map(order);
        }
        _ => {}
    }
    let result = match object {
        Value::String(text) => strings::call(text, method, arguments)?,
        Value::StringBuilder(text) => strings::build(object, text, method, arguments)?,
        Value::List(values) => collections::list(values, method, arguments)?,
        Value::Set(values) => collections::set(values, method, arguments)?,
        Value::Map(entries) => collections::map(entries, method, arguments)?,
        Value::Iterator(rest) => collections::iterator(rest, method),
        Value::Fields(value) => fields::call(object, value, method, arguments)?,
        Value::Entry(entry) => match method {
            "getKey" => Some(entry.0.clone()),
            "getValue" => Some(entry.1.clone()),
            _ => None,
        },
        Value::Date(millis) => date(millis, method, arguments),
        Value::LocalDate(days) => local_date(*days, method),
        Value::Uuid(value) => match method {
            "version" => Some(Value::Int(i32::from(uuid::version(*value)))),
            "variant" => Some(Value::Int(variant(*value))),
            "timestamp" => Some(Value::Long(uuid::ticks(*value) as i64)),
            "getMostSignificantBits" => Some(Value::Long((*value >> 64) as i64)),
            "getLeastSignificantBits" => Some(Value::Long(*value as i64)),
            _ => None,
        },
        Value::Duration(value) => match method {
            "getMonths" => Some(Value::Int(value.months)),
            "getDays" => Some(Value::Int(value.days)),
            "getNanoseconds" => Some(Value::Long(value.nanoseconds)),
            _ => None,
        },
        Value::Inet(address) => match method {
            "getHostAddress" => Some(Value::string(helenus_cql::value::inet::to_text(*address))),
            _ => None,
        },
        Value::ByteBuffer(bytes) => buffer::call(object, bytes, method, arguments)?,
        Value::Class(ty) => match method {
            "getName" => Some(Value::string(whole_name(ty.name()))),
            "getSimpleName" => Some(Value::string(ty.name())),
            _ => None,
        },
        Value::Exception(failure) => match (method, failure.as_ref()) {
            ("getMessage" | "getLocalizedMessage", Failure::Thrown { message, .. }) => {
                Some(message.as_ref().map_or(Value::Null, Value::string))
            }
            _ => None,
        },
        Value::Boolean(value) if method == "booleanValue" => Some(Value::Boolean(*value)),
        Value::Char(unit) if method == "charValue" => Some(Value::Char(*unit)),
        _ => number(object, method, arguments)?,
    };
    result.ok_or_else(|| {
        Failure::thrown(
            "java.lang.NoSuchMethodError",
            format!(
                "{}.{method} with {} arguments",
                object.class_name(),
                arguments.len()
            ),
        )
    })
}

/// Maximum bits of a large integer.
const BITS_MAX: u64 = 1 << 18;

/// Calls a method of a number, boxed or large.
fn number(object: &Value, method: &str, arguments: &[Value]) -> Result<Option<Value>, Failure> {
    let ty = match method {
        "byteValue" => Some(Type::Byte),
        "shortValue" => Some(Type::Short),
        "intValue" => Some(Type::Int),
        "longValue" => Some(Type::Long),
        "floatValue" => Some(Type::Float),
        "doubleValue" => Some(Type::Double),
        _ => None,
    };
    if let Some(ty) = ty {
        let number = match object {
            Value::BigInteger(value) => big_integer(value, &ty),
            Value::BigDecimal(value) => match ty {
                Type::Float => Some(Value::Float(value.to_float())),
                Type::Double => Some(Value::Double(value.to_double())),
                _ => value.to_big_int().and_then(|value| big_integer(&value, &ty)),
            },
            other => convert(other, &ty),
        };
        return Ok(number);
    }
    Ok(match (object, method, arguments) {
        (Value::Double(value), "isNaN", []) => Some(Value::Boolean(value.is_nan())),
        (Value::Double(value), "isInfinite", []) => Some(Value::Boolean(value.is_infinite())),
        (Value::Float(value), "isNaN", []) => Some(Value::Boolean(value.is_nan())),
        (Value::BigInteger(a), _, [Value::BigInteger(b)]) => {
            let by_zero = || Failure::thrown("java.lang.ArithmeticException", "BigInteger divide by zero");
            let is_zero = *b == BigInt::ZERO;
            if a.bits() + b.bits() > BITS_MAX {
                return Err(too_large());
            }
            Some(Value::BigInteger(match method {
                "add" => a + b,
                "subtract" => a - b,
                "multiply" => a * b,
                "divide" | "mod" | "remainder" if is_zero => return Err(by_zero()),
                "divide" => a / b,
                "remainder" => a % b,
                "mod" => ((a % b) + b) % b,
                "max" => a.max(b).clone(),
                "min" => a.min(b).clone(),
                _ => return Ok(None),
            }))
        }
        (Value::BigInteger(a), "pow", [by]) => {
            let by = by.to_int()?;
            let by = u32::try_from(by)
                .ok()
                .filter(|by| u64::from(*by) * a.bits().max(1) < BITS_MAX);
            Some(Value::BigInteger(a.pow(by.ok_or_else(too_large)?)))
        }
        (Value::BigInteger(a), "negate", []) => Some(Value::BigInteger(-a)),
        (Value::BigInteger(a), "abs", []) => Some(Value::BigInteger(a.magnitude().clone().into())),
        (Value::BigInteger(a), "signum", []) => Some(order(a.cmp(&BigInt::ZERO))),
        (Value::BigInteger(a), "bitLength", []) => Some(Value::Int(a.bits() as i32)),
        (Value::BigDecimal(a), "setScale", [scale]) => {
            let one = Decimal::new(1, 0);
            let scaled = rounding::divide(a, &one, scale.to_int()?, RoundingMode::Unnecessary)?;
            Some(Value::BigDecimal(scaled))
        }
        (Value::BigDecimal(a), "setScale", [scale, Value::RoundingMode(mode)]) => {
            let one = Decimal::new(1, 0);
            Some(Value::BigDecimal(rounding::divide(
                a,
                &one,
                scale.to_int()?,
                *mode,
            )?))
        }
        (Value::BigDecimal(a), "divide", [Value::BigDecimal(b), Value::RoundingMode(mode)]) => {
            Some(Value::BigDecimal(rounding::divide(a, b, a.scale, *mode)?))
        }
        (Value::BigDecimal(a), "divide", [Value::BigDecimal(b), scale, Value::RoundingMode(mode)]) => {
            Some(Value::BigDecimal(rounding::divide(a, b, scale.to_int()?, *mode)?))
        }
        (Value::BigDecimal(a), "stripTrailingZeros", []) => Some(Value::BigDecimal(a.strip_trailing_zeros())),
        (Value::BigDecimal(a), _, [Value::BigDecimal(b)]) => {
            let result = match method {
                "add" => a.add(b),
                "subtract" => a.subtract(b),
                "multiply" => a.multiply(b),
                "remainder" => a.remainder(b),
                "max" => Some(if b.compare(a) == Ordering::Greater { b } else { a }.clone()),
                "min" => Some(if b.compare(a) == Ordering::Less { b } else { a }.clone()),
                _ => return Ok(None),
            };
            Some(Value::BigDecimal(result.ok_or_else(too_large)?))
        }
        (Value::BigDecimal(a), "negate", []) => Some(Value::BigDecimal(a.negate())),
        (Value::BigDecimal(a), "abs", []) => Some(Value::BigDecimal(a.abs())),
        (Value::BigDecimal(a), "scale", []) => Some(Value::Int(a.scale)),
        (Value::BigDecimal(a), "precision", []) => Some(Value::Int(a.precision() as i32)),
        (Value::BigDecimal(a), "signum", []) => Some(order(a.unscaled.cmp(&BigInt::ZERO))),
        (Value::BigDecimal(a), "unscaledValue", []) => Some(Value::BigInteger(a.unscaled.clone())),
        (Value::BigDecimal(a), "toBigInteger", []) => {
            Some(Value::BigInteger(a.to_big_int().ok_or_else(too_large)?))
        }
        (Value::BigDecimal(a), "toPlainString", []) => {
            // The scale can add as many zeros to the text.
            if a.scale.unsigned_abs() as usize > TEXT_MAX {
                return Err(Failure::out_of_memory());
            }
            Some(Value::string(a.to_plain_string()))
        }
        _ => None,
    })
}

fn too_large() -> Failure {
    Failure::thrown("java.lang.ArithmeticException", "the result is too large")
}

/// Returns the low bits of a large integer, or the nearest real number.
fn big_integer(value: &BigInt, ty: &Type) -> Option<Value> {
    match ty {
        Type::Float => value.to_string().parse().ok().map(Value::Float),
        Type::Double => value.to_string().parse().ok().map(Value::Double),
        _ => {
            let bytes = value.to_signed_bytes_be();
            let fill = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
                -1
            } else {
                0
            };
            let low = bytes
                .iter()
                .fold(fill, |low: i64, byte| low << 8 | i64::from(*byte));
            convert(&Value::Long(low), ty)
        }
    }
}

fn date(millis: &Rc<RefCell<i64>>, method: &str, arguments: &[Value]) -> Option<Value> {
    match (method, arguments) {
        ("getTime", []) => Some(Value::Long(*millis.borrow())),
        ("setTime", [to]) => {
            *millis.borrow_mut() = to.as_long()?;
            Some(Value::Null)
        }
        ("before", [Value::Date(other)]) => Some(Value::Boolean(*millis.borrow() < *other.borrow())),
        ("after", [Value::Date(other)]) => Some(Value::Boolean(*millis.borrow() > *other.borrow())),
        ("clone", []) => Some(Value::date(*millis.borrow())),
        _ => None,
    }
}

fn local_date(days: i64, method: &str) -> Option<Value> {
    let (year, month, day) = civil::civil_from_days(days);
    match method {
        "getYear" => Some(Value::Int(year as i32)),
        "getMonth" => Some(Value::Int(month as i32)),
        "getDay" => Some(Value::Int(day as i32)),
        "getDaysSinceEpoch" => Some(Value::Int(days as i32)),
        "getMillisSinceEpoch" => Some(Value::Long(days * 86_400_000)),
        _ => None,
    }
}

/// Compares two values, as `compareTo` does.
///
/// # Errors
/// If the two can't be compared.
pub(crate) fn compare(left: &Value, right: &Value) -> Result<Ordering, Failure> {
    budget::walk(1)?;
    Ok(match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return Err(Failure::null_pointer()),
        (Value::String(a), Value::String(b)) => strings::compare(a, b)?.cmp(&0),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::BigInteger(a), Value::BigInteger(b)) => a.cmp(b),
        (Value::BigDecimal(a), Value::BigDecimal(b)) => a.compare(b),
        (Value::Date(a), Value::Date(b)) => a.borrow().cmp(&b.borrow()),
        (Value::LocalDate(a), Value::LocalDate(b)) => a.cmp(b),
        (Value::Calendar(a), Value::Calendar(b)) => a.millis()?.cmp(&b.millis()?),
        (Value::Temporal(a), Value::Temporal(b)) => match a.compare(b) {
            Some(order) => order,
            None => return Err(Failure::class_cast(&right.class_name(), &left.class_name())),
        },
        // Java compares a UUID as two signed numbers.
        (Value::Uuid(a), Value::Uuid(b)) => {
            let halves = |value: u128| ((value >> 64) as i64, value as i64);
            halves(*a).cmp(&halves(*b))
        }
        (Value::ByteBuffer(a), Value::ByteBuffer(b)) => {
            budget::room(a.remaining_len() + b.remaining_len())?;
            budget::walk_bytes(a.remaining_len().min(b.remaining_len()))?;
            let (a, b) = (a.remaining(), b.remaining());
            let signed = |byte: &u8| *byte as i8;
            a.iter().map(signed).cmp(b.iter().map(signed))
        }
        _ => match (
            left.as_long(),
            right.as_long(),
            left.as_double(),
            right.as_double(),
        ) {
            (Some(a), Some(b), ..) => a.cmp(&b),
            (.., Some(a), Some(b)) => a.total_cmp(&b),
            _ => return Err(Failure::class_cast(&right.class_name(), &left.class_name())),
        },
    })
}

/// Sorts by the natural order. The sort is stable.
///
/// # Errors
/// If two elements can't be compared.
pub(crate) fn sort(values: &RefCell<Vec<Value>>) -> Result<(), Failure> {
    let sorted = merge_sorted(copied(&values.borrow())?)?;
    *values.borrow_mut() = sorted;
    Ok(())
}

/// Sorts by merging, and stops at the first failure. The sorts of the standard library can't stop.
fn merge_sorted(mut values: Vec<Value>) -> Result<Vec<Value>, Failure> {
    if values.len() < 2 {
        // Java does not compare a single element.
        return Ok(values);
    }
    budget::walk(values.len() / 16)?;
    let right = merge_sorted(values.split_off(values.len() / 2))?;
    let left = merge_sorted(values)?;
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let takes_left = compare(a, b)? != Ordering::Greater;
        merged.extend(if takes_left { left.next() } else { right.next() });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

/// Returns the value's `hashCode`. For classes without a defined hash code, returns the hash of the value's text.
///
/// The result is 0 if the call's time is over.
pub(crate) fn hash(value: &Value) -> i32 {
    let steps = match value {
        Value::String(text) => budget::steps_of(text.len()),
        _ => 1,
    };
    if budget::is_over(steps) {
        return 0;
    }
    let fold = |long: i64| (long ^ (long as u64 >> 32) as i64) as i32;
    match value {
        Value::Null => 0,
        Value::Boolean(value) => {
            if *value {
                1231
            } else {
                1237
            }
        }
        Value::Long(value) => fold(*value),
        Value::Double(value) => fold(value.to_bits() as i64),
        Value::Float(value) => value.to_bits() as i32,
        Value::Date(millis) => fold(*millis.borrow()),
        Value::Uuid(value) => fold((*value >> 64) as i64 ^ *value as i64),
        Value::BigInteger(value) => hash_of_integer(value),
        Value::BigDecimal(value) => hash_of_integer(&value.unscaled)
            .wrapping_mul(31)
            .wrapping_add(value.scale),
        Value::List(values) => values.borrow().iter().fold(1i32, |hash_so_far, value| {
            hash_so_far.wrapping_mul(31).wrapping_add(hash(value))
        }),
        Value::Set(values) => values
            .borrow()
            .iter()
            .fold(0i32, |sum, value| sum.wrapping_add(hash(value))),
        Value::Map(entries) => entries.borrow().iter().fold(0i32, |sum, (key, value)| {
            sum.wrapping_add(hash(key) ^ hash(value))
        }),
        other => match other.as_long() {
            Some(value) => value as i32,
            None => text::of(other)
                .unwrap_or_default()
                .encode_utf16()
                .fold(0i32, |hash, unit| {
                    hash.wrapping_mul(31).wrapping_add(i32::from(unit))
                }),
        },
    }
}

/// Implements `BigInteger.hashCode`.
fn hash_of_integer(value: &BigInt) -> i32 {
    let (sign, digits) = value.to_u32_digits();
    let add = |hash: i32, digit: &u32| hash.wrapping_mul(31).wrapping_add(*digit as i32);
    let magnitude = digits.iter().rev().fold(0, add);
    match sign {
        Sign::Minus => magnitude.wrapping_neg(),
        Sign::NoSign | Sign::Plus => magnitude,
    }
}

/// Implements `UUID.variant`.
fn variant(uuid: u128) -> i32 {
    match uuid as u64 >> 61 {
        0..=3 => 0,
        4 | 5 => 2,
        kind => kind as i32,
    }
}
