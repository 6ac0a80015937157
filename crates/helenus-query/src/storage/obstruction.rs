//! Reads and locks of partitions that wait until no undecided transaction of several owners is in their way ([`super::undecided`]).

use std::sync::Arc;
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::TokenRange;
use smallvec::SmallVec;

use super::hooks::table_of;
use super::locks::contended;
use super::{Access, ExecutionContext, LockRequest, PartitionGuard};
use crate::failure::ExecutionError;

/// Time between two checks that the tablet of a waiting request is still open here.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl ExecutionContext {
    /// Waits until no undecided transaction writes to the partitions from `start` on, of one table and with these tokens. Must be called
    /// after the tablet was found open.
    ///
    /// # Errors
    /// [`ExecutionError::NotOwned`] if the tablet was closed meanwhile.
    pub(super) async fn await_readable(
        &self,
        start: &[u8],
        tokens: TokenRange,
    ) -> Result<(), ExecutionError> {
        if self.writing.undecided.is_empty() {
            return Ok(());
        }
        // The waiting path is boxed, so that the futures of other reads stay small.
        Box::pin(self.await_decided(start, tokens)).await
    }

    async fn await_decided(&self, start: &[u8], tokens: TokenRange) -> Result<(), ExecutionError> {
        let Some(table) = table_of(start) else {
            return Ok(());
        };
        let undecided = &self.writing.undecided;
        loop {
            let mut ended = undecided.ended();
            if !undecided.obstructs_reads(table, tokens) {
                return Ok(());
            }
            let _ = tokio::time::timeout(CHECK_INTERVAL, ended.changed()).await;
            self.store.tablet(tokens.first)?;
        }
    }

    /// Returns true if an undecided transaction has one of the partitions, in a tablet that is open here.
    fn is_obstructed(&self, partitions: &[LockRequest]) -> bool {
        let undecided = &self.writing.undecided;
        !undecided.is_empty()
            && partitions.iter().any(|(table, token, _)| {
                undecided.obstructs_lock(*table, *token) && self.store.tablet(*token).is_ok()
            })
    }

    /// Waits until none of the partitions is an undecided transaction's.
    async fn await_lockable(&self, partitions: &[LockRequest]) {
        loop {
            let mut ended = self.writing.undecided.ended();
            if !self.is_obstructed(partitions) {
                return;
            }
            let _ = tokio::time::timeout(CHECK_INTERVAL, ended.changed()).await;
        }
    }

    /// Locks every given partition, to read before a write, or to assign a timestamp to a write. Writes to a partition that is locked alone
    /// may be pending, so it must be read through the locks ([`super::row_reads::ReadView`]).
    ///
    /// # Errors
    /// A lock was not available within the store's write timeout.
    pub(crate) async fn lock_partitions(
        &self,
        partitions: impl IntoIterator<Item = LockRequest>,
    ) -> Result<Arc<PartitionGuard>, CqlError> {
        let partitions: SmallVec<[LockRequest; 4]> = partitions.into_iter().collect();
        self.lock_unobstructed(&partitions).await.map(Arc::new)
    }

    /// Locks the partitions of a transaction alone. Its write is refused if one of their tablets is handed over before the write is queued,
    /// also if the transaction only reads there.
    ///
    /// # Errors
    /// As [`ExecutionContext::lock_partitions`].
    pub(crate) async fn lock_transaction(
        &self,
        partitions: &[(TableId, i64)],
    ) -> Result<Arc<PartitionGuard>, CqlError> {
        let wanted = partitions
            .iter()
            .map(|(table, token)| (*table, *token, Access::Alone));
        let wanted: SmallVec<[LockRequest; 4]> = wanted.collect();
        let mut guard = self.lock_unobstructed(&wanted).await?;
        if guard.tablets.is_some() {
            guard.tokens = partitions.iter().map(|(_, token)| *token).collect();
        }
        Ok(Arc::new(guard))
    }

    /// Locks the partitions of a decided transaction alone, although its intents are in the way of others.
    pub(crate) async fn lock_decided(&self, partitions: &[(TableId, i64)]) -> Arc<PartitionGuard> {
        let wanted = partitions
            .iter()
            .map(|(table, token)| (*table, *token, Access::Alone));
        let mut guard = self.writing.locks.lock(wanted).await;
        guard.tablets = Some(self.store.tablets());
        Arc::new(guard)
    }

    /// Locks partitions once no undecided transaction has one of them.
    async fn lock_unobstructed(&self, partitions: &[LockRequest]) -> Result<PartitionGuard, CqlError> {
        let longest = self.store.write_timeout();
        let mut guard = self.writing.locks.lock_within(partitions, longest).await?;
        if self.cluster().is_none() {
            return Ok(guard);
        }
        // An intent is in the way before its tablet is served. So it is found if the guard has the tablet.
        guard.tablets = Some(self.store.tablets());
        while self.is_obstructed(partitions) {
            drop(guard);
            let waiting = Box::pin(self.await_lockable(partitions));
            match longest {
                Some(longest) => tokio::time::timeout(longest, waiting)
                    .await
                    .map_err(|_| contended(longest))?,
                None => waiting.await,
            }
            guard = self.writing.locks.lock_within(partitions, longest).await?;
            guard.tablets = Some(self.store.tablets());
        }
        Ok(guard)
    }
}
