//! Tests keys against `testdata/cassandra_order.txt`, which holds tokens, and values as Apache Cassandra 5.0.5 sorts them (`<`, or `=` for
//! equal ones).

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::types::class_name::parse_class_name;
use helenus_cql::value::{compare, pack_list, pack_map, pack_tuple, pack_vector};
use proptest::prelude::*;

use super::*;

const CASSANDRA: &str = include_str!("../../testdata/cassandra_order.txt");

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn type_of(name: &str) -> CqlType {
    if let Some(native) = helenus_cql::types::NativeType::from_name(name) {
        return CqlType::Native(native);
    }
    match name {
        "list<int>" => CqlType::list(CqlType::INT, true),
        "set<text>" => CqlType::set(CqlType::TEXT, true),
        "map<text,int>" => CqlType::map(CqlType::TEXT, CqlType::INT, true),
        "tuple<int,text,decimal>" => CqlType::tuple([CqlType::INT, CqlType::TEXT, CqlType::DECIMAL]),
        "list<tuple<text,int>>" => CqlType::list(CqlType::tuple([CqlType::TEXT, CqlType::INT]), true),
        "vector<float,3>" => CqlType::vector(CqlType::FLOAT, 3),
        "vector<text,2>" => CqlType::vector(CqlType::TEXT, 2),
        "vector<smallint,2>" => CqlType::vector(CqlType::SMALLINT, 2),
        _ => parse_class_name(name).unwrap_or_else(|| panic!("{name}")),
    }
}

/// Returns each type with its sorted values. Each value has its order relative to the value before.
fn sorted_values() -> Vec<(CqlType, Vec<(Ordering, Vec<u8>)>)> {
    CASSANDRA
        .lines()
        .filter(|line| !line.starts_with("token "))
        .map(|line| {
            let (name, list) = line.split_once(' ').unwrap();
            let mut values = Vec::new();
            let (mut order, mut rest) = (Ordering::Less, list);
            loop {
                let end = rest.find(['<', '=']).unwrap_or(rest.len());
                values.push((order, hex(&rest[..end])));
                let Some(sign) = rest.chars().nth(end) else { break };
                order = if sign == '=' {
                    Ordering::Equal
                } else {
                    Ordering::Less
                };
                rest = &rest[end + 1..];
            }
            (type_of(name), values)
        })
        .collect()
}

fn layout(columns: &[(CqlType, Order)]) -> KeyLayout {
    KeyLayout::new(columns.to_vec())
}

fn encode(ty: &CqlType, order: Order, value: &[u8]) -> EncodedClustering {
    layout(&[(ty.clone(), order)])
        .encode_clustering(&[value])
        .unwrap_or_else(|error| panic!("{error} {value:x?}"))
}

#[test]
fn bytes_sort_as_cassandra_sorts() {
    let all = sorted_values();
    assert_eq!(all.len(), 28);
    for (ty, values) in all {
        for pair in values.windows(2) {
            let [(_, a), (expected, b)] = pair else {
                unreachable!()
            };
            let ascending = encode(&ty, Order::Asc, a)
                .bytes
                .cmp(&encode(&ty, Order::Asc, b).bytes);
            assert_eq!(ascending, *expected, "{ty} {a:x?} {b:x?}");
            let descending = encode(&ty, Order::Desc, a)
                .bytes
                .cmp(&encode(&ty, Order::Desc, b).bytes);
            assert_eq!(descending, expected.reverse(), "{ty} {a:x?} {b:x?}");
        }
    }
}

