//! An object store whose SSTables are written no faster than a throttle permits.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};

use super::Throttle;

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

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
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
