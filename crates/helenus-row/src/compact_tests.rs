//! Compaction must never change what a reader sees, wherever jobs begin and end.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::key::{ClusteringRange, header_key, row_key, static_key};
use crate::merge::merge;
use crate::packed::RowRef;
use crate::read::live_row;
use crate::row::{Cell, Expiry, Row, RowBuilder};

const TABLE: TableId = TableId(7);

fn live_table(_: TableId) -> TableState {
    TableState::Live {
        purge_grace_s: 0,
        dropped_columns: Arc::new([]),
    }
}

fn filter_with(
    context: CompactionContext,
    state: TableState,
) -> RowFilter<impl FnMut(TableId) -> TableState> {
    RowFilter::new(context, move |_| state.clone())
}

const LAST: CompactionContext = CompactionContext {
    is_last_run: true,
    forgets_headers: true,
    now_s: 100,
};
const UPPER: CompactionContext = CompactionContext {
    is_last_run: false,
    ..LAST
};

fn deletion(timestamp_us: i64, local_deletion_s: i64) -> Deletion {
    Deletion {
        timestamp_us,
        local_deletion_s,
    }
}

fn row_with(cell: Cell) -> Bytes {
    let mut builder = RowBuilder::new();
    builder.cell(ColumnId(1), cell);
    builder.build()
}

fn decide(context: CompactionContext, value: &Bytes) -> Decision {
    RowFilter::new(context, live_table)
        .filter(&row_key(TABLE, 1, b"p", b"c"), value)
        .unwrap()
}

#[test]
fn expired_cells_become_tombstones_and_at_last_nothing() {
    let expiring = |expires_at_s| {
        row_with(Cell::expiring(
            5,
            Expiry {
                ttl_s: 30,
                expires_at_s,
            },
            "v",
        ))
    };
    assert_eq!(decide(UPPER, &expiring(101)), Decision::Keep);
    assert_eq!(
        decide(UPPER, &expiring(100)),
        Decision::Replace(row_with(Cell::tombstone(5, 70)))
    );
    assert_eq!(decide(LAST, &expiring(101)), Decision::Keep);
    assert_eq!(decide(LAST, &expiring(100)), Decision::Drop);
}

#[test]
fn tombstones_last_for_the_grace() {
    let tombstone = row_with(Cell::tombstone(5, 90));
    assert_eq!(decide(UPPER, &tombstone), Decision::Keep);
    assert_eq!(decide(LAST, &tombstone), Decision::Drop);
    let state = TableState::Live {
        purge_grace_s: 11,
        dropped_columns: Arc::new([]),
    };
    let key = row_key(TABLE, 1, b"p", b"c");
    assert_eq!(
        filter_with(LAST, state).filter(&key, &tombstone).unwrap(),
        Decision::Keep
    );
}

#[test]
fn row_and_complex_deletions_go_at_last() {
    let mut builder = RowBuilder::new();
    builder.delete_row(deletion(5, 10));
    builder.delete_complex(ColumnId(2), deletion(6, 10));
    assert_eq!(decide(UPPER, &builder.build()), Decision::Keep);
    assert_eq!(decide(LAST, &builder.build()), Decision::Drop);
    builder.cell(ColumnId(1), Cell::live(7, "v"));
    assert_eq!(
        decide(LAST, &builder.build()),
        Decision::Replace(row_with(Cell::live(7, "v")))
    );
}

#[test]
fn gone_tables_and_dropped_columns_go() {
    let key = row_key(TABLE, 1, b"p", b"c");
    let value = row_with(Cell::live(5, "v"));
    assert_eq!(
        filter_with(UPPER, TableState::Gone).filter(&key, &value).unwrap(),
        Decision::Drop
    );
    let state = TableState::Live {
        purge_grace_s: 0,
        dropped_columns: Arc::new([ColumnId(1)]),
    };
    assert_eq!(
        filter_with(UPPER, state).filter(&key, &value).unwrap(),
        Decision::Drop
    );
}

