//! Values to and from JSON (Cassandra's `toJSONString` and `fromJSONObject`). Messages name Java's classes, as Cassandra's do.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    custom, exactly, from_string, hex, is_empty_meaningless, is_null, java, json_reader, pack_list, pack_map,
    pack_set, pack_tuple, pack_vector, read_elements, read_map, read_tuple, read_vector, text, timestamp,
};
use crate::types::{CqlType, NativeType, UserType};

/// Returns a string in JSON quotes, escaped as Jackson does.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Returns a value as JSON.
///
/// # Errors
/// If the bytes are not a value of the type.
pub fn to_json(ty: &CqlType, bytes: &[u8]) -> Result<String, String> {
    match ty {
        CqlType::Native(native) => Ok(native_to_json(*native, bytes)),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            join_json(element, read_elements(ty, bytes)?)
        }
        CqlType::Vector { element, .. } => join_json(element, read_vector(ty, bytes)?),
        CqlType::Custom(custom) => custom::to_json(custom, bytes),
        CqlType::Map { key, value, .. } => {
            let mut entries = Vec::new();
            for (k, v) in read_map(ty, bytes)? {
                let name = to_json(key, k)?;
                let name = if name.starts_with('"') { name } else { quote(&name) };
                entries.push(format!("{name}: {}", to_json(value, v)?));
            }
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        CqlType::Tuple(elements) => {
            let mut parts = Vec::new();
            for (field, ty) in read_tuple(ty, bytes)?.into_iter().zip(elements.iter()) {
                parts.push(field.map_or(Ok("null".to_owned()), |field| to_json(ty, field))?);
            }
            Ok(format!("[{}]", parts.join(", ")))
        }
        CqlType::Udt { definition, .. } => {
            let mut parts = Vec::new();
            for (value, field) in read_tuple(ty, bytes)?.into_iter().zip(&definition.fields) {
                let value = value.map_or(Ok("null".to_owned()), |value| to_json(&field.ty, value))?;
                parts.push(format!("{}: {value}", quote(&json_name(&field.name))));
            }
            Ok(format!("{{{}}}", parts.join(", ")))
        }
    }
}