#[test]
fn values_decode_to_what_was_encoded_or_its_equal() {
    for (ty, values) in sorted_values() {
        for (_, value) in values {
            for order in [Order::Asc, Order::Desc] {
                // The column lies between two others, so that decoding must find where its value ends.
                let layout = layout(&[
                    (CqlType::TEXT, Order::Asc),
                    (ty.clone(), order),
                    (CqlType::INT, Order::Asc),
                ]);
                let around = [&b"x\0"[..], &value, &[0, 0, 0, 7]];
                let encoded = layout.encode_clustering(&around).unwrap();
                let decoded = layout.decode_clustering(&encoded.bytes).unwrap();
                assert_eq!(decoded[0], around[0]);
                assert_eq!(decoded[2], around[2]);
                assert_eq!(
                    decoded[1] == value,
                    encoded.canonical,
                    "{ty} {value:x?} {:x?}",
                    decoded[1]
                );
                assert_eq!(compare(&ty, &decoded[1], &value), Ordering::Equal, "{ty}");
                let again = layout.encode_clustering(&decoded).unwrap();
                assert!(again.canonical);
                assert_eq!(again.bytes, encoded.bytes);
            }
        }
    }
}

#[test]
fn every_pair_sorts_as_compare_does() {
    for (ty, values) in sorted_values() {
        for (_, a) in &values {
            for (_, b) in &values {
                let order = encode(&ty, Order::Asc, a)
                    .bytes
                    .cmp(&encode(&ty, Order::Asc, b).bytes);
                assert_eq!(order, compare(&ty, a, b), "{ty} {a:x?} {b:x?}");
            }
        }
    }
}

#[test]
fn values_of_no_bytes_round_trip_in_and_within_every_type() {
    let natives = [
        CqlType::INT,
        CqlType::BIGINT,
        CqlType::TEXT,
        CqlType::BLOB,
        CqlType::DECIMAL,
        CqlType::BOOLEAN,
        CqlType::INET,
    ];
    let by_name = [
        "ascii",
        "float",
        "double",
        "varint",
        "uuid",
        "timeuuid",
        "timestamp",
        "date",
        "time",
        "smallint",
        "tinyint",
    ];
    for ty in natives.into_iter().chain(by_name.map(type_of)) {
        let empty = Bytes::new();
        let mut cases = vec![
            (ty.clone(), empty.clone()),
            (CqlType::list(ty.clone(), true), pack_list([&empty, &empty])),
            (CqlType::set(ty.clone(), true), pack_list([&empty])),
            (
                CqlType::map(ty.clone(), ty.clone(), true),
                pack_map(&ty, [(&empty, &empty)]),
            ),
            (
                CqlType::tuple([ty.clone(), ty.clone()]),
                pack_tuple([Some(&empty), Some(&empty)]),
            ),
        ];
        if ty.fixed_len().is_none() {
            cases.push((CqlType::vector(ty.clone(), 2), pack_vector(&ty, [&empty, &empty])));
        }
        for (ty, value) in cases {
            for order in [Order::Asc, Order::Desc] {
                let encoded = encode(&ty, order, &value);
                assert!(encoded.canonical, "{ty}");
                let decoded = layout(&[(ty.clone(), order)]).decode_clustering(&encoded.bytes);
                assert_eq!(decoded.unwrap(), std::slice::from_ref(&value), "{ty}");
            }
        }
    }
}

#[test]
fn no_value_is_a_prefix_of_another() {
    for (ty, values) in sorted_values() {
        for (_, a) in &values {
            for (_, b) in &values {
                let (a, b) = (encode(&ty, Order::Asc, a).bytes, encode(&ty, Order::Asc, b).bytes);
                assert!(a == b || !a.starts_with(&b), "{ty}");
            }
        }
    }
}

#[test]
fn shorter_clustering_sorts_before_longer_ones() {
    for order in [Order::Asc, Order::Desc] {
        let layout = layout(&[(CqlType::TEXT, Order::Asc), (CqlType::TEXT, order)]);
        let short = layout.encode_clustering(&[b"a"]).unwrap().bytes;
        assert_eq!(layout.decode_clustering(&short).unwrap(), [&b"a"[..]]);
        assert!(layout.prefix_range(&[b"a"]).unwrap().contains(&short));
        assert!(layout.encode_clustering(&[&b""[..], b"z"]).unwrap().bytes < short);
        for second in [&b""[..], b"\0", b"\xff"] {
            let long = layout.encode_clustering(&[&b"a"[..], second]).unwrap().bytes;
            assert!(short < long, "{second:x?}");
            // A page that ended with the short clustering continues with the long one.
            let behind_short = [&short[..], &[0]].concat();
            assert!(behind_short[..] <= long[..], "{second:x?}");
        }
    }
}

