//! Shows that a compaction never changes what a reader sees, wherever jobs begin and end.

use std::collections::BTreeMap;

use helenus_cql::types::CqlType;
use proptest::prelude::*;

use super::*;
use crate::archive::oldest_us;
use crate::key::{ClusteringRange, header_key, row_key, static_key};
use crate::merge::merge;
use crate::packed::RowRef;
use crate::read::live_row;
use crate::row::{Cell, ColumnId, Expiry, Row, RowBuilder};

const TABLE: TableId = TableId(7);

fn live_table(_: TableId) -> TableState {
    TableState::Live {
        has_origin: false,
        purge_grace_s: 0,
        late_window_s: 0,
        rules: CellRules::default(),
    }
}

fn filter_with(
    context: CompactionContext,
    state: TableState,
) -> RowFilter<impl FnMut(TableId) -> TableState> {
    RowFilter::new(context, move |_| state.clone())
}

/// Returns the context of a job for which no newer data exists.
fn context(now_s: i64) -> CompactionContext {
    CompactionContext {
        forgets_headers: true,
        now_s,
        newer: Arc::new(|_| i64::MAX),
    }
}

fn now() -> CompactionContext {
    context(100)
}

const LAST: OlderOverlap = OlderOverlap::Nothing;
const UPPER: OlderOverlap = OlderOverlap::Something;

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

fn verdict(below: OlderOverlap, value: &Bytes) -> FilterOutcome {
    RowFilter::new(now(), live_table)
        .filter(&row_key(TABLE, 1, b"p", b"c"), value, below)
        .unwrap()
}

fn decide(below: OlderOverlap, value: &Bytes) -> Decision {
    verdict(below, value).decision
}

#[test]
fn expired_cells_lose_their_values_and_go_at_last() {
    let expiring = |expires_at_s, value: &'static str| {
        let ttl_s = 30;
        row_with(Cell::expiring(5, Expiry { ttl_s, expires_at_s }, value))
    };
    assert_eq!(decide(UPPER, &expiring(101, "v")), Decision::Keep);
    assert_eq!(
        decide(UPPER, &expiring(100, "v")),
        Decision::Replace(expiring(100, ""))
    );
    assert_eq!(decide(LAST, &expiring(101, "v")), Decision::Keep);
    assert_eq!(decide(LAST, &expiring(100, "v")), Decision::Drop);
}

#[test]
fn tombstones_stay_while_something_newer_may_be_shadowed() {
    let tombstone = row_with(Cell::tombstone(5, 90));
    let header = PartitionHeader::deleting_partition(deletion(5, 10)).encode();
    for (newer_us, is_kept) in [(5, true), (6, false)] {
        let beside = CompactionContext {
            newer: Arc::new(move |_| newer_us),
            ..now()
        };
        for (key, value) in [
            (row_key(TABLE, 1, b"p", b"c"), &tombstone),
            (header_key(TABLE, 1, b"p"), &header),
        ] {
            let mut filter = RowFilter::new(beside.clone(), live_table);
            let verdict = filter.filter(&key, value, LAST).unwrap();
            assert_eq!(verdict.decision == Decision::Keep, is_kept);
            assert!(!verdict.purge_blocked, "no older run could tell more");
        }
    }
}

#[test]
fn tombstones_of_the_future_stay_as_long_as_the_archives() {
    let state = TableState::Live {
        has_origin: false,
        purge_grace_s: 10,
        late_window_s: 60,
        rules: CellRules::default(),
    };
    let decide = |timestamp_us, local_deletion_s| {
        let tombstone = row_with(Cell::tombstone(timestamp_us, local_deletion_s));
        let mut filter = filter_with(now(), state.clone());
        filter
            .filter(&row_key(TABLE, 1, b"p", b"c"), &tombstone, LAST)
            .unwrap()
            .decision
    };
    assert_eq!(decide(95_000_000, 90), Decision::Drop);
    assert_eq!(decide(95_000_001, 90), Decision::Keep);
    assert_eq!(decide(95_000_001, 40), Decision::Drop);
}

#[test]
fn tombstones_last_for_the_grace() {
    let tombstone = row_with(Cell::tombstone(5, 90));
    assert_eq!(decide(UPPER, &tombstone), Decision::Keep);
    assert_eq!(decide(LAST, &tombstone), Decision::Drop);
    let state = TableState::Live {
        has_origin: false,
        purge_grace_s: 11,
        late_window_s: 0,
        rules: CellRules::default(),
    };
    let key = row_key(TABLE, 1, b"p", b"c");
    let young = filter_with(now(), state).filter(&key, &tombstone, LAST).unwrap();
    assert_eq!(young.decision, Decision::Keep);
    assert!(!young.purge_blocked && young.is_dead);
}

