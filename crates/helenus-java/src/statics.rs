//! Static methods and fields.

use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_cql::value::{Decimal, civil, uuid};

use crate::ast::Type;
use crate::budget;
use crate::error::Failure;
use crate::limits::TEXT_MAX;
use crate::math::{boxes, math};
use crate::rounding::RoundingMode;
use crate::value::{EvalResult, Value, copied};
use crate::{strings, text};

pub(crate) fn number_format(text: &str) -> Failure {
    Failure::thrown(
        "java.lang.NumberFormatException",
        format!("For input string: \"{text}\""),
    )
}

pub(crate) fn unknown(class: &str, method: &str, arguments: &[Value]) -> Failure {
    let arguments: Vec<&str> = arguments.iter().map(Value::simple_class).collect();
    Failure::thrown(
        "java.lang.NoSuchMethodError",
        format!("{class}.{method}({})", arguments.join(", ")),
    )
}

/// Calls a static method.
///
/// # Errors
/// The exception that the method throws, or an error if there is no such method.
pub(crate) fn call(class: &str, method: &str, arguments: &[Value]) -> EvalResult {
    match class {
        "Math" => math(method, arguments),
        "Integer" | "Long" | "Short" | "Byte" | "Double" | "Float" | "Boolean" | "Character" => {
            boxes(class, method, arguments)
        }
        _ => other(class, method, arguments),
    }
}

pub(crate) fn order(order: Ordering) -> Value {
    Value::Int(order as i32)
}

fn joined(separator: &str, values: &[Value]) -> EvalResult {
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        budget::room(out.len())?;
        if at > 0 {
            out.push_str(separator);
        }
        text::write(value, &mut out)?;
    }
    Ok(Value::string(out))
}

/// Returns the exception that a security manager throws.
fn access_denied(permission: &str) -> Failure {
    Failure::thrown(
        "java.security.AccessControlException",
        format!("access denied ({permission})"),
    )
}