#[test]
fn tokens_are_cassandras() {
    let tokens: Vec<_> = CASSANDRA
        .lines()
        .filter_map(|line| line.strip_prefix("token "))
        .collect();
    assert_eq!(tokens.len(), 39);
    for line in tokens {
        let (key, token) = line.split_once(' ').unwrap();
        assert_eq!(murmur3_token(&hex(key)), token.parse::<i64>().unwrap(), "{key}");
    }
    assert_eq!(murmur3_token(b""), i64::MIN);
}

proptest! {
    #[test]
    fn key_with_token_has_the_token(token in i64::MIN + 1..=i64::MAX, choice in any::<u64>()) {
        prop_assert_eq!(murmur3_token(&key_with_token(token, choice)), token);
    }
}

/// Pins the stored bytes: changed bytes would make old stores unreadable.
#[test]
fn golden_keys() {
    let key = row_key(TableId(0x01020304), -1, b"a\0b", &[0xaa]);
    assert_eq!(*key, hex("010203047fffffffffffffff6100ff62000002aa"));
    assert_eq!(
        *header_key(TableId(1), 5, b"k"),
        hex("0000000180000000000000056b000000")
    );
    assert_eq!(
        *static_key(TableId(1), 5, b"k"),
        hex("0000000180000000000000056b000001")
    );
    let golden = |ty: CqlType, value: &str, expected: &str| {
        let encoded = encode(&ty, Order::Asc, &hex(value)).bytes;
        assert_eq!(encoded, hex(expected), "{ty} {value} {encoded:x?}");
        let complement: Vec<u8> = hex(expected).iter().map(|byte| !byte).collect();
        assert_eq!(encode(&ty, Order::Desc, &hex(value)).bytes, complement);
    };
    golden(CqlType::INT, "00000005", "0380000005");
    golden(CqlType::INT, "", "02");
    golden(CqlType::TEXT, "6100", "6100ff0000");
    golden(CqlType::INET, "7f000001", "7f00ff00ff010000");
    golden(CqlType::DOUBLE, "3ff8000000000000", "03bff8000000000000");
    golden(CqlType::DOUBLE, "bff8000000000000", "034007ffffffffffff");
    golden(CqlType::BOOLEAN, "01", "0301");
    golden(CqlType::VARINT, "0100", "03820100");
    golden(CqlType::VARINT, "ff", "037eff");
    // 1.5, -1.5, 0
    golden(CqlType::DECIMAL, "000000010f", "030381011000");
    golden(CqlType::DECIMAL, "00000001f1", "03017efeefff");
    golden(CqlType::DECIMAL, "0000000000", "0302");
    golden(
        CqlType::TIMEUUID,
        "d2177dd0eaa211de8572001b779c76e3",
        "0311deeaa2d2177dd005f2809bf71cf663",
    );
    golden(
        CqlType::UUID,
        "0123456789ab4def8123456789abcdef",
        "0340123456789abdef8123456789abcdef",
    );
    golden(
        CqlType::list(CqlType::INT, true),
        "000000010000000400000001",
        "03038000000100",
    );
    golden(
        CqlType::tuple([CqlType::INT, CqlType::TEXT]),
        "ffffffff0000000161",
        "03010361000000",
    );
    golden(CqlType::vector(CqlType::FLOAT, 1), "3f800000", "03bf800000");
}

