//! Scans of a range: staged rows merged with the rows of the tree.

use std::iter::Peekable;
use std::sync::Arc;

use crate::data_model::RowMerge;
use crate::error::StoreError;
use crate::tablet::dead_front::DeadFront;
use crate::tablet::followed_scan::FollowedScan;
use crate::tablet::obsolete_files::ScanGuard;
use crate::tablet::over_origin::OverOrigin;
use crate::tree::changes::Change;
use crate::tree::{MergingScan, Visit};
use bytes::Bytes;

/// An iterator over the rows of a range.
pub struct Scan {
    tree: Option<Box<MergingScan>>,
    /// The continuation of a scan whose tablet another process may write to. `None` for an owned tablet.
    continuation: Option<Box<FollowedScan>>,
    /// The rows of the table's origin, which lie below those of the tree. `None` if the table has no origin.
    origin: Option<Box<OverOrigin>>,
    /// The next row of the tree. `None` if it is not known yet.
    ahead: Option<(Bytes, Bytes)>,
    staged: Peekable<std::vec::IntoIter<(Bytes, Change)>>,
    reversed: bool,
    model: Option<Arc<dyn RowMerge>>,
    /// The dead front. `None` after the first row that is not dead.
    dead: Option<Box<DeadFront>>,
    /// Protects the files that the tree reads from deletion.
    _guard: Option<ScanGuard>,
}

impl Scan {
    /// Returns a scan without rows.
    pub(crate) fn empty() -> Scan {
        Scan {
            tree: None,
            continuation: None,
            origin: None,
            ahead: None,
            staged: Vec::new().into_iter().peekable(),
            reversed: false,
            model: None,
            dead: None,
            _guard: None,
        }
    }

    /// Returns a scan of these rows alone, which are in ascending order.
    pub(crate) fn of_rows(mut rows: Vec<(Bytes, Bytes)>, reversed: bool, model: Arc<dyn RowMerge>) -> Scan {
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

    /// Creates a scan. `staged` is in ascending order, `tree` is in the direction of the scan.
    pub(crate) fn new(
        tree: MergingScan,
        mut staged: Vec<(Bytes, Change)>,
        reversed: bool,
        model: Arc<dyn RowMerge>,
        guard: ScanGuard,
    ) -> Scan {
        if reversed {
            staged.reverse();
        }
        Scan {
            tree: Some(Box::new(tree)),
            continuation: None,
            origin: None,
            ahead: None,
            staged: staged.into_iter().peekable(),
            reversed,
            model: Some(model),
            dead: None,
            _guard: Some(guard),
        }
    }

    /// Sets the continuation, which takes over when one of the scan's files has been deleted.
    pub(super) fn with_continuation(mut self, continuation: Option<Box<FollowedScan>>) -> Scan {
        self.continuation = continuation;
        self
    }

    /// Sets the rows of the table's origin.
    pub(super) fn with_origin(mut self, origin: Option<Box<OverOrigin>>) -> Scan {
        self.origin = origin;
        self
    }

    /// Sets the dead front: later scans will skip the dead rows at the beginning of this one.
    pub(super) fn with_dead_front(mut self, dead: Option<Box<DeadFront>>) -> Scan {
        self.dead = dead;
        self
    }

    /// Returns true as long as all rows before the last were dead. After that, [`Scan::mark_dead`] has no effect.
    pub fn is_at_dead_front(&self) -> bool {
        self.dead.is_some()
    }

    /// Marks the last row as dead, whatever the time. Later scans from the same bound may skip it if all rows before it are dead too.
    pub fn mark_dead(&mut self) {
        if let Some(dead) = &mut self.dead {
            dead.mark();
        }
    }

    /// Returns the next key and merged row. `None` if there is none. After an error the scan is over.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        let next = self.step().await;
        match &next {
            Ok(Some((key, _))) => {
                if self.dead.as_mut().is_some_and(|dead| !dead.pass(key)) {
                    self.dead = None;
                }
            }
            Ok(None) => {}
            Err(_) => *self = Scan::empty(),
        }
        next
    }

    /// Passes rows that need no waiting to `visit`, in order, as long as it returns [`Visit::Next`]. Returns the key of the last row that
    /// was read. If it returns `None`, there may still be more rows, which [`Scan::next`] returns.
    pub fn visit_at_hand(&mut self, visit: &mut dyn FnMut(&[u8], &[u8]) -> Visit) -> Option<Bytes> {
        if self.ahead.is_some() || self.continuation.is_some() || self.origin.is_some() || self.dead.is_some()
        {
            return None;
        }
        let end = self.staged.peek().map(|(key, _)| key.as_ref());
        self.tree.as_mut()?.visit_at_hand(end, visit)
    }

    async fn step(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        if self.ahead.is_none() {
            self.ahead = match self.origin {
                None => self.next_of_tree().await?,
                Some(_) => Box::pin(self.next_over_origin()).await?,
            };
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

impl Scan {
    async fn next_of_tree(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        let Some(tree) = &mut self.tree else {
            return Ok(None);
        };
        let next = match &mut self.continuation {
            None => tree.next().await?,
            Some(continuation) => next_followed(tree, continuation).await?,
        };
        if next.is_none() {
            self.tree = None;
        }
        Ok(next)
    }

    /// Returns the next row of the tree merged with the origin below it.
    async fn next_over_origin(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        let own = match self.origin.as_ref().is_some_and(|origin| origin.lacks_own()) {
            true => self.next_of_tree().await?,
            false => None,
        };
        match (&mut self.origin, &self.model) {
            (Some(origin), Some(model)) => origin.next(model.as_ref(), own).await,
            _ => Ok(own),
        }
    }
}

/// Returns the next row of a scan whose files may be deleted meanwhile.
async fn next_followed(
    tree: &mut MergingScan,
    continuation: &mut FollowedScan,
) -> Result<Option<(Bytes, Bytes)>, StoreError> {
    loop {
        match tree.next().await {
            Err(StoreError::FileGone(_)) => match Box::pin(continuation.go_on()).await? {
                Some(rest) => *tree = rest,
                None => return Ok(None),
            },
            next => {
                let next = next?;
                if let Some((key, _)) = &next {
                    continuation.last = Some(key.clone());
                }
                return Ok(next);
            }
        }
    }
}
