//! Splits and builds collections, tuples and vectors.
//!
//! Collections have a 32-bit count and 32-bit lengths (protocol v3 and later). Tuples and user types have a 32-bit length for each field,
//! which is negative for null. Vectors have only their elements. If the length of the elements is not fixed, each has an unsigned vint
//! length (`CollectionSerializer`, `TupleType`, `VectorType`).

use std::cmp::Ordering;

use bytes::Bytes;

use super::{compare, vint};
use crate::types::CqlType;

/// Returns the kind of a collection as messages name it: `list`, `set` or `map`.
pub fn kind_name(ty: &CqlType) -> &'static str {
    match ty {
        CqlType::Set { .. } => "set",
        CqlType::Map { .. } => "map",
        _ => "list",
    }
}

/// The error of bytes that end within a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truncated;

/// A cursor that never reads beyond its bytes.
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Reader<'a> {
        Reader { rest }
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(len)?;
        self.rest = tail;
        Some(head)
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        self.take(4).and_then(super::exactly).map(i32::from_be_bytes)
    }

    /// Reads a value with a 32-bit length. `None` for null (negative length).
    pub(crate) fn value(&mut self) -> Result<Option<&'a [u8]>, Truncated> {
        let len = self.int().ok_or(Truncated)?;
        match usize::try_from(len) {
            Ok(len) => self.take(len).map(Some).ok_or(Truncated),
            Err(_) => Ok(None),
        }
    }

    /// Reads an element of a vector. `None` if the bytes are too few.
    pub(crate) fn vector_element(&mut self, fixed_len: Option<usize>) -> Option<&'a [u8]> {
        if let Some(len) = fixed_len {
            return self.take(len);
        }
        let (len, taken) = vint::read_unsigned(self.rest)?;
        self.take(taken)?;
        self.take(usize::try_from(len).ok()?)
    }
}

/// Returns the elements of a list or set, or the alternating keys and values of a map. Their content is not checked.
///
/// # Errors
/// `Not enough bytes to read a list`, `Null value read when not allowed`, `Unexpected extraneous bytes after list value` and the same for
/// `set` and `map`.
pub fn read_elements<'a>(ty: &CqlType, bytes: &'a [u8]) -> Result<Vec<&'a [u8]>, String> {
    let mut elements = Vec::with_capacity(collection_size(bytes).min(bytes.len() / 4));
    each_element(ty, bytes, |element| {
        elements.push(element);
        Ok(())
    })?;
    Ok(elements)
}

/// Returns the elements of a list or set that may contain nulls. A list that is bound for IN or made in a select clause may.
///
/// # Errors
/// `Not enough bytes to read a list`
pub fn read_nullable_elements(bytes: &[u8]) -> Result<Vec<Option<&[u8]>>, String> {
    let short = || "Not enough bytes to read a list".to_owned();
    let mut reader = Reader::new(bytes);
    let count = usize::try_from(reader.int().ok_or_else(short)?).unwrap_or(0);
    (0..count)
        .map(|_| reader.value().map_err(|Truncated| short()))
        .collect()
}

/// Calls a function with each element of a collection, as it is read.
pub(crate) fn each_element<'a>(
    ty: &CqlType,
    bytes: &'a [u8],
    mut see: impl FnMut(&'a [u8]) -> Result<(), String>,
) -> Result<(), String> {
    let kind = kind_name(ty);
    let short = || format!("Not enough bytes to read a {kind}");
    let mut reader = Reader::new(bytes);
    let count = usize::try_from(reader.int().ok_or_else(short)?).unwrap_or(0);
    let count = if kind == "map" {
        count.saturating_mul(2)
    } else {
        count
    };
    for _ in 0..count {
        let value = reader.value().map_err(|Truncated| short())?;
        see(value.ok_or("Null value read when not allowed")?)?;
    }
    if reader.rest.is_empty() {
        Ok(())
    } else {
        Err(format!("Unexpected extraneous bytes after {kind} value"))
    }
}

/// Returns the entries of a map, in stored order.
///
/// # Errors
/// As [`read_elements`].
pub fn read_map<'a>(ty: &CqlType, bytes: &'a [u8]) -> Result<Vec<(&'a [u8], &'a [u8])>, String> {
    let flat = read_elements(ty, bytes)?;
    let (pairs, _) = flat.as_chunks::<2>();
    Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
}

/// Returns the declared number of elements of a collection, or of entries of a map.
pub fn collection_size(bytes: &[u8]) -> usize {
    Reader::new(bytes)
        .int()
        .and_then(|count| usize::try_from(count).ok())
        .unwrap_or(0)
}

fn write_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            out.extend_from_slice(&(value.len() as i32).to_be_bytes());
            out.extend_from_slice(value);
        }
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
    }
}

/// Builds a list from its elements, in that order.
pub fn pack_list<T: AsRef<[u8]>>(elements: impl IntoIterator<Item = T>) -> Bytes {
    let mut out = vec![0; 4];
    let mut count = 0i32;
    for element in elements {
        write_value(&mut out, Some(element.as_ref()));
        count += 1;
    }
    put_count(&mut out, count);
    out.into()
}

/// Builds a list whose elements may be null. Such a list may be selected, but is never stored in a column.
pub fn pack_nullable_list<T: AsRef<[u8]>>(elements: impl IntoIterator<Item = Option<T>>) -> Bytes {
    let mut out = vec![0; 4];
    let mut count = 0i32;
    for element in elements {
        write_value(&mut out, element.as_ref().map(AsRef::as_ref));
        count += 1;
    }
    put_count(&mut out, count);
    out.into()
}