#[test]
fn equal_forms_share_a_key() {
    let one = [0, 0, 0, 0, 1];
    let one_point_zero = [0, 0, 0, 1, 10];
    let (a, b) = (
        encode(&CqlType::DECIMAL, Order::Asc, &one),
        encode(&CqlType::DECIMAL, Order::Asc, &one_point_zero),
    );
    assert_eq!(a.bytes, b.bytes);
    assert!(a.canonical && !b.canonical);
}

#[test]
fn invalid_values_are_refused() {
    let cases: [(CqlType, &[u8]); 7] = [
        (CqlType::INT, &[1]),
        (CqlType::DECIMAL, &[0, 0, 0, 0]),
        (CqlType::TIMEUUID, &[0; 16]),
        (CqlType::INET, &[1]),
        (CqlType::list(CqlType::INT, true), &[0, 0, 0, 2, 0, 0, 0, 0]),
        (CqlType::list(CqlType::INT, true), &[0xff, 0xff, 0xff, 0xff]),
        (CqlType::tuple([CqlType::INT]), &[0, 0, 0, 1, 2, 3]),
    ];
    for (ty, value) in cases {
        let layout = layout(&[(ty.clone(), Order::Asc)]);
        assert!(
            matches!(
                layout.encode_clustering(&[value]),
                Err(KeyError::InvalidValue { .. })
            ),
            "{ty}"
        );
    }
    let layout = layout(&[(CqlType::COUNTER, Order::Asc)]);
    assert!(matches!(
        layout.encode_clustering(&[[0; 8]]),
        Err(KeyError::UnsupportedType { .. })
    ));
}

#[test]
fn keys_decode_and_sort_by_token_then_bytes() {
    let keys: [(i64, &[u8]); 6] = [
        (i64::MIN, b"z"),
        (-5, b"a"),
        (0, b""),
        (0, b"\0"),
        (0, b"\0\0\xff"),
        (7, b"a"),
    ];
    let mut last = Bytes::new();
    for (token, partition_key) in keys {
        for (kind, clustering) in [
            (KeyKind::Header, &b""[..]),
            (KeyKind::Static, b""),
            (KeyKind::Row, b"xy"),
        ] {
            let prefix = partition_prefix(TableId(9), token, partition_key);
            let key = key_in_partition(&prefix, kind, clustering);
            assert!(last < key);
            let decoded = decode_key(&key).unwrap();
            assert_eq!(
                (decoded.table, decoded.token, decoded.kind),
                (TableId(9), token, kind)
            );
            assert_eq!(
                (&*decoded.partition_key, decoded.clustering),
                (partition_key, clustering)
            );
            assert_eq!(partition_prefix_len(&key), Some(prefix.len()));
            let within = split_key_within(&key, &prefix).unwrap();
            assert_eq!(within, Some(split_key(&key).unwrap()));
            let mut appended = Vec::new();
            append_partition_key(&prefix, &mut appended).unwrap();
            assert_eq!(appended, partition_key);
            for (token, other) in keys.iter().filter(|other| **other != (token, partition_key)) {
                let other = partition_prefix(TableId(9), *token, other);
                assert_eq!(split_key_within(&key, &other).unwrap(), None);
            }
            assert!(partition_range(TableId(9), token, partition_key).contains(&key));
            assert!(table_range(TableId(9)).contains(&key) && !table_range(TableId(8)).contains(&key));
            assert!(token_range(TableId(9), Bound::Included(token), Bound::Included(token)).contains(&key));
            assert!(!token_range(TableId(9), Bound::Excluded(token), Bound::Unbounded).contains(&key));
            last = key;
        }
    }
}

