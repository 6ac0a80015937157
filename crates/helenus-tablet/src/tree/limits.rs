//! Time limits of reads of files, and the errors of such reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{StoreError, chain, from_slatedb, is_not_found};
use crate::measurement;

/// The limits of reads of a tablet's files. `None` on a local disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadLimits(Option<Arc<BucketLimits>>);

#[derive(Debug)]
struct BucketLimits {
    timeout: Duration,
    /// A token of the tablet, for errors.
    token: i64,
    /// False once the tablet may have moved to another node, where its files may be deleted.
    is_owned: AtomicBool,
    /// True if another process replaces the files, and deletes them soon after.
    is_followed: bool,
}

impl ReadLimits {
    /// Returns the limits of a tablet in a bucket. `token` is one of the tablet's.
    pub fn of_bucket(timeout: Duration, token: i64) -> ReadLimits {
        ReadLimits(Some(Arc::new(BucketLimits {
            timeout,
            token,
            is_owned: AtomicBool::new(true),
            is_followed: false,
        })))
    }

    /// Returns the limits of a tablet in a bucket that another process may have open for writing.
    pub fn of_followed(timeout: Duration, token: i64) -> ReadLimits {
        ReadLimits(Some(Arc::new(BucketLimits {
            timeout,
            token,
            is_owned: AtomicBool::new(true),
            is_followed: true,
        })))
    }

    /// Returns true for a tablet whose files other processes may change.
    pub fn is_in_bucket(&self) -> bool {
        self.0.is_some()
    }

    /// Returns a token of the tablet. 0 if it is not in a bucket.
    pub fn token(&self) -> i64 {
        self.0.as_ref().map_or(0, |limits| limits.token)
    }

    /// Records that the tablet may move to another node. Reads that fail from now on report [`StoreError::NotOwned`], so that callers retry
    /// there.
    pub fn give_up(&self) {
        if let Some(limits) = &self.0 {
            limits.is_owned.store(false, Ordering::Release);
        }
    }

    /// Awaits a read of files, within the timeout.
    pub async fn wait<T>(
        &self,
        read: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, StoreError> {
        let Some(limits) = &self.0 else {
            return measurement::read_wait(read)
                .await
                .map_err(|error| from_slatedb(&error));
        };
        match tokio::time::timeout(limits.timeout, measurement::read_wait(read)).await {
            Ok(Ok(read)) => Ok(read),
            _ if !limits.is_owned.load(Ordering::Acquire) => Err(StoreError::NotOwned(limits.token)),
            Ok(Err(error)) if limits.is_followed && is_not_found(&error) => {
                Err(StoreError::FileGone(chain(&error)))
            }
            Ok(Err(error)) => Err(from_slatedb(&error)),
            Err(_) => Err(StoreError::ReadTimeout(limits.timeout.as_millis() as u64)),
        }
    }
}
