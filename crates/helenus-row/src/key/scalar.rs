//! Ordered bytes of scalar values that are not empty and do not sort as plain bytes.

use helenus_cql::types::{CqlType, NativeType};

use super::component::MaskedReader;
use super::decimal;
use crate::error::KeyError;

/// Appends the ordered bytes. Returns true if the value is in canonical form.
pub(crate) fn encode(native: NativeType, value: &[u8], out: &mut Vec<u8>) -> Result<bool, KeyError> {
    let invalid = || KeyError::InvalidValue {
        ty: native.name().to_owned(),
    };
    match native {
        NativeType::Tinyint
        | NativeType::Smallint
        | NativeType::Int
        | NativeType::Bigint
        | NativeType::Timestamp => encode_signed(native, value, out).ok_or_else(invalid),
        NativeType::Date | NativeType::Time => encode_unsigned(native, value, out).ok_or_else(invalid),
        NativeType::Boolean => encode_boolean(value, out).ok_or_else(invalid),
        NativeType::Float => encode_float(value, out).ok_or_else(invalid),
        NativeType::Double => encode_double(value, out).ok_or_else(invalid),
        NativeType::Uuid => encode_uuid(value, out).ok_or_else(invalid),
        NativeType::Timeuuid => encode_timeuuid(value, out).ok_or_else(invalid),
        NativeType::Varint => Ok(encode_varint(value, out)),
        NativeType::Decimal => decimal::encode(value, out).ok_or_else(invalid),
        NativeType::Empty
        | NativeType::Ascii
        | NativeType::Text
        | NativeType::Blob
        | NativeType::Inet
        | NativeType::Duration
        | NativeType::Counter => Err(unsupported(native)),
    }
}

/// Appends the serialized value, in canonical form.
pub(crate) fn decode(
    native: NativeType,
    reader: &mut MaskedReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    match native {
        NativeType::Tinyint
        | NativeType::Smallint
        | NativeType::Int
        | NativeType::Bigint
        | NativeType::Timestamp => {
            let at = out.len();
            reader.take(native.fixed_len().unwrap_or(0), out)?;
            flip_sign(out, at);
            Ok(())
        }
        NativeType::Date | NativeType::Time => reader.take(native.fixed_len().unwrap_or(0), out),
        NativeType::Boolean => reader.take(1, out),
        NativeType::Float => {
            let ordered = u32::from_be_bytes(reader.array()?);
            let bits = if ordered >> 31 == 1 {
                ordered ^ (1 << 31)
            } else {
                !ordered
            };
            out.extend_from_slice(&bits.to_be_bytes());
            Ok(())
        }
        NativeType::Double => {
            let ordered = u64::from_be_bytes(reader.array()?);
            let bits = if ordered >> 63 == 1 {
                ordered ^ (1 << 63)
            } else {
                !ordered
            };
            out.extend_from_slice(&bits.to_be_bytes());
            Ok(())
        }
        NativeType::Uuid => decode_uuid(reader, out),
        NativeType::Timeuuid => {
            let high = restore_time(u64::from_be_bytes(reader.array()?));
            let low = u64::from_be_bytes(reader.array()?) ^ SIGN_BITS;
            out.extend_from_slice(&high.to_be_bytes());
            out.extend_from_slice(&low.to_be_bytes());
            Ok(())
        }
        NativeType::Varint => decode_varint(reader, out),
        NativeType::Decimal => decimal::decode(reader, out),
        NativeType::Empty
        | NativeType::Ascii
        | NativeType::Text
        | NativeType::Blob
        | NativeType::Inet
        | NativeType::Duration
        | NativeType::Counter => Err(unsupported(native)),
    }
}

/// Checks a value of a type that sorts as plain bytes.
pub(crate) fn check_bytes(ty: &CqlType, value: &[u8]) -> Result<(), KeyError> {
    if *ty == CqlType::INET && !matches!(value.len(), 0 | 4 | 16) {
        return Err(KeyError::InvalidValue { ty: ty.to_string() });
    }
    Ok(())
}

fn unsupported(native: NativeType) -> KeyError {
    KeyError::UnsupportedType {
        ty: native.name().to_owned(),
    }
}

fn flip_sign(out: &mut [u8], at: usize) {
    if let Some(first) = out.get_mut(at) {
        *first ^= 0x80;
    }
}

fn encode_signed(native: NativeType, value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let at = out.len();
    encode_unsigned(native, value, out)?;
    flip_sign(out, at);
    Some(true)
}

fn encode_unsigned(native: NativeType, value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    if native.fixed_len() != Some(value.len()) {
        return None;
    }
    out.extend_from_slice(value);
    Some(true)
}

/// Appends a boolean. Any byte but 0 is true (`BooleanType.compareCustom`).
fn encode_boolean(value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let [byte] = value else { return None };
    out.push(u8::from(*byte != 0));
    Some(*byte <= 1)
}

/// Appends a float in the order of `Float.compare`: -0.0 before 0.0, and a single NaN above all.
fn encode_float(value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let given = u32::from_be_bytes(value.try_into().ok()?);
    let bits = if f32::from_bits(given).is_nan() {
        0x7fc0_0000
    } else {
        given
    };
    let ordered = if bits >> 31 == 0 { bits ^ (1 << 31) } else { !bits };
    out.extend_from_slice(&ordered.to_be_bytes());
    Some(bits == given)
}