fn put_count(out: &mut [u8], count: i32) {
    if let Some(head) = out.first_chunk_mut::<4>() {
        *head = count.to_be_bytes();
    }
}

/// Builds a set from elements in any order: sorted by the element type, without duplicates.
pub fn pack_set<T: AsRef<[u8]>>(element_type: &CqlType, elements: impl IntoIterator<Item = T>) -> Bytes {
    let mut elements: Vec<T> = elements.into_iter().collect();
    elements.sort_by(|a, b| compare(element_type, a.as_ref(), b.as_ref()));
    elements.dedup_by(|b, a| compare(element_type, a.as_ref(), b.as_ref()) == Ordering::Equal);
    pack_list(elements)
}

/// Builds a map from entries in any order, sorted by the key type. Of entries with equal keys, the last is kept.
pub fn pack_map<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    key_type: &CqlType,
    entries: impl IntoIterator<Item = (K, V)>,
) -> Bytes {
    let mut entries: Vec<(K, V)> = entries.into_iter().collect();
    entries.reverse();
    entries.sort_by(|a, b| compare(key_type, a.0.as_ref(), b.0.as_ref()));
    entries.dedup_by(|b, a| compare(key_type, a.0.as_ref(), b.0.as_ref()) == Ordering::Equal);
    pack_map_keeping_order(&entries)
}

/// Builds a map from entries in the given order. The entries are sorted and have no duplicates, unless a user's function created them.
pub fn pack_map_keeping_order<K: AsRef<[u8]>, V: AsRef<[u8]>>(entries: &[(K, V)]) -> Bytes {
    let entries = entries.iter().map(|(key, value)| (key, Some(value.as_ref())));
    pack_entries(entries)
}

/// Builds a map whose values may be null. Of entries with equal keys, the last is kept.
pub fn pack_nullable_map(key_type: &CqlType, entries: Vec<(Bytes, Option<Bytes>)>) -> Bytes {
    let mut entries = entries;
    entries.reverse();
    entries.sort_by(|a, b| compare(key_type, &a.0, &b.0));
    entries.dedup_by(|b, a| compare(key_type, &a.0, &b.0) == Ordering::Equal);
    pack_entries(entries.iter().map(|(key, value)| (key, value.as_deref())))
}

fn pack_entries<'v, K: AsRef<[u8]>>(entries: impl ExactSizeIterator<Item = (K, Option<&'v [u8]>)>) -> Bytes {
    let mut out = vec![0; 4];
    let count = entries.len() as i32;
    for (key, value) in entries {
        write_value(&mut out, Some(key.as_ref()));
        write_value(&mut out, value);
    }
    put_count(&mut out, count);
    out.into()
}

/// Returns the fields of a tuple or user type. `None` for null fields, and for last fields that the value omits.
///
/// # Errors
/// `Not enough bytes to read 0th component`, `Expected 2 values for … column, but got more`.
pub fn read_tuple<'a>(ty: &CqlType, bytes: &'a [u8]) -> Result<Vec<Option<&'a [u8]>>, String> {
    let count = field_count(ty);
    let mut reader = Reader::new(bytes);
    let mut fields = Vec::with_capacity(count);
    for position in 0..count {
        if reader.rest.is_empty() {
            fields.push(None);
            continue;
        }
        let field = reader.value();
        fields.push(field.map_err(|Truncated| format!("Not enough bytes to read {position}th component"))?);
    }
    if reader.rest.is_empty() {
        return Ok(fields);
    }
    let values = if count == 1 { "value" } else { "values" };
    Err(format!("Expected {count} {values} for {ty} column, but got more"))
}

fn field_count(ty: &CqlType) -> usize {
    match ty {
        CqlType::Tuple(elements) => elements.len(),
        CqlType::Udt { definition, .. } => definition.fields.len(),
        _ => 0,
    }
}

/// Builds a tuple or user type from its fields.
pub fn pack_tuple<T: AsRef<[u8]>>(fields: impl IntoIterator<Item = Option<T>>) -> Bytes {
    let mut out = Vec::new();
    for field in fields {
        write_value(&mut out, field.as_ref().map(AsRef::as_ref));
    }
    out.into()
}

/// Returns the elements of a vector.
///
/// # Errors
/// `Not enough bytes to read a vector<…>`, `Unexpected 4 extraneous bytes after vector<…> value`.
pub fn read_vector<'a>(ty: &CqlType, bytes: &'a [u8]) -> Result<Vec<&'a [u8]>, String> {
    let CqlType::Vector { element, dimension } = ty else {
        return Err(format!("{ty} is not a vector"));
    };
    let fixed_len = element.fixed_len();
    let mut reader = Reader::new(bytes);
    let mut elements = Vec::with_capacity(bytes.len().min(*dimension as usize));
    for _ in 0..*dimension {
        let value = reader.vector_element(fixed_len);
        elements.push(value.ok_or_else(|| format!("Not enough bytes to read a {ty}"))?);
    }
    match reader.rest.len() {
        0 => Ok(elements),
        extra => Err(format!("Unexpected {extra} extraneous bytes after {ty} value")),
    }
}

/// Builds a vector from its elements. The caller must have checked their number.
pub fn pack_vector<T: AsRef<[u8]>>(element_type: &CqlType, elements: impl IntoIterator<Item = T>) -> Bytes {
    let fixed = element_type.fixed_len().is_some();
    let mut out = Vec::new();
    for element in elements {
        let element = element.as_ref();
        if !fixed {
            vint::write_unsigned(&mut out, element.len() as u64);
        }
        out.extend_from_slice(element);
    }
    out.into()
}
