//! Stored rows, with the deletions that cover them.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::merge::merge;
use helenus_row::packed::RowRef;
use helenus_row::read::{LiveRow, live_row, tombstones_of_dead};
use helenus_row::row::{CellRules, Deletion};
use helenus_row::{ColumnRef, KeyKind, RowError};

/// A stored row, with the deletion that covers it.
#[derive(Clone, Debug)]
pub struct StoredRow {
    pub packed: RowRef,
    /// The newest deletion in the partition's header that covers the row. `None` if there is none.
    pub shadow: Option<Deletion>,
    rules: CellRules,
}

impl StoredRow {
    /// Returns the live part of the row. `None` if the row is dead.
    pub fn live(&self, now_s: i64) -> Result<Option<LiveRow<'_>>, CqlError> {
        live_row(&self.packed, self.shadow, &self.rules, now_s).map_err(corrupt)
    }

    /// Returns the number of tombstones of a dead row.
    pub fn tombstones_of_dead(&self, now_s: i64) -> Result<usize, CqlError> {
        tombstones_of_dead(&self.packed, self.shadow, &self.rules, now_s).map_err(corrupt)
    }

    /// Returns the newest timestamp in the row, including deletions.
    pub fn newest_us(&self) -> Result<i64, CqlError> {
        let row = &self.packed;
        let mut newest_us = i64::MIN;
        let mut see = |timestamp_us: Option<i64>| newest_us = newest_us.max(timestamp_us.unwrap_or(i64::MIN));
        see(row.liveness().map(|liveness| liveness.timestamp_us));
        see(row.deletion().map(|deletion| deletion.timestamp_us));
        see(self.shadow.map(|deletion| deletion.timestamp_us));
        for column in row.columns() {
            match column.map_err(corrupt)?.1 {
                ColumnRef::Simple(cell) => see(Some(cell.timestamp_us)),
                ColumnRef::Complex(complex) => {
                    see(complex.deletion.map(|deletion| deletion.timestamp_us));
                    for element in complex.cells() {
                        see(Some(element.map_err(corrupt)?.1.timestamp_us));
                    }
                }
            }
        }
        Ok(newest_us)
    }

    pub(crate) fn parse(
        packed: Bytes,
        shadow: Option<Deletion>,
        rules: &CellRules,
    ) -> Result<StoredRow, CqlError> {
        Ok(StoredRow {
            packed: RowRef::parse(packed).map_err(corrupt)?,
            shadow,
            rules: rules.clone(),
        })
    }
}

/// A stored row and its place in the partition.
#[derive(Clone, Debug)]
pub struct RowAt {
    /// The encoded clustering ([`helenus_row::KeyLayout`]).
    pub clustering: Bytes,
    pub row: StoredRow,
}

/// A live row that outlives its read.
#[derive(Clone, Debug)]
pub struct OwnedRow {
    stored: StoredRow,
    now_s: i64,
}

impl OwnedRow {
    /// Returns the live part of the row.
    pub fn live(&self) -> Result<LiveRow<'_>, CqlError> {
        self.stored
            .live(self.now_s)?
            .ok_or_else(|| CqlError::Server("a row that was alive is not".to_owned()))
    }

    /// Returns the packed row, from which slices that [`OwnedRow::live`] borrows can be made into [`Bytes`] ([`RowRef::slice`]).
    pub fn packed(&self) -> &RowRef {
        &self.stored.packed
    }

    /// Returns the row as it is after `written` is applied to `existing`. `None` if it is dead then.
    pub fn with(
        existing: Option<&OwnedRow>,
        written: Bytes,
        now_s: i64,
    ) -> Result<Option<OwnedRow>, CqlError> {
        let Some(existing) = existing else {
            return OwnedRow::of(StoredRow::parse(written, None, &CellRules::default())?, now_s);
        };
        let StoredRow {
            packed,
            shadow,
            rules,
        } = &existing.stored;
        let merged = merge(KeyKind::Row, Some(packed.bytes()), &[written]).map_err(corrupt)?;
        OwnedRow::of(StoredRow::parse(merged, *shadow, rules)?, now_s)
    }

    pub(crate) fn of(stored: StoredRow, now_s: i64) -> Result<Option<OwnedRow>, CqlError> {
        let is_live = stored.live(now_s)?.is_some();
        Ok(is_live.then_some(OwnedRow { stored, now_s }))
    }
}

/// Returns the error for a stored row that cannot be decoded.
pub(crate) fn corrupt(error: RowError) -> CqlError {
    CqlError::Server(format!("a stored row is damaged: {error}"))
}

/// Returns the error for a stored key that cannot be decoded.
pub(crate) fn corrupt_key(error: helenus_row::KeyError) -> CqlError {
    CqlError::Server(format!("a stored key is damaged: {error}"))
}
