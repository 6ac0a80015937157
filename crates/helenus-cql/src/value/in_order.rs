//! Collections in their stored order, whatever the order in which a client sent them.
//!
//! Cassandra deserializes a bound collection and serializes it again, so that equal sets have equal bytes: in keys, in comparisons, as
//! elements. Collections inside tuples, user types and vectors are stored as sent.

use std::borrow::Cow;
use std::cmp::Ordering;

use bytes::Bytes;

use super::pack::pack_nullable_list;
use super::{
    compare, is_empty_meaningless, pack_list, pack_map, pack_set, read_elements, read_map,
    read_nullable_elements,
};
use crate::types::CqlType;

/// Returns a bound value as Cassandra stores it. Collections are sorted as by [`in_order`]. Empty elements of a list become null, unless
/// the element type has an empty value.
pub fn as_bound(ty: &CqlType, bytes: &Bytes) -> Bytes {
    let CqlType::List { element, .. } = ty else {
        return in_order(ty, bytes);
    };
    match read_nullable_elements(bytes) {
        Ok(elements) if is_empty_meaningless(element) && elements.contains(&Some(&[])) => {
            pack_nullable_list(elements.into_iter().map(|one| one.filter(|one| !one.is_empty())))
        }
        _ => in_order(ty, bytes),
    }
}

/// Returns the bound collection with sorted sets and maps, without duplicates. Inner collections are sorted too. A sorted or unreadable
/// value is returned unchanged.
pub fn in_order(ty: &CqlType, bytes: &Bytes) -> Bytes {
    match sorted(ty, bytes) {
        Cow::Borrowed(_) => bytes.clone(),
        Cow::Owned(ordered) => ordered.into(),
    }
}

fn sorted<'b>(ty: &CqlType, bytes: &'b [u8]) -> Cow<'b, [u8]> {
    let ordered = match ty {
        CqlType::List { element, .. } if is_sorted_kind(element) => sorted_list(ty, element, bytes),
        CqlType::Set { element, .. } => sorted_set(ty, element, bytes),
        CqlType::Map { key, value, .. } => sorted_map(ty, key, value, bytes),
        _ => None,
    };
    ordered.map_or(Cow::Borrowed(bytes), |ordered| Cow::Owned(ordered.into()))
}

fn is_sorted_kind(ty: &CqlType) -> bool {
    match ty {
        CqlType::List { element, .. } => is_sorted_kind(element),
        CqlType::Set { .. } | CqlType::Map { .. } => true,
        _ => false,
    }
}

/// Returns the list with its elements sorted. `None` if no element changes.
fn sorted_list(ty: &CqlType, element: &CqlType, bytes: &[u8]) -> Option<Bytes> {
    let elements = read_elements(ty, bytes).ok()?;
    let elements: Vec<_> = elements.into_iter().map(|one| sorted(element, one)).collect();
    let has_changed = elements.iter().any(|one| matches!(one, Cow::Owned(_)));
    has_changed.then(|| pack_list(elements))
}

fn sorted_set(ty: &CqlType, element: &CqlType, bytes: &[u8]) -> Option<Bytes> {
    let elements = read_elements(ty, bytes).ok()?;
    let elements: Vec<_> = elements.into_iter().map(|one| sorted(element, one)).collect();
    let is_kept = elements.is_sorted_by(|a, b| compare(element, a, b) == Ordering::Less);
    let has_changed = elements.iter().any(|one| matches!(one, Cow::Owned(_)));
    (!is_kept || has_changed).then(|| pack_set(element, elements))
}

fn sorted_map(ty: &CqlType, key: &CqlType, value: &CqlType, bytes: &[u8]) -> Option<Bytes> {
    let entries = read_map(ty, bytes).ok()?;
    let both = |(a, b)| (sorted(key, a), sorted(value, b));
    let entries: Vec<_> = entries.into_iter().map(both).collect();
    let is_kept = entries.is_sorted_by(|(a, _), (b, _)| compare(key, a, b) == Ordering::Less);
    let has_changed = entries
        .iter()
        .any(|entry| !matches!(entry, (Cow::Borrowed(_), Cow::Borrowed(_))));
    (!is_kept || has_changed).then(|| pack_map(key, entries))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{as_bound, in_order};
    use crate::types::CqlType;
    use crate::value::{pack_list, pack_map, pack_set};

    fn int(n: i32) -> [u8; 4] {
        n.to_be_bytes()
    }

    fn set_type() -> CqlType {
        CqlType::Set {
            element: Arc::new(CqlType::INT),
            frozen: true,
        }
    }

    #[test]
    fn sets_within_sets_and_maps_are_sorted_without_duplicates() {
        let sorted = pack_list([int(1), int(2)]);
        let given = pack_list([int(2), int(1), int(2)]);
        assert_eq!(in_order(&set_type(), &given), sorted);
        let map = CqlType::Map {
            key: Arc::new(CqlType::INT),
            value: Arc::new(set_type()),
            frozen: true,
        };
        let expected = pack_map(
            &CqlType::INT,
            [(int(1), sorted.clone()), (int(2), sorted.clone())],
        );
        // The keys are in descending order, as a client may send them.
        let mut wrong = 2i32.to_be_bytes().to_vec();
        for (key, value) in [(int(2), &given), (int(1), &sorted)] {
            wrong.extend(4i32.to_be_bytes());
            wrong.extend(key);
            wrong.extend((value.len() as i32).to_be_bytes());
            wrong.extend(value.as_ref());
        }
        assert_eq!(in_order(&map, &wrong.into()), expected);
    }

    #[test]
    fn elements_of_no_bytes_in_bound_lists_are_null() {
        let value = |bytes: &'static [u8]| Some(bytes);
        let given = pack_list([b"".as_slice(), &int(1)]);
        let bound = as_bound(&CqlType::list(CqlType::INT, true), &given);
        assert_eq!(
            crate::value::read_nullable_elements(&bound).unwrap(),
            [None, value(&[0, 0, 0, 1])]
        );
        for kept in [
            CqlType::list(CqlType::TEXT, true),
            CqlType::set(CqlType::INT, true),
            CqlType::list(CqlType::list(CqlType::INT, true), true),
        ] {
            assert_eq!(as_bound(&kept, &given), given, "{kept}");
        }
    }

    #[test]
    fn what_is_in_order_or_cannot_be_read_stays() {
        let sorted = pack_set(&CqlType::INT, [int(1), int(2)]);
        assert_eq!(in_order(&set_type(), &sorted), sorted);
        let damaged = bytes::Bytes::from_static(&[0, 0, 0, 9]);
        assert_eq!(in_order(&set_type(), &damaged), damaged);
    }
}
