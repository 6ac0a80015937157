use super::*;

fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn range(start: &'static str, end: &'static str) -> KeyRange {
    KeyRange {
        start: key(start),
        end: key(end),
    }
}

/// Returns the bounds of a scan of `[start, end)` after the dead range has been skipped.
fn skipped(dead: &DeadRanges, start: &'static str, end: &'static str, reversed: bool) -> Bounds {
    let mut bounds = (Bound::Included(key(start)), Bound::Excluded(key(end)));
    dead.skip(b"p", &mut bounds, reversed);
    bounds
}

fn between(start: &'static str, end: &'static str) -> Bounds {
    (Bound::Included(key(start)), Bound::Excluded(key(end)))
}

#[test]
fn scans_that_begin_in_a_dead_range_begin_behind_it() {
    let mut dead = DeadRanges::default();
    dead.add(b"p", range("pb", "pd"), 9);
    assert_eq!(skipped(&dead, "pb", "pz", false), between("pd", "pz"));
    assert_eq!(skipped(&dead, "pc", "pz", false), between("pd", "pz"));
    assert_eq!(skipped(&dead, "pa", "pz", false), between("pa", "pz"));
    assert_eq!(skipped(&dead, "pd", "pz", false), between("pd", "pz"));
    assert_eq!(skipped(&dead, "pa", "pd", true), between("pa", "pb"));
    assert_eq!(skipped(&dead, "pa", "pb", true), between("pa", "pb"));
    assert_eq!(skipped(&dead, "pa", "pe", true), between("pa", "pe"));
    let mut bounds = (Bound::Excluded(key("pc")), Bound::Included(key("pz")));
    dead.skip(b"p", &mut bounds, false);
    assert_eq!(bounds.0, Bound::Included(key("pd")));
    let mut bounds = (Bound::Unbounded, Bound::Included(key("pc")));
    dead.skip(b"p", &mut bounds, true);
    assert_eq!(bounds.1, Bound::Excluded(key("pb")));
    dead.skip(b"q", &mut bounds, true);
    assert_eq!(bounds.1, Bound::Excluded(key("pb")));
}

#[test]
fn a_write_that_may_be_alive_cuts_the_range_off() {
    let mut dead = DeadRanges::default();
    dead.add(b"p", range("pb", "pf"), 9);
    dead.cut(b"p", b"pc", || false);
    dead.cut(b"p", b"pf", || true);
    assert_eq!(skipped(&dead, "pb", "pz", false), between("pf", "pz"));
    dead.cut(b"p", b"pc", || true);
    assert_eq!(skipped(&dead, "pb", "pz", false), between("pc", "pz"));
    dead.cut(b"p", b"pb", || true);
    assert!(dead.is_empty());
}

#[test]
fn touching_ranges_join_and_larger_range_is_kept() {
    let mut dead = DeadRanges::default();
    dead.add(b"p", range("pb", "pd"), 9);
    dead.add(b"p", range("pd", "pf"), 8);
    assert_eq!(skipped(&dead, "pb", "pz", false), between("pf", "pz"));
    dead.add(b"p", range("pm", "pn"), 16);
    assert_eq!(skipped(&dead, "pm", "pz", false), between("pm", "pz"));
    dead.add(b"p", range("pm", "pn"), 18);
    assert_eq!(skipped(&dead, "pb", "pz", false), between("pb", "pz"));
    assert_eq!(skipped(&dead, "pm", "pz", false), between("pn", "pz"));
    dead.add(b"p", range("px", "px"), 99);
    assert_eq!(skipped(&dead, "pm", "pz", false), between("pn", "pz"));
    for partition in 0..PARTITIONS_MAX as u64 + 10 {
        dead.add(&partition.to_be_bytes(), range("pb", "pd"), 9);
    }
    assert_eq!(dead.0.len(), PARTITIONS_MAX);
}
