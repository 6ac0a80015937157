//! Merges late writes with archived tombstones; see [`crate::tablet::late_writes`].

use super::Store;
use crate::error::StoreError;
use crate::operation::Op;
use crate::tablet::find;
use crate::tablet::late_writes::{LateWrites, is_late};

impl Store {
    /// Merges late operations with the archived tombstones that compactions have purged. The result must be kept until the outcome of the
    /// write is known. Idempotent.
    ///
    /// # Errors
    /// A tablet is not open here, or cannot be read.
    pub async fn apply_archived_tombstones(&self, ops: &mut [Op]) -> Result<LateWrites, StoreError> {
        let mut late = LateWrites::default();
        let tablets = self.tablets.load();
        let Some(any) = tablets.first() else {
            return Ok(late);
        };
        let now_ms = any.clock.now_ms();
        for op in ops {
            let oldest_us = any.model.oldest_us(&op.key, &op.operand)?;
            if oldest_us.is_some_and(|oldest_us| is_late(oldest_us, now_ms)) {
                let tablet = find(&tablets, op.token).ok_or(StoreError::NotOwned(op.token))?;
                // Boxed, so that the futures of other writes stay small.
                Box::pin(tablet.put_late_under_archived_tombstones(op, &mut late, now_ms)).await?;
            }
        }
        Ok(late)
    }
}
