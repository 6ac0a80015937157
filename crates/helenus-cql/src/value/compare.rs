//! The order of values of a type (Cassandra's `AbstractType.compare`): empty values come first.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::pack::Reader;
use super::{Decimal, custom, exactly};
use crate::types::{CqlType, NativeType};

/// Compares two serialized values of the type. Bytes that are not values of the type have an arbitrary order, and never cause a panic.
pub fn compare(ty: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    match ty {
        CqlType::Native(native) => compare_native(*native, a, b),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            compare_collections(a, b, |_| element)
        }
        CqlType::Map { key, value, .. } => {
            compare_collections(a, b, |position| if position % 2 == 0 { key } else { value })
        }
        CqlType::Tuple(elements) => compare_tuples(elements.iter(), a, b),
        CqlType::Udt { definition, .. } => {
            compare_tuples(definition.fields.iter().map(|field| &field.ty), a, b)
        }
        CqlType::Vector { element, dimension } => compare_vectors(element, *dimension, a, b),
        CqlType::Custom(custom) => custom::compare(custom, a, b),
    }
}

/// Returns true if values of the type sort as unsigned bytes (Cassandra's `AbstractType.isByteOrderComparable`).
pub fn is_byte_order(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::Native(
            NativeType::Ascii
                | NativeType::Text
                | NativeType::Blob
                | NativeType::Inet
                | NativeType::Date
                | NativeType::Time
                | NativeType::Duration
        )
    )
}

/// Returns true if values of the type that compare as equal have equal bytes.
pub fn is_canonical(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(native) => !matches!(
            native,
            NativeType::Decimal | NativeType::Varint | NativeType::Boolean
        ),
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            is_canonical(element)
        }
        CqlType::Map { key, value, .. } => is_canonical(key) && is_canonical(value),
        // A value may omit its last fields.
        CqlType::Tuple(_) | CqlType::Udt { .. } | CqlType::Custom(_) => false,
    }
}

fn compare_native(native: NativeType, a: &[u8], b: &[u8]) -> Ordering {
    use NativeType as N;
    if a.is_empty() || b.is_empty() {
        return (!a.is_empty()).cmp(&!b.is_empty());
    }
    match native {
        N::Ascii | N::Text | N::Blob | N::Inet | N::Date | N::Time | N::Duration | N::Empty => a.cmp(b),
        N::Boolean => is_true(a).cmp(&is_true(b)),
        N::Tinyint | N::Smallint | N::Int | N::Bigint | N::Counter | N::Timestamp => compare_signed(a, b),
        N::Float => compare_as(a, b, |x: [u8; 4]| f64::from(f32::from_be_bytes(x))),
        N::Double => compare_as(a, b, f64::from_be_bytes),
        N::Decimal => match (Decimal::from_bytes(a), Decimal::from_bytes(b)) {
            (Some(x), Some(y)) => x.compare(&y),
            _ => a.cmp(b),
        },
        N::Varint => compare_varints(a, b),
        N::Uuid => compare_uuids(a, b),
        N::Timeuuid => compare_timeuuids(a, b),
    }
}

fn is_true(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| *byte != 0)
}

/// Compares two big-endian two's complement numbers of the same length. The first byte is signed, the others are not.
fn compare_signed(a: &[u8], b: &[u8]) -> Ordering {
    let sign = |bytes: &[u8]| bytes.first().map(|byte| *byte as i8);
    sign(a).cmp(&sign(b)).then_with(|| a.cmp(b))
}

fn compare_as<const N: usize>(a: &[u8], b: &[u8], read: impl Fn([u8; N]) -> f64) -> Ordering {
    match (exactly::<N>(a), exactly::<N>(b)) {
        (Some(x), Some(y)) => compare_doubles(read(x), read(y)),
        _ => a.cmp(b),
    }
}

/// Compares as Java's `Double.compare`: -0.0 before 0.0, and all NaNs equal and last.
pub fn compare_doubles(x: f64, y: f64) -> Ordering {
    match (x.is_nan(), y.is_nan()) {
        (false, false) => x.total_cmp(&y),
        (x_nan, y_nan) => x_nan.cmp(&y_nan),
    }
}

fn compare_varints(a: &[u8], b: &[u8]) -> Ordering {
    match (small_varint(a), small_varint(b)) {
        (Some(x), Some(y)) => x.cmp(&y),
        _ => BigInt::from_signed_bytes_be(a).cmp(&BigInt::from_signed_bytes_be(b)),
    }
}

