//! An object store whose SSTables are written no faster than a throttle permits.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{
    MultipartUpload, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use super::Throttle;
use crate::object_store_layers::delegate_to_inner;

/// Returns true for files that may wait. Manifests and other documents may not.
pub(crate) fn is_sstable(location: &Path) -> bool {
    location.extension() == Some("sst")
}

/// The object store of the flushes or compactions of a tablet.
#[derive(Debug)]
pub(crate) struct ThrottledObjectStore {
    inner: Arc<dyn ObjectStore>,
    throttle: Arc<Throttle>,
}

impl ThrottledObjectStore {
    pub fn new(inner: Arc<dyn ObjectStore>, throttle: Arc<Throttle>) -> ThrottledObjectStore {
        ThrottledObjectStore { inner, throttle }
    }
}

impl fmt::Display for ThrottledObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for ThrottledObjectStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if is_sstable(location) {
            self.throttle.take(payload.content_length() as u64).await;
        }
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.inner.put_multipart_opts(location, opts).await?;
        if !is_sstable(location) {
            return Ok(upload);
        }
        Ok(Box::new(ThrottledUpload {
            inner: upload,
            throttle: self.throttle.clone(),
        }))
    }

    delegate_to_inner! {
        get_opts, get_ranges,
        delete_stream,
        list, list_with_offset, list_with_delimiter,
        copy_opts, rename_opts,
    }
}

/// An upload whose parts wait for the throttle before they are done, so that the writer hands over the next ones later.
#[derive(Debug)]
pub(crate) struct ThrottledUpload {
    pub inner: Box<dyn MultipartUpload>,
    pub throttle: Arc<Throttle>,
}

#[async_trait]
impl MultipartUpload for ThrottledUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let throttle = self.throttle.clone();
        let bytes = data.content_length() as u64;
        let part = self.inner.put_part(data);
        Box::pin(async move {
            throttle.take(bytes).await;
            part.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
