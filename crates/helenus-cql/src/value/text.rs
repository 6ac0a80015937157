//! Values as text: from the text of a literal (`AbstractType.fromString`), to a readable form
//! (`AbstractType.getString`) and to a CQL literal (`AbstractType.toCQLString`).

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::DIGITS_MAX;
use super::pack::{Reader, Truncated, pack_tuple, read_elements, read_vector};
use super::{Decimal, Duration, custom, date, exactly, inet, is_null, java, time, timestamp, uuid, validate};
use crate::identifier::{quote_identifier, quote_text};
use crate::types::{CqlType, NativeType};

/// Maximum length of a text that is a number of at most [`DIGITS_MAX`] digits, including sign, point and exponent.
const NUMBER_LEN_MAX: usize = DIGITS_MAX as usize + 16;

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the bytes in hexadecimal, lower case, without prefix.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 0xF] {
            out.push(char::from(HEX_DIGITS[usize::from(nibble)]));
        }
    }
    out
}

/// Returns the bytes of a hexadecimal text without prefix.
///
/// # Errors
/// `cannot parse '…' as hex bytes`.
pub fn parse_hex(text: &str) -> Result<Bytes, String> {
    let bad = || format!("cannot parse '{text}' as hex bytes");
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    Ok(pairs
        .iter()
        .map(|[high, low]| (digit(*high) << 4) | digit(*low))
        .collect::<Vec<u8>>()
        .into())
}

/// Returns a serialized value from its text. For most types, an empty text is an empty value.
///
/// # Errors
/// Cassandra's message for the type, such as `Unable to make int from 'x'`.
pub fn from_string(ty: &CqlType, text: &str) -> Result<Bytes, String> {
    match ty {
        CqlType::Native(native) => native_from_string(*native, text),
        CqlType::Tuple(elements) => tuple_from_string(ty, elements.iter(), text),
        CqlType::Udt { definition, .. } => {
            tuple_from_string(ty, definition.fields.iter().map(|field| &field.ty), text)
        }
        CqlType::Custom(custom) => custom::from_string(custom, text),
        _ => parse_hex(text),
    }
}

fn native_from_string(native: NativeType, text: &str) -> Result<Bytes, String> {
    use NativeType as N;
    let empty_allowed = !matches!(native, N::Date | N::Time | N::Boolean | N::Blob);
    if text.is_empty() && empty_allowed {
        return Ok(Bytes::new());
    }
    let cannot = |what: &str| format!("Unable to make {what} from '{text}'");
    let fixed = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    Ok(match native {
        N::Text => fixed(text.as_bytes()),
        N::Ascii if text.is_ascii() => fixed(text.as_bytes()),
        N::Ascii => {
            // In Java, characters beyond the first plane have a length of two.
            let length = text
                .chars()
                .find(|char| !char.is_ascii())
                .map_or(1, char::len_utf16);
            let reason = "java.nio.charset.UnmappableCharacterException: Input length =";
            return Err(format!(
                "Invalid ASCII character in string literal: {reason} {length}"
            ));
        }
        N::Blob => parse_hex(text)?,
        N::Counter => parse_hex(text)
            .map_err(|_| "An hex string representing bytes must have an even length".to_owned())?,
        N::Boolean if text.is_empty() || text.eq_ignore_ascii_case("false") => fixed(&[0]),
        N::Boolean if text.eq_ignore_ascii_case("true") => fixed(&[1]),
        N::Boolean => return Err(cannot("boolean")),
        N::Tinyint => fixed(&text.parse::<i8>().map_err(|_| cannot("byte"))?.to_be_bytes()),
        N::Smallint => fixed(&text.parse::<i16>().map_err(|_| cannot("short"))?.to_be_bytes()),
        N::Int => fixed(&text.parse::<i32>().map_err(|_| cannot("int"))?.to_be_bytes()),
        N::Bigint => fixed(&text.parse::<i64>().map_err(|_| cannot("long"))?.to_be_bytes()),
        N::Float => fixed(
            &java::parse_float(text)
                .ok_or_else(|| cannot("float"))?
                .to_be_bytes(),
        ),
        N::Double => fixed(
            &java::parse_double(text)
                .ok_or_else(|| cannot("double"))?
                .to_be_bytes(),
        ),
        N::Varint | N::Decimal if text.len() > NUMBER_LEN_MAX => {
            return Err(format!(
                "A number of {} characters is longer than the {DIGITS_MAX} digits that are allowed",
                text.len()
            ));
        }
        N::Varint => {
            let value = java::parse_big_integer(text);
            value
                .ok_or_else(|| format!("unable to make int from '{text}'"))?
                .to_signed_bytes_be()
                .into()
        }
        N::Decimal => {
            let value = Decimal::parse(text);
            value
                .ok_or_else(|| format!("unable to make BigDecimal from '{text}'"))?
                .to_bytes()
        }
        N::Uuid => fixed(&uuid::parse(text).ok_or_else(|| cannot("UUID"))?.to_be_bytes()),
        N::Timeuuid => timeuuid_from_string(text)?,
        N::Inet => inet::to_bytes(inet::parse(text)?),
        N::Timestamp => fixed(&timestamp::parse(text, now_millis)?.to_be_bytes()),
        N::Date => fixed(&date::parse(text)?.to_be_bytes()),
        N::Time => fixed(&time::parse(text)?.to_be_bytes()),
        N::Duration => Duration::parse(text)?.to_bytes(),
        N::Empty if text.is_empty() => Bytes::new(),
        N::Empty => return Err(format!("'{text}' is not empty")),
    })
}