#[test]
fn corrupt_keys_are_errors() {
    let key = row_key(TableId(1), 2, b"pk\0x", &[1, 2]);
    for len in 0..key.len() - 2 {
        assert!(decode_key(&key[..len]).is_err(), "{len}");
    }
    let layout = layout(&[
        (CqlType::DECIMAL, Order::Asc),
        (CqlType::list(CqlType::TEXT, true), Order::Desc),
    ]);
    let encoded = layout
        .encode_clustering(&[&[0, 0, 0, 2, 77][..], &[0, 0, 0, 1, 0, 0, 0, 1, 65]])
        .unwrap();
    for len in 1..encoded.bytes.len() {
        let decoded = layout.decode_clustering(&encoded.bytes[..len]);
        assert!(decoded.is_err() || decoded.unwrap().len() == 1);
    }
}

#[test]
fn a_partition_at_the_beginning_of_a_clustering_is_found() {
    let layout = layout(&[
        (CqlType::BIGINT, Order::Asc),
        (CqlType::BLOB, Order::Asc),
        (CqlType::INT, Order::Desc),
    ]);
    for token in [i64::MIN, -1, 0, i64::MAX] {
        for key in [&b""[..], b"key", b"\0", b"a\0\xffb\0", b"\xff\0"] {
            let key = Bytes::copy_from_slice(key);
            let values = [Bytes::copy_from_slice(&token.to_be_bytes()), key.clone(), int(7)];
            let whole = layout.encode_clustering(&values).unwrap().bytes;
            let leading = layout.encode_clustering(&values[..2]).unwrap().bytes;
            let rest = &whole[leading.len()..];
            let found = decode_leading_partition(&whole).unwrap();
            assert_eq!(found, (token, Cow::Borrowed(key.as_ref()), rest));
            assert!(decode_leading_partition(&leading[..leading.len() - 1]).is_err());
        }
    }
}

