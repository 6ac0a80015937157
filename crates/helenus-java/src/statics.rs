//! Static methods and fields, and what `new` makes.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use helenus_cql::value::{Decimal, civil, java, uuid};
use num_bigint::BigInt;

use crate::ast::{Operator, Type};
use crate::error::Failure;
use crate::number::{binary, convert};
use crate::text;
use crate::classes::{is_throwable, whole_name};
use crate::value::Value;

type Run = Result<Value, Failure>;

fn number_format(text: &str) -> Failure {
    Failure::thrown(
        "java.lang.NumberFormatException",
        format!("For input string: \"{text}\""),
    )
}

fn unknown(class: &str, method: &str, arguments: &[Value]) -> Failure {
    let arguments: Vec<&str> = arguments.iter().map(Value::simple_class).collect();
    Failure::thrown(
        "java.lang.NoSuchMethodError",
        format!("{class}.{method}({})", arguments.join(", ")),
    )
}

/// Calls a static method.
///
/// # Errors
/// What it throws, or that there is none like that.
pub(crate) fn call(class: &str, method: &str, arguments: &[Value]) -> Run {
    match class {
        "Math" => math(method, arguments),
        "Integer" | "Long" | "Short" | "Byte" | "Double" | "Float" | "Boolean" | "Character" => {
            boxes(class, method, arguments)
        }
        _ => other(class, method, arguments),
    }
}

