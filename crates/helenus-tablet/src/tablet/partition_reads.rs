//! Reads small partitions through the row cache ([`crate::cache::partition_cache`]).

use std::ops::{Bound, RangeBounds};

use bytes::{BufMut, Bytes, BytesMut};

use crate::cache::generations::Generation;
use crate::cache::partition_cache::unpack;
use crate::cache::row_cache::Lookup;
use crate::data_model::KeptPartition;
use crate::error::StoreError;
use crate::tablet::scan::Scan;
use crate::tablet::{Tablet, successor};

impl Tablet {
    /// The rows of a range of a partition, if that is one to be kept, and small.
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
        // The rows of an index have no header.
        let kept = match self.cache.lookup(&prefix, Generation::NONE) {
            Lookup::Hit(kept) => kept,
            Lookup::Miss(token) => {
                let kept = Box::pin(self.read_partition(&prefix, limit)).await?;
                self.cache.fill(&token, &prefix, kept.as_ref(), Generation::NONE);
                kept
            }
        };
        // None: it is known to be large.
        Ok(kept.map(|kept| {
            let bounds = (start.clone(), end.clone());
            let rows = unpack(kept).filter(|(key, _)| bounds.contains(key));
            Scan::of_rows(rows.collect(), reversed, self.model.clone())
        }))
    }

    /// The rows of a partition in one piece; none if there are too many.
    async fn read_partition(
        &self,
        prefix: &Bytes,
        limit: KeptPartition,
    ) -> Result<Option<Bytes>, StoreError> {
        let end = successor(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(end.into()));
        let mut scan = self.scan_all(Bound::Included(prefix.clone()), end, false).await?;
        let mut packed = BytesMut::new();
        for _ in 0..=limit.rows_max {
            let Some((key, row)) = scan.next().await? else {
                return Ok(Some(packed.freeze()));
            };
            for part in [key, row] {
                packed.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
                packed.extend_from_slice(&part);
            }
            if packed.len() > limit.bytes_max {
                break;
            }
        }
        Ok(None)
    }
}
