//! Methods, constants and constructors that functions may use. They are looked up among those of dates, times and arrays, and then among
//! all others.

use crate::value::{EvalResult, Value};
use crate::{arrays, create, methods, statics, time_library};

/// Calls a method of `object`.
///
/// # Errors
/// The exception that the method throws, or an error if there is no such method.
pub(crate) fn call(object: &Value, method: &str, arguments: &[Value]) -> EvalResult {
    let found = match object {
        Value::Date(millis) => time_library::date::call(millis, method, arguments)?,
        Value::Temporal(temporal) => time_library::methods::call(temporal, method, arguments)?,
        Value::Calendar(calendar) => time_library::legacy::calendar(calendar, method, arguments)?,
        Value::DateFormat(format) => time_library::legacy::date_format(format, method, arguments)?,
        Value::Array(array) if method == "clone" => Some(arrays::copy(array)?),
        _ => None,
    };
    match found {
        Some(result) => Ok(result),
        None => methods::call(object, method, arguments),
    }
}

/// Calls a static method.
///
/// # Errors
/// As [`call`].
pub(crate) fn call_static(class: &str, method: &str, arguments: &[Value]) -> EvalResult {
    let found = match class {
        "Arrays" | "System" => arrays::call(class, method, arguments)?,
        _ => time_library::statics::call(class, method, arguments)?,
    };
    match found {
        Some(result) => Ok(result),
        None => statics::call(class, method, arguments),
    }
}

/// Returns a constant.
///
/// # Errors
/// There is no such constant.
pub(crate) fn field(class: &str, name: &str) -> EvalResult {
    match time_library::statics::field(class, name) {
        Some(value) => Ok(value),
        None => statics::field(class, name),
    }
}

/// Creates the object of a `new` expression.
///
/// # Errors
/// As [`call`].
pub(crate) fn create(class: &str, arguments: &[Value]) -> EvalResult {
    match time_library::statics::create(class, arguments)? {
        Some(result) => Ok(result),
        None => create::create(class, arguments),
    }
}
