//! Inserts the parts of an SSTable into the disk cache while it is uploaded.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::DiskCache;
use super::part::{PART_BYTES, PartKey};

/// An upload whose bytes are cached as they arrive. If the upload fails, the cached parts are never read, because no manifest names the
/// SSTable.
#[derive(Debug)]
pub(super) struct CachedUpload {
    inner: Box<dyn MultipartUpload>,
    cache: Arc<DiskCache>,
    object: Arc<str>,
    /// Bytes of the next, still incomplete part.
    begun: BytesMut,
    next: u32,
}

impl CachedUpload {
    pub fn new(inner: Box<dyn MultipartUpload>, location: &Path, cache: Arc<DiskCache>) -> CachedUpload {
        CachedUpload {
            inner,
            cache,
            object: location.as_ref().into(),
            begun: BytesMut::new(),
            next: 0,
        }
    }

    fn next_part(&mut self, part: Bytes) -> (PartKey, Bytes) {
        let key = PartKey {
            object: self.object.clone(),
            index: self.next,
        };
        self.next += 1;
        (key, part)
    }
}

#[async_trait]
impl MultipartUpload for CachedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        data.iter().for_each(|bytes| self.begun.extend_from_slice(bytes));
        let mut parts = Vec::new();
        while self.begun.len() as u64 >= PART_BYTES {
            let part = self.begun.split_to(PART_BYTES as usize).freeze();
            parts.push(self.next_part(part));
        }
        let (put, cache) = (self.inner.put_part(data), self.cache.clone());
        Box::pin(async move { futures::join!(put, cache.write(parts)).0 })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let done = self.inner.complete().await?;
        let last = self.begun.split().freeze();
        if !last.is_empty() {
            let last = self.next_part(last);
            self.cache.write(vec![last]).await;
        }
        Ok(done)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