#[test]
fn headers_cover_rows_and_are_forgotten_with_them() {
    let header = PartitionHeader::deleting_partition(deletion(5, 10));
    let ranges = PartitionHeader::deleting_ranges(
        [ClusteringRange {
            start: Bytes::from_static(b"c"),
            end: Some(Bytes::from_static(b"d")),
        }],
        deletion(7, 10),
    );
    let header = header.merge(&ranges);
    for (context, of_header) in [(UPPER, Decision::Keep), (LAST, Decision::Drop)] {
        let mut filter = RowFilter::new(context, live_table);
        assert_eq!(filter.needs_header(&header_key(TABLE, 1, b"p")), None);
        assert_eq!(
            filter
                .filter(&header_key(TABLE, 1, b"p"), &header.encode())
                .unwrap(),
            of_header
        );
        let mut decide = |key: &Bytes, timestamp_us| {
            assert_eq!(filter.needs_header(key), None);
            filter
                .filter(key, &row_with(Cell::live(timestamp_us, "v")))
                .unwrap()
        };
        assert_eq!(decide(&static_key(TABLE, 1, b"p"), 5), Decision::Drop);
        assert_eq!(decide(&static_key(TABLE, 1, b"p"), 6), Decision::Keep);
        assert_eq!(decide(&row_key(TABLE, 1, b"p", b"b"), 6), Decision::Keep);
        assert_eq!(decide(&row_key(TABLE, 1, b"p", b"cc"), 7), Decision::Drop);
        assert_eq!(decide(&row_key(TABLE, 1, b"p", b"d"), 7), Decision::Keep);
        assert_eq!(decide(&row_key(TABLE, 1, b"q", b"cc"), 5), Decision::Keep);
    }
    let careful = CompactionContext {
        forgets_headers: false,
        ..LAST
    };
    let mut filter = RowFilter::new(careful, live_table);
    assert_eq!(
        filter
            .filter(&header_key(TABLE, 1, b"p"), &header.encode())
            .unwrap(),
        Decision::Keep
    );
}

#[test]
fn a_job_that_starts_within_a_partition_asks_for_its_header() {
    let header = PartitionHeader::deleting_partition(deletion(5, 10)).encode();
    let mut filter = RowFilter::new(LAST, live_table);
    let key = row_key(TABLE, 1, b"p", b"c");
    let needed = filter.needs_header(&key).unwrap();
    assert_eq!(needed, header_key(TABLE, 1, b"p"));
    filter.set_header(&needed, Some(&header)).unwrap();
    assert_eq!(filter.needs_header(&key), None);
    assert_eq!(
        filter.filter(&key, &row_with(Cell::live(5, "v"))).unwrap(),
        Decision::Drop
    );
}

/// A store of runs, each sorted, the newest first; a run holds what was merged of one key.
type Run = BTreeMap<Bytes, Bytes>;

fn kind_of(key: &[u8]) -> KeyKind {
    split_key(key).unwrap().kind
}

fn add(run: &mut Run, key: Bytes, value: Bytes) {
    let merged = merge(kind_of(&key), run.get(&key), &[value]).unwrap();
    run.insert(key, merged);
}

fn fold(runs: &[Run]) -> Run {
    let mut folded = Run::new();
    for (key, value) in runs.iter().flatten() {
        add(&mut folded, key.clone(), value.clone());
    }
    folded
}

/// What a reader sees of all rows.
fn view(runs: &[Run], now_s: i64) -> Vec<(Bytes, Row)> {
    let all = fold(runs);
    let mut seen = Vec::new();
    for (key, value) in &all {
        let parts = split_key(key).unwrap();
        if parts.kind == KeyKind::Header {
            continue;
        }
        let header = all
            .get(&key_in_partition(parts.partition_prefix, KeyKind::Header, &[]))
            .map(|header| PartitionHeader::decode(header).unwrap())
            .unwrap_or_default();
        let shadow = match parts.kind {
            KeyKind::Row => header.deletion_at(parts.clustering),
            _ => header.deletion,
        };
        let row = RowRef::parse(value.clone()).unwrap();
        if let Some(live) = live_row(&row, shadow, now_s).unwrap() {
            let mut builder = RowBuilder::new();
            live.liveness
                .map(|liveness| builder.liveness(liveness).row().is_empty());
            for (id, column) in live.columns {
                match column {
                    crate::read::LiveColumn::Simple(cell) => {
                        builder.cell(id, row.own(&cell));
                    }
                    crate::read::LiveColumn::Complex(elements) => elements.iter().for_each(|(path, cell)| {
                        builder.complex_cell(id, row.slice(path), row.own(cell));
                    }),
                }
            }
            seen.push((key.clone(), builder.row().clone()));
        }
    }
    seen
}

