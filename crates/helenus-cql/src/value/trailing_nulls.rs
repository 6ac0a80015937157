//! The form of user types' values that indexes compare: without the nulls at their end.
//!
//! A value that was written before its type got a field ends early. A value that was written since has a null there. Both are equal
//! ([`super::compare`]), but their bytes differ. Tuples keep their nulls, as in Cassandra: the type of a tuple never changes.

use std::borrow::Cow;

use super::pack::Reader;
use super::vint;
use crate::types::CqlType;

const NULL: [u8; 4] = (-1i32).to_be_bytes();

/// Returns true if values of the type may have nulls at the end of a user type, at any depth.
pub fn may_have_trailing_nulls(ty: &CqlType) -> bool {
    ty.any(&|ty: &CqlType| matches!(ty, CqlType::Udt { .. }))
}

/// Returns the value without the nulls at the end of its user types, at any depth. The first field always stays, since a value of no bytes
/// differs from a null field. Malformed values are returned unchanged.
pub fn without_trailing_nulls<'v>(ty: &CqlType, value: &'v [u8]) -> Cow<'v, [u8]> {
    if !may_have_trailing_nulls(ty) {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    match write(ty, value, &mut out) {
        Some(()) => Cow::Owned(out),
        None => Cow::Borrowed(value),
    }
}

/// Appends the value without trailing nulls. `None` if the bytes are not a value of the type.
fn write(ty: &CqlType, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if value.is_empty() || !may_have_trailing_nulls(ty) {
        out.extend_from_slice(value);
        return Some(());
    }
    match ty {
        CqlType::Tuple(types) => write_fields(types.iter(), value, out).map(|_| ()),
        CqlType::Udt { definition, .. } => {
            let start = out.len();
            let end = write_fields(definition.fields.iter().map(|field| &field.ty), value, out)?;
            out.truncate(end);
            if end == start {
                out.extend_from_slice(&NULL);
            }
            Some(())
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            write_elements(&[element.as_ref()], value, out)
        }
        CqlType::Map {
            key, value: mapped, ..
        } => write_elements(&[key.as_ref(), mapped.as_ref()], value, out),
        CqlType::Vector { element, dimension } => write_vector(element, *dimension, value, out),
        CqlType::Native(_) | CqlType::Custom(_) => None,
    }
}

/// Writes the fields and returns the position in `out` after the last one that is not null.
fn write_fields<'t>(
    types: impl Iterator<Item = &'t CqlType>,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Option<usize> {
    let mut end = out.len();
    let mut reader = Reader::new(value);
    for ty in types {
        if reader.rest.is_empty() {
            break;
        }
        let field = reader.value().ok()?;
        write_with_length(ty, field, out)?;
        if field.is_some() {
            end = out.len();
        }
    }
    reader.rest.is_empty().then_some(end)
}

/// Appends the elements of a collection. `types` are their types in turn: one for a list or set, two for a map.
fn write_elements(types: &[&CqlType], value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut reader = Reader::new(value);
    let count = reader.int()?;
    out.extend_from_slice(&count.to_be_bytes());
    for _ in 0..u32::try_from(count).ok()? {
        for ty in types {
            let element = reader.value().ok()?;
            write_with_length(ty, element, out)?;
        }
    }
    reader.rest.is_empty().then_some(())
}

fn write_vector(element: &CqlType, dimension: u32, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut reader = Reader::new(value);
    for _ in 0..dimension {
        let mut one = Vec::new();
        write(element, reader.vector_element(None)?, &mut one)?;
        vint::write_unsigned(out, one.len() as u64);
        out.extend_from_slice(&one);
    }
    reader.rest.is_empty().then_some(())
}

fn write_with_length(ty: &CqlType, value: Option<&[u8]>, out: &mut Vec<u8>) -> Option<()> {
    let Some(value) = value else {
        out.extend_from_slice(&NULL);
        return Some(());
    };
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(ty, value, out)?;
    let len = i32::try_from(out.len() - at - 4).ok()?;
    out.get_mut(at..at + 4)?.copy_from_slice(&len.to_be_bytes());
    Some(())
}

#[cfg(test)]
#[path = "trailing_nulls_tests.rs"]
mod tests;
