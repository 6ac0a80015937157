use super::*;

fn key(table: u32, token: i64, rest: &str) -> Bytes {
    let mut key = table.to_be_bytes().to_vec();
    key.extend_from_slice(&(token ^ i64::MIN).to_be_bytes());
    key.extend_from_slice(rest.as_bytes());
    key.into()
}

fn origin(own: u32, there: u32) -> Origin {
    let open: OpenPinned = Arc::new(|_, _| panic!("nothing is opened"));
    let origins = Origins::default();
    let origin = TableOrigin {
        pinned: Arc::new([]),
        table: there,
        below: None,
    };
    origins.set(vec![(own, Arc::new(origin))], &open);
    assert!(origins.of(&key(own + 1, 0, "")).is_none());
    origins.of(&key(own, 0, "")).unwrap()
}

fn tokens(first: i64, last: i64) -> TokenRange {
    TokenRange { first, last }
}

#[test]
fn bounds_lie_within_the_tokens_of_both_tablets() {
    let origin = origin(9, 5);
    let whole = (
        Bound::Included(Bytes::copy_from_slice(&9u32.to_be_bytes())),
        Bound::Excluded(Bytes::copy_from_slice(&10u32.to_be_bytes())),
    );
    let there = |bounds: &Bounds, tablet, wanted| origin.bounds_there(bounds, tablet, wanted);
    let all = tokens(i64::MIN, i64::MAX);
    assert_eq!(
        there(&whole, all, tokens(-5, 7)),
        Some((Bound::Included(key(5, -5, "")), Bound::Excluded(key(5, 8, ""))))
    );
    assert_eq!(
        there(&whole, tokens(0, 100), tokens(-5, 7)),
        Some((Bound::Included(key(5, 0, "")), Bound::Excluded(key(5, 8, ""))))
    );
    assert_eq!(there(&whole, tokens(8, 100), tokens(-5, 7)), None);
    let Some((_, Bound::Excluded(end))) = there(&whole, all, all) else {
        panic!("a table has an end");
    };
    assert!(end > key(5, i64::MAX, "\u{7f}") && end <= Bytes::copy_from_slice(&6u32.to_be_bytes()));
    // A slice of a partition keeps its bounds.
    let slice = (Bound::Excluded(key(9, 3, "a")), Bound::Included(key(9, 3, "b")));
    let expected = (Bound::Excluded(key(5, 3, "a")), Bound::Included(key(5, 3, "b")));
    assert_eq!(there(&slice, all, tokens(-5, 7)), Some(expected));
    assert_eq!(there(&slice, tokens(4, 9), tokens(-5, 7)), None);
}

#[test]
fn ranges_over_several_tables_have_no_origin() {
    let open: OpenPinned = Arc::new(|_, _| panic!("nothing is opened"));
    let origins = Origins::default();
    let origin = TableOrigin {
        pinned: Arc::new([]),
        table: 5,
        below: None,
    };
    origins.set(vec![(9, Arc::new(origin))], &open);
    let from = |bytes: u32| Bound::Included(Bytes::copy_from_slice(&bytes.to_be_bytes()));
    let to = |bytes: u32| Bound::Excluded(Bytes::copy_from_slice(&bytes.to_be_bytes()));
    assert!(origins.of_range(&(from(9), to(10))).is_some());
    assert!(
        origins
            .of_range(&(from(9), Bound::Excluded(key(9, 1, ""))))
            .is_some()
    );
    assert!(origins.of_range(&(from(9), to(11))).is_none());
    assert!(origins.of_range(&(from(9), Bound::Unbounded)).is_none());
    assert!(origins.of_range(&(Bound::Unbounded, to(10))).is_none());
    assert!(origins.of_range(&(from(8), to(9))).is_none());
    origins.set(Vec::new(), &open);
    assert!(origins.of_range(&(from(9), to(10))).is_none());
}
