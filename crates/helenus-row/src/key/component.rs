//! One clustering value as ordered bytes. The bytes sort as `AbstractType.compare` sorts the values, and equal values (and only those) have
//! equal bytes. No encoding is a prefix of another.
//!
//! Text-like types are their bytes, escaped and terminated. Every other type starts with a tag: `EMPTY` for the value of no bytes, or
//! `VALUE`. Inside collections, tuples and user types every value has a tag, so that `END` and `NULL` sort before all values.

use helenus_cql::types::{CqlType, CustomType, NativeType};

use super::scalar;
use crate::error::KeyError;

const END: u8 = 0;
const NULL: u8 = 1;
const EMPTY: u8 = 2;
pub(crate) const VALUE: u8 = 3;

/// The byte after an escaped zero: a zero is written as `00 FF`, and `00 00` ends the bytes.
const ESCAPED_ZERO: u8 = 0xff;

/// Appends a serialized value. Returns true if the value is in canonical form, so that decoding returns the original bytes.
pub(crate) fn encode_component(ty: &CqlType, value: &[u8], out: &mut Vec<u8>) -> Result<bool, KeyError> {
    if is_byte_ordered(ty) {
        scalar::check_bytes(ty, value)?;
        put_escaped(value, out);
        return Ok(true);
    }
    if value.is_empty() {
        out.push(EMPTY);
        return Ok(true);
    }
    out.push(VALUE);
    encode_body(ty, value, out)
}

/// Appends the canonical form of the value that [`encode_component`] was given.
pub(crate) fn decode_component(
    ty: &CqlType,
    reader: &mut MaskedReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    if is_byte_ordered(ty) {
        return reader.unescape(out);
    }
    match reader.byte()? {
        EMPTY => Ok(()),
        VALUE => decode_body(ty, reader, out),
        _ => Err(KeyError::Corrupt("unknown tag of a clustering value")),
    }
}

pub(crate) fn is_byte_ordered(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::Native(
            NativeType::Ascii | NativeType::Text | NativeType::Blob | NativeType::Inet | NativeType::Duration
        )
    )
}

fn encode_body(ty: &CqlType, value: &[u8], out: &mut Vec<u8>) -> Result<bool, KeyError> {
    let invalid = || KeyError::InvalidValue { ty: ty.to_string() };
    match ty {
        CqlType::Native(native) => scalar::encode(*native, value, out),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            encode_collection(&[element.as_ref()], value, out).ok_or_else(invalid)?
        }
        CqlType::Map {
            key, value: mapped, ..
        } => encode_collection(&[key.as_ref(), mapped.as_ref()], value, out).ok_or_else(invalid)?,
        CqlType::Tuple(types) => encode_fields(types.iter(), value, out).ok_or_else(invalid)?,
        CqlType::Udt { definition, .. } => {
            encode_fields(definition.fields.iter().map(|field| &field.ty), value, out).ok_or_else(invalid)?
        }
        CqlType::Vector { element, dimension } => {
            encode_vector(element, *dimension, value, out).ok_or_else(invalid)?
        }
        CqlType::Custom(custom) => encode_custom(ty, custom, value, out).ok_or_else(invalid)?,
    }
}

fn decode_body(ty: &CqlType, reader: &mut MaskedReader<'_>, out: &mut Vec<u8>) -> Result<(), KeyError> {
    match ty {
        CqlType::Native(native) => scalar::decode(*native, reader, out),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            decode_collection(&[element.as_ref()], reader, out)
        }
        CqlType::Map { key, value, .. } => decode_collection(&[key.as_ref(), value.as_ref()], reader, out),
        CqlType::Tuple(types) => decode_fields(types.iter(), reader, out),
        CqlType::Udt { definition, .. } => {
            decode_fields(definition.fields.iter().map(|field| &field.ty), reader, out)
        }
        CqlType::Vector { element, dimension } => decode_vector(element, *dimension, reader, out),
        CqlType::Custom(custom) => decode_custom(ty, custom, reader, out),
    }
}

/// The result of encoding a nested value. `None` if the serialized value is malformed. The inner result is that of the elements.
type Encoded = Option<Result<bool, KeyError>>;

fn encode_nested(ty: &CqlType, value: Option<&[u8]>, out: &mut Vec<u8>) -> Result<bool, KeyError> {
    let Some(value) = value else {
        out.push(NULL);
        return Ok(true);
    };
    if is_byte_ordered(ty) {
        out.push(VALUE);
    }
    encode_component(ty, value, out)
}

