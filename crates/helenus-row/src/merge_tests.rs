//! Tests the merge of packed values against a plain model of Cassandra's rules, with timestamps that are often equal.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::header::RangeTombstone;
use crate::key::ClusteringRange;
use crate::row::{Cell, ColumnData, Complex, ExactClustering, RowBuilder};

fn expiry() -> impl Strategy<Value = Expiry> {
    (1..4i32, 0..4i64).prop_map(|(ttl_s, expires_at_s)| Expiry { ttl_s, expires_at_s })
}

fn cell() -> impl Strategy<Value = Cell> {
    let value = prop::collection::vec(0..3u8, 0..3).prop_map(Bytes::from);
    let kind = prop_oneof![
        4 => Just(CellKind::Live),
        2 => expiry().prop_map(CellKind::Expiring),
        2 => (0..3i64).prop_map(|local_deletion_s| CellKind::Tombstone { local_deletion_s }),
    ];
    (0..5i64, kind, value).prop_map(|(timestamp_us, kind, value)| Cell {
        timestamp_us,
        kind,
        value: if matches!(kind, CellKind::Tombstone { .. }) {
            Bytes::new()
        } else {
            value
        },
    })
}

fn deletion() -> impl Strategy<Value = Deletion> {
    (0..5i64, 0..3i64).prop_map(|(timestamp_us, local_deletion_s)| Deletion {
        timestamp_us,
        local_deletion_s,
    })
}

fn liveness() -> impl Strategy<Value = Liveness> {
    (0..5i64, prop::option::of(expiry())).prop_map(|(timestamp_us, expiry)| Liveness { timestamp_us, expiry })
}

/// Returns random rows. Columns with ids below 3 have one cell, the others many.
pub(crate) fn row() -> impl Strategy<Value = Row> {
    let simple = prop::collection::btree_map(0..3u32, cell(), 0..3);
    let elements = prop::collection::btree_map(0..3u8, cell(), 0..3);
    let complex =
        prop::collection::btree_map(3..5u32, (prop::option::weighted(0.3, deletion()), elements), 0..3);
    let exact = (0..5i64, 0..3u8).prop_map(|(timestamp_us, byte)| ExactClustering {
        timestamp_us,
        components: vec![Bytes::from(vec![byte]), Bytes::new()],
    });
    (
        prop::option::of(liveness()),
        prop::option::weighted(0.2, deletion()),
        prop::option::weighted(0.2, exact),
        simple,
        complex,
    )
        .prop_map(|(liveness, deletion, exact_clustering, simple, complex)| {
            let simple = simple
                .into_iter()
                .map(|(id, cell)| (ColumnId(id), ColumnData::Simple(cell)));
            let complex = complex.into_iter().map(|(id, (deletion, elements))| {
                let cells = elements
                    .into_iter()
                    .map(|(path, cell)| (Bytes::from(vec![path]), cell))
                    .collect();
                (ColumnId(id), ColumnData::Complex(Complex { deletion, cells }))
            });
            Row {
                liveness,
                deletion,
                exact_clustering,
                columns: simple.chain(complex).collect(),
            }
        })
}

/// Implements Cassandra's `Cells.resolveRegular`, rule by rule.
fn resolve_regular<'a>(left: &'a Cell, right: &'a Cell) -> &'a Cell {
    let pick = |left_wins: bool| if left_wins { left } else { right };
    if left.timestamp_us != right.timestamp_us {
        return pick(left.timestamp_us > right.timestamp_us);
    }
    // The facts are: expiring or tombstone, expiring, local deletion time, TTL.
    let facts = |cell: &Cell| match cell.kind {
        CellKind::Live | CellKind::Counter => (false, false, i64::MAX, 0),
        CellKind::Expiring(expiry) => (true, true, expiry.expires_at_s, expiry.ttl_s),
        CellKind::Tombstone { local_deletion_s } => (true, false, local_deletion_s, 0),
    };
    let ((l_ends, l_expires, l_time, l_ttl), (r_ends, r_expires, r_time, r_ttl)) =
        (facts(left), facts(right));
    if l_ends || r_ends {
        if l_ends != r_ends {
            return pick(l_ends);
        }
        if l_expires != r_expires {
            return pick(!l_expires);
        }
        if l_time != r_time {
            return pick(l_time > r_time);
        }
        if l_expires && l_ttl != r_ttl {
            return pick(l_ttl < r_ttl);
        }
    }
    pick(left.value >= right.value)
}

