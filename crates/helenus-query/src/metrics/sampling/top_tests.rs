use super::*;

fn shown(top: &Top, most: usize) -> Vec<(String, u64, u64)> {
    let greatest = top.greatest(most).into_iter();
    greatest
        .map(|one| {
            (
                String::from_utf8_lossy(&one.key).into_owned(),
                one.count,
                one.error,
            )
        })
        .collect()
}

#[test]
fn counts_are_exact_as_long_as_all_keys_have_a_place() {
    let mut top = Top::new(3);
    for key in ["a", "b", "a", "c", "a", "b"] {
        top.add(key.as_bytes(), 1);
    }
    assert_eq!(shown(&top, 2), [("a".to_owned(), 3, 0), ("b".to_owned(), 2, 0)]);
    assert_eq!(shown(&top, 9).len(), 3);
}

#[test]
fn frequent_key_is_kept_and_counts_are_not_too_small() {
    let mut top = Top::new(16);
    let mut added = 0;
    for number in 0..10_000_u32 {
        top.add(&number.to_be_bytes(), 1);
        if number % 4 == 0 {
            top.add(b"hot", 1);
            added += 1;
        }
    }
    let greatest = top.greatest(1);
    assert_eq!(&*greatest[0].key, b"hot");
    assert!(greatest[0].count >= added, "{greatest:?}");
    assert!(greatest[0].count - greatest[0].error <= added, "{greatest:?}");
    assert_eq!(top.entries().len(), 16);
    assert_eq!((top.places.len(), top.by_count.len()), (16, 16));
}

#[test]
fn the_greatest_value_of_each_key_is_kept() {
    let mut top = Top::new(2);
    for (key, value) in [("a", 5), ("b", 7), ("a", 3), ("c", 4), ("d", 6), ("b", 9)] {
        top.raise(key.as_bytes(), value);
    }
    assert_eq!(shown(&top, 3), [("b".to_owned(), 9, 0), ("d".to_owned(), 6, 0)]);
}
