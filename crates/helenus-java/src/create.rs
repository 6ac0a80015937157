//! Objects created by `new`.

use std::cell::RefCell;
use std::rc::Rc;

use helenus_cql::value::{Decimal, java};

use crate::budget;
use crate::classes::{is_throwable, whole_name};
use crate::error::Failure;
use crate::math::{boxes, longs};
use crate::ordered::{Order, Ordered};
use crate::statics::{self, number_format, unknown};
use crate::value::{EvalResult, Value, copied};
use crate::{strings, text};

/// Creates the object of a `new` expression.
///
/// # Errors
/// The constructor's exception, or an error if there is no such constructor.
pub(crate) fn create(class: &str, arguments: &[Value]) -> EvalResult {
    let unknown = || unknown(class, "<init>", arguments);
    match (class, arguments) {
        ("ArrayList" | "LinkedList", []) => Ok(Value::list(Vec::new())),
        ("ArrayList" | "LinkedList", [Value::Int(_)]) => Ok(Value::list(Vec::new())),
        ("ArrayList" | "LinkedList", [of]) => {
            let elements = of.elements().ok_or_else(Failure::null_pointer)?;
            copied(&elements).map(Value::list)
        }
        ("HashSet" | "LinkedHashSet" | "TreeSet", of) => {
            let set = Ordered::new(Order::of_class(class));
            if let Some(values) = of.first().and_then(Value::elements) {
                for value in values.iter() {
                    budget::walk(1)?;
                    budget::room_for(set.borrow().len())?;
                    if set.find(value).is_none() {
                        set.insert(value.clone())?;
                    }
                }
            }
            Ok(Value::Set(Rc::new(set)))
        }
        ("HashMap" | "LinkedHashMap" | "TreeMap", of) => {
            let map = Ordered::new(Order::of_class(class));
            if let Some(Value::Map(entries)) = of.first() {
                budget::room_for(2 * entries.borrow().len())?;
                entries.borrow().iter().try_for_each(|entry| {
                    budget::walk(1)?;
                    map.insert(entry.clone())
                })?;
            }
            Ok(Value::Map(Rc::new(map)))
        }
        ("StringBuilder" | "StringBuffer", []) => Ok(Value::StringBuilder(Rc::default())),
        ("StringBuilder" | "StringBuffer", [Value::String(text)]) => {
            budget::room(text.len())?;
            Ok(Value::StringBuilder(Rc::new(RefCell::new(
                text.as_ref().to_owned(),
            ))))
        }
        ("StringBuilder" | "StringBuffer", [Value::Int(_)]) => Ok(Value::StringBuilder(Rc::default())),
        ("String", []) => Ok(Value::string("")),
        ("String", [value @ Value::String(_)]) => Ok(value.clone()),
        ("String", [Value::Array(array)]) => strings::of_array(array),
        ("Integer" | "Long" | "Short" | "Byte" | "Double" | "Float" | "Boolean", [_]) => {
            boxes(class, "valueOf", arguments)
        }
        ("Date", []) => statics::call("System", "currentTimeMillis", &[])
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
        ("BigDecimal", [_]) => statics::call("BigDecimal", "valueOf", arguments),
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