/// Implements `LivenessInfo.supersedes`, rule by rule.
fn supersedes(this: &Liveness, other: &Liveness) -> bool {
    if this.timestamp_us != other.timestamp_us {
        return this.timestamp_us > other.timestamp_us;
    }
    match (this.expiry, other.expiry) {
        (Some(a), Some(b)) => {
            a.expires_at_s > b.expires_at_s || (a.expires_at_s == b.expires_at_s && a.ttl_s < b.ttl_s)
        }
        (this_expiry, other_expiry) => this_expiry.is_some() && other_expiry.is_none(),
    }
}

/// Implements `Row.Merger` on plain rows.
fn model(rows: &[Row]) -> Row {
    let deletion = rows.iter().filter_map(|row| row.deletion).max();
    let shadowed = |shadow: Option<Deletion>, ts: i64| shadow.is_some_and(|shadow| ts <= shadow.timestamp_us);
    let mut liveness: Option<Liveness> = None;
    for candidate in rows.iter().filter_map(|row| row.liveness) {
        if liveness.is_none_or(|kept| supersedes(&candidate, &kept)) {
            liveness = Some(candidate);
        }
    }
    let mut simple: BTreeMap<ColumnId, Cell> = BTreeMap::new();
    let mut complex: BTreeMap<ColumnId, (Option<Deletion>, BTreeMap<Bytes, Cell>)> = BTreeMap::new();
    for (id, column) in rows.iter().flat_map(|row| &row.columns) {
        match column {
            ColumnData::Simple(cell) => {
                let kept = simple.entry(*id).or_insert_with(|| cell.clone());
                *kept = resolve_regular(kept, cell).clone();
            }
            ColumnData::Complex(column) => {
                let (kept_deletion, kept_cells) = complex.entry(*id).or_default();
                *kept_deletion = (*kept_deletion).max(column.deletion);
                for (path, cell) in &column.cells {
                    let kept = kept_cells.entry(path.clone()).or_insert_with(|| cell.clone());
                    *kept = resolve_regular(kept, cell).clone();
                }
            }
        }
    }
    let mut columns: Vec<_> = simple
        .into_iter()
        .filter(|(_, cell)| !shadowed(deletion, cell.timestamp_us))
        .map(|(id, cell)| (id, ColumnData::Simple(cell)))
        .collect();
    for (id, (complex_deletion, cells)) in complex {
        let complex_deletion = complex_deletion.filter(|complex| Some(*complex) > deletion);
        let shadow = complex_deletion.or(deletion);
        let cells: Vec<_> = cells
            .into_iter()
            .filter(|(_, cell)| !shadowed(shadow, cell.timestamp_us))
            .collect();
        if complex_deletion.is_some() || !cells.is_empty() {
            columns.push((
                id,
                ColumnData::Complex(Complex {
                    deletion: complex_deletion,
                    cells,
                }),
            ));
        }
    }
    Row {
        liveness: liveness.filter(|liveness| !shadowed(deletion, liveness.timestamp_us)),
        deletion,
        exact_clustering: rows.iter().filter_map(|row| row.exact_clustering.clone()).min(),
        columns,
    }
}

