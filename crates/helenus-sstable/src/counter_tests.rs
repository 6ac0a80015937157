use super::*;
use crate::error::ErrorKind;
use crate::test_writer::counter_context;

fn shard(id: u8, clock: i64, count: i64, kind: ShardKind) -> Shard {
    Shard {
        id: [id; 16],
        clock,
        count,
        kind,
    }
}

/// Derived by hand from `CounterContext.createGlobal` and `ContextState.writeElement`.
#[test]
fn global_shard_has_cassandras_bytes() {
    let mut bytes = vec![0x00, 0x01, 0x80, 0x00];
    bytes.extend([7; 16]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 3]);
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
    let decoded = decode_context(&bytes).unwrap();
    assert_eq!(decoded, [shard(7, 3, -2, ShardKind::Global)]);
    assert_eq!(total(&decoded), -2);
    assert_eq!(counter_context(&decoded), bytes);
}

#[test]
fn mixed_shards_survive_a_round_trip() {
    let shards = [
        shard(1, 5, 50, ShardKind::Remote),
        shard(2, 6, 60, ShardKind::Local),
        shard(3, 7, 70, ShardKind::Global),
    ];
    let mut bytes = counter_context(&shards);
    assert_eq!(decode_context(&bytes).unwrap(), shards);
    // The mark of a context to be cleared: minus two header elements.
    bytes[..2].copy_from_slice(&(-2_i16).to_be_bytes());
    assert_eq!(decode_context(&bytes).unwrap(), shards);
    assert!(decode_context(&[]).unwrap().is_empty());
}

#[test]
fn cut_contexts_are_refused() {
    let bytes = counter_context(&[shard(3, 7, 70, ShardKind::Global)]);
    for len in 1..bytes.len() {
        // Without the body, the header names a shard that doesn't exist.
        let error = decode_context(&bytes[..len]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt, "{len}");
    }
    assert!(decode_context(&[0x80, 0x00]).is_err());
}

#[test]
fn shards_merge_as_in_cassandra() {
    use ShardKind::{Global, Local, Remote};
    let merged = |left: Shard, right: Shard| {
        let (left, right) = (&[left][..], &[right][..]);
        let [result]: [Shard; 1] = merge_contexts([left, right]).try_into().unwrap();
        let [swapped]: [Shard; 1] = merge_contexts([right, left]).try_into().unwrap();
        assert_eq!(result, swapped);
        result
    };
    let one = |clock, count, kind| shard(1, clock, count, kind);
    assert_eq!(merged(one(2, 9, Global), one(3, 4, Global)), one(3, 4, Global));
    assert_eq!(merged(one(3, 9, Global), one(3, 4, Global)), one(3, 9, Global));
    assert_eq!(merged(one(1, 1, Global), one(9, 9, Local)), one(1, 1, Global));
    assert_eq!(merged(one(1, 1, Global), one(9, 9, Remote)), one(1, 1, Global));
    assert_eq!(merged(one(1, 1, Local), one(9, 9, Remote)), one(1, 1, Local));
    assert_eq!(merged(one(1, 1, Local), one(2, 5, Local)), one(3, 6, Local));
    assert_eq!(merged(one(4, 1, Remote), one(5, 0, Remote)), one(5, 0, Remote));
    assert_eq!(merged(one(-4, 1, Remote), one(5, 0, Remote)), one(-4, 1, Remote));
    assert_eq!(merged(one(-4, 1, Remote), one(-5, 0, Remote)), one(-5, 0, Remote));
}

#[test]
fn contexts_of_different_nodes_are_united() {
    let left = [
        shard(1, 1, 10, ShardKind::Global),
        shard(3, 1, 30, ShardKind::Global),
    ];
    let right = [
        shard(2, 1, 20, ShardKind::Global),
        shard(3, 2, 33, ShardKind::Global),
    ];
    let merged = merge_contexts([left.as_slice(), right.as_slice()]);
    assert_eq!(total(&merged), 63);
    assert_eq!(merged.len(), 3);
}
