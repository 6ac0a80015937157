//! Reads of the rows that fit ([`FittingRows`]), partition by partition, and their number.

use helenus_cql::error::CqlError;
use helenus_tablet::Visit;

use super::fitting::{FittingRows, Seen};
use super::visiting::Visited;
use super::{Entry, FoundPartition, RangeCursor, entry};
use crate::limits::scope::{self, LONG_ROW_BYTES};
use crate::rows::RowAt;
use crate::storage::ExecutionContext;

/// Entries between two checkpoints, which take some ten microseconds.
const STEP_ENTRIES: usize = 128;

/// The result of a search for the next row or partition.
enum Found {
    Row(Entry),
    Static,
    Nothing,
}

impl RangeCursor {
    /// Returns the next partition that may be part of the result. The rest of the current one is passed over. `None` if there is no such
    /// partition, or too many tombstones were skipped.
    pub async fn next_fitting_partition(
        &mut self,
        context: &ExecutionContext,
        rows: &mut FittingRows,
    ) -> Result<Option<FoundPartition>, CqlError> {
        if let Some((partition, _)) = self.resume.take() {
            let table = rows.table.clone();
            let found = self.resume_partition(context, &table, partition).await?;
            rows.resume(&found, self.header.take());
            return Ok(Some(found));
        }
        self.pending = None;
        rows.partition.is_left = true;
        rows.stays = false;
        let key = match self.find(context, rows).await? {
            Found::Nothing => return Ok(None),
            Found::Static => rows.partition.key()?,
            Found::Row(entry) => {
                let key = entry.partition.clone();
                self.pending = Some(entry);
                key
            }
        };
        let static_row = rows.static_row()?;
        Ok(Some(FoundPartition { key, static_row }))
    }

    /// Returns the next row of the current partition that may be part of the result. `None` if there is none, or too many tombstones were
    /// skipped.
    pub async fn next_fitting_row(
        &mut self,
        context: &ExecutionContext,
        rows: &mut FittingRows,
    ) -> Result<Option<RowAt>, CqlError> {
        rows.stays = true;
        let found = match self.pending.take() {
            Some(entry) => Found::Row(entry),
            None => self.find(context, rows).await?,
        };
        match found {
            Found::Row(entry) => rows.row(entry).map(Some),
            Found::Static | Found::Nothing => Ok(None),
        }
    }

    /// Counts the rows that fit. Ends early if too many tombstones were read, as [`FittingRows::take_skipped`] then shows.
    pub async fn count_fitting(
        &mut self,
        context: &ExecutionContext,
        rows: &mut FittingRows,
    ) -> Result<u64, CqlError> {
        rows.counted = Some(0);
        self.find(context, rows).await?;
        rows.end_partition()?;
        Ok(rows.counted.take().unwrap_or_default())
    }

    async fn find(&mut self, context: &ExecutionContext, rows: &mut FittingRows) -> Result<Found, CqlError> {
        let tombstones_max = context.limits().tombstone_failure_threshold;
        loop {
            let seen = match rows.held.clone() {
                None => self.see_some(context, rows).await?,
                Some((key, packed)) => {
                    let before = rows.skipped;
                    let seen = rows.see(&key, &packed)?;
                    rows.end_step(context, 1, before);
                    seen
                }
            };
            if seen == Seen::OtherPartition {
                return Ok(Found::Nothing);
            }
            match (seen, rows.held.take()) {
                (Seen::Row, Some((key, packed))) => return entry(&key, packed).map(Found::Row),
                (Seen::Static, _) => return Ok(Found::Static),
                (Seen::LongRest, _) => self.skip_past(&rows.partition.key()?),
                (Seen::Skipped, _) => {}
                (Seen::End | Seen::OtherPartition | Seen::Row, _) => return Ok(Found::Nothing),
            }
            if rows.skipped.tombstones > tombstones_max {
                return Ok(Found::Nothing);
            }
            scope::hurry();
            scope::checkpoint().await?;
        }
    }

    /// Tests entries until one is not skipped, or it is time for a checkpoint. Afterwards, a row that was found is held, and so is an entry
    /// of another partition.
    async fn see_some(
        &mut self,
        context: &ExecutionContext,
        rows: &mut FittingRows,
    ) -> Result<Seen, CqlError> {
        let (mut entries, mut bytes, mut seen) = (0, 0, Ok(Seen::Skipped));
        let before = rows.skipped;
        let visited = self
            .visit(context, &mut |key, packed| {
                entries += 1;
                bytes += packed.len();
                seen = rows.see(key, packed);
                match seen {
                    Ok(Seen::Skipped) if entries < STEP_ENTRIES && bytes < LONG_ROW_BYTES => Visit::Next,
                    Ok(Seen::Row | Seen::OtherPartition) => Visit::Before,
                    _ => Visit::Last,
                }
            })
            .await?;
        rows.end_step(context, entries, before);
        let seen = seen?;
        Ok(match visited {
            Visited::End => Seen::End,
            Visited::Last => seen,
            Visited::Before(key, packed) => {
                rows.held = Some((key, packed));
                seen
            }
        })
    }
}