fn small_varint(bytes: &[u8]) -> Option<i128> {
    if bytes.len() > 16 {
        return None;
    }
    let first = if *bytes.first()? & 0x80 == 0 { 0 } else { -1 };
    Some(
        bytes
            .iter()
            .fold(first, |value, byte| (value << 8) | i128::from(*byte)),
    )
}

fn halves(bytes: &[u8]) -> Option<(u64, u64)> {
    let value = u128::from_be_bytes(exactly::<16>(bytes)?);
    Some(((value >> 64) as u64, value as u64))
}

/// Returns the bits of the timestamp, most significant first, below the version.
fn timestamp_first(msb: u64) -> i64 {
    ((msb << 48) | ((msb << 16) & 0xFFFF_0000_0000) | (msb >> 32)) as i64
}

fn compare_uuids(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((a_msb, a_lsb)), Some((b_msb, b_lsb))) = (halves(a), halves(b)) else {
        return a.cmp(b);
    };
    let version = |msb: u64| (msb >> 12) & 0xF;
    version(a_msb)
        .cmp(&version(b_msb))
        .then_with(|| match version(a_msb) {
            1 => timestamp_first(a_msb).cmp(&timestamp_first(b_msb)),
            _ => a_msb.cmp(&b_msb),
        })
        .then_with(|| a_lsb.cmp(&b_lsb))
}

fn compare_timeuuids(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((a_msb, a_lsb)), Some((b_msb, b_lsb))) = (halves(a), halves(b)) else {
        return a.cmp(b);
    };
    // Each byte of the lower half is compared as signed. Flipping the sign bits of the seven lower bytes makes this one signed comparison.
    let signed_bytes = |lsb: u64| (lsb ^ 0x0080_8080_8080_8080) as i64;
    timestamp_first(a_msb)
        .cmp(&timestamp_first(b_msb))
        .then_with(|| signed_bytes(a_lsb).cmp(&signed_bytes(b_lsb)))
}

fn compare_collections<'t, F>(a: &[u8], b: &[u8], type_at: F) -> Ordering
where
    F: Fn(usize) -> &'t std::sync::Arc<CqlType>,
{
    if a.is_empty() || b.is_empty() {
        return (!a.is_empty()).cmp(&!b.is_empty());
    }
    let (mut left, mut right) = (Reader::new(a), Reader::new(b));
    let (Some(left_size), Some(right_size)) = (left.int(), right.int()) else {
        return a.cmp(b);
    };
    let mut position = 0;
    while !left.rest.is_empty() && !right.rest.is_empty() {
        let (Ok(x), Ok(y)) = (left.value(), right.value()) else {
            return a.cmp(b);
        };
        let order = match (x, y) {
            (Some(x), Some(y)) => compare(type_at(position), x, y),
            (x, y) => x.is_some().cmp(&y.is_some()),
        };
        if order.is_ne() {
            return order;
        }
        position += 1;
    }
    left_size.cmp(&right_size)
}

fn compare_tuples<'t>(types: impl Iterator<Item = &'t CqlType>, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return (!a.is_empty()).cmp(&!b.is_empty());
    }
    let (mut left, mut right) = (Reader::new(a), Reader::new(b));
    for ty in types {
        if left.rest.is_empty() || right.rest.is_empty() {
            break;
        }
        let (Ok(x), Ok(y)) = (left.value(), right.value()) else {
            return a.cmp(b);
        };
        let order = match (x, y) {
            (Some(x), Some(y)) => compare(ty, x, y),
            (x, y) => x.is_some().cmp(&y.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
    // Omitted last fields count as null.
    (!only_nulls(left)).cmp(&!only_nulls(right))
}

fn only_nulls(mut reader: Reader<'_>) -> bool {
    while !reader.rest.is_empty() {
        if !matches!(reader.int(), Some(size) if size < 0) {
            return false;
        }
    }
    true
}

fn compare_vectors(element: &CqlType, dimension: u32, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return (!a.is_empty()).cmp(&!b.is_empty());
    }
    let fixed_len = element.fixed_len();
    let (mut left, mut right) = (Reader::new(a), Reader::new(b));
    for _ in 0..dimension {
        let (Some(x), Some(y)) = (left.vector_element(fixed_len), right.vector_element(fixed_len)) else {
            return a.cmp(b);
        };
        let order = compare(element, x, y);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
