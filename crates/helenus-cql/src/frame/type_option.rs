//! The type of a column in metadata (spec v5, section 4.2.5.2, `[option]`; Cassandra's `transport.DataType`).

use std::sync::Arc;

use bytes::{BufMut, BytesMut};

use super::primitive::{Reader, put_string};
use super::version::ProtocolVersion;
use crate::error::CqlError;
use crate::types::class_name::{class_name, parse_class_name};
use crate::types::{CqlType, NativeType, UserType, UserTypeField};

const CUSTOM: u16 = 0x0000;
/// The id of text in v1 and v2. It is read, but never written.
const OLD_TEXT: u16 = 0x000A;
const LIST: u16 = 0x0020;
const MAP: u16 = 0x0021;
const SET: u16 = 0x0022;
const UDT: u16 = 0x0030;
const TUPLE: u16 = 0x0031;

/// Maximum depth of nested options that are read.
const DEPTH_MAX: usize = 64;

/// Returns the first version that has an option id for the type. `None` if no version has one. Earlier versions send the type as custom.
fn since(native: NativeType) -> Option<ProtocolVersion> {
    Some(match native {
        NativeType::Empty => return None,
        NativeType::Date | NativeType::Time | NativeType::Smallint | NativeType::Tinyint => {
            ProtocolVersion::V4
        }
        NativeType::Duration => ProtocolVersion::V5,
        NativeType::Ascii
        | NativeType::Bigint
        | NativeType::Blob
        | NativeType::Boolean
        | NativeType::Counter
        | NativeType::Decimal
        | NativeType::Double
        | NativeType::Float
        | NativeType::Int
        | NativeType::Timestamp
        | NativeType::Uuid
        | NativeType::Text
        | NativeType::Varint
        | NativeType::Timeuuid
        | NativeType::Inet => ProtocolVersion::V3,
    })
}

pub(crate) fn encode_type(ty: &CqlType, version: ProtocolVersion, out: &mut BytesMut) {
    match ty {
        CqlType::Native(native) if since(*native).is_some_and(|since| version >= since) => {
            out.put_u16(*native as u16);
        }
        CqlType::Native(_) | CqlType::Vector { .. } | CqlType::Custom(_) => {
            out.put_u16(CUSTOM);
            put_string(out, &class_name(ty));
        }
        CqlType::List { element, .. } => {
            out.put_u16(LIST);
            encode_type(element, version, out);
        }
        CqlType::Set { element, .. } => {
            out.put_u16(SET);
            encode_type(element, version, out);
        }
        CqlType::Map { key, value, .. } => {
            out.put_u16(MAP);
            encode_type(key, version, out);
            encode_type(value, version, out);
        }
        CqlType::Tuple(elements) => {
            out.put_u16(TUPLE);
            out.put_u16(u16::try_from(elements.len()).unwrap_or(u16::MAX));
            for element in elements.iter() {
                encode_type(element, version, out);
            }
        }
        CqlType::Udt { definition, .. } => {
            out.put_u16(UDT);
            put_string(out, &definition.keyspace);
            put_string(out, &definition.name);
            out.put_u16(u16::try_from(definition.fields.len()).unwrap_or(u16::MAX));
            for field in &definition.fields {
                put_string(out, &field.name);
                encode_type(&field.ty, version, out);
            }
        }
    }
}

/// Reads a type. Options don't contain what is frozen: the outermost type is taken as not frozen, inner types as frozen.
pub(crate) fn decode_type(reader: &mut Reader) -> Result<CqlType, CqlError> {
    decode_nested(reader, 0)
}

fn decode_nested(reader: &mut Reader, depth: usize) -> Result<CqlType, CqlError> {
    if depth > DEPTH_MAX {
        return Err(CqlError::Protocol("Types are nested too deep".to_owned()));
    }
    let frozen = depth > 0;
    let depth = depth + 1;
    Ok(match reader.u16()? {
        CUSTOM => {
            let class = reader.string()?;
            parse_class_name(&class).ok_or_else(|| CqlError::Protocol(format!("Unknown type {class}")))?
        }
        OLD_TEXT => CqlType::TEXT,
        LIST => CqlType::list(decode_nested(reader, depth)?, frozen),
        SET => CqlType::set(decode_nested(reader, depth)?, frozen),
        MAP => {
            let key = decode_nested(reader, depth)?;
            CqlType::map(key, decode_nested(reader, depth)?, frozen)
        }
        TUPLE => {
            let count = reader.count(2)?;
            let elements: Result<Vec<CqlType>, CqlError> =
                (0..count).map(|_| decode_nested(reader, depth)).collect();
            CqlType::tuple(elements?)
        }
        UDT => {
            let keyspace = reader.string()?;
            let name = reader.string()?;
            let count = reader.count(4)?;
            let mut fields = Vec::with_capacity(count);
            for _ in 0..count {
                let name = reader.string()?;
                fields.push(UserTypeField {
                    name,
                    ty: decode_nested(reader, depth)?,
                });
            }
            CqlType::Udt {
                definition: Arc::new(UserType {
                    keyspace,
                    name,
                    fields,
                }),
                frozen,
            }
        }
        id => NativeType::ALL
            .into_iter()
            .find(|native| *native as u16 == id)
            .map(CqlType::Native)
            .ok_or_else(|| CqlError::Protocol(format!("Unknown data type id {id}")))?,
    })
}
