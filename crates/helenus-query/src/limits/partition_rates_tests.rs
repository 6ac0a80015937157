use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// Returns the number of allowed operations among several at the same time.
fn allowed(rates: &PartitionRates, key: u64, rate: u32, now_ns: u64, operations: usize) -> usize {
    (0..operations)
        .filter(|_| rates.allows_at(key, rate, now_ns))
        .count()
}

#[test]
fn partitions_have_buckets_of_their_own() {
    let rates = PartitionRates::default();
    // Both keys belong to one set.
    let (hot, cold) = (5, 5 + SETS as u64);
    assert_eq!(allowed(&rates, hot, 10, SECOND_NS, 30), 10);
    assert_eq!(allowed(&rates, cold, 10, SECOND_NS, 3), 3);
    assert_eq!(allowed(&rates, hot, 10, SECOND_NS * 2, 30), 10);
}

#[test]
fn a_hot_partition_is_not_forgotten_for_cold_ones() {
    let rates = PartitionRates::default();
    let hot = 7;
    assert_eq!(allowed(&rates, hot, 10, SECOND_NS, 10), 10);
    for other in 1..1_000 {
        assert!(rates.allows_at(hot + other * SETS as u64, 10, SECOND_NS));
    }
    assert_eq!(allowed(&rates, hot, 10, SECOND_NS, 10), 0);
}

#[test]
fn reads_writes_tables_and_keys_are_counted_apart() {
    let rates = PartitionRates::default();
    let (table, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let kinds = [LimitedOperation::Read, LimitedOperation::Write];
    for table in [table, other] {
        for kind in kinds {
            for key in [b"a", b"b"] {
                assert!(rates.allows(table, kind, key, 1));
                assert!(!rates.allows(table, kind, key, 1));
            }
        }
    }
}

#[test]
fn nothing_is_allowed_at_a_rate_of_none() {
    assert!(!PartitionRates::default().allows_at(1, 0, SECOND_NS));
}
