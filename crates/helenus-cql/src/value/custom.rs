//! Values of the types without a name in CQL (Cassandra's `LexicalUUIDType`, `CompositeType`, `DynamicCompositeType`).
//!
//! A component of a composite has a length in two bytes, its bytes, and an end-of-component byte. In a dynamic composite, each component is
//! preceded by its type. The type is an alias with the first bit set, or the name of a class with its length.

use std::cmp::Ordering;

use bytes::Bytes;

use super::{text, uuid};
use crate::types::class_name::parse_class_name;
use crate::types::{CqlType, CustomType};

/// Bit that marks a component's type as an alias.
const ALIAS: u16 = 0x8000;

/// Returns the value of a constant. Components of a composite are separated by colons: `'abc:123'`, or `'s@abc:i@123'` for a dynamic
/// composite.
///
/// # Errors
/// If a component is not a value of its type, or there are more components than the type has.
pub fn from_string(custom: &CustomType, source: &str) -> Result<Bytes, String> {
    if *custom == CustomType::LexicalUuid {
        let invalid = || format!("unable to make UUID from '{source}'");
        return match source {
            "" => Ok(Bytes::new()),
            _ => text::from_string(&CqlType::UUID, source).map_err(|_| invalid()),
        };
    }
    let mut out = Vec::new();
    for (position, part) in split(source).into_iter().enumerate() {
        // The part is the end-of-component byte of a slice's bound.
        let end = match part {
            "!" => Some(1),
            "_" => Some(u8::MAX),
            _ => None,
        };
        if let (Some(end), Some(last)) = (end, out.last_mut()) {
            *last = end;
            break;
        }
        let (ty, part) = component_type(custom, position, part, &mut out)?;
        let part = part.replace("\\:", ":");
        let value = text::from_string(&ty, part.strip_suffix('!').unwrap_or(&part))?;
        let len =
            u16::try_from(value.len()).map_err(|_| "A component is longer than 65535 bytes".to_owned())?;
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&value);
        out.push(0);
    }
    Ok(Bytes::from(out))
}

/// Splits a text at colons without a backslash before them. An empty text has no parts.
fn split(source: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut rest, mut from) = (source, 0);
    while let Some(at) = rest
        .get(from..)
        .and_then(|rest| rest.find(':'))
        .map(|at| at + from)
    {
        if rest.get(..at).is_some_and(|before| before.ends_with('\\')) {
            from = at + 1;
            continue;
        }
        parts.push(rest.get(..at).unwrap_or_default());
        (rest, from) = (rest.get(at + 1..).unwrap_or_default(), 0);
    }
    if !source.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Returns the type of a component and the rest of its text. The type of a dynamic composite's component is also appended to `out`.
fn component_type<'p>(
    custom: &CustomType,
    position: usize,
    part: &'p str,
    out: &mut Vec<u8>,
) -> Result<(CqlType, &'p str), String> {
    let aliases = match custom {
        CustomType::LexicalUuid => return Ok((CqlType::UUID, part)),
        CustomType::Composite(types) => {
            let ty = types
                .get(position)
                .ok_or_else(|| format!("A composite has {} components at most", types.len()))?;
            return Ok((ty.clone(), part));
        }
        CustomType::DynamicComposite(aliases) => aliases,
    };
    let (name, part) = part.split_once('@').unwrap_or((part, ""));
    let alias = aliases
        .iter()
        .find(|(alias, _)| name.chars().eq(std::iter::once(*alias)));
    if let Some((alias, ty)) = alias {
        out.extend_from_slice(&(ALIAS | (*alias as u16 & 0xff)).to_be_bytes());
        return Ok((ty.clone(), part));
    }
    let ty = parse_class_name(name).ok_or_else(|| format!("Unable to find abstract-type class '{name}'"))?;
    let len = u16::try_from(name.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(name.as_bytes());
    Ok((ty, part))
}

/// Checks that the bytes are a value of the type.
///
/// # Errors
/// The message of Cassandra's `MarshalException`.
pub fn validate(custom: &CustomType, bytes: &[u8]) -> Result<(), String> {
    if *custom == CustomType::LexicalUuid {
        return match bytes.len() {
            0 | 16 => Ok(()),
            len => Err(format!("UUID should be 16 or 0 bytes ({len})")),
        };
    }
    let mut rest = bytes;
    let mut position = 0;
    while !rest.is_empty() {
        let (ty, after) = read_type(custom, position, rest)?;
        let (len, after) = take_short(after)
            .ok_or_else(|| format!("Not enough bytes to read value size of component {position}"))?;
        let (value, after) = after
            .split_at_checked(usize::from(len))
            .ok_or_else(|| format!("Not enough bytes to read value of component {position}"))?;
        super::validate(&ty, value)?;
        let (end, after) = after.split_first().ok_or_else(|| {
            format!("Not enough bytes to read the end-of-component byte of component{position}")
        })?;
        if *end != 0 && !after.is_empty() {
            return Err(format!(
                "Invalid bytes remaining after an end-of-component at component{position}"
            ));
        }
        (rest, position) = (after, position + 1);
    }
    Ok(())
}

fn take_short(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*head), rest))
}

