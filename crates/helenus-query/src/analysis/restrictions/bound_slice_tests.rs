use super::*;

fn range(start: &'static str, end: Option<&'static str>) -> ClusteringRange {
    ClusteringRange {
        start: Bytes::from_static(start.as_bytes()),
        end: end.map(|end| Bytes::from_static(end.as_bytes())),
    }
}

fn exclusive(start: bool, end: bool) -> RangeBounds {
    RangeBounds {
        is_start_exclusive: start,
        is_end_exclusive: end,
    }
}

fn parts(whole: ClusteringRange, holes: &[ClusteringRange]) -> Vec<BoundedRange> {
    let mut parts = Vec::new();
    cut(whole, holes, RangeBounds::default(), &mut parts);
    parts.retain(|(range, _)| !range.is_empty());
    parts
}

#[test]
fn bounds_at_holes_are_exclusive() {
    let holes = [range("b", Some("c")), range("d", Some("e"))];
    let expected = vec![
        (range("a", Some("b")), exclusive(false, true)),
        (range("c", Some("d")), exclusive(true, true)),
        (range("e", None), exclusive(true, false)),
    ];
    assert_eq!(parts(range("a", None), &holes), expected);
}

#[test]
fn holes_outside_of_the_range_are_ignored() {
    let holes = [range("a", Some("b")), range("x", Some("y"))];
    let whole = range("c", Some("d"));
    assert_eq!(
        parts(whole.clone(), &holes),
        vec![(whole, exclusive(false, false))]
    );
}

#[test]
fn repeated_and_covering_holes_leave_nothing_twice() {
    let holes = [range("b", Some("c")), range("b", Some("c")), range("d", None)];
    let expected = vec![(range("c", Some("d")), exclusive(true, true))];
    assert_eq!(parts(range("b", None), &holes), expected);
}
