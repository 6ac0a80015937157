//! Decoded values, for functions, tests and other code that needs more than bytes.

use std::net::IpAddr;

use bytes::Bytes;
use num_bigint::BigInt;

use super::pack::pack_map_keeping_order;
use super::{
    Decimal, Duration, exactly, inet, is_null, pack_list, pack_map, pack_set, pack_tuple, pack_vector,
    read_elements, read_map, read_tuple, read_vector, validate,
};
use crate::types::{CqlType, NativeType};

/// A decoded value.
#[derive(Clone, Debug, PartialEq)]
pub enum CqlValue {
    /// Zero bytes, for types without an empty value.
    Empty,
    Ascii(String),
    Text(String),
    Blob(Bytes),
    Boolean(bool),
    Tinyint(i8),
    Smallint(i16),
    Int(i32),
    Bigint(i64),
    Counter(i64),
    Float(f32),
    Double(f64),
    Varint(BigInt),
    Decimal(Decimal),
    Duration(Duration),
    Inet(IpAddr),
    Uuid(u128),
    Timeuuid(u128),
    /// Days, counted so that 1970-01-01 is 2^31.
    Date(u32),
    /// Nanoseconds since midnight.
    Time(i64),
    /// Milliseconds since 1970-01-01.
    Timestamp(i64),
    List(Vec<CqlValue>),
    Set(Vec<CqlValue>),
    Map(Vec<(CqlValue, CqlValue)>),
    Tuple(Vec<Option<CqlValue>>),
    /// Fields in the order of the definition.
    Udt(Vec<Option<CqlValue>>),
    Vector(Vec<CqlValue>),
}

impl CqlValue {
    /// Decodes a value.
    ///
    /// # Errors
    /// As [`validate`].
    pub fn decode(ty: &CqlType, bytes: &[u8]) -> Result<CqlValue, String> {
        if is_null(ty, bytes) {
            return Ok(CqlValue::Empty);
        }
        let all = |element: &CqlType, values: Vec<&[u8]>| -> Result<Vec<CqlValue>, String> {
            values
                .into_iter()
                .map(|value| CqlValue::decode(element, value))
                .collect()
        };
        Ok(match ty {
            CqlType::Native(native) => {
                validate(ty, bytes)?;
                decode_native(*native, bytes).ok_or_else(|| format!("cannot decode a {ty}"))?
            }
            CqlType::Custom(_) => {
                validate(ty, bytes)?;
                CqlValue::Blob(Bytes::copy_from_slice(bytes))
            }
            CqlType::List { element, .. } => CqlValue::List(all(element, read_elements(ty, bytes)?)?),
            CqlType::Set { element, .. } => CqlValue::Set(all(element, read_elements(ty, bytes)?)?),
            CqlType::Vector { element, .. } => CqlValue::Vector(all(element, read_vector(ty, bytes)?)?),
            CqlType::Map { key, value, .. } => {
                let mut entries = Vec::new();
                for (k, v) in read_map(ty, bytes)? {
                    entries.push((CqlValue::decode(key, k)?, CqlValue::decode(value, v)?));
                }
                CqlValue::Map(entries)
            }
            CqlType::Tuple(elements) => {
                CqlValue::Tuple(decode_fields(elements.iter(), read_tuple(ty, bytes)?)?)
            }
            CqlType::Udt { definition, .. } => {
                let types = definition.fields.iter().map(|field| &field.ty);
                CqlValue::Udt(decode_fields(types, read_tuple(ty, bytes)?)?)
            }
        })
    }

    /// Serializes the value, which must be one of the type. A value that does not fit is serialized as empty.
    pub fn encode(&self, ty: &CqlType) -> Bytes {
        self.encoded(ty, true)
    }

    /// Serializes the value as [`CqlValue::encode`], but keeps the order of the elements of sets and maps instead of sorting them.
    pub fn encode_keeping_order(&self, ty: &CqlType) -> Bytes {
        self.encoded(ty, false)
    }

    fn encoded(&self, ty: &CqlType, sorts: bool) -> Bytes {
        let all = |values: &[CqlValue], ty: &CqlType| -> Vec<Bytes> {
            values.iter().map(|value| value.encoded(ty, sorts)).collect()
        };
        match (self, ty) {
            (CqlValue::Set(values), CqlType::Set { element, .. }) if sorts => {
                pack_set(element, all(values, element))
            }
            (CqlValue::List(values), CqlType::List { element, .. })
            | (CqlValue::Set(values), CqlType::Set { element, .. }) => pack_list(all(values, element)),
            (CqlValue::Vector(values), CqlType::Vector { element, .. }) => {
                pack_vector(element, all(values, element))
            }
            (CqlValue::Map(entries), CqlType::Map { key, value, .. }) => {
                let entries = entries
                    .iter()
                    .map(|(k, v)| (k.encoded(key, sorts), v.encoded(value, sorts)));
                match sorts {
                    true => pack_map(key, entries),
                    false => pack_map_keeping_order(&entries.collect::<Vec<_>>()),
                }
            }
            (CqlValue::Tuple(fields), CqlType::Tuple(elements)) => pack_tuple(
                fields
                    .iter()
                    .zip(elements.iter())
                    .map(|(field, ty)| Some(field.as_ref()?.encoded(ty, sorts))),
            ),
            (CqlValue::Udt(fields), CqlType::Udt { definition, .. }) => pack_tuple(
                fields
                    .iter()
                    .zip(&definition.fields)
                    .map(|(value, field)| Some(value.as_ref()?.encoded(&field.ty, sorts))),
            ),
            (scalar, _) => scalar.encode_native(),
        }
    }

