//! `to_json` and `from_json` (Cassandra's `ToJsonFct` and `FromJsonFct`).

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::json::NULL_IN_VECTOR;
use helenus_cql::value::{self, is_empty_meaningless, parse_json};

use super::NativeFunction;

/// Returns `to_json`, which converts null to the text `null`.
pub fn to_json(name: &str, ty: &CqlType) -> NativeFunction {
    let arg = ty.clone();
    NativeFunction::new(name, [ty.clone()], CqlType::TEXT, move |args, _| {
        let value = args.first().and_then(Option::as_ref);
        let json = match value {
            Some(value) if !(value.is_empty() && is_empty_meaningless(&arg)) => {
                value::to_json(&arg, value).map_err(CqlError::Server)?
            }
            _ => "null".to_owned(),
        };
        Ok(Some(Bytes::from(json)))
    })
}

/// Returns true if the refusal of JSON is reported with the error and the words of a statement. This is so for durations and for elements
/// of vectors.
pub fn is_statements_own(reason: &str) -> bool {
    ["Unable to convert '", "Invalid duration.", NULL_IN_VECTOR]
        .iter()
        .any(|own| reason.starts_with(own))
}

/// Returns `from_json` for a receiver of this type.
pub fn from_json(name: &str, receiver: &CqlType) -> NativeFunction {
    let (to, function) = (receiver.clone(), name.to_owned());
    NativeFunction::new(name, [CqlType::TEXT], receiver.clone(), move |args, _| {
        let Some(Some(json)) = args.first() else {
            return Ok(None);
        };
        let json = String::from_utf8_lossy(json);
        let failure = |message: String| CqlError::FunctionFailure {
            message,
            keyspace: "system".to_owned(),
            function: function.clone(),
            arg_types: vec!["text".to_owned()],
        };
        let parsed = parse_json(&json).map_err(|reason| {
            failure(format!(
                "execution of 'system.{function}[text]' failed: Could not decode JSON string '{json}': {reason}"
            ))
        })?;
        let value = value::from_json(&to, &parsed).map_err(|reason| {
            if is_statements_own(&reason) {
                return CqlError::Invalid(reason);
            }
            failure(format!(
                "org.apache.cassandra.serializers.MarshalException: {reason}"
            ))
        })?;
        match &value {
            // Empty text in JSON is accepted for every type, but not every type has an empty value.
            Some(bytes) if bytes.is_empty() && value::validate(&to, bytes).is_err() => {
                Err(CqlError::Server(format!(
                    "java.lang.RuntimeException: Return of function system.{function} : (text) -> {to} () is not a valid value \
                     for its declared return type {to}"
                )))
            }
            _ => Ok(value),
        }
    })
}