/// Returns the JSON key for a name. The key has quotes of its own if the name is not all lower case.
pub fn json_name(name: &str) -> String {
    if name == name.to_lowercase() {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
}

fn join_json(element: &CqlType, values: Vec<&[u8]>) -> Result<String, String> {
    let parts: Result<Vec<String>, String> =
        values.into_iter().map(|value| to_json(element, value)).collect();
    Ok(format!("[{}]", parts?.join(", ")))
}

fn native_to_json(native: NativeType, bytes: &[u8]) -> String {
    use NativeType as N;
    if is_null(&CqlType::Native(native), bytes) {
        return "\"\"".to_owned();
    }
    let text = || text::native_to_string(native, bytes);
    match native {
        N::Ascii | N::Text => quote(&text()),
        N::Blob => format!("\"0x{}\"", hex(bytes)),
        N::Float | N::Double => match text().as_str() {
            "NaN" | "Infinity" | "-Infinity" => "null".to_owned(),
            number => number.to_owned(),
        },
        N::Boolean | N::Tinyint | N::Smallint | N::Int | N::Bigint | N::Counter | N::Varint | N::Decimal => {
            text()
        }
        N::Timestamp => {
            let millis = exactly(bytes).map_or(0, i64::from_be_bytes);
            format!("\"{}\"", timestamp::to_json_text(millis))
        }
        N::Date | N::Time | N::Uuid | N::Timeuuid | N::Inet | N::Duration | N::Empty => {
            format!("\"{}\"", text())
        }
    }
}

/// A JSON value as the Java object that Jackson would create.
enum Parsed<'a> {
    Null,
    Boolean(bool),
    Integer(i32),
    Long(i64),
    BigInteger(String),
    Double(f64),
    Text(&'a str),
    List(&'a [Value]),
    Map(&'a Map<String, Value>),
}

impl<'a> Parsed<'a> {
    fn of(value: &'a Value) -> Parsed<'a> {
        match value {
            Value::Null => Parsed::Null,
            Value::Bool(value) => Parsed::Boolean(*value),
            Value::String(text) => Parsed::Text(text),
            Value::Array(values) => Parsed::List(values),
            Value::Object(map) => Parsed::Map(map),
            Value::Number(number) => {
                let text = number.to_string();
                if let Ok(value) = text.parse() {
                    Parsed::Integer(value)
                } else if let Ok(value) = text.parse() {
                    Parsed::Long(value)
                } else if java::is_integer(&text) {
                    Parsed::BigInteger(text)
                } else {
                    Parsed::Double(text.parse().unwrap_or(f64::NAN))
                }
            }
        }
    }

    /// Returns the simple name of the class, and its package.
    fn class(&self) -> (&'static str, &'static str) {
        match self {
            Parsed::Null => ("Object", "java.lang"),
            Parsed::Boolean(_) => ("Boolean", "java.lang"),
            Parsed::Integer(_) => ("Integer", "java.lang"),
            Parsed::Long(_) => ("Long", "java.lang"),
            Parsed::BigInteger(_) => ("BigInteger", "java.math"),
            Parsed::Double(_) => ("Double", "java.lang"),
            Parsed::Text(_) => ("String", "java.lang"),
            Parsed::List(_) => ("ArrayList", "java.util"),
            Parsed::Map(_) => ("LinkedHashMap", "java.util"),
        }
    }

    fn is_number(&self) -> bool {
        matches!(
            self,
            Parsed::Integer(_) | Parsed::Long(_) | Parsed::BigInteger(_) | Parsed::Double(_)
        )
    }

    /// Returns the text of Java's `toString`.
    fn text(&self) -> String {
        match self {
            Parsed::Null => "null".to_owned(),
            Parsed::Boolean(value) => value.to_string(),
            Parsed::Integer(value) => value.to_string(),
            Parsed::Long(value) => value.to_string(),
            Parsed::BigInteger(value) => value.clone(),
            Parsed::Double(value) => java::double_to_string(*value),
            Parsed::Text(text) => (*text).to_owned(),
            Parsed::List(values) => {
                let parts: Vec<String> = values.iter().map(|value| Parsed::of(value).text()).collect();
                format!("[{}]", parts.join(", "))
            }
            Parsed::Map(map) => {
                let entry = |(key, value)| format!("{key}={}", Parsed::of(value).text());
                format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn unexpected(&self, expected: &str) -> String {
        format!(
            "Expected {expected}, but got a {}: {}",
            self.class().0,
            self.text()
        )
    }
}

/// Returns a serialized value from JSON. `None` for null. Most types also accept strings, and collections accept a string that contains
/// their JSON.
///
/// # Errors
/// Cassandra's message for the type, such as `Expected an int value, but got a Double: 1.5`.
pub fn from_json(ty: &CqlType, value: &Value) -> Result<Option<Bytes>, String> {
    if value.is_null() {
        return Ok(None);
    }
    if let CqlType::Native(native) = ty {
        return native_from_json(*native, ty, &Parsed::of(value)).map(Some);
    }
    if let CqlType::Custom(_) = ty {
        return match Parsed::of(value) {
            Parsed::Text(text) => from_string(ty, text).map(Some),
            other => Err(other.unexpected("a string")),
        };
    }
    let decoded;
    let value = match value {
        Value::String(text) => {
            decoded = json_reader::read(text)
                .map_err(|error| format!("Error decoding JSON string: {}", error.message))?;
            &decoded
        }
        other => other,
    };
    nested_from_json(ty, &Parsed::of(value)).map(Some)
}

fn native_from_json(native: NativeType, ty: &CqlType, parsed: &Parsed<'_>) -> Result<Bytes, String> {
    use NativeType as N;
    let number = |bytes: &[u8]| Ok(Bytes::copy_from_slice(bytes));
    let string_or = |expected: &str| match parsed {
        Parsed::Text(text) => from_string(ty, text),
        other => Err(other.unexpected(expected)),
    };
    match (native, parsed) {
        (N::Ascii, _) => string_or("an ascii string"),
        (N::Text, _) => string_or("a UTF-8 string"),
        (N::Boolean, Parsed::Boolean(value)) => number(&[u8::from(*value)]),
        (N::Boolean, _) => string_or("a boolean value"),
        (N::Int, Parsed::Integer(value)) => number(&value.to_be_bytes()),
        (N::Int, _) => string_or("an int value"),
        (N::Bigint | N::Counter, Parsed::Integer(value)) => number(&i64::from(*value).to_be_bytes()),
        (N::Bigint | N::Counter, Parsed::Long(value)) => number(&value.to_be_bytes()),
        (N::Bigint, _) => string_or("a bigint value"),
        (N::Counter, other) => Err(other.unexpected("a bigint value")),
        (N::Tinyint | N::Smallint, other) if other.is_number() => from_string(ty, &other.text()),
        (N::Tinyint, _) => string_or("a byte value"),
        (N::Smallint, _) => string_or("a short value"),
        (N::Float | N::Double, other) if other.is_number() => from_string(ty, &exact_number(other)),
        (N::Float, _) => string_or("a float value"),
        (N::Double, _) => string_or("a double value"),
        (N::Varint, other) => match java::parse_big_integer(&other.text()) {
            Some(value) => Ok(value.to_signed_bytes_be().into()),
            None => Err(invalid_number(other, "varint")),
        },
        (N::Decimal, other) => from_string(ty, &other.text()).map_err(|_| invalid_number(other, "decimal")),
        (N::Blob, other) => blob_from_json(other),
        (N::Timestamp, Parsed::Long(value)) => number(&value.to_be_bytes()),
        (N::Timestamp, _) => string_or("a long or a datestring representation of a timestamp value"),
        (N::Date, _) => string_or("a string representation of a date value"),
        (N::Time, _) => string_or("a string representation of a time value"),
        (N::Uuid, _) => string_or("a string representation of a uuid"),
        (N::Timeuuid, _) => string_or("a string representation of a timeuuid"),
        (N::Inet, _) => string_or("a string representation of an inet value"),
        (N::Duration, _) => string_or("a string representation of a duration"),
        (N::Empty, _) => string_or("an empty string"),
    }
}

fn exact_number(parsed: &Parsed<'_>) -> String {
    match parsed {
        Parsed::Double(value) if value.is_nan() => "NaN".to_owned(),
        other => other.text(),
    }
}

fn invalid_number(parsed: &Parsed<'_>, what: &str) -> String {
    format!(
        "Value '{}' is not a valid representation of a {what} value",
        parsed.text()
    )
}

fn blob_from_json(parsed: &Parsed<'_>) -> Result<Bytes, String> {
    let result = match parsed {
        Parsed::Text(text) => match text.strip_prefix("0x") {
            Some(digits) => text::parse_hex(digits),
            None => Err(format!(
                "String representation of blob is missing 0x prefix: {text}"
            )),
        },
        other => {
            let (class, package) = other.class();
            let class = format!("{package}.{class}");
            Err(format!(
                "class {class} cannot be cast to class java.lang.String \
                 ({class} and java.lang.String are in module java.base of loader 'bootstrap')"
            ))
        }
    };
    result.map_err(|reason| {
        format!(
            "Value '{}' is not a valid blob representation: {reason}",
            parsed.text()
        )
    })
}

fn nested_from_json(ty: &CqlType, parsed: &Parsed<'_>) -> Result<Bytes, String> {
    match (ty, parsed) {
        (CqlType::List { element, .. }, Parsed::List(values)) => {
            Ok(pack_list(elements_from_json(element, values, "list")?))
        }
        (CqlType::List { .. }, other) => Err(other.unexpected("a list")),
        (CqlType::Set { element, .. }, Parsed::List(values)) => {
            Ok(pack_set(element, elements_from_json(element, values, "set")?))
        }
        (CqlType::Set { .. }, other) => Err(other.unexpected("a list (representing a set)")),
        (CqlType::Map { key, value, .. }, Parsed::Map(map)) => {
            let mut entries = Vec::with_capacity(map.len());
            for (k, v) in *map {
                if v.is_null() {
                    return Err("Invalid null value in map".to_owned());
                }
                let k = from_json(key, &Value::String(k.clone()))?.ok_or("Invalid null key in map")?;
                entries.push((k, from_json(value, v)?.ok_or("Invalid null value in map")?));
            }
            Ok(pack_map(key, entries))
        }
        (CqlType::Tuple(elements), Parsed::List(values)) => {
            let expected = elements.len();
            if values.len() > expected {
                return Err(format!(
                    "Tuple contains extra items (expected {expected}): {}",
                    parsed.text()
                ));
            }
            if values.len() < expected {
                return Err(format!(
                    "Tuple is missing items (expected {expected}): {}",
                    parsed.text()
                ));
            }
            let fields = values
                .iter()
                .zip(elements.iter())
                .map(|(value, ty)| from_json(ty, value));
            Ok(pack_tuple(fields.collect::<Result<Vec<_>, String>>()?))
        }
        (CqlType::Tuple(_), other) => Err(other.unexpected("a list representation of a tuple")),
        (CqlType::Udt { definition, .. }, Parsed::Map(map)) => udt_from_json(definition, map),
        (CqlType::Map { .. } | CqlType::Udt { .. }, other) => Err(other.unexpected("a map")),
        (CqlType::Vector { element, dimension }, Parsed::List(values)) => {
            if values.len() != *dimension as usize {
                return Err(format!(
                    "List had incorrect size: expected {dimension} but given {}; {}",
                    values.len(),
                    parsed.text()
                ));
            }
            let values = elements_from_json(element, values, "list")?;
            if values.iter().any(Bytes::is_empty) && is_empty_meaningless(element) {
                return Err(NULL_IN_VECTOR.to_owned());
            }
            Ok(pack_vector(element, values))
        }
        (CqlType::Vector { .. }, other) => Err(other.unexpected("a list")),
        (CqlType::Custom(_), other) => Err(other.unexpected("a string")),
        (CqlType::Native(native), parsed) => native_from_json(*native, ty, parsed),
    }
}

/// Message for a vector's element that is null, or empty although its type has no empty value.
pub const NULL_IN_VECTOR: &str = "null is not supported inside vectors";

fn elements_from_json(element: &CqlType, values: &[Value], kind: &str) -> Result<Vec<Bytes>, String> {
    let convert = |value| from_json(element, value)?.ok_or_else(|| format!("Invalid null element in {kind}"));
    values.iter().map(convert).collect()
}

/// Returns the map with its keys as names: in lower case, unless the key has quotes of its own (`JsonUtils.handleCaseSensitivity`).
pub fn fold_names(map: &Map<String, Value>) -> Map<String, Value> {
    let mut folded = map.clone();
    for key in map.keys() {
        let inner = key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let name = match inner {
            Some(inner) => inner.to_owned(),
            None => key.to_lowercase(),
        };
        if name != *key
            && let Some(value) = folded.shift_remove(key)
        {
            folded.insert(name, value);
        }
    }
    folded
}

fn udt_from_json(definition: &UserType, map: &Map<String, Value>) -> Result<Bytes, String> {
    let map = fold_names(map);
    let mut fields = Vec::with_capacity(definition.fields.len());
    for field in &definition.fields {
        fields.push(
            map.get(&field.name)
                .map_or(Ok(None), |value| from_json(&field.ty, value))?,
        );
    }
    for name in map.keys() {
        if definition.field_index(name).is_none() {
            let type_name = &definition.name;
            return Err(format!(
                "Unknown field '{name}' in value of user defined type {type_name}"
            ));
        }
    }
    Ok(pack_tuple(fields))
}