#[test]
fn data_waiting_for_older_runs_is_reported() {
    let tombstone = row_with(Cell::tombstone(5, 90));
    assert!(verdict(UPPER, &tombstone).purge_blocked);
    assert!(!verdict(LAST, &tombstone).purge_blocked);
    assert_eq!(decide(OlderOverlap::Hidden, &tombstone), Decision::Drop);
    let live = verdict(UPPER, &row_with(Cell::live(5, "v")));
    assert!(!live.purge_blocked && !live.is_dead);
    let key = header_key(TABLE, 1, b"p");
    let header = PartitionHeader::deleting_partition(deletion(5, 10)).encode();
    let hidden = RowFilter::new(now(), live_table)
        .filter(&key, &header, OlderOverlap::Hidden)
        .unwrap();
    assert!(hidden.purge_blocked && hidden.decision == Decision::Keep);
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
    let gone = filter_with(now(), TableState::Gone).filter(&key, &value, UPPER);
    assert_eq!(gone.unwrap().decision, Decision::Drop);
    let state = TableState::Live {
        has_origin: false,
        purge_grace_s: 0,
        late_window_s: 0,
        rules: CellRules::new(vec![(ColumnId(1), 5)], Vec::new()),
    };
    let dropped = filter_with(now(), state.clone()).filter(&key, &value, UPPER);
    assert_eq!(dropped.unwrap().decision, Decision::Drop);
    // The cell was written after the column was dropped. It becomes visible again if the column is added again.
    let newer = row_with(Cell::live(6, "v"));
    let kept = filter_with(now(), state).filter(&key, &newer, UPPER);
    assert_eq!(kept.unwrap().decision, Decision::Keep);
}

