//! Conversion of values by assignments, casts and `instanceof`.

use crate::ast::Type;
use crate::classes::{is_exception, whole_name};
use crate::error::Failure;
use crate::number::convert;
use crate::signatures;
use crate::value::{EvalResult, Value};

/// Returns the value that a variable of type `ty` holds once `value` is assigned to it.
///
/// # Errors
/// If the value is of another class, or if it is null and the type is primitive.
pub(crate) fn assigned(value: Value, ty: &Type) -> EvalResult<Value> {
    match ty {
        Type::Boolean => match value {
            Value::Boolean(_) => Ok(value),
            Value::Null => Err(Failure::null_pointer()),
            other => Err(Failure::class_cast(&other.class_name(), "java.lang.Boolean")),
        },
        Type::Array(_) => match value {
            Value::Null | Value::Array(_) => Ok(value),
            other => Err(Failure::class_cast(&other.class_name(), "array")),
        },
        Type::Class(class, _) => match ty.unboxed() {
            // An `int` constant that fits can be assigned to a smaller box.
            Some(unboxed)
                if matches!(value, Value::Int(_))
                    && matches!(unboxed, Type::Byte | Type::Short | Type::Char) =>
            {
                convert(&value, &unboxed)
                    .ok_or_else(|| Failure::class_cast("java.lang.Integer", whole_name(class)))
            }
            _ if value.is_null() || is_instance(&value, class) => Ok(value),
            _ => Err(Failure::class_cast(&value.class_name(), whole_name(class))),
        },
        primitive => match value {
            Value::Null => Err(Failure::null_pointer()),
            value => convert(&value, primitive)
                .ok_or_else(|| Failure::class_cast(&value.class_name(), "java.lang.Number")),
        },
    }
}

pub(crate) fn cast(value: Value, ty: &Type) -> EvalResult<Value> {
    match ty {
        Type::Class(class, _) if value.is_null() || is_instance(&value, class) => Ok(value),
        Type::Class(class, _) => Err(Failure::class_cast(&value.class_name(), whole_name(class))),
        primitive => assigned(value, primitive),
    }
}

/// Returns the result of `instanceof`.
pub(crate) fn is_instance(value: &Value, class: &str) -> bool {
    let own = value.simple_class();
    if value.is_null() {
        return false;
    }
    match class {
        "Object" | "Comparable" | "Serializable" => true,
        _ if own == class => true,
        "Number" => matches!(
            value,
            Value::Byte(_)
                | Value::Short(_)
                | Value::Int(_)
                | Value::Long(_)
                | Value::Float(_)
                | Value::Double(_)
                | Value::BigInteger(_)
                | Value::BigDecimal(_)
        ),
        "CharSequence" => matches!(value, Value::String(_) | Value::StringBuilder(_)),
        "Collection" | "Iterable" => matches!(value, Value::List(_) | Value::Set(_)),
        "ArrayList" | "LinkedList" => matches!(value, Value::List(_)),
        "HashSet" | "LinkedHashSet" | "TreeSet" | "SortedSet" => matches!(value, Value::Set(_)),
        "HashMap" | "LinkedHashMap" | "TreeMap" | "SortedMap" => matches!(value, Value::Map(_)),
        _ if matches!(value, Value::Exception(_)) => is_exception(own, class),
        _ => signatures::as_class(&Type::class(own), class).is_some(),
    }
}

/// Returns the default value of an array's elements.
pub(crate) fn zero(ty: &Type) -> Value {
    match ty {
        Type::Boolean => Value::Boolean(false),
        Type::Class(..) | Type::Array(_) => Value::Null,
        number => convert(&Value::Int(0), number).unwrap_or(Value::Null),
    }
}
