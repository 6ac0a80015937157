//! Java's arithmetic: promotion of operands, overflow that wraps, and narrowing casts.

use std::cmp::Ordering;

use crate::ast::{Operator, Type, UnaryOperator};
use crate::error::Failure;
use crate::text;
use crate::value::Value;

/// A pair of operands, promoted to one type.
enum Pair {
    Ints(i32, i32),
    Longs(i64, i64),
    Floats(f32, f32),
    Doubles(f64, f64),
}

impl Value {
    /// Returns the integer that a primitive or its box holds. `None` for other values.
    pub fn as_long(&self) -> Option<i64> {
        Some(match *self {
            Value::Char(value) => i64::from(value),
            Value::Byte(value) => i64::from(value),
            Value::Short(value) => i64::from(value),
            Value::Int(value) => i64::from(value),
            Value::Long(value) => value,
            _ => return None,
        })
    }

    pub fn as_double(&self) -> Option<f64> {
        match *self {
            Value::Float(value) => Some(f64::from(value)),
            Value::Double(value) => Some(value),
            _ => self.as_long().map(|value| value as f64),
        }
    }

    /// Returns the value of an argument that must be an `int`.
    ///
    /// # Errors
    /// If the argument is null or does not hold a small integer.
    pub fn to_int(&self) -> Result<i32, Failure> {
        match self {
            Value::Null => Err(Failure::null_pointer()),
            Value::Long(_) => Err(Failure::class_cast("java.lang.Long", "java.lang.Integer")),
            _ => {
                let value = self.as_long().and_then(|value| i32::try_from(value).ok());
                value.ok_or_else(|| Failure::class_cast(&self.class_name(), "java.lang.Integer"))
            }
        }
    }
}

/// Returns the rank of a number's type among the four types of arithmetic, lowest first. `None` for other values.
fn rank(value: &Value) -> Option<u8> {
    match value {
        Value::Char(_) | Value::Byte(_) | Value::Short(_) | Value::Int(_) => Some(0),
        Value::Long(_) => Some(1),
        Value::Float(_) => Some(2),
        Value::Double(_) => Some(3),
        _ => None,
    }
}

fn pair(left: &Value, right: &Value) -> Result<Pair, Failure> {
    let no_number = |value: &Value| match value {
        Value::Null => Failure::null_pointer(),
        other => Failure::class_cast(&other.class_name(), "java.lang.Number"),
    };
    let ranks = (
        rank(left).ok_or_else(|| no_number(left))?,
        rank(right).ok_or_else(|| no_number(right))?,
    );
    let long = |value: &Value| value.as_long().unwrap_or_default();
    let double = |value: &Value| value.as_double().unwrap_or_default();
    let float = |value: &Value| match *value {
        Value::Float(value) => value,
        ref other => long(other) as f32,
    };
    Ok(match ranks.0.max(ranks.1) {
        0 => Pair::Ints(long(left) as i32, long(right) as i32),
        1 => Pair::Longs(long(left), long(right)),
        2 => Pair::Floats(float(left), float(right)),
        _ => Pair::Doubles(double(left), double(right)),
    })
}

/// Returns the value of `left operator right`.
///
/// # Errors
/// Division of an integer by zero, or operands that the operator does not accept.
pub(crate) fn binary(operator: Operator, left: &Value, right: &Value) -> Result<Value, Failure> {
    match operator {
        Operator::Add if is_text(left) || is_text(right) => {
            let mut shown = text::of(left)?;
            text::write(right, &mut shown)?;
            Ok(Value::string(shown))
        }
        Operator::Equal => Ok(Value::Boolean(same(left, right))),
        Operator::NotEqual => Ok(Value::Boolean(!same(left, right))),
        Operator::ShiftLeft | Operator::ShiftRight | Operator::ShiftRightUnsigned => {
            shift(operator, left, right)
        }
        Operator::And | Operator::Or | Operator::Xor => match (left, right) {
            (Value::Boolean(a), Value::Boolean(b)) => Ok(Value::Boolean(match operator {
                Operator::And => a & b,
                Operator::Or => a | b,
                _ => a ^ b,
            })),
            _ => arithmetic(operator, pair(left, right)?),
        },
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            let order = match pair(left, right)? {
                Pair::Ints(a, b) => Some(a.cmp(&b)),
                Pair::Longs(a, b) => Some(a.cmp(&b)),
                Pair::Floats(a, b) => a.partial_cmp(&b),
                Pair::Doubles(a, b) => a.partial_cmp(&b),
            };
            Ok(Value::Boolean(order.is_some_and(|order| match operator {
                Operator::Less => order == Ordering::Less,
                Operator::LessOrEqual => order != Ordering::Greater,
                Operator::Greater => order == Ordering::Greater,
                _ => order != Ordering::Less,
            })))
        }
        _ => arithmetic(operator, pair(left, right)?),
    }
}

fn is_text(value: &Value) -> bool {
    matches!(value, Value::String(_))
}

