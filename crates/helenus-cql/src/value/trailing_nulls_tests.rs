use std::sync::Arc;

use super::{may_have_trailing_nulls, without_trailing_nulls};
use crate::types::{CqlType, UserType, UserTypeField};
use crate::value::{pack_list, pack_map, pack_set, pack_tuple, pack_vector};

fn tuple() -> CqlType {
    CqlType::Tuple(vec![CqlType::INT, CqlType::TEXT].into())
}

fn pair() -> CqlType {
    let field = |name: &str, ty| UserTypeField {
        name: name.to_owned(),
        ty,
    };
    CqlType::Udt {
        definition: Arc::new(UserType {
            keyspace: "ks".to_owned(),
            name: "pair".to_owned(),
            fields: vec![field("a", CqlType::INT), field("b", CqlType::TEXT)],
        }),
        frozen: true,
    }
}

fn shared(ty: CqlType) -> Arc<CqlType> {
    Arc::new(ty)
}

fn short() -> Vec<u8> {
    pack_tuple([Some([0, 0, 0, 1])]).to_vec()
}

fn long() -> Vec<u8> {
    pack_tuple([Some([0, 0, 0, 1]).as_ref().map(|one| one.as_slice()), None]).to_vec()
}

#[test]
fn trailing_nulls_are_cut_at_any_depth() {
    let (short, long) = (short(), long());
    assert_ne!(short, long);
    let nested = CqlType::Tuple(vec![pair(), CqlType::INT].into());
    let list = CqlType::List {
        element: shared(pair()),
        frozen: true,
    };
    let set = CqlType::Set {
        element: shared(pair()),
        frozen: true,
    };
    let map = CqlType::Map {
        key: shared(pair()),
        value: shared(pair()),
        frozen: true,
    };
    let vector = CqlType::Vector {
        element: shared(pair()),
        dimension: 2,
    };
    let cases = [
        (pair(), long.clone(), short.clone()),
        (
            nested,
            pack_tuple([Some(&long), None]).to_vec(),
            pack_tuple([Some(&short), None]).to_vec(),
        ),
        (
            list,
            pack_list([&long, &short]).to_vec(),
            pack_list([&short, &short]).to_vec(),
        ),
        (
            set,
            pack_set(&pair(), [&long]).to_vec(),
            pack_set(&pair(), [&short]).to_vec(),
        ),
        (
            map,
            pack_map(&pair(), [(&long, &long)]).to_vec(),
            pack_map(&pair(), [(&short, &short)]).to_vec(),
        ),
        (
            vector,
            pack_vector(&pair(), [&long, &short]).to_vec(),
            pack_vector(&pair(), [&short, &short]).to_vec(),
        ),
    ];
    for (ty, given, expected) in cases {
        assert!(may_have_trailing_nulls(&ty));
        assert_eq!(without_trailing_nulls(&ty, &given).as_ref(), expected, "{ty}");
        assert_eq!(without_trailing_nulls(&ty, &expected).as_ref(), expected, "{ty}");
    }
}

#[test]
fn one_null_stays_of_nulls_alone() {
    let none: [Option<&[u8]>; 2] = [None, None];
    let one = pack_tuple(none.iter().take(1).copied());
    assert_eq!(
        without_trailing_nulls(&pair(), &pack_tuple(none)).as_ref(),
        one.as_ref()
    );
    assert_eq!(without_trailing_nulls(&pair(), b"").as_ref(), b"");
}

#[test]
fn tuples_keep_their_nulls() {
    assert!(!may_have_trailing_nulls(&tuple()));
    assert_eq!(without_trailing_nulls(&tuple(), &long()).as_ref(), long());
}

#[test]
fn malformed_values_come_back_as_they_are() {
    for malformed in [&[0, 0][..], &[0, 0, 0, 9, 1], &[255; 12]] {
        assert_eq!(without_trailing_nulls(&pair(), malformed).as_ref(), malformed);
    }
}
