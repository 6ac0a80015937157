//! Values of table options, and what is told of those that can't be.

use helenus_cql::error::CqlError;

/// Options of which messages speak as ConfigurationException.
pub(crate) fn config<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::Config(message))
}

/// A double as Java prints it in messages.
pub fn java(value: f64) -> String {
    helenus_cql::value::java::double_to_string(value)
}

/// `class` with its package, if it has none.
pub(crate) fn qualify(class: &str, package: &str) -> String {
    if class.contains('.') {
        class.to_owned()
    } else {
        format!("{package}.{class}")
    }
}
