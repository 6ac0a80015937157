//! Rows as they are stored, with what shadows them.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::merge::merge;
use helenus_row::packed::RowRef;
use helenus_row::read::{LiveRow, live_row, tombstones_of_dead};
use helenus_row::row::{CellRules, Deletion};
use helenus_row::{ColumnRef, KeyKind, RowError};

/// A row as it is stored, with what shadows it.
#[derive(Clone, Debug)]
pub struct StoredRow {
    pub packed: RowRef,
    /// The deletion that the partition's header puts over the row.
    pub shadow: Option<Deletion>,
    rules: CellRules,
}

impl StoredRow {
    /// What is alive of it; nothing if it is all gone.
    pub fn live(&self, now_s: i64) -> Result<Option<LiveRow<'_>>, CqlError> {
        live_row(&self.packed, self.shadow, &self.rules, now_s).map_err(corrupt)
    }

    /// Returns the tombstones that it is made of, if nothing of it is alive.
    pub fn tombstones_of_dead(&self, now_s: i64) -> Result<usize, CqlError> {
        tombstones_of_dead(&self.packed, self.shadow, &self.rules, now_s).map_err(corrupt)
    }

    /// Returns the newest timestamp of anything in it, deletions included.
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
    /// Encoded ([`helenus_row::KeyLayout`]).
    pub clustering: Bytes,
    pub row: StoredRow,
}

/// A row that is alive, kept beyond the read.
#[derive(Clone, Debug)]
pub struct OwnedRow {
    stored: StoredRow,
    now_s: i64,
}

impl OwnedRow {
    /// What is alive of the row.
    pub fn live(&self) -> Result<LiveRow<'_>, CqlError> {
        self.stored
            .live(self.now_s)?
            .ok_or_else(|| CqlError::Server("a row that was alive is not".to_owned()))
    }

    /// Returns the packed row, to make [`Bytes`] of what [`OwnedRow::live`] borrows ([`RowRef::slice`]).
    pub fn packed(&self) -> &RowRef {
        &self.stored.packed
    }

    /// Returns the row, if there is one, as it will be with what is about to be written to it; `None` if nothing of it is alive then.
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

/// Returns a stored row that can't be understood.
pub(crate) fn corrupt(error: RowError) -> CqlError {
    CqlError::Server(format!("a stored row is damaged: {error}"))
}

/// Returns a stored key that can't be understood.
pub(crate) fn corrupt_key(error: helenus_row::KeyError) -> CqlError {
    CqlError::Server(format!("a stored key is damaged: {error}"))
}