fn packed(rows: &[Row]) -> Vec<Bytes> {
    rows.iter().map(Row::encode).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn merges_as_the_model_does(rows in prop::collection::vec(row(), 1..6)) {
        let merged = merge(KeyKind::Row, None, &packed(&rows)).unwrap();
        prop_assert_eq!(Row::decode(&merged).unwrap(), model(&rows));
    }

    #[test]
    fn order_grouping_and_repetition_do_not_matter(
        rows in prop::collection::vec(row(), 2..6).prop_shuffle(), split in 1..5usize, seed in any::<u64>(),
    ) {
        let operands = packed(&rows);
        let whole = merge(KeyKind::Row, None, &operands).unwrap();
        let mut shuffled = operands.clone();
        let len = shuffled.len();
        shuffled.swap(seed as usize % len, (seed >> 8) as usize % len);
        shuffled.reverse();
        prop_assert_eq!(&merge(KeyKind::Row, None, &shuffled).unwrap(), &whole);
        let (left, right) = operands.split_at(split.min(operands.len() - 1));
        let existing = merge(KeyKind::Row, None, left).unwrap();
        prop_assert_eq!(&merge(KeyKind::Row, Some(&existing), right).unwrap(), &whole);
        let newer = merge(KeyKind::Row, None, right).unwrap();
        prop_assert_eq!(&merge(KeyKind::Row, Some(&existing), &[newer]).unwrap(), &whole);
        prop_assert_eq!(&merge(KeyKind::Row, Some(&whole), &operands).unwrap(), &whole);
        prop_assert_eq!(&merge(KeyKind::Row, Some(&whole), &[]).unwrap(), &whole);
    }

    #[test]
    fn packed_rows_round_trip(row in row()) {
        let normal = model(std::slice::from_ref(&row));
        let decoded = Row::decode(&row.encode()).unwrap();
        prop_assert_eq!(&decoded, &normal);
        prop_assert_eq!(decoded.encode(), row.encode());
    }

    #[test]
    fn extreme_times_round_trip(timestamp_us: i64, other: i64, expires_at_s: i64, ttl_s in 0..i32::MAX, id: u32) {
        let mut builder = RowBuilder::new();
        builder
            .liveness(Liveness { timestamp_us, expiry: Some(Expiry { ttl_s, expires_at_s }) })
            .cell(ColumnId(id), Cell::tombstone(other, expires_at_s))
            .cell(ColumnId(id / 2), Cell::expiring(other, Expiry { ttl_s, expires_at_s }, "v"));
        prop_assert_eq!(&Row::decode(&builder.build()).unwrap(), builder.row());
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60), row in row()) {
        let bytes = Bytes::from(bytes);
        let _ = Row::decode(&bytes);
        let _ = PartitionHeader::decode(&bytes);
        let _ = merge(KeyKind::Row, Some(&row.encode()), std::slice::from_ref(&bytes));
        let _ = merge(KeyKind::Header, None, &[bytes.clone(), bytes]);
        let packed = row.encode();
        for len in 0..packed.len() {
            let _ = Row::decode(&packed.slice(..len));
        }
    }
}