fn timeuuid_from_string(text: &str) -> Result<Bytes, String> {
    let value = uuid::parse(text).ok_or_else(|| format!("Unknown timeuuid representation: {text}"))?;
    if uuid::version(value) != 1 {
        return Err("TimeUUID supports only version 1 UUIDs".to_owned());
    }
    Ok(Bytes::copy_from_slice(&value.to_be_bytes()))
}

fn now_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as i64)
}

/// Parses `a:b:c`, with `@` for null and `\:`, `\@` for the characters themselves.
fn tuple_from_string<'t>(
    ty: &CqlType,
    types: impl ExactSizeIterator<Item = &'t CqlType>,
    text: &str,
) -> Result<Bytes, String> {
    let fields = split_fields(text);
    let (expected, got) = (types.len(), fields.len());
    if got > expected {
        return Err(format!(
            "Invalid tuple literal: too many elements. Type {ty} expects {expected} but got {got}"
        ));
    }
    let values = fields
        .into_iter()
        .zip(types)
        .map(|(field, ty)| match field.as_str() {
            "@" => Ok(None),
            field => from_string(ty, &field.replace("\\:", ":").replace("\\@", "@")).map(Some),
        });
    Ok(pack_tuple(values.collect::<Result<Vec<_>, String>>()?))
}

fn split_fields(text: &str) -> Vec<String> {
    let mut fields = Vec::new();
    if text.is_empty() {
        return fields;
    }
    let mut field = String::new();
    for c in text.chars() {
        if c == ':' && !field.ends_with('\\') {
            fields.push(std::mem::take(&mut field));
        } else {
            field.push(c);
        }
    }
    fields.push(field);
    fields
}

/// Returns a scalar as Java prints it. Empty bytes of a type without an empty value are printed as an empty text.
pub(crate) fn native_to_string(native: NativeType, bytes: &[u8]) -> String {
    use NativeType as N;
    let printed = match native {
        N::Empty => None,
        N::Ascii | N::Text => Some(String::from_utf8_lossy(bytes).into_owned()),
        N::Blob => Some(hex(bytes)),
        N::Boolean => bytes.first().map(|byte| (*byte != 0).to_string()),
        N::Tinyint => exactly(bytes).map(|bytes| i8::from_be_bytes(bytes).to_string()),
        N::Smallint => exactly(bytes).map(|bytes| i16::from_be_bytes(bytes).to_string()),
        N::Int => exactly(bytes).map(|bytes| i32::from_be_bytes(bytes).to_string()),
        N::Bigint | N::Counter => exactly(bytes).map(|bytes| i64::from_be_bytes(bytes).to_string()),
        N::Float => exactly(bytes).map(|bytes| java::float_to_string(f32::from_be_bytes(bytes))),
        N::Double => exactly(bytes).map(|bytes| java::double_to_string(f64::from_be_bytes(bytes))),
        N::Varint if bytes.is_empty() => None,
        N::Varint => Some(num_bigint::BigInt::from_signed_bytes_be(bytes).to_string()),
        N::Decimal => Decimal::from_bytes(bytes).map(|value| value.to_string()),
        N::Uuid | N::Timeuuid => exactly(bytes).map(|bytes| uuid::to_text(u128::from_be_bytes(bytes))),
        N::Inet => inet::from_bytes(bytes).map(inet::to_text),
        N::Timestamp => exactly(bytes).map(|bytes| timestamp::to_cql_text(i64::from_be_bytes(bytes))),
        N::Date => exactly(bytes).map(|bytes| date::to_text(u32::from_be_bytes(bytes))),
        N::Time => exactly(bytes).map(|bytes| time::to_text(i64::from_be_bytes(bytes))),
        N::Duration => Duration::from_bytes(bytes).map(|value| value.to_string()),
    };
    printed.unwrap_or_default()
}