fn other(class: &str, method: &str, arguments: &[Value]) -> EvalResult {
    let unknown = || unknown(class, method, arguments);
    match (class, method, arguments) {
        ("String", "valueOf" | "copyValueOf", [Value::Array(array)]) if array.of == Type::Char => {
            strings::of_array(array)
        }
        ("String", "valueOf", [value]) => text::of(value).map(Value::string),
        ("String", "format", [Value::String(format), Value::Array(array)]) => {
            crate::format::format(format, &array.values.borrow()).map(Value::string)
        }
        ("String", "format", [Value::String(format), arguments @ ..]) => {
            crate::format::format(format, arguments).map(Value::string)
        }
        ("String", "join", [Value::String(separator), Value::Array(array)]) => {
            joined(separator, &array.values.borrow())
        }
        ("String", "join", [Value::String(separator), values @ ..]) => match values {
            [of] => match of.elements() {
                Some(values) => joined(separator, &values),
                None => joined(separator, values),
            },
            values => joined(separator, values),
        },
        ("Objects", "equals", [left, right]) => Ok(Value::Boolean(left.equals(right))),
        ("Objects", "isNull", [value]) => Ok(Value::Boolean(value.is_null())),
        ("Objects", "nonNull", [value]) => Ok(Value::Boolean(!value.is_null())),
        ("Objects" | "String", "toString", [value]) => text::of(value).map(Value::string),
        ("Objects", "requireNonNull", [value]) if value.is_null() => Err(Failure::null_pointer()),
        ("Objects", "requireNonNull", [value]) => Ok(value.clone()),
        ("UUID", "fromString", [Value::String(text)]) => {
            uuid::parse(text).map(Value::Uuid).ok_or_else(|| {
                Failure::thrown(
                    "java.lang.IllegalArgumentException",
                    format!("Invalid UUID string: {text}"),
                )
            })
        }
        ("BigInteger", "valueOf", [value]) => {
            Ok(Value::BigInteger(value.as_long().ok_or_else(unknown)?.into()))
        }
        ("BigDecimal", "valueOf", [value @ (Value::Double(_) | Value::Float(_))]) => {
            let decimal = value.as_double().and_then(Decimal::from_double);
            decimal
                .map(Value::BigDecimal)
                .ok_or_else(|| Failure::thrown("java.lang.NumberFormatException", "Infinite or NaN"))
        }
        ("BigDecimal", "valueOf", [value]) => Ok(Value::BigDecimal(Decimal::new(
            value.as_long().ok_or_else(unknown)?,
            0,
        ))),
        ("BigDecimal", "valueOf", [value, scale]) => Ok(Value::BigDecimal(Decimal::new(
            value.as_long().ok_or_else(unknown)?,
            scale.to_int()?,
        ))),
        ("LocalDate", "fromDaysSinceEpoch", [days]) => Ok(Value::LocalDate(i64::from(days.to_int()?))),
        ("LocalDate", "fromMillisSinceEpoch", [millis]) => Ok(Value::LocalDate(
            millis.as_long().ok_or_else(unknown)?.div_euclid(86_400_000),
        )),
        ("LocalDate", "fromYearMonthDay", [year, month, day]) => {
            Ok(Value::LocalDate(civil::days_from_civil(
                i64::from(year.to_int()?),
                i64::from(month.to_int()?),
                i64::from(day.to_int()?),
            )))
        }
        ("Duration", "newInstance", [months, days, nanoseconds]) => {
            Ok(Value::Duration(helenus_cql::value::Duration {
                months: months.to_int()?,
                days: days.to_int()?,
                nanoseconds: nanoseconds.as_long().ok_or_else(unknown)?,
            }))
        }
        ("ByteBuffer", "allocate", [len]) => {
            let wanted = len.to_int()?;
            let len = usize::try_from(wanted).map_err(|_| {
                let message = format!("capacity < 0: ({wanted} < 0)");
                Failure::thrown("java.lang.IllegalArgumentException", message)
            })?;
            if len > TEXT_MAX {
                return Err(Failure::out_of_memory());
            }
            budget::room(2 * len)?;
            Ok(Value::bytes(&vec![0; len]))
        }
        ("ByteBuffer", "wrap", [Value::Array(array)]) => {
            let bytes = array.values.borrow();
            budget::room_for(bytes.len())?;
            let bytes = bytes.iter().map(|byte| byte.as_long().unwrap_or_default() as u8);
            Ok(Value::bytes(&bytes.collect::<Vec<u8>>()))
        }
        ("Arrays", "asList", [Value::Array(array)]) => copied(&array.values.borrow()).map(Value::list),
        ("Arrays", "asList", values) | ("List", "of", values) => Ok(Value::list(values.to_vec())),
        ("Set", "of", values) => Ok(Value::set(values.to_vec())),
        ("Map", "of", entries) if entries.len() % 2 == 0 => {
            let entries = entries
                .chunks_exact(2)
                .map(|entry| (entry[0].clone(), entry[1].clone()));
            Ok(Value::map(entries.collect()))
        }
        ("Collections", "emptyList", []) => Ok(Value::list(Vec::new())),
        ("Collections", "emptySet", []) => Ok(Value::set(Vec::new())),
        ("Collections", "emptyMap", []) => Ok(Value::map(Vec::new())),
        ("Collections", "singletonList", [value]) => Ok(Value::list(vec![value.clone()])),
        ("Collections", "singleton", [value]) => Ok(Value::set(vec![value.clone()])),
        ("Collections", "singletonMap", [key, value]) => Ok(Value::map(vec![(key.clone(), value.clone())])),
        ("Collections", "sort", [Value::List(values)]) => crate::methods::sort(values).map(|()| Value::Null),
        ("Collections", "reverse", [Value::List(values)]) => {
            budget::walk(values.borrow().len() / 16)?;
            values.borrow_mut().reverse();
            Ok(Value::Null)
        }
        ("Collections", "max" | "min", [of]) => {
            let mut best: Option<Value> = None;
            for value in of.elements().ok_or_else(unknown)?.iter() {
                let is_better = match &best {
                    None => true,
                    Some(best) => {
                        let order = crate::methods::compare(value, best)?;
                        order
                            == if method == "max" {
                                Ordering::Greater
                            } else {
                                Ordering::Less
                            }
                    }
                };
                if is_better {
                    best = Some(value.clone());
                }
            }
            best.ok_or_else(|| Failure::Thrown {
                class: "java.util.NoSuchElementException".to_owned(),
                message: None,
            })
        }
        ("System", "getProperty", [Value::String(name)]) => Err(access_denied(&format!(
            "\"java.util.PropertyPermission\" \"{name}\" \"read\""
        ))),
        ("System", "getenv", [Value::String(name)]) => Err(access_denied(&format!(
            "\"java.lang.RuntimePermission\" \"getenv.{name}\""
        ))),
        ("System", "exit", [code]) => Err(access_denied(&format!(
            "\"java.lang.RuntimePermission\" \"exitVM.{}\"",
            code.to_int()?
        ))),
        ("Arrays", "sort", [Value::Array(array)]) => {
            crate::methods::sort(&array.values).map(|()| Value::Null)
        }
        ("Arrays", "toString", [Value::Array(array)]) => {
            text::of(&Value::list(copied(&array.values.borrow())?)).map(Value::string)
        }
        ("System", "currentTimeMillis", []) => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(Value::Long(since.as_millis() as i64))
        }
        ("System", "nanoTime", []) => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(Value::Long(since.as_nanos() as i64))
        }
        _ => Err(unknown()),
    }
}