fn range_operand() -> impl Strategy<Value = PartitionHeader> {
    let range = (0..6u8, prop::option::of(0..6u8)).prop_map(|(start, end)| ClusteringRange {
        start: Bytes::from(vec![start]),
        end: end.map(|end| Bytes::from(vec![end])),
    });
    (
        prop::collection::vec(range, 0..3),
        deletion(),
        prop::option::weighted(0.2, deletion()),
    )
        .prop_map(|(ranges, deletion, partition)| {
            let ranges = PartitionHeader::deleting_ranges(ranges, deletion);
            match partition {
                Some(partition) => ranges.merge(&PartitionHeader::deleting_partition(partition)),
                None => ranges,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn headers_hold_the_strongest_deletion_of_every_clustering(
        headers in prop::collection::vec(range_operand(), 1..6), split in 0..5usize,
    ) {
        let operands: Vec<Bytes> = headers.iter().map(PartitionHeader::encode).collect();
        let whole = merge(KeyKind::Header, None, &operands).unwrap();
        let header = PartitionHeader::decode(&whole).unwrap();
        prop_assert_eq!(header.encode(), whole.clone());
        for byte in 0..8u8 {
            let expected = headers.iter().filter_map(|header| header.deletion_at(&[byte])).max();
            prop_assert_eq!(header.deletion_at(&[byte]), expected);
        }
        for RangeTombstone { start, end, deletion } in &header.range_tombstones {
            prop_assert!(end.as_ref().is_none_or(|end| start < end));
            prop_assert!(Some(*deletion) > header.deletion);
        }
        for pair in header.range_tombstones.windows(2) {
            let end = pair[0].end.as_ref().unwrap();
            prop_assert!(*end < pair[1].start || (*end == pair[1].start && pair[0].deletion != pair[1].deletion));
        }
        let (left, right) = operands.split_at(split.min(operands.len()));
        let mut right = right.to_vec();
        right.reverse();
        let right = merge(KeyKind::Header, None, &right).unwrap();
        let left = merge(KeyKind::Header, None, left).unwrap();
        prop_assert_eq!(&merge(KeyKind::Header, Some(&right), &[left]).unwrap(), &whole);
        prop_assert_eq!(&merge(KeyKind::Header, Some(&whole), &operands).unwrap(), &whole);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const TS: i64 = 1_700_000_000_000_000;

/// Pins the stored bytes: changed bytes would make old stores unreadable.
#[test]
fn golden_rows() {
    let mut insert = RowBuilder::new();
    insert
        .liveness(Liveness {
            timestamp_us: TS,
            expiry: None,
        })
        .cell(ColumnId(0), Cell::live(TS, "ab"))
        .cell(ColumnId(2), Cell::live(TS, ""));
    assert_eq!(hex(&insert.build()), "118080f281838985060000026162010000");
    let expiry = Expiry {
        ttl_s: 300,
        expires_at_s: TS / 1_000_000 + 300,
    };
    let mut with_ttl = RowBuilder::new();
    with_ttl
        .liveness(Liveness {
            timestamp_us: TS,
            expiry: Some(expiry),
        })
        .cell(ColumnId(0), Cell::expiring(TS, expiry, "ab"))
        .cell(ColumnId(1), Cell::tombstone(TS, TS / 1_000_000));
    assert_eq!(hex(&with_ttl.build()), "138080f28183898506ac02000001026162000200");
    let mut update = RowBuilder::new();
    update
        .delete_complex(
            ColumnId(1),
            Deletion {
                timestamp_us: TS - 1,
                local_deletion_s: TS / 1_000_000,
            },
        )
        .complex_cell(ColumnId(1), Bytes::from_static(b"k"), Cell::live(TS, "v"))
        .cell(ColumnId(5), Cell::counter(TS + 3, 7));
    assert_eq!(
        hex(&update.build()),
        "008080f281838985060130070102016b000176030706080000000000000007"
    );
    let mut delete = RowBuilder::new();
    delete.delete_row(Deletion {
        timestamp_us: TS,
        local_deletion_s: TS / 1_000_000,
    });
    delete.exact_clustering(TS + 1, vec![Bytes::from_static(b"x")]);
    assert_eq!(hex(&delete.build()), "1c8080f28183898506000002010178");
}

#[test]
fn golden_headers() {
    let deletion = Deletion {
        timestamp_us: 5,
        local_deletion_s: 1,
    };
    let range = ClusteringRange {
        start: Bytes::from_static(b"a"),
        end: None,
    };
    let header = PartitionHeader::deleting_ranges(
        [range],
        Deletion {
            timestamp_us: 6,
            local_deletion_s: 1,
        },
    )
    .merge(&PartitionHeader::deleting_partition(deletion));
    assert_eq!(hex(&header.encode()), "030a020101610200");
}

#[test]
fn builders_reconcile_what_is_said_twice() {
    let mut builder = RowBuilder::new();
    builder
        .cell(ColumnId(1), Cell::live(5, "a"))
        .cell(ColumnId(1), Cell::live(5, "b"));
    builder.complex_cell(ColumnId(2), Bytes::from_static(b"p"), Cell::live(5, "b"));
    builder.complex_cell(ColumnId(2), Bytes::from_static(b"p"), Cell::tombstone(5, 0));
    let row = builder.row();
    assert_eq!(row.columns[0].1, ColumnData::Simple(Cell::live(5, "b")));
    let ColumnData::Complex(complex) = &row.columns[1].1 else {
        panic!()
    };
    assert_eq!(complex.cells, [(Bytes::from_static(b"p"), Cell::tombstone(5, 0))]);
}
