//! Reads small partitions through the row cache ([`crate::cache::partition_cache`]).

use std::ops::{Bound, RangeBounds};
use std::sync::atomic::Ordering;

use bytes::{BufMut, Bytes, BytesMut};

use crate::cache::generations::Generation;
use crate::cache::partition_cache::KeptRows;
use crate::cache::row_cache::Lookup;
use crate::data_model::KeptPartition;
use crate::error::StoreError;
use crate::tablet::scan::Scan;
use crate::tablet::{Tablet, successor};

impl Tablet {
    /// Returns the rows of a range of a partition, if the partition is to be kept in the row cache and is small.
    pub(crate) async fn cached_partition(
        &self,
        start: &Bound<Bytes>,
        end: &Bound<Bytes>,
        reversed: bool,
    ) -> Result<Option<Scan>, StoreError> {
        if !self.row_cache_on {
            return Ok(None);
        }
        let (Bound::Included(from) | Bound::Excluded(from)) = start else {
            return Ok(None);
        };
        let Some(limit) = self.model.kept_partition(from) else {
            return Ok(None);
        };
        let Some((prefix, ..)) = self.partition_of(start, end) else {
            return Ok(None);
        };
        // `None` means that the partition is known to be large.
        let kept = self.kept(&prefix, limit).await?;
        Ok(kept.map(|kept| {
            let bounds = (start.clone(), end.clone());
            let rows = kept.shared().filter(|(key, _)| bounds.contains(key));
            Scan::of_rows(rows.collect(), reversed, self.model.clone())
        }))
    }

    /// Returns all rows of the partition with a prefix of keys. `None` if the partition is not to be kept in the row cache, or is not
    /// small. For readers of the whole partition: nothing is copied.
    ///
    /// # Errors
    /// See [`Tablet::scan`].
    pub async fn kept_partition(&self, prefix: &Bytes) -> Result<Option<KeptRows>, StoreError> {
        match self.model.kept_partition(prefix) {
            Some(limit) if self.row_cache_on => {
                self.counters.scans.fetch_add(1, Ordering::Relaxed);
                self.kept(prefix, limit).await
            }
            _ => Ok(None),
        }
    }

    async fn kept(&self, prefix: &Bytes, limit: KeptPartition) -> Result<Option<KeptRows>, StoreError> {
        // Kept partitions are those of indexes, whose rows have no header. So they need no generation.
        let kept = match self
            .cache
            .lookup(self.cache.hash(prefix), prefix, Generation::NONE)
        {
            Lookup::Hit(kept) => kept,
            Lookup::Miss(token) => {
                let kept = Box::pin(self.read_partition(prefix, limit)).await?;
                self.cache.fill(&token, prefix, kept.as_ref(), Generation::NONE);
                kept
            }
        };
        Ok(kept.map(KeptRows))
    }

    /// Returns the rows of a partition in one piece, without the dead ones. `None` if there are too many.
    async fn read_partition(
        &self,
        prefix: &Bytes,
        limit: KeptPartition,
    ) -> Result<Option<Bytes>, StoreError> {
        let end = successor(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(end.into()));
        let mut scan = self.scan_all(Bound::Included(prefix.clone()), end, false).await?;
        let mut packed = BytesMut::new();
        let (mut rows, mut dead_rows) = (0, 0);
        while let Some((key, row)) = scan.next().await? {
            if !self.model.may_be_alive(&key, &row) {
                dead_rows += 1;
                if dead_rows > limit.dead_rows_max {
                    return Ok(None);
                }
                continue;
            }
            rows += 1;
            for part in [key, row] {
                packed.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
                packed.extend_from_slice(&part);
            }
            if rows > limit.rows_max || packed.len() > limit.bytes_max {
                return Ok(None);
            }
        }
        Ok(Some(packed.freeze()))
    }
}
