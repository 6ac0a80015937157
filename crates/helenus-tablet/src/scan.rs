//! Rows of a range: what is staged above what the tree holds.

use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slatedb::DbIterator;

use crate::error::{StoreError, from_slatedb};
use crate::hooks::Hooks;
use crate::stage::Change;
use crate::sweep::ScanGuard;
use crate::work;

/// How long the tree is waited for, and what its errors mean.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadLimits {
    /// On an object store: the longest wait, and a token of the tablet.
    pub remote: Option<(Duration, i64)>,
}

impl ReadLimits {
    /// Waits for an answer of the tree.
    pub async fn wait<T>(
        &self,
        read: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, StoreError> {
        let Some((longest, token)) = self.remote else {
            return work::read_wait(read).await.map_err(|error| from_slatedb(&error));
        };
        match tokio::time::timeout(longest, work::read_wait(read)).await {
            Err(_) => Err(StoreError::ReadTimeout(longest.as_millis() as u64)),
            Ok(read) => read.map_err(|error| match from_slatedb(&error) {
                // The tablet has gone elsewhere.
                StoreError::Fenced | StoreError::Closed => StoreError::NotOwned(token),
                error => error,
            }),
        }
    }
}

/// Rows of a range, one after the other.
pub struct Scan {
    tree: Option<DbIterator>,
    /// The row that the tree comes to next, once it is known.
    ahead: Option<(Bytes, Bytes)>,
    staged: Peekable<std::vec::IntoIter<(Bytes, Change)>>,
    reversed: bool,
    hooks: Option<Arc<dyn Hooks>>,
    limits: ReadLimits,
    /// Keeps the files that the tree reads.
    _guard: Option<ScanGuard>,
}

impl Scan {
    /// A scan of nothing.
    pub(crate) fn empty() -> Scan {
        Scan {
            tree: None,
            ahead: None,
            staged: Vec::new().into_iter().peekable(),
            reversed: false,
            hooks: None,
            limits: ReadLimits::default(),
            _guard: None,
        }
    }

    /// `staged` is in ascending order, `tree` goes the way of the scan.
    pub(crate) fn new(
        tree: DbIterator,
        mut staged: Vec<(Bytes, Change)>,
        reversed: bool,
        hooks: Arc<dyn Hooks>,
        guard: ScanGuard,
        limits: ReadLimits,
    ) -> Scan {
        if reversed {
            staged.reverse();
        }
        Scan {
            tree: Some(tree),
            ahead: None,
            staged: staged.into_iter().peekable(),
            reversed,
            hooks: Some(hooks),
            limits,
            _guard: Some(guard),
        }
    }

    /// The next key and merged row. After an error the scan is over.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        let next = self.step().await;
        if next.is_err() {
            *self = Scan::empty();
        }
        next
    }

    async fn step(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        if self.ahead.is_none()
            && let Some(tree) = &mut self.tree
        {
            match self.limits.wait(tree.next()).await? {
                Some(row) => self.ahead = Some((row.key, row.value)),
                None => self.tree = None,
            }
        }
        let staged_is_next = match (self.staged.peek(), &self.ahead) {
            (None, _) => return Ok(self.ahead.take()),
            (Some(_), None) => true,
            (Some((staged, _)), Some((ahead, _))) if self.reversed => staged >= ahead,
            (Some((staged, _)), Some((ahead, _))) => staged <= ahead,
        };
        if !staged_is_next {
            return Ok(self.ahead.take());
        }
        let (Some((key, change)), Some(hooks)) = (self.staged.next(), &self.hooks) else {
            return Ok(None);
        };
        let below = self.ahead.take_if(|(ahead, _)| *ahead == key);
        let row = change.over(hooks.as_ref(), &key, below.as_ref().map(|(_, row)| row))?;
        Ok(Some((key, row)))
    }
}