/// Returns a static field.
///
/// # Errors
/// If there is no such field.
pub(crate) fn field(class: &str, field: &str) -> EvalResult {
    if class == "RoundingMode"
        && let Some(mode) = RoundingMode::named(field)
    {
        return Ok(Value::RoundingMode(mode));
    }
    Ok(match (class, field) {
        ("Integer", "MAX_VALUE") => Value::Int(i32::MAX),
        ("Integer", "MIN_VALUE") => Value::Int(i32::MIN),
        ("Long", "MAX_VALUE") => Value::Long(i64::MAX),
        ("Long", "MIN_VALUE") => Value::Long(i64::MIN),
        ("Short", "MAX_VALUE") => Value::Short(i16::MAX),
        ("Short", "MIN_VALUE") => Value::Short(i16::MIN),
        ("Byte", "MAX_VALUE") => Value::Byte(i8::MAX),
        ("Byte", "MIN_VALUE") => Value::Byte(i8::MIN),
        ("Double", "MAX_VALUE") => Value::Double(f64::MAX),
        ("Double", "MIN_VALUE") => Value::Double(f64::from_bits(1)),
        ("Double", "NaN") => Value::Double(f64::NAN),
        ("Double", "POSITIVE_INFINITY") => Value::Double(f64::INFINITY),
        ("Double", "NEGATIVE_INFINITY") => Value::Double(f64::NEG_INFINITY),
        ("Float", "MAX_VALUE") => Value::Float(f32::MAX),
        ("Float", "MIN_VALUE") => Value::Float(f32::from_bits(1)),
        ("Float", "NaN") => Value::Float(f32::NAN),
        ("Float", "POSITIVE_INFINITY") => Value::Float(f32::INFINITY),
        ("Float", "NEGATIVE_INFINITY") => Value::Float(f32::NEG_INFINITY),
        ("Boolean", "TRUE") => Value::Boolean(true),
        ("Boolean", "FALSE") => Value::Boolean(false),
        ("Math", "PI") => Value::Double(std::f64::consts::PI),
        ("Math", "E") => Value::Double(std::f64::consts::E),
        ("BigInteger", "ZERO") => Value::BigInteger(0.into()),
        ("BigInteger", "ONE") => Value::BigInteger(1.into()),
        ("BigInteger", "TEN") => Value::BigInteger(10.into()),
        ("BigDecimal", "ZERO") => Value::BigDecimal(Decimal::new(0, 0)),
        ("BigDecimal", "ONE") => Value::BigDecimal(Decimal::new(1, 0)),
        ("BigDecimal", "TEN") => Value::BigDecimal(Decimal::new(10, 0)),
        _ => {
            return Err(Failure::thrown(
                "java.lang.NoSuchFieldError",
                format!("{class}.{field}"),
            ));
        }
    })
}