/// Compacts the oldest or other neighbouring runs, in parts that begin anywhere.
fn compact(runs: &mut Vec<Run>, from: usize, to: usize, cuts: &[usize], now_s: i64) {
    let context = CompactionContext {
        is_last_run: to == runs.len(),
        forgets_headers: true,
        now_s,
    };
    let current = fold(runs);
    let mut output = Run::new();
    let mut filter = RowFilter::new(context, live_table);
    for (position, (key, value)) in fold(&runs[from..to]).into_iter().enumerate() {
        if cuts.contains(&position) {
            filter = RowFilter::new(context, live_table);
        }
        if let Some(header) = filter.needs_header(&key) {
            filter
                .set_header(&header, current.get(&header).map(|value| &**value))
                .unwrap();
        }
        match filter.filter(&key, &value).unwrap() {
            Decision::Keep => output.insert(key, value),
            Decision::Replace(value) => output.insert(key, value),
            Decision::Drop => None,
        };
    }
    runs.splice(from..to, [output]);
}

fn operand() -> impl Strategy<Value = (u8, Option<Row>, (u8, Option<u8>))> {
    (
        0..4u8,
        prop::option::weighted(0.8, crate::merge::merge_tests::row()),
        (0..3u8, prop::option::of(0..4u8)),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Timestamps grow with time here: a write that arrives late is what the grace is for.
    #[test]
    fn compaction_does_not_change_what_is_seen(
        runs in prop::collection::vec(prop::collection::vec(operand(), 0..8), 1..5),
        jobs in prop::collection::vec((0..4usize, 1..5usize, prop::collection::vec(0..12usize, 0..3)), 1..5),
    ) {
        let mut stored: Vec<Run> = Vec::new();
        for (age, operands) in runs.iter().enumerate() {
            let mut run = Run::new();
            // Run 0 is the newest: its timestamps are the greatest.
            let later = 5 * (runs.len() - age) as i64;
            for (clustering, row, (start, end)) in operands {
                match row {
                    Some(row) if *clustering == 3 => {
                        let mut row = shift(row, later);
                        row.liveness = None;
                        row.deletion = None;
                        add(&mut run, static_key(TABLE, 1, b"p"), row.encode());
                    }
                    Some(row) => {
                        add(&mut run, row_key(TABLE, 1, b"p", &[*clustering]), shift(row, later).encode());
                    }
                    None => {
                        let deletion = deletion(later + i64::from(*clustering), 1);
                        let header = match clustering {
                            0 => PartitionHeader::deleting_partition(deletion),
                            _ => PartitionHeader::deleting_ranges(
                                [ClusteringRange {
                                    start: Bytes::from(vec![*start]),
                                    end: end.map(|end| Bytes::from(vec![end])),
                                }],
                                deletion,
                            ),
                        };
                        add(&mut run, header_key(TABLE, 1, b"p"), header.encode());
                    }
                }
            }
            stored.push(run);
        }
        let now_s = 3;
        let before = view(&stored, now_s);
        for (from, len, cuts) in jobs {
            let from = from % stored.len();
            let to = (from + len).min(stored.len());
            compact(&mut stored, from, to, &cuts, now_s);
            prop_assert_eq!(&view(&stored, now_s), &before);
        }
        let all = stored.len();
        compact(&mut stored, 0, all, &[], 1000);
        prop_assert_eq!(view(&stored, 1000).len(), stored[0].len());
    }
}

fn shift(row: &Row, later: i64) -> Row {
    let mut row = row.clone();
    row.exact_clustering = None;
    if let Some(liveness) = &mut row.liveness {
        liveness.timestamp_us += later;
    }
    if let Some(deletion) = &mut row.deletion {
        deletion.timestamp_us += later;
    }
    for (_, column) in &mut row.columns {
        match column {
            crate::row::ColumnData::Simple(cell) => cell.timestamp_us += later,
            crate::row::ColumnData::Complex(complex) => {
                if let Some(deletion) = &mut complex.deletion {
                    deletion.timestamp_us += later;
                }
                complex
                    .cells
                    .iter_mut()
                    .for_each(|(_, cell)| cell.timestamp_us += later);
            }
        }
    }
    row
}