    fn encode_native(&self) -> Bytes {
        let fixed = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        match self {
            CqlValue::Ascii(text) | CqlValue::Text(text) => fixed(text.as_bytes()),
            CqlValue::Blob(bytes) => bytes.clone(),
            CqlValue::Boolean(value) => fixed(&[u8::from(*value)]),
            CqlValue::Tinyint(value) => fixed(&value.to_be_bytes()),
            CqlValue::Smallint(value) => fixed(&value.to_be_bytes()),
            CqlValue::Int(value) => fixed(&value.to_be_bytes()),
            CqlValue::Bigint(value)
            | CqlValue::Counter(value)
            | CqlValue::Time(value)
            | CqlValue::Timestamp(value) => fixed(&value.to_be_bytes()),
            CqlValue::Float(value) => fixed(&value.to_be_bytes()),
            CqlValue::Double(value) => fixed(&value.to_be_bytes()),
            CqlValue::Varint(value) => value.to_signed_bytes_be().into(),
            CqlValue::Decimal(value) => value.to_bytes(),
            CqlValue::Duration(value) => value.to_bytes(),
            CqlValue::Inet(address) => inet::to_bytes(*address),
            CqlValue::Uuid(value) | CqlValue::Timeuuid(value) => fixed(&value.to_be_bytes()),
            CqlValue::Date(value) => fixed(&value.to_be_bytes()),
            CqlValue::Empty
            | CqlValue::List(_)
            | CqlValue::Set(_)
            | CqlValue::Map(_)
            | CqlValue::Tuple(_)
            | CqlValue::Udt(_)
            | CqlValue::Vector(_) => Bytes::new(),
        }
    }
}

fn decode_fields<'t>(
    types: impl Iterator<Item = &'t CqlType>,
    fields: Vec<Option<&[u8]>>,
) -> Result<Vec<Option<CqlValue>>, String> {
    fields
        .into_iter()
        .zip(types)
        .map(|(field, ty)| field.map(|field| CqlValue::decode(ty, field)).transpose())
        .collect()
}

fn decode_native(native: NativeType, bytes: &[u8]) -> Option<CqlValue> {
    use NativeType as N;
    let text = || String::from_utf8_lossy(bytes).into_owned();
    Some(match native {
        N::Ascii => CqlValue::Ascii(text()),
        N::Text => CqlValue::Text(text()),
        N::Blob | N::Empty => CqlValue::Blob(Bytes::copy_from_slice(bytes)),
        N::Boolean => CqlValue::Boolean(*bytes.first()? != 0),
        N::Tinyint => CqlValue::Tinyint(i8::from_be_bytes(exactly(bytes)?)),
        N::Smallint => CqlValue::Smallint(i16::from_be_bytes(exactly(bytes)?)),
        N::Int => CqlValue::Int(i32::from_be_bytes(exactly(bytes)?)),
        N::Bigint => CqlValue::Bigint(i64::from_be_bytes(exactly(bytes)?)),
        N::Counter => CqlValue::Counter(i64::from_be_bytes(exactly(bytes)?)),
        N::Float => CqlValue::Float(f32::from_be_bytes(exactly(bytes)?)),
        N::Double => CqlValue::Double(f64::from_be_bytes(exactly(bytes)?)),
        N::Varint => CqlValue::Varint(BigInt::from_signed_bytes_be(bytes)),
        N::Decimal => CqlValue::Decimal(Decimal::from_bytes(bytes)?),
        N::Duration => CqlValue::Duration(Duration::from_bytes(bytes)?),
        N::Inet => CqlValue::Inet(inet::from_bytes(bytes)?),
        N::Uuid => CqlValue::Uuid(u128::from_be_bytes(exactly(bytes)?)),
        N::Timeuuid => CqlValue::Timeuuid(u128::from_be_bytes(exactly(bytes)?)),
        N::Date => CqlValue::Date(u32::from_be_bytes(exactly(bytes)?)),
        N::Time => CqlValue::Time(i64::from_be_bytes(exactly(bytes)?)),
        N::Timestamp => CqlValue::Timestamp(i64::from_be_bytes(exactly(bytes)?)),
    })
}