fn encode_double(value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let given = u64::from_be_bytes(value.try_into().ok()?);
    let bits = if f64::from_bits(given).is_nan() {
        0x7ff8 << 48
    } else {
        given
    };
    let ordered = if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits };
    out.extend_from_slice(&ordered.to_be_bytes());
    Some(bits == given)
}

/// The sign bit of every byte: `TimeUUIDType` compares the lower half as signed bytes.
const SIGN_BITS: u64 = 0x8080_8080_8080_8080;

fn split_uuid(value: &[u8]) -> Option<(u64, u64)> {
    let whole = u128::from_be_bytes(value.try_into().ok()?);
    Some(((whole >> 64) as u64, whole as u64))
}

/// Returns version and timestamp, most significant bits first (`TimeUUIDType.reorderTimestampBytes`).
fn reorder_time(high: u64) -> u64 {
    (high << 48) | ((high << 16) & 0xffff_0000_0000) | (high >> 32)
}

fn restore_time(ordered: u64) -> u64 {
    (ordered << 32) | ((ordered >> 16) & 0xffff_0000) | (ordered >> 48)
}

fn encode_timeuuid(value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let (high, low) = split_uuid(value)?;
    let ordered = reorder_time(high);
    if ordered >> 60 != 1 {
        return None;
    }
    out.extend_from_slice(&ordered.to_be_bytes());
    out.extend_from_slice(&(low ^ SIGN_BITS).to_be_bytes());
    Some(true)
}

/// Appends a UUID in the order of `UUIDType`: by version, then version 1 by time and the others as bytes. The version is moved to the
/// front.
fn encode_uuid(value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let (high, low) = split_uuid(value)?;
    let version = (high >> 12) & 0xf;
    let ordered = if version == 1 {
        reorder_time(high)
    } else {
        (version << 60) | ((high >> 16) << 12) | (high & 0xfff)
    };
    out.extend_from_slice(&ordered.to_be_bytes());
    out.extend_from_slice(&low.to_be_bytes());
    Some(true)
}

fn decode_uuid(reader: &mut MaskedReader<'_>, out: &mut Vec<u8>) -> Result<(), KeyError> {
    let ordered = u64::from_be_bytes(reader.array()?);
    let version = ordered >> 60;
    let high = if version == 1 {
        restore_time(ordered)
    } else {
        (((ordered << 4) >> 16) << 16) | (version << 12) | (ordered & 0xfff)
    };
    out.extend_from_slice(&high.to_be_bytes());
    reader.take(8, out)
}

/// Appends a UUID in the order of `java.util.UUID.compareTo`: as two signed numbers.
pub(crate) fn encode_lexical_uuid(value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let (high, low) = split_uuid(value)?;
    for half in [high, low] {
        out.extend_from_slice(&(half ^ (1 << 63)).to_be_bytes());
    }
    Some(true)
}

pub(crate) fn decode_lexical_uuid(reader: &mut MaskedReader<'_>, out: &mut Vec<u8>) -> Result<(), KeyError> {
    for _ in 0..2 {
        let half = u64::from_be_bytes(reader.array()?);
        out.extend_from_slice(&(half ^ (1 << 63)).to_be_bytes());
    }
    Ok(())
}

/// Returns the two's complement bytes without redundant sign bytes.
pub(crate) fn minimal(value: &[u8]) -> &[u8] {
    let mut rest = value;
    while let [first, second, ..] = rest {
        let redundant = (*first == 0 && *second < 0x80) || (*first == 0xff && *second >= 0x80);
        if !redundant {
            break;
        }
        rest = rest.get(1..).unwrap_or(rest);
    }
    rest
}

/// Appends the number of bytes (negative for negative numbers), then the bytes. A number with more bytes is further from 0. Among numbers
/// with the same sign and length, two's complement sorts as unsigned bytes. Returns true if the value is in canonical form.
pub(crate) fn encode_varint(value: &[u8], out: &mut Vec<u8>) -> bool {
    let digits = minimal(value);
    let negative = digits.first().is_some_and(|&first| first >= 0x80);
    let start = out.len();
    match digits.len() {
        len @ 0..=0x7e => out.push(0x80 | len as u8),
        len => {
            out.push(0xff);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
    if negative {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
    out.extend_from_slice(digits);
    digits.len() == value.len()
}

pub(crate) fn decode_varint(reader: &mut MaskedReader<'_>, out: &mut Vec<u8>) -> Result<(), KeyError> {
    let head = reader.byte()?;
    let (negative, short) = if head >= 0x80 {
        (false, head & 0x7f)
    } else {
        (true, 0x7f - head)
    };
    let len = if short < 0x7f {
        u32::from(short)
    } else {
        let len = u32::from_be_bytes(reader.array()?);
        if negative { !len } else { len }
    };
    reader.take(
        usize::try_from(len).map_err(|_| KeyError::Corrupt("integer too long"))?,
        out,
    )
}
