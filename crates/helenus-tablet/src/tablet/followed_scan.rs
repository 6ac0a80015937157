//! Scans of a tablet that another process may write to.
//!
//! A scan reads the files of one manifest. The owner does not know of the scan, and deletes files that a compaction has replaced within
//! seconds. A scan that finds a file deleted continues after the last row that it returned, with the files of the newest manifest. The rows
//! from there on may be newer than those before.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::data_model::RowMerge;
use crate::database::followed::FollowedManifest;
use crate::error::StoreError;
use crate::stage::is_empty;
use crate::tree::limits::ReadLimits;
use crate::tree::{MergingScan, SsTables, Tree};

/// The range of a tree to be scanned, and how.
#[derive(Clone)]
pub(super) struct TreeScanRequest {
    pub model: Arc<dyn RowMerge>,
    pub bounds: (Bound<Bytes>, Bound<Bytes>),
    /// The prefix of the partition in which the range lies. `None` if it spans several.
    pub partition: Option<Bytes>,
    pub reversed: bool,
    pub limits: ReadLimits,
}

impl TreeScanRequest {
    pub fn begin(self, tree: Arc<Tree>) -> MergingScan {
        MergingScan::new(
            tree,
            self.model,
            self.bounds,
            self.partition,
            self.reversed,
            self.limits,
        )
    }

    /// Returns the part of the range after key `last`, in the direction of the scan. The whole range if `last` is `None`.
    fn behind(&self, last: Option<&Bytes>) -> TreeScanRequest {
        let mut rest = self.clone();
        if let Some(last) = last {
            match self.reversed {
                false => rest.bounds.0 = Bound::Excluded(last.clone()),
                true => rest.bounds.1 = Bound::Excluded(last.clone()),
            }
        }
        rest
    }
}

/// Continues a scan after one of its files was deleted.
pub(super) struct FollowedScan {
    followed: Arc<FollowedManifest>,
    tables: Arc<SsTables>,
    /// The manifest whose files are read.
    manifest: u64,
    request: TreeScanRequest,
    /// The last key that the scan returned. `None` if it has returned no row.
    pub last: Option<Bytes>,
}

impl FollowedScan {
    pub fn new(
        followed: Arc<FollowedManifest>,
        tables: Arc<SsTables>,
        manifest: u64,
        request: TreeScanRequest,
    ) -> FollowedScan {
        FollowedScan {
            followed,
            tables,
            manifest,
            request,
            last: None,
        }
    }

    /// Returns the rest of the scan, from the newest files. `None` if no key is left.
    ///
    /// # Errors
    /// [`StoreError::NotOwned`] if the tablet is gone.
    pub async fn go_on(&mut self) -> Result<Option<MergingScan>, StoreError> {
        let newest = match self.followed.refresh_after_loss(self.manifest).await {
            Err(StoreError::FileGone(_)) => return Err(StoreError::NotOwned(self.request.limits.token())),
            newest => newest?,
        };
        self.manifest = newest.id();
        let rest = self.request.behind(self.last.as_ref());
        if is_empty(&rest.bounds.0, &rest.bounds.1) {
            return Ok(None);
        }
        let files = Arc::new(self.tables.files(&newest));
        let tree = Tree::new(self.tables.clone(), files, 0);
        Ok(Some(rest.begin(Arc::new(tree))))
    }
}
