use bytes::Bytes;

use super::count;
use crate::header::PartitionHeader;
use crate::key::{ClusteringRange, KeyKind};
use crate::row::{Cell, ColumnId, Deletion, RowBuilder};

const DELETION: Deletion = Deletion {
    timestamp_us: 1,
    local_deletion_s: 1,
};

#[test]
fn row_has_row_collection_and_cell_tombstones() {
    let mut row = RowBuilder::new();
    row.cell(ColumnId(1), Cell::live(9, "v"));
    assert_eq!(count(KeyKind::Row, &row.build()), Ok(0));
    row.delete_row(DELETION);
    row.cell(ColumnId(2), Cell::tombstone(2, 1));
    // The row's deletion does not shadow the collection's.
    row.delete_complex(
        ColumnId(3),
        Deletion {
            timestamp_us: 5,
            ..DELETION
        },
    );
    row.complex_cell(ColumnId(3), Bytes::from_static(b"a"), Cell::live(8, "v"));
    row.complex_cell(ColumnId(3), Bytes::from_static(b"b"), Cell::tombstone(8, 1));
    assert_eq!(count(KeyKind::Row, &row.build()), Ok(4));
}

#[test]
fn a_header_has_the_deletions_of_its_partition_and_of_ranges() {
    let ranges = [b"a", b"c"].map(|start| ClusteringRange {
        start: Bytes::from_static(start),
        end: Some(Bytes::from([start.as_slice(), b"z"].concat())),
    });
    let header = PartitionHeader::deleting_ranges(ranges, DELETION);
    assert_eq!(count(KeyKind::Header, &header.encode()), Ok(2));
    let header = PartitionHeader::deleting_partition(DELETION);
    assert_eq!(count(KeyKind::Header, &header.encode()), Ok(1));
}