/// Reads the type of a component, which precedes it in a dynamic composite.
fn read_type<'b>(
    custom: &CustomType,
    position: usize,
    bytes: &'b [u8],
) -> Result<(CqlType, &'b [u8]), String> {
    let aliases = match custom {
        CustomType::LexicalUuid => return Ok((CqlType::UUID, bytes)),
        CustomType::Composite(types) => {
            let ty = types.get(position).ok_or("Too many bytes for comparator")?;
            return Ok((ty.clone(), bytes));
        }
        CustomType::DynamicComposite(aliases) => aliases,
    };
    let part = || format!("of the comparator part of component {position}");
    let (header, rest) = take_short(bytes).ok_or_else(|| format!("Not enough bytes to header {}", part()))?;
    if header & ALIAS != 0 {
        let letter = char::from(header.to_be_bytes()[1]);
        let known = aliases.iter().find(|(alias, _)| *alias == letter);
        let (_, ty) = known.ok_or_else(|| format!("Cannot find comparator for component {position}"))?;
        return Ok((ty.clone(), rest));
    }
    let (name, rest) = rest
        .split_at_checked(usize::from(header))
        .ok_or_else(|| format!("Not enough bytes to read comparator name {}", part()))?;
    let name = String::from_utf8_lossy(name);
    let ty = parse_class_name(&name).ok_or_else(|| format!("Unable to find abstract-type class '{name}'"))?;
    Ok((ty, rest))
}

/// Compares two values of the type. Composites are compared component by component.
pub fn compare(custom: &CustomType, a: &[u8], b: &[u8]) -> Ordering {
    match custom {
        CustomType::LexicalUuid => compare_lexical(a, b),
        CustomType::Composite(types) => {
            let (mut a, mut b) = (a, b);
            for ty in types {
                let (Some((left, after_a)), Some((right, after_b))) = (take_component(a), take_component(b))
                else {
                    break;
                };
                let (left, left_end) = left;
                let (right, right_end) = right;
                let order = super::compare(ty, left, right).then(left_end.cmp(&right_end));
                if order.is_ne() {
                    return order;
                }
                (a, b) = (after_a, after_b);
            }
            a.cmp(b)
        }
        CustomType::DynamicComposite(_) => a.cmp(b),
    }
}

/// Splits off a component and its end-of-component byte.
fn take_component(bytes: &[u8]) -> Option<((&[u8], i8), &[u8])> {
    let (len, rest) = take_short(bytes)?;
    let (value, rest) = rest.split_at_checked(usize::from(len))?;
    let (end, rest) = rest.split_first()?;
    Some(((value, end.cast_signed()), rest))
}

/// Compares two UUIDs as pairs of signed numbers (`java.util.UUID.compareTo`). Empty values come first.
fn compare_lexical(a: &[u8], b: &[u8]) -> Ordering {
    let halves = |bytes: &[u8]| -> Option<(i64, i64)> {
        let (high, rest) = bytes.split_first_chunk::<8>()?;
        let (low, _) = rest.split_first_chunk::<8>()?;
        Some((i64::from_be_bytes(*high), i64::from_be_bytes(*low)))
    };
    halves(a).cmp(&halves(b))
}

/// Returns a value as JSON.
///
/// # Errors
/// If the value is a composite, which Cassandra can't write as JSON.
pub fn to_json(custom: &CustomType, bytes: &[u8]) -> Result<String, String> {
    match custom {
        CustomType::LexicalUuid => Ok(format!(
            "\"{}\"",
            <[u8; 16]>::try_from(bytes)
                .map(|bytes| uuid::to_text(u128::from_be_bytes(bytes)))
                .unwrap_or_default()
        )),
        _ => Err("java.lang.UnsupportedOperationException".to_owned()),
    }
}