/// Returns a value in the form that [`from_string`] parses (hexadecimal for collections and vectors). Messages show this form.
///
/// # Errors
/// If the bytes are not a value of the type.
pub fn get_string(ty: &CqlType, bytes: &[u8]) -> Result<String, String> {
    match ty {
        CqlType::Native(NativeType::Counter) => Ok(hex(bytes)),
        CqlType::Native(native) => {
            validate(ty, bytes)?;
            Ok(native_to_string(*native, bytes))
        }
        CqlType::Tuple(elements) => tuple_to_string(elements.iter(), bytes),
        CqlType::Udt { definition, .. } => {
            tuple_to_string(definition.fields.iter().map(|field| &field.ty), bytes)
        }
        _ => Ok(hex(bytes)),
    }
}

fn tuple_to_string<'t>(types: impl Iterator<Item = &'t CqlType>, bytes: &[u8]) -> Result<String, String> {
    let mut reader = Reader::new(bytes);
    let mut out = String::new();
    for (position, ty) in types.enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        if position > 0 {
            out.push(':');
        }
        match reader
            .value()
            .map_err(|Truncated| format!("Not enough bytes to read {position}th component"))?
        {
            Some(field) => out.push_str(&get_string(ty, field)?.replace(':', "\\:").replace('@', "\\@")),
            None => out.push('@'),
        }
    }
    Ok(out)
}

/// Returns a value as a CQL literal: strings, dates, times and addresses are in quotes. Empty bytes of a type without an empty value are
/// `null`.
///
/// # Errors
/// If the bytes are cut short.
pub fn to_cql_literal(ty: &CqlType, bytes: &[u8]) -> Result<String, String> {
    if is_null(ty, bytes) {
        return Ok("null".to_owned());
    }
    match ty {
        CqlType::Native(native) => Ok(native_literal(*native, bytes)),
        CqlType::List { element, .. } => Ok(format!(
            "[{}]",
            join_literals(element, read_elements(ty, bytes)?)?
        )),
        CqlType::Set { element, .. } => Ok(format!(
            "{{{}}}",
            join_literals(element, read_elements(ty, bytes)?)?
        )),
        CqlType::Map { key, value, .. } => {
            let mut entries = Vec::new();
            for (k, v) in super::read_map(ty, bytes)? {
                entries.push(format!(
                    "{}: {}",
                    to_cql_literal(key, k)?,
                    to_cql_literal(value, v)?
                ));
            }
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        CqlType::Tuple(elements) => {
            let fields = stored_fields(bytes, elements.len())?;
            let mut parts = Vec::new();
            for (field, ty) in fields.into_iter().zip(elements.iter()) {
                parts.push(field.map_or(Ok("null".to_owned()), |field| to_cql_literal(ty, field))?);
            }
            Ok(format!("({})", parts.join(", ")))
        }
        CqlType::Udt { definition, .. } => {
            let fields = stored_fields(bytes, definition.fields.len())?;
            let mut parts = Vec::new();
            for (value, field) in fields.into_iter().zip(&definition.fields) {
                let value = value.map_or(Ok("null".to_owned()), |value| to_cql_literal(&field.ty, value))?;
                parts.push(format!("{}: {value}", quote_identifier(&field.name)));
            }
            Ok(format!("{{{}}}", parts.join(", ")))
        }
        CqlType::Vector { element, .. } => {
            Ok(format!("[{}]", join_literals(element, read_vector(ty, bytes)?)?))
        }
        CqlType::Custom(_) => to_cql_literal(&CqlType::BLOB, bytes),
    }
}

fn native_literal(native: NativeType, bytes: &[u8]) -> String {
    let text = native_to_string(native, bytes);
    match native {
        NativeType::Ascii | NativeType::Text => quote_text(&text),
        NativeType::Inet | NativeType::Timestamp | NativeType::Date | NativeType::Time => {
            format!("'{text}'")
        }
        NativeType::Blob => format!("0x{text}"),
        _ => text,
    }
}

fn join_literals(element: &CqlType, values: Vec<&[u8]>) -> Result<String, String> {
    let literals: Result<Vec<String>, String> = values
        .into_iter()
        .map(|value| to_cql_literal(element, value))
        .collect();
    Ok(literals?.join(", "))
}

/// Returns the fields that a tuple has. There may be fewer than its type has.
fn stored_fields(bytes: &[u8], count: usize) -> Result<Vec<Option<&[u8]>>, String> {
    let mut reader = Reader::new(bytes);
    let mut fields = Vec::new();
    while !reader.rest.is_empty() && fields.len() < count {
        let position = fields.len();
        let short = || format!("Not enough bytes to read {position}th component");
        fields.push(reader.value().map_err(|Truncated| short())?);
    }
    Ok(fields)
}
