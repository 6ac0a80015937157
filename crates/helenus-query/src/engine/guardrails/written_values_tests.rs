use std::sync::Arc;

use helenus_cql::types::CqlType;
use helenus_cql::value::{pack_list, pack_map, pack_set};

use super::{CellSizes, cell_types, term_kind};
use crate::limits::guardrails::ThresholdKind;

fn text_map(frozen: bool) -> CqlType {
    CqlType::Map {
        key: Arc::new(CqlType::INT),
        value: Arc::new(CqlType::TEXT),
        frozen,
    }
}

#[test]
fn a_collection_is_measured_as_a_whole_and_by_its_cells() {
    let entries = vec![([0_u8; 4], vec![b'x'; 10]), ([1; 4], vec![b'y'; 20])];
    let value = pack_map(&CqlType::INT, entries);
    let sizes = CellSizes::of_value(&text_map(false), &value);
    assert_eq!(sizes.collection, Some((2, value.len() - 4)));
    assert_eq!((sizes.keys, sizes.values), (vec![4, 4], vec![10, 20]));

    let list = CqlType::List {
        element: Arc::new(CqlType::TEXT),
        frozen: false,
    };
    let sizes = CellSizes::of_value(&list, &pack_list(["abc", "d"]));
    assert_eq!((sizes.keys, sizes.values), (vec![], vec![3, 1]));

    let set = CqlType::Set {
        element: Arc::new(CqlType::TEXT),
        frozen: false,
    };
    let sizes = CellSizes::of_value(&set, &pack_set(&CqlType::TEXT, ["abc", "d"]));
    assert_eq!((sizes.keys, sizes.values), (vec![3, 1], vec![]));
}

#[test]
fn a_frozen_collection_is_one_cell() {
    let value = pack_map(&CqlType::INT, vec![([0_u8; 4], vec![b'x'; 10])]);
    let sizes = CellSizes::of_value(&text_map(true), &value);
    assert_eq!((sizes.keys, sizes.values), (vec![], vec![value.len()]));
    assert_eq!(sizes.collection, Some((1, value.len() - 4)));
}

#[test]
fn a_value_that_cannot_be_read_has_no_cells() {
    let sizes = CellSizes::of_value(&text_map(false), &[0, 0, 0, 9, 1]);
    assert_eq!((sizes.keys, sizes.values), (vec![], vec![]));
}

#[test]
fn terms_of_indexes_are_guarded_by_type() {
    assert_eq!(term_kind(&CqlType::TEXT), ThresholdKind::SaiStringTermSize);
    assert_eq!(term_kind(&text_map(true)), ThresholdKind::SaiFrozenTermSize);
    let map = text_map(false);
    let (key, value) = cell_types(&map);
    assert_eq!((key, value), (&CqlType::INT, &CqlType::TEXT));
}