#[test]
fn tombstone_removes_equal_elements_of_other_encoding() {
    let (five, five_point_nought) = ([0, 0, 0, 0, 5], [0, 0, 0, 1, 50]);
    let mut builder = RowBuilder::new();
    builder.complex_cell(ColumnId(1), Bytes::copy_from_slice(&five), Cell::live(5, ""));
    builder.complex_cell(
        ColumnId(1),
        Bytes::copy_from_slice(&five_point_nought),
        Cell::tombstone(6, 90),
    );
    let row = builder.build();
    let alike = vec![(ColumnId(1), CqlType::DECIMAL)];
    let state = TableState::Live {
        has_origin: false,
        purge_grace_s: 0,
        late_window_s: 0,
        rules: CellRules::new(Vec::new(), alike),
    };
    let key = row_key(TABLE, 1, b"p", b"c");
    let decided = filter_with(now(), state).filter(&key, &row, LAST);
    assert_eq!(decided.unwrap().decision, Decision::Drop);
    assert!(
        matches!(decide(LAST, &row), Decision::Replace(_)),
        "of blobs they are two"
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
    for (below, of_header) in [(UPPER, Decision::Keep), (LAST, Decision::Drop)] {
        let mut filter = RowFilter::new(now(), live_table);
        assert_eq!(filter.needs_header(&header_key(TABLE, 1, b"p")), None);
        let verdict = filter
            .filter(&header_key(TABLE, 1, b"p"), &header.encode(), below)
            .unwrap();
        assert_eq!(verdict.decision, of_header);
        let mut decide = |key: &Bytes, timestamp_us| {
            assert_eq!(filter.needs_header(key), None);
            filter
                .filter(key, &row_with(Cell::live(timestamp_us, "v")), below)
                .unwrap()
                .decision
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
        ..now()
    };
    let mut filter = RowFilter::new(careful, live_table);
    let kept = filter
        .filter(&header_key(TABLE, 1, b"p"), &header.encode(), LAST)
        .unwrap();
    assert!(kept.decision == Decision::Keep && !kept.purge_blocked);
}

#[test]
fn job_starting_within_partition_reads_its_header() {
    let header = PartitionHeader::deleting_partition(deletion(5, 10)).encode();
    let mut filter = RowFilter::new(now(), live_table);
    let key = row_key(TABLE, 1, b"p", b"c");
    let needed = filter.needs_header(&key).unwrap();
    assert_eq!(needed, header_key(TABLE, 1, b"p"));
    filter.set_header(&needed, Some(&header)).unwrap();
    assert_eq!(filter.needs_header(&key), None);
    let covered = filter.filter(&key, &row_with(Cell::live(5, "v")), LAST).unwrap();
    assert_eq!(covered.decision, Decision::Drop);
}

/// A sorted run of a store. Stores are slices of runs, newest first. A run holds one merged entry for each key.
type Run = BTreeMap<Bytes, Entry>;

#[derive(Clone, Debug)]
struct Entry {
    /// `None` for a key that was deleted as a whole.
    value: Option<Bytes>,
    /// True if the entry hides older versions of its key.
    is_whole: bool,
}

fn kind_of(key: &[u8]) -> KeyKind {
    split_key(key).unwrap().kind
}

fn add(run: &mut Run, key: Bytes, value: Bytes) {
    let entry = run.entry(key.clone()).or_insert(Entry {
        value: None,
        is_whole: false,
    });
    entry.value = Some(merge(kind_of(&key), entry.value.as_ref(), &[value]).unwrap());
}

/// Merges the entries of each key, from the newest run down to the first whole value.
fn fold(runs: &[Run]) -> Run {
    let mut folded = Run::new();
    for (key, entry) in runs.iter().flatten() {
        let done = folded.get(key).is_some_and(|entry: &Entry| entry.is_whole);
        if done {
            continue;
        }
        if let Some(value) = &entry.value {
            add(&mut folded, key.clone(), value.clone());
        }
        let is_whole = entry.is_whole;
        let nothing = Entry {
            value: None,
            is_whole,
        };
        folded.entry(key.clone()).or_insert(nothing).is_whole = is_whole;
    }
    folded
}

/// Returns the live rows that a reader sees.
fn view(runs: &[Run], now_s: i64) -> Vec<(Bytes, Row)> {
    let all: BTreeMap<Bytes, Bytes> = fold(runs)
        .into_iter()
        .filter_map(|(key, entry)| Some((key, entry.value?)))
        .collect();
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
        if let Some(live) = live_row(&row, shadow, &CellRules::default(), now_s).unwrap() {
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

/// Returns the overlap of a key, or of a header's partition, with older runs.
fn below(older: &[Run], key: &Bytes, is_whole: bool) -> OlderOverlap {
    let is_there = match kind_of(key) {
        KeyKind::Header => older.iter().any(|run| !run.is_empty()),
        _ => older.iter().any(|run| run.contains_key(key)),
    };
    match (is_there, is_whole) {
        (false, _) => OlderOverlap::Nothing,
        (true, true) => OlderOverlap::Hidden,
        (true, false) => OlderOverlap::Something,
    }
}

/// Returns the oldest timestamp that a deletion could shadow in these runs. `i64::MAX` if there is none.
fn oldest_us_of(runs: &[Run]) -> i64 {
    let values = runs.iter().flatten();
    let times = values.filter_map(|(key, entry)| oldest_us(kind_of(key), entry.value.as_ref()?).unwrap());
    times.min().unwrap_or(i64::MAX)
}

/// Compacts the neighbouring runs `from..to` in parts. A new filter begins at each position in `cuts`.
fn compact(runs: &mut Vec<Run>, from: usize, to: usize, cuts: &[usize], now_s: i64) {
    let newer_us = oldest_us_of(&runs[..from]);
    let context = CompactionContext {
        newer: Arc::new(move |_| newer_us),
        ..context(now_s)
    };
    let current = fold(runs);
    let (inputs, older) = runs.split_at(to);
    let mut output = Run::new();
    let mut filter = RowFilter::new(context.clone(), live_table);
    for (position, (key, entry)) in fold(&inputs[from..]).into_iter().enumerate() {
        if cuts.contains(&position) {
            filter = RowFilter::new(context.clone(), live_table);
        }
        if let Some(header) = filter.needs_header(&key) {
            let value = current.get(&header).and_then(|entry| entry.value.as_deref());
            filter.set_header(&header, value).unwrap();
        }
        let below = below(older, &key, entry.is_whole);
        let decision = match &entry.value {
            Some(value) => filter.filter(&key, value, below).unwrap().decision,
            None => Decision::Drop,
        };
        match decision {
            Decision::Keep => {
                output.insert(key, entry);
            }
            Decision::Replace(value) => {
                let value = Some(value);
                output.insert(key, Entry { value, ..entry });
            }
            Decision::Drop if below == OlderOverlap::Hidden => {
                output.insert(key, Entry { value: None, ..entry });
            }
            Decision::Drop => {}
        }
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

    #[test]
    fn compaction_does_not_change_what_is_seen(
        runs in prop::collection::vec(prop::collection::vec(operand(), 0..8), 1..5),
        whole in prop::collection::vec((0..4usize, any::<prop::sample::Index>()), 0..4),
        shifts in any::<bool>(),
        jobs in prop::collection::vec((0..4usize, 1..5usize, prop::collection::vec(0..12usize, 0..3)), 1..5),
    ) {
        let mut stored: Vec<Run> = Vec::new();
        for (age, operands) in runs.iter().enumerate() {
            let mut run = Run::new();
            // Timestamps need not grow from run to run. Data of a run that is not shifted may be older than the tombstones below.
            let later = match shifts {
                true => 5 * (runs.len() - age) as i64,
                false => 0,
            };
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
        for (run, key) in whole {
            let run = run % stored.len();
            let mut folded = fold(&stored[run..]);
            // A partition with a header gets no whole copies: a copy of deleted data would outlive the header.
            let has_header = folded.contains_key(&header_key(TABLE, 1, b"p"));
            if !stored[run].is_empty() && !has_header {
                let key = key.get(&stored[run].keys().cloned().collect::<Vec<_>>()).clone();
                let value = folded.remove(&key).and_then(|entry| entry.value);
                stored[run].insert(key, Entry { value, is_whole: true });
            }
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