/// Appends the value with its four-byte length. The caller has read the tag.
fn decode_nested(
    tag: u8,
    ty: &CqlType,
    reader: &mut MaskedReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    if tag == NULL {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match tag {
        EMPTY => {}
        VALUE if is_byte_ordered(ty) => reader.unescape(out)?,
        VALUE => decode_body(ty, reader, out)?,
        _ => return Err(KeyError::Corrupt("unknown tag of a nested value")),
    }
    let len = i32::try_from(out.len() - at - 4).map_err(|_| KeyError::Corrupt("nested value too long"))?;
    patch(out, at, len)
}

fn patch(out: &mut [u8], at: usize, number: i32) -> Result<(), KeyError> {
    out.get_mut(at..at + 4)
        .ok_or(KeyError::Corrupt("no room for a length"))?
        .copy_from_slice(&number.to_be_bytes());
    Ok(())
}

fn split_int(value: &[u8]) -> Option<(i32, &[u8])> {
    let (head, rest) = value.split_first_chunk::<4>()?;
    Some((i32::from_be_bytes(*head), rest))
}

/// Splits off a value with its four-byte length. A negative length means null.
fn split_value(value: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (len, rest) = split_int(value)?;
    match usize::try_from(len) {
        Err(_) => Some((None, rest)),
        Ok(len) => rest.split_at_checked(len).map(|(head, rest)| (Some(head), rest)),
    }
}

/// Appends a list, set or map: its elements (keys and values in turn), each with a tag, then `END`.
fn encode_collection(types: &[&CqlType], value: &[u8], out: &mut Vec<u8>) -> Encoded {
    let (count, mut rest) = split_int(value)?;
    let mut canonical = true;
    for _ in 0..u32::try_from(count).ok()? {
        for ty in types {
            let (element, after) = split_value(rest)?;
            match encode_nested(ty, element, out) {
                Ok(same) => canonical &= same,
                Err(error) => return Some(Err(error)),
            }
            rest = after;
        }
    }
    out.push(END);
    rest.is_empty().then_some(Ok(canonical))
}

fn decode_collection(
    types: &[&CqlType],
    reader: &mut MaskedReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count = 0;
    loop {
        let mut tag = reader.byte()?;
        if tag == END {
            return patch(out, at, count);
        }
        for (position, ty) in types.iter().enumerate() {
            if position > 0 {
                tag = reader.byte()?;
            }
            decode_nested(tag, ty, reader, out)?;
        }
        count += 1;
    }
}

/// Appends a tuple or user type: its fields, without the nulls at the end, then `END`. Omitting the nulls keeps the bytes of a user type's
/// old values when fields are added to the type.
fn encode_fields<'t>(
    types: impl ExactSizeIterator<Item = &'t CqlType>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Encoded {
    let fields = types.len();
    let (mut rest, mut given, mut canonical) = (value, 0, true);
    let mut kept = out.len();
    for ty in types {
        if rest.is_empty() {
            break;
        }
        let (field, after) = split_value(rest)?;
        match encode_nested(ty, field, out) {
            Ok(same) => canonical &= same,
            Err(error) => return Some(Err(error)),
        }
        if field.is_some() {
            kept = out.len();
        }
        (rest, given) = (after, given + 1);
    }
    out.truncate(kept);
    out.push(END);
    rest.is_empty().then_some(Ok(canonical && given == fields))
}

fn decode_fields<'t>(
    types: impl ExactSizeIterator<Item = &'t CqlType>,
    reader: &mut MaskedReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    let mut ended = false;
    for ty in types {
        let tag = if ended { END } else { reader.byte()? };
        ended |= tag == END;
        decode_nested(if ended { NULL } else { tag }, ty, reader, out)?;
    }
    if !ended && reader.byte()? != END {
        return Err(KeyError::Corrupt("more fields than the type has"));
    }
    Ok(())
}

fn unordered(ty: &CqlType) -> KeyError {
    KeyError::UnsupportedType { ty: ty.to_string() }
}