fn math(method: &str, arguments: &[Value]) -> Run {
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
            // Of the type that both are brought to.
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

/// Integers of which none is a `long` give an `int`.
fn is_int(left: &Value, right: &Value) -> bool {
    !matches!(left, Value::Long(_)) && !matches!(right, Value::Long(_))
}

fn longs(left: &Value, right: &Value) -> Result<(i64, i64), Failure> {
    let long = |value: &Value| {
        value
            .as_long()
            .ok_or_else(|| Failure::class_cast(&value.class_name(), "java.lang.Long"))
    };
    Ok((long(left)?, long(right)?))
}

fn exact(left: &Value, right: &Value, operate: fn(i64, i64) -> Option<i64>) -> Run {
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

fn floor(left: &Value, right: &Value, operate: fn(i64, i64) -> i64) -> Run {
    let (a, b) = longs(left, right)?;
    match b {
        0 => Err(Failure::thrown("java.lang.ArithmeticException", "/ by zero")),
        // The only quotient that does not fit; its remainder is none.
        -1 if a == i64::MIN => Ok(Value::Long(if operate(1, -1) == 0 { 0 } else { a })),
        _ if is_int(left, right) => Ok(Value::Int(operate(a, b) as i32)),
        _ => Ok(Value::Long(operate(a, b))),
    }
}

fn boxes(class: &str, method: &str, arguments: &[Value]) -> Run {
    let unknown = || unknown(class, method, arguments);
    let ty = Type::class(class).unboxed().ok_or_else(unknown)?;
    if arguments.iter().any(Value::is_null) {
        return Err(match (method, class) {
            ("parseInt" | "parseLong" | "valueOf", "Integer" | "Long") => {
                Failure::thrown("java.lang.NumberFormatException", "null")
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

fn parse(ty: &Type, text: &str, radix: i32) -> Run {
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

pub(crate) fn order(order: Ordering) -> Value {
    Value::Int(order as i32)
}

fn joined(separator: &str, values: &[Value]) -> Run {
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        text::write(value, &mut out)?;
    }
    Ok(Value::string(out))
}

/// What security managers say.
fn access_denied(permission: &str) -> Failure {
    Failure::thrown(
        "java.security.AccessControlException",
        format!("access denied ({permission})"),
    )
}

fn other(class: &str, method: &str, arguments: &[Value]) -> Run {
    let unknown = || unknown(class, method, arguments);
    match (class, method, arguments) {
        ("String", "valueOf", [value]) => text::of(value).map(Value::string),
        ("String", "format", [Value::String(format), Value::Array(array)]) => {
            crate::format::format(format, &array.values.borrow()).map(Value::string)
        }
        ("String", "format", [Value::String(format), arguments @ ..]) => {
            crate::format::format(format, arguments).map(Value::string)
        }
        ("String", "join", [Value::String(separator), Value::List(values) | Value::Set(values)]) => {
            joined(separator, &values.borrow())
        }
        ("String", "join", [Value::String(separator), Value::Array(array)]) => {
            joined(separator, &array.values.borrow())
        }
        ("String", "join", [Value::String(separator), values @ ..]) => joined(separator, values),
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
            let len = usize::try_from(len.to_int()?).unwrap_or_default();
            Ok(Value::ByteBuffer(Bytes::from(vec![0; len.min(1 << 20)])))
        }
        ("Arrays", "asList", [Value::Array(array)]) => Ok(Value::list(array.values.borrow().clone())),
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
            values.borrow_mut().reverse();
            Ok(Value::Null)
        }
        ("Collections", "max" | "min", [Value::List(values) | Value::Set(values)]) => {
            let mut best: Option<Value> = None;
            for value in values.borrow().iter() {
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
            text::of(&Value::list(array.values.borrow().clone())).map(Value::string)
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

/// A static field.
///
/// # Errors
/// If there is none like that.
pub(crate) fn field(class: &str, field: &str) -> Run {
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

/// What `new` makes.
///
/// # Errors
/// What the constructor throws, or that there is none like that.
pub(crate) fn create(class: &str, arguments: &[Value]) -> Run {
    let unknown = || unknown(class, "<init>", arguments);
    match (class, arguments) {
        ("ArrayList" | "LinkedList", []) => Ok(Value::list(Vec::new())),
        ("ArrayList" | "LinkedList", [Value::List(values) | Value::Set(values)]) => {
            Ok(Value::list(values.borrow().clone()))
        }
        ("ArrayList" | "HashSet" | "HashMap" | "LinkedHashSet" | "LinkedHashMap", [Value::Int(_)]) => {
            create(class, &[])
        }
        ("HashSet" | "LinkedHashSet" | "TreeSet", []) => Ok(Value::set(Vec::new())),
        ("HashSet" | "LinkedHashSet" | "TreeSet", [Value::List(values) | Value::Set(values)]) => {
            let mut distinct: Vec<Value> = Vec::new();
            for value in values.borrow().iter() {
                if !distinct.iter().any(|other| other.equals(value)) {
                    distinct.push(value.clone());
                }
            }
            let set = RefCell::new(distinct);
            if class == "TreeSet" {
                crate::methods::sort(&set)?;
            }
            Ok(Value::Set(Rc::new(set)))
        }
        ("HashMap" | "LinkedHashMap" | "TreeMap", []) => Ok(Value::map(Vec::new())),
        ("HashMap" | "LinkedHashMap" | "TreeMap", [Value::Map(entries)]) => {
            Ok(Value::map(entries.borrow().clone()))
        }
        ("StringBuilder" | "StringBuffer", []) => Ok(Value::StringBuilder(Rc::default())),
        ("StringBuilder" | "StringBuffer", [Value::String(text)]) => Ok(Value::StringBuilder(Rc::new(
            RefCell::new(text.as_ref().to_owned()),
        ))),
        ("StringBuilder" | "StringBuffer", [Value::Int(_)]) => Ok(Value::StringBuilder(Rc::default())),
        ("String", []) => Ok(Value::string("")),
        ("String", [value @ Value::String(_)]) => Ok(value.clone()),
        ("Integer" | "Long" | "Short" | "Byte" | "Double" | "Float" | "Boolean", [_]) => {
            boxes(class, "valueOf", arguments)
        }
        ("Date", []) => other("System", "currentTimeMillis", &[])
            .map(|now| Value::date(now.as_long().unwrap_or_default())),
        ("Date", [millis]) => Ok(Value::date(millis.as_long().ok_or_else(unknown)?)),
        ("UUID", [most, least]) => {
            let (most, least) = longs(most, least)?;
            Ok(Value::Uuid(
                u128::from(most as u64) << 64 | u128::from(least as u64),
            ))
        }
        ("BigInteger", [Value::String(text)]) => java::parse_big_integer(text)
            .map(Value::BigInteger)
            .ok_or_else(|| number_format(text)),
        ("BigDecimal", [Value::String(text)]) => {
            Decimal::parse(text)
                .map(Value::BigDecimal)
                .ok_or_else(|| Failure::Thrown {
                    class: "java.lang.NumberFormatException".to_owned(),
                    message: None,
                })
        }
        ("BigDecimal", [Value::BigInteger(value)]) => Ok(Value::BigDecimal(Decimal::new(value.clone(), 0))),
        ("BigDecimal", [_]) => other("BigDecimal", "valueOf", arguments),
        (_, []) if is_throwable(class) => Ok(exception(class, None)),
        (_, [Value::String(message), ..]) if is_throwable(class) => {
            Ok(exception(class, Some(message.as_ref().to_owned())))
        }
        (_, [value]) if is_throwable(class) => {
            let message = match value.is_null() {
                true => None,
                false => Some(text::of(value)?),
            };
            Ok(exception(class, message))
        }
        _ => Err(unknown()),
    }
}

fn exception(class: &str, message: Option<String>) -> Value {
    Value::Exception(Rc::new(Failure::Thrown {
        class: whole_name(class).to_owned(),
        message,
    }))
}
