use super::*;

#[test]
fn successor_is_the_end_of_a_prefix() {
    assert_eq!(successor(b"a"), Some(b"b".to_vec()));
    assert_eq!(successor(b"a\xff"), Some(b"b".to_vec()));
    assert_eq!(successor(b"\xff"), None);
    assert_eq!(successor(b""), None);
}

#[test]
fn empty_ranges() {
    let key = |text: &'static str| Bytes::from_static(text.as_bytes());
    assert!(is_empty(&Bound::Included(key("b")), &Bound::Excluded(key("b"))));
    assert!(is_empty(&Bound::Included(key("b")), &Bound::Included(key("a"))));
    assert!(!is_empty(&Bound::Included(key("b")), &Bound::Included(key("b"))));
    assert!(!is_empty(&Bound::Unbounded, &Bound::Excluded(key("b"))));
}