/// Appends a composite: its components, then `END`. Each component has the tag `VALUE` before it and its end-of-component byte behind it.
fn encode_custom(ty: &CqlType, custom: &CustomType, value: &[u8], out: &mut Vec<u8>) -> Encoded {
    let types = match custom {
        CustomType::LexicalUuid => return scalar::encode_lexical_uuid(value, out).map(Ok),
        CustomType::DynamicComposite(_) => return Some(Err(unordered(ty))),
        CustomType::Composite(types) => types,
    };
    let (mut rest, mut canonical) = (value, true);
    for ty in types {
        let Some((len, after)) = rest.split_first_chunk::<2>() else {
            break;
        };
        let (component, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let (end, after) = after.split_first()?;
        out.push(VALUE);
        match encode_component(ty, component, out) {
            Ok(same) => canonical &= same,
            Err(error) => return Some(Err(error)),
        }
        // The end-of-component byte is signed.
        out.push(end ^ 0x80);
        rest = after;
    }
    out.push(END);
    rest.is_empty().then_some(Ok(canonical))
}

fn decode_custom(
    ty: &CqlType,
    custom: &CustomType,
    reader: &mut MaskedReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    let types = match custom {
        CustomType::LexicalUuid => return scalar::decode_lexical_uuid(reader, out),
        CustomType::DynamicComposite(_) => return Err(unordered(ty)),
        CustomType::Composite(types) => types,
    };
    let mut types = types.iter();
    while reader.byte()? != END {
        let ty = types
            .next()
            .ok_or(KeyError::Corrupt("more components than the type has"))?;
        let mut component = Vec::new();
        decode_component(ty, reader, &mut component)?;
        let len = u16::try_from(component.len()).map_err(|_| KeyError::Corrupt("component too long"))?;
        out.extend_from_slice(&len.to_be_bytes());
        out.append(&mut component);
        out.push(reader.byte()? ^ 0x80);
    }
    Ok(())
}

/// Appends a vector: its elements, with tags unless their length is fixed. The type gives the dimension.
fn encode_vector(element: &CqlType, dimension: u32, value: &[u8], out: &mut Vec<u8>) -> Encoded {
    let mut rest = value;
    let mut canonical = true;
    for _ in 0..dimension {
        let encoded = match element.fixed_len() {
            Some(len) => {
                let (head, after) = rest.split_at_checked(len)?;
                rest = after;
                encode_body(element, head, out)
            }
            None => {
                let (len, after) = split_vint(rest)?;
                let (head, after) = after.split_at_checked(usize::try_from(len).ok()?)?;
                rest = after;
                encode_component(element, head, out)
            }
        };
        match encoded {
            Ok(same) => canonical &= same,
            Err(error) => return Some(Err(error)),
        }
    }
    rest.is_empty().then_some(Ok(canonical))
}

fn decode_vector(
    element: &CqlType,
    dimension: u32,
    reader: &mut MaskedReader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), KeyError> {
    for _ in 0..dimension {
        if element.fixed_len().is_some() {
            decode_body(element, reader, out)?;
        } else {
            let mut one = Vec::new();
            decode_component(element, reader, &mut one)?;
            put_vint(one.len() as u64, out);
            out.extend_from_slice(&one);
        }
    }
    Ok(())
}

/// Reads Cassandra's unsigned vint: the leading ones of the first byte count the bytes that follow.
fn split_vint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let extra = first.leading_ones();
    let (more, rest) = rest.split_at_checked(extra as usize)?;
    let head = if extra >= 7 {
        0
    } else {
        u64::from(first & (0x7f >> extra))
    };
    Some((
        more.iter()
            .fold(head, |number, &byte| (number << 8) | u64::from(byte)),
        rest,
    ))
}

fn put_vint(number: u64, out: &mut Vec<u8>) {
    let bits = 64 - (number | 1).leading_zeros();
    let extra = ((bits - 1) / 7).min(8) as usize;
    let bytes = number.to_be_bytes();
    let mark = !(0xffu32 >> extra) as u8;
    if extra == 8 {
        out.push(0xff);
        out.extend_from_slice(&bytes);
        return;
    }
    for (position, byte) in bytes.into_iter().skip(7 - extra).enumerate() {
        out.push(if position == 0 { byte | mark } else { byte });
    }
}

/// Appends bytes escaped and terminated. They sort as unsigned bytes, shorter first, whatever follows them.
pub(crate) fn put_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    for part in bytes.split_inclusive(|&byte| byte == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(ESCAPED_ZERO);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Reads encoded components. Those of descending columns are complemented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskedReader<'a> {
    rest: &'a [u8],
    mask: u8,
}

impl<'a> MaskedReader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> MaskedReader<'a> {
        MaskedReader { rest, mask: 0 }
    }

    pub(crate) fn set_complemented(&mut self, complemented: bool) {
        self.mask = if complemented { 0xff } else { 0 };
    }

    /// Switches the complement on or off. Negative decimals are complemented within their component.
    pub(crate) fn toggle(&mut self) {
        self.mask = !self.mask;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn byte(&mut self) -> Result<u8, KeyError> {
        let (&first, rest) = self
            .rest
            .split_first()
            .ok_or(KeyError::Corrupt("key ends too early"))?;
        self.rest = rest;
        Ok(first ^ self.mask)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], KeyError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(KeyError::Corrupt("key ends too early"))?;
        self.rest = rest;
        Ok(head.map(|byte| byte ^ self.mask))
    }

    pub(crate) fn take(&mut self, len: usize, out: &mut Vec<u8>) -> Result<(), KeyError> {
        let (head, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(KeyError::Corrupt("key ends too early"))?;
        self.rest = rest;
        out.extend(head.iter().map(|byte| byte ^ self.mask));
        Ok(())
    }

    /// Reads bytes that [`put_escaped`] wrote.
    pub(crate) fn unescape(&mut self, out: &mut Vec<u8>) -> Result<(), KeyError> {
        loop {
            let zero = self
                .rest
                .iter()
                .position(|&byte| byte == self.mask)
                .ok_or(KeyError::Corrupt("bytes without an end"))?;
            self.take(zero, out)?;
            match self.array::<2>()? {
                [0, 0] => return Ok(()),
                [0, ESCAPED_ZERO] => out.push(0),
                _ => return Err(KeyError::Corrupt("unknown escape")),
            }
        }
    }
}
