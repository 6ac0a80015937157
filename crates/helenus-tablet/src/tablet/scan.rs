//! Scans of a range: staged rows merged with the rows of the tree.

use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use slatedb::DbIterator;

use crate::data_model::DataModel;
use crate::error::{StoreError, from_slatedb};
use crate::tablet::obsolete_files::ScanGuard;
use crate::tree::MergingScan;
use crate::tree::changes::Change;
use crate::work;

/// The timeout of reads of the tree, and the meaning of its errors.
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

/// The source of the tree's rows.
pub(crate) enum Rows {
    SlateDb(Box<DbIterator>),
    MergingScan(Box<MergingScan>),
    Nothing,
}

impl Rows {
    async fn next(&mut self, limits: ReadLimits) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        match self {
            Rows::Nothing => Ok(None),
            Rows::MergingScan(runs) => runs.next().await,
            Rows::SlateDb(rows) => {
                let row = limits.wait(rows.next()).await?;
                Ok(row.map(|row| (row.key, row.value)))
            }
        }
    }
}

/// Rows of a range, one after the other.
pub struct Scan {
    tree: Rows,
    /// The row that the tree comes to next, once it is known.
    ahead: Option<(Bytes, Bytes)>,
    staged: Peekable<std::vec::IntoIter<(Bytes, Change)>>,
    reversed: bool,
    model: Option<Arc<dyn DataModel>>,
    limits: ReadLimits,
    /// Keeps the files that the tree reads.
    _guard: Option<ScanGuard>,
}

impl Scan {
    /// A scan of nothing.
    pub(crate) fn empty() -> Scan {
        Scan {
            tree: Rows::Nothing,
            ahead: None,
            staged: Vec::new().into_iter().peekable(),
            reversed: false,
            model: None,
            limits: ReadLimits::default(),
            _guard: None,
        }
    }

    /// A scan of rows that ascend and are all there is.
    pub(crate) fn of_rows(mut rows: Vec<(Bytes, Bytes)>, reversed: bool, model: Arc<dyn DataModel>) -> Scan {
        if reversed {
            rows.reverse();
        }
        let whole = |(key, row)| (key, Change::Whole(row));
        Scan {
            staged: rows
                .into_iter()
                .map(whole)
                .collect::<Vec<_>>()
                .into_iter()
                .peekable(),
            reversed,
            model: Some(model),
            ..Scan::empty()
        }
    }

    /// `staged` is in ascending order, `tree` goes the way of the scan.
    pub(crate) fn new(
        tree: Rows,
        mut staged: Vec<(Bytes, Change)>,
        reversed: bool,
        model: Arc<dyn DataModel>,
        guard: ScanGuard,
        limits: ReadLimits,
    ) -> Scan {
        if reversed {
            staged.reverse();
        }
        Scan {
            tree,
            ahead: None,
            staged: staged.into_iter().peekable(),
            reversed,
            model: Some(model),
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
        if self.ahead.is_none() && !matches!(self.tree, Rows::Nothing) {
            self.ahead = self.tree.next(self.limits).await?;
            if self.ahead.is_none() {
                self.tree = Rows::Nothing;
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
        let (Some((key, change)), Some(model)) = (self.staged.next(), &self.model) else {
            return Ok(None);
        };
        let below = self.ahead.take_if(|(ahead, _)| *ahead == key);
        let row = change.over(model.as_ref(), &key, below.as_ref().map(|(_, row)| row))?;
        Ok(Some((key, row)))
    }
}
