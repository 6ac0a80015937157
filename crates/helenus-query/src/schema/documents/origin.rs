//! Documents for the origins of a table and its indexes: the nearest origin first, each with the tablets that have its rows.
//!
//! The rows of an index that was branched with its table are in the same tablets, under numbers of their own. An index that was created
//! later has no origin.

use std::sync::Arc;

use helenus_tablet::{PinnedTablet, TableOrigin};
use serde::{Deserialize, Serialize};

use super::pinned::PinnedDoc;

/// The place of the rows with which a table begins, or with which its origin began.
#[derive(Serialize, Deserialize)]
pub(super) struct OriginDoc {
    number: u32,
    pinned: Vec<PinnedDoc>,
}

fn levels(origin: Option<&Arc<TableOrigin>>) -> impl Iterator<Item = &TableOrigin> {
    origin.into_iter().flat_map(|origin| origin.levels())
}

/// Returns the documents for the origins of a table.
pub(super) fn origin_docs(origin: Option<&Arc<TableOrigin>>) -> Vec<OriginDoc> {
    let document = |origin: &TableOrigin| OriginDoc {
        number: origin.table,
        pinned: origin.pinned.iter().map(PinnedDoc::from).collect(),
    };
    levels(origin).map(document).collect()
}

/// Returns the table numbers of an index in the tablets of its table's origins.
pub(super) fn index_numbers(origin: Option<&Arc<TableOrigin>>) -> Vec<u32> {
    levels(origin).map(|origin| origin.table).collect()
}

/// Reads as many origins as there are numbers. The numbers are those of the table in its origins, or those of one of its indexes.
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

/// Reads the origin of a table.
pub(super) fn read_origin(documents: &[OriginDoc]) -> Option<Arc<TableOrigin>> {
    read(documents, documents.iter().map(|document| document.number))
}

/// Reads the origin of an index. `documents` are the origins of its table, and `numbers` those of the index there.
pub(super) fn read_index_origin(documents: &[OriginDoc], numbers: &[u32]) -> Option<Arc<TableOrigin>> {
    read(documents, numbers.iter().copied())
}
