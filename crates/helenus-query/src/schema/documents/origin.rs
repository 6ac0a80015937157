//! How the origins of a table and of its indexes are written down: the nearest first, each with the tablets that have its rows.
//!
//! An index that came along has its rows in the same tablets as its table, under numbers of its own; one that was made later begins without.

use std::sync::Arc;

use helenus_tablet::{PinnedTablet, TableOrigin};
use serde::{Deserialize, Serialize};

use super::pinned::PinnedDoc;

/// Where the rows lie with which a table begins, or with which its origin did.
#[derive(Serialize, Deserialize)]
pub(super) struct OriginDoc {
    number: u32,
    pinned: Vec<PinnedDoc>,
}

fn levels(origin: Option<&Arc<TableOrigin>>) -> impl Iterator<Item = &TableOrigin> {
    origin.into_iter().flat_map(|origin| origin.levels())
}

/// Returns the origins of a table.
pub(super) fn origin_docs(origin: Option<&Arc<TableOrigin>>) -> Vec<OriginDoc> {
    let document = |origin: &TableOrigin| OriginDoc {
        number: origin.table,
        pinned: origin.pinned.iter().map(PinnedDoc::from).collect(),
    };
    levels(origin).map(document).collect()
}

/// Returns the numbers of an index in the tablets of its table's origins.
pub(super) fn index_numbers(origin: Option<&Arc<TableOrigin>>) -> Vec<u32> {
    levels(origin).map(|origin| origin.table).collect()
}

/// Returns the origin of a table, of which so many are wanted by these numbers: those of the table itself, or of one of its indexes.
fn read(documents: &[OriginDoc], numbers: impl DoubleEndedIterator<Item = u32>) -> Option<Arc<TableOrigin>> {
    let numbered: Vec<(&OriginDoc, u32)> = documents.iter().zip(numbers).collect();
    numbered.into_iter().rev().fold(None, |below, (document, table)| {
        let pinned = document.pinned.iter().cloned().map(PinnedTablet::from);
        Some(Arc::new(TableOrigin {
            pinned: pinned.collect(),
            table,
            below,
        }))
    })
}

/// Returns the origin of a table.
pub(super) fn read_origin(documents: &[OriginDoc]) -> Option<Arc<TableOrigin>> {
    read(documents, documents.iter().map(|document| document.number))
}

/// Returns the origin of an index with these numbers, whose table has these origins.
pub(super) fn read_index_origin(documents: &[OriginDoc], numbers: &[u32]) -> Option<Arc<TableOrigin>> {
    read(documents, numbers.iter().copied())
}