#[test]
fn composite_partition_keys_round_trip() {
    let key = compose_partition_key(&[&b"ab"[..], b"", b"\0"]).unwrap();
    assert_eq!(*key, hex("00026162000000000001000 0".replace(' ', "").as_str()));
    assert_eq!(split_partition_key(&key, 3).unwrap(), [&b"ab"[..], b"", b"\0"]);
    for (position, component) in [&b"ab"[..], b"", b"\0"].into_iter().enumerate() {
        assert_eq!(partition_key_component(&key, 3, position).unwrap(), component);
    }
    assert!(partition_key_component(&key, 4, 3).is_err());
    assert_eq!(partition_key_component(&key, 1, 0).unwrap(), &key);
    assert_eq!(compose_partition_key(&[b"ab"]).unwrap(), &b"ab"[..]);
    assert!(split_partition_key(&key, 2).is_err());
    assert!(compose_partition_key(&[vec![0; 65536]]).is_err());
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

proptest! {
    /// Compares slices and tuple ranges with a filter over all small clusterings.
    #[test]
    fn ranges_hold_what_they_say(
        descending in prop::array::uniform3(any::<bool>()),
        prefix in prop::collection::vec(0..3i32, 0..2),
        lower in prop::option::of((prop::collection::vec(0..3i32, 1..=3), any::<bool>())),
        upper in prop::option::of((prop::collection::vec(0..3i32, 1..=3), any::<bool>())),
    ) {
        let columns = descending.map(|desc| (CqlType::INT, if desc { Order::Desc } else { Order::Asc }));
        let layout = layout(&columns);
        let room = 3 - prefix.len();
        let bound = |bound: &(Vec<i32>, bool)| TupleBound {
            values: bound.0.iter().take(room).map(|value| int(*value)).collect(),
            inclusive: bound.1,
        };
        let prefix_values: Vec<Bytes> = prefix.iter().map(|value| int(*value)).collect();
        let ranges = layout
            .tuple_ranges(
                &prefix_values,
                lower.as_ref().map(bound).as_ref(),
                upper.as_ref().map(bound).as_ref(),
            )
            .unwrap();
        let slice_start = lower.as_ref().map(|(values, inclusive)| {
            (values.iter().map(|value| int(*value)).collect::<Vec<_>>(), *inclusive)
        });
        let slice_end = upper.as_ref().map(|(values, inclusive)| {
            (values.iter().map(|value| int(*value)).collect::<Vec<_>>(), *inclusive)
        });
        let slice = layout
            .slice(
                slice_start.as_ref().map(|(values, inclusive)| (&values[..], *inclusive)),
                slice_end.as_ref().map(|(values, inclusive)| (&values[..], *inclusive)),
            )
            .unwrap();
        for pair in ranges.windows(2) {
            prop_assert!(pair[0].end.as_ref().unwrap() < &pair[1].start);
        }
        let in_clustering_order = |a: &[i32], b: &[i32]| {
            a.iter().zip(b).zip(descending).fold(Ordering::Equal, |order, ((x, y), desc)| {
                order.then(if desc { y.cmp(x) } else { x.cmp(y) })
            })
        };
        for code in 0..27 {
            let row = [code / 9, code / 3 % 3, code % 3];
            let encoded = layout.encode_clustering(&row.map(int)).unwrap().bytes;
            let (head, tail) = row.split_at(prefix.len());
            let above = lower.as_ref().is_none_or(|(values, inclusive)| {
                let values = &values[..values.len().min(room)];
                let order = tail[..values.len()].cmp(values);
                order.is_gt() || (*inclusive && order.is_eq())
            });
            let below = upper.as_ref().is_none_or(|(values, inclusive)| {
                let values = &values[..values.len().min(room)];
                let order = tail[..values.len()].cmp(values);
                order.is_lt() || (*inclusive && order.is_eq())
            });
            let expected = head == prefix && above && below;
            prop_assert_eq!(ranges.iter().any(|range| range.contains(&encoded)), expected);

            let after_start = lower.as_ref().is_none_or(|(values, inclusive)| {
                let order = in_clustering_order(&row, values);
                order.is_gt() || (*inclusive && order.is_eq())
            });
            let before_end = upper.as_ref().is_none_or(|(values, inclusive)| {
                let order = in_clustering_order(&row, values);
                order.is_lt() || (*inclusive && order.is_eq())
            });
            prop_assert_eq!(slice.contains(&encoded), after_start && before_end);
            let key = row_key(TableId(1), 2, b"p", &encoded);
            let keys = slice.in_partition(&partition_prefix(TableId(1), 2, b"p"));
            prop_assert_eq!(keys.contains(&key), after_start && before_end);
            prop_assert!(!keys.contains(&static_key(TableId(1), 2, b"p")));
        }
    }

    #[test]
    fn decimals_and_varints_sort_by_value(
        a in (any::<i64>(), -40..40i32), b in (any::<i64>(), -40..40i32), small in any::<bool>(),
    ) {
        let value = |(unscaled, scale): (i64, i32)| {
            let unscaled = if small { unscaled % 1000 } else { unscaled };
            [&scale.to_be_bytes()[..], &unscaled.to_be_bytes()].concat()
        };
        let (a, b) = (value(a), value(b));
        let order = |ty: &CqlType, a: &[u8], b: &[u8]| {
            encode(ty, Order::Asc, a).bytes.cmp(&encode(ty, Order::Asc, b).bytes)
        };
        prop_assert_eq!(order(&CqlType::DECIMAL, &a, &b), compare(&CqlType::DECIMAL, &a, &b));
        let (a, b) = (&a[4..], &b[4..]);
        prop_assert_eq!(order(&CqlType::VARINT, a, b), compare(&CqlType::VARINT, a, b));
    }

    /// Decodes arbitrary bytes, which must not panic.
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..40), desc in any::<bool>()) {
        let order = if desc { Order::Desc } else { Order::Asc };
        for (ty, _) in sorted_values() {
            let layout = layout(&[(ty, order), (CqlType::INT, order)]);
            let _ = layout.decode_clustering(&bytes);
            let _ = layout.encode_clustering(&[&bytes]);
        }
        let _ = decode_key(&bytes);
        let _ = partition_prefix_len(&bytes);
        let _ = decode_leading_partition(&bytes);
    }
}
