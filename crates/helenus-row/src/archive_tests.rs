//! Shows that a late write merged with archived tombstones equals one merged with the purged tombstones.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::compaction_filter::{CompactionContext, Decision, RowFilter, TableState};
use crate::key::{ClusteringRange, header_key, header_of, row_key, split_key, token_of};
use crate::merge::merge;
use crate::packed::RowRef;
use crate::read::live_row;
use crate::row::{Cell, CellRules, ColumnId, Deletion, Row, RowBuilder};

const TABLE: TableId = TableId(0x0102_0080);

#[test]
fn an_archive_key_is_one_of_the_same_token_kind_and_clustering() {
    for (key, clustering) in [
        (row_key(TABLE, -7, b"p\0q", b"c"), &b"c"[..]),
        (header_key(TABLE, i64::MAX, b""), &b""[..]),
    ] {
        let archived = archive_key(&key).unwrap();
        assert!(is_archive_key(&archived) && !is_archive_key(&key));
        let (parts, of_key) = (split_key(&archived).unwrap(), split_key(&key).unwrap());
        assert_eq!(parts.table, ARCHIVE);
        assert_eq!(archived_table(&parts), Some(TABLE));
        assert_eq!((parts.kind, parts.clustering), (of_key.kind, clustering));
        assert_eq!(token_of(&archived), token_of(&key));
    }
    let key = row_key(TABLE, 1, b"p", b"c");
    let header = archive_key(&header_key(TABLE, 1, b"p")).unwrap();
    assert_eq!(archive_key(&header_of(&key).unwrap()).unwrap(), header);
    assert!(archive_key(b"short").is_err());
}

#[test]
fn the_oldest_timestamp_is_that_of_what_can_be_shadowed() {
    let oldest = |row: &RowBuilder| oldest_us(KeyKind::Row, &row.build()).unwrap();
    let mut row = RowBuilder::new();
    row.delete_row(Deletion {
        timestamp_us: 1,
        local_deletion_s: 1,
    });
    row.cell(ColumnId(1), Cell::tombstone(2, 1));
    row.cell(ColumnId(2), Cell::live(9, "v"));
    assert_eq!(oldest(&row), Some(9));
    row.complex_cell(ColumnId(3), Bytes::from_static(b"e"), Cell::live(8, "v"));
    assert_eq!(oldest(&row), Some(8));
    let mut dead = RowBuilder::new();
    dead.delete_row(Deletion {
        timestamp_us: 1,
        local_deletion_s: 1,
    });
    assert_eq!(oldest(&dead), None);
    assert_eq!(oldest_us(KeyKind::Header, b"\0\0").unwrap(), None);
}

fn context() -> CompactionContext {
    CompactionContext {
        forgets_headers: true,
        now_s: 1000,
        newer: std::sync::Arc::new(|_| i64::MAX),
    }
}

fn state(_: TableId) -> TableState {
    TableState::Live {
        has_origin: false,
        purge_grace_s: 0,
        late_window_s: 600,
        rules: CellRules::default(),
    }
}

#[test]
fn the_archive_forgets_what_is_older_than_the_window() {
    let decide = |local_deletion_s| {
        let mut row = RowBuilder::new();
        row.cell(ColumnId(1), Cell::tombstone(2, local_deletion_s));
        let key = archive_key(&row_key(TABLE, 1, b"p", b"c")).unwrap();
        let mut filter = RowFilter::new(context(), state);
        let verdict = filter
            .filter(
                &key,
                &row.build(),
                crate::compaction_filter::OlderOverlap::Something,
            )
            .unwrap();
        assert!(!verdict.purge_blocked && !verdict.is_dead);
        verdict.decision
    };
    assert_eq!(decide(401), Decision::Keep);
    assert_eq!(decide(400), Decision::Drop);
}

fn seen(row: &Bytes, shadow: Option<Deletion>) -> Option<Row> {
    let row = RowRef::parse(row.clone()).unwrap();
    let live = live_row(&row, shadow, &CellRules::default(), 1000).unwrap()?;
    let mut builder = RowBuilder::new();
    if let Some(liveness) = live.liveness {
        builder.liveness(liveness);
    }
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
    Some(builder.row().clone())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_late_write_finds_what_was_forgotten(
        first in crate::merge::merge_tests::row(),
        late in crate::merge::merge_tests::row(),
        partition in prop::option::of(0..8i64),
        range in prop::option::of(0..8i64),
    ) {
        let deletion = |timestamp_us| Deletion { timestamp_us, local_deletion_s: 900 };
        let mut header = PartitionHeader::default();
        if let Some(timestamp_us) = partition {
            header = header.merge(&PartitionHeader::deleting_partition(deletion(timestamp_us)));
        }
        if let Some(timestamp_us) = range {
            let ranges = [ClusteringRange { start: Bytes::from_static(b"c"), end: None }];
            header = header.merge(&PartitionHeader::deleting_ranges(ranges, deletion(timestamp_us)));
        }
        let (first, late) = (first.encode(), late.encode());
        let key = row_key(TABLE, 1, b"p", b"c");
        let parts = split_key(&key).unwrap();
        let shadow = header.deletion_at(b"c");
        let wanted = seen(&merge(KeyKind::Row, Some(&first), std::slice::from_ref(&late)).unwrap(), shadow);

        let archived = tombstones_of(KeyKind::Row, &first, i64::MAX).unwrap();
        let mut filter = RowFilter::new(context(), |_| TableState::Live {
            has_origin: false,
            purge_grace_s: 0,
            late_window_s: 0,
            rules: CellRules::default(),
        });
        let header_key = header_key(TABLE, 1, b"p");
        filter.filter(&header_key, &header.encode(), crate::compaction_filter::OlderOverlap::Nothing).unwrap();
        let kept = match filter.filter(&key, &first, crate::compaction_filter::OlderOverlap::Nothing).unwrap().decision {
            Decision::Keep => Some(first),
            Decision::Replace(kept) => Some(kept),
            Decision::Drop => None,
        };
        let under = under_tombstones(&parts, &late, archived.as_ref(), Some(&header.encode()), 1000).unwrap();
        let merged = merge(KeyKind::Row, kept.as_ref(), &[under]).unwrap();
        prop_assert_eq!(seen(&merged, None), wanted);
    }
}
