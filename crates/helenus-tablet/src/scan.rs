//! Rows of a range: what is staged above what the tree holds.

use std::iter::Peekable;
use std::sync::Arc;

use bytes::Bytes;
use slatedb::DbIterator;

use crate::error::{StoreError, from_slatedb};
use crate::hooks::Hooks;
use crate::stage::Change;
use crate::sweep::ScanGuard;
use crate::work;

/// Rows of a range, one after the other.
pub struct Scan {
    tree: Option<DbIterator>,
    /// The row that the tree comes to next, once it is known.
    ahead: Option<(Bytes, Bytes)>,
    staged: Peekable<std::vec::IntoIter<(Bytes, Change)>>,
    reversed: bool,
    hooks: Option<Arc<dyn Hooks>>,
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
            match work::read_wait(tree.next())
                .await
                .map_err(|error| from_slatedb(&error))?
            {
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