/// Compares two values as `==` does: numbers by value, other objects by identity. Boxes and texts are compared by value, since in Java
/// their identity depends on caches.
fn same(left: &Value, right: &Value) -> bool {
    match pair(left, right) {
        Ok(Pair::Ints(a, b)) => a == b,
        Ok(Pair::Longs(a, b)) => a == b,
        Ok(Pair::Floats(a, b)) => a == b,
        Ok(Pair::Doubles(a, b)) => a == b,
        Err(_) => left.is_same_object(right).unwrap_or_else(|| left.equals(right)),
    }
}

fn arithmetic(operator: Operator, pair: Pair) -> Result<Value, Failure> {
    macro_rules! whole {
        ($a:ident, $b:ident) => {
            match operator {
                Operator::Add => $a.wrapping_add($b),
                Operator::Subtract => $a.wrapping_sub($b),
                Operator::Multiply => $a.wrapping_mul($b),
                Operator::Divide | Operator::Remainder if $b == 0 => {
                    return Err(Failure::thrown(
                        "java.lang.ArithmeticException",
                        "/ by zero",
                    ));
                }
                Operator::Divide => $a.wrapping_div($b),
                Operator::Remainder => $a.wrapping_rem($b),
                Operator::And => $a & $b,
                Operator::Or => $a | $b,
                _ => $a ^ $b,
            }
        };
    }
    macro_rules! real {
        ($a:ident, $b:ident) => {
            match operator {
                Operator::Add => $a + $b,
                Operator::Subtract => $a - $b,
                Operator::Multiply => $a * $b,
                Operator::Divide => $a / $b,
                Operator::Remainder => $a % $b,
                _ => return Err(Failure::class_cast("java.lang.Double", "java.lang.Long")),
            }
        };
    }
    Ok(match pair {
        Pair::Ints(a, b) => Value::Int(whole!(a, b)),
        Pair::Longs(a, b) => Value::Long(whole!(a, b)),
        Pair::Floats(a, b) => Value::Float(real!(a, b)),
        Pair::Doubles(a, b) => Value::Double(real!(a, b)),
    })
}

/// Shifts a number. The result has the type of the left operand.
fn shift(operator: Operator, left: &Value, right: &Value) -> Result<Value, Failure> {
    pair(left, right)?;
    let by = right.as_long().unwrap_or_default() as u32;
    let number = left.as_long().unwrap_or_default();
    Ok(match (left, operator) {
        (Value::Long(_), Operator::ShiftLeft) => Value::Long(number.wrapping_shl(by)),
        (Value::Long(_), Operator::ShiftRight) => Value::Long(number.wrapping_shr(by)),
        (Value::Long(_), _) => Value::Long((number as u64).wrapping_shr(by) as i64),
        (_, Operator::ShiftLeft) => Value::Int((number as i32).wrapping_shl(by)),
        (_, Operator::ShiftRight) => Value::Int((number as i32).wrapping_shr(by)),
        _ => Value::Int((number as i32 as u32).wrapping_shr(by) as i32),
    })
}

/// Returns the value of an operator with one operand.
///
/// # Errors
/// If the operator does not accept the operand.
pub(crate) fn unary(operator: UnaryOperator, value: &Value) -> Result<Value, Failure> {
    match operator {
        UnaryOperator::Not => match value {
            Value::Boolean(value) => Ok(Value::Boolean(!value)),
            Value::Null => Err(Failure::null_pointer()),
            other => Err(Failure::class_cast(&other.class_name(), "java.lang.Boolean")),
        },
        UnaryOperator::Plus => binary(Operator::Add, &Value::Int(0), value),
        // A product with -1 turns zero into minus zero, as Java does. A difference would not.
        UnaryOperator::Minus => binary(Operator::Multiply, &Value::Int(-1), value),
        UnaryOperator::Complement => binary(Operator::Xor, &Value::Int(-1), value),
    }
}

/// Converts a number to another type, narrowing it as Java does. `None` if the value is not a number, or the type is not one of numbers.
pub(crate) fn convert(value: &Value, ty: &Type) -> Option<Value> {
    let real = match *value {
        Value::Float(value) => Some(f64::from(value)),
        Value::Double(value) => Some(value),
        _ => None,
    };
    let whole = match real {
        Some(_) => None,
        None => Some(value.as_long()?),
    };
    // Reals are converted to the small types through `int`. Rust's casts saturate as Java's do.
    let int = || whole.map_or_else(|| real.unwrap_or_default() as i32, |whole| whole as i32);
    Some(match ty {
        Type::Char => Value::Char(int() as u16),
        Type::Byte => Value::Byte(int() as i8),
        Type::Short => Value::Short(int() as i16),
        Type::Int => Value::Int(int()),
        Type::Long => Value::Long(whole.unwrap_or_else(|| real.unwrap_or_default() as i64)),
        Type::Float => Value::Float(match (*value).clone() {
            Value::Float(value) => value,
            Value::Double(value) => value as f32,
            _ => whole.unwrap_or_default() as f32,
        }),
        Type::Double => Value::Double(real.unwrap_or_else(|| whole.unwrap_or_default() as f64)),
        Type::Boolean | Type::Class(..) | Type::Array(_) => return None,
    })
}
