//! Scans of one partition, with its pending writes.

use std::iter::Peekable;

use bytes::Bytes;

use super::key_reads::TabletScan;
use super::pending::over;
use crate::failure::ExecutionError;

/// A scan of stored rows, merged with pending operands.
pub(crate) struct PartitionScan {
    stored: TabletScan,
    /// The next stored row. `None` if it has not been read yet.
    ahead: Option<(Bytes, Bytes)>,
    /// Pending operands, in the order of the scan.
    pending: Peekable<std::vec::IntoIter<(Bytes, Bytes)>>,
    has_pending: bool,
    reversed: bool,
}

impl PartitionScan {
    /// Returns a scan. `pending` is in ascending order, `stored` in the direction of the scan.
    pub fn new(stored: TabletScan, mut pending: Vec<(Bytes, Bytes)>, reversed: bool) -> PartitionScan {
        if reversed {
            pending.reverse();
        }
        PartitionScan {
            stored,
            ahead: None,
            has_pending: !pending.is_empty(),
            pending: pending.into_iter().peekable(),
            reversed,
        }
    }

    /// Returns the next key and merged row.
    ///
    /// # Errors
    /// See [`TabletScan::next`].
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ExecutionError> {
        if !self.has_pending {
            return self.stored.next().await;
        }
        if self.ahead.is_none() {
            self.ahead = self.stored.next().await?;
        }
        let stored = self.ahead.as_ref().map(|(key, _)| key);
        let is_next = |(key, _): &(Bytes, Bytes)| match stored {
            None => true,
            Some(stored) if self.reversed => key >= stored,
            Some(stored) => key <= stored,
        };
        let Some((key, operand)) = self.pending.next_if(is_next) else {
            return Ok(self.ahead.take());
        };
        let below = self.ahead.take_if(|(stored, _)| *stored == key);
        let row = over(&key, below.as_ref().map(|(_, row)| row), &operand)?;
        Ok(Some((key, row)))
    }

    /// Returns true as long as [`PartitionScan::mark_dead`] has an effect. With pending writes it has none, because later scans must not
    /// skip these rows.
    pub fn is_at_dead_front(&self) -> bool {
        !self.has_pending && self.stored.is_at_dead_front()
    }

    /// Marks the last row as dead, whatever the time.
    pub fn mark_dead(&mut self) {
        if !self.has_pending {
            self.stored.mark_dead();
        }
    }
}
