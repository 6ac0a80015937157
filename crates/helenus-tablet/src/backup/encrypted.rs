//! An object store that encrypts its objects. Callers read and write the plain contents.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use hashbrown::HashMap;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use parking_lot::Mutex;
use slatedb_common::retry::NonRetryable;

use super::key::BackupKey;
use super::sealed::{CHUNK, Opener, Sealer, TRAILER, chunks_of, content_len, place_of};
use crate::object_store_layers::delegate_to_inner;

/// An object store whose objects are encrypted with a key.
#[derive(Debug)]
pub(super) struct EncryptedObjects {
    inner: Arc<dyn ObjectStore>,
    key: BackupKey,
    /// Openers of SSTables, by path. Openers are kept because an SSTable is read in many parts.
    openers: Mutex<HashMap<Path, Arc<Opener>>>,
}

impl EncryptedObjects {
    pub fn new(inner: Arc<dyn ObjectStore>, key: BackupKey) -> EncryptedObjects {
        EncryptedObjects {
            inner,
            key,
            openers: Mutex::default(),
        }
    }

    /// Returns the opener that decrypts an object. The opener of an SSTable is kept after its first read.
    async fn opener(&self, path: &Path) -> Result<Arc<Opener>> {
        if let Some(known) = self.openers.lock().get(path) {
            return Ok(known.clone());
        }
        let bytes = self.inner.head(path).await?.size;
        let content = content_len(bytes).ok_or_else(|| refused(path))?;
        let trailer = self.inner.get_range(path, bytes - TRAILER..bytes).await?;
        let opener = Opener::new(&self.key, path, content, &trailer).ok_or_else(|| refused(path))?;
        let opener = Arc::new(opener);
        if path.as_ref().ends_with(".sst") {
            self.openers.lock().insert(path.clone(), opener.clone());
        }
        Ok(opener)
    }
}

/// Returns the error of an object that can't be decrypted. The error is marked as permanent, because a retry can't help.
fn refused(path: &Path) -> Error {
    let why = format!("{path} is damaged, or was encrypted otherwise: it can't be decrypted");
    Error::Generic {
        store: "encrypted",
        source: Box::new(NonRetryable(why.into())),
    }
}

fn no_cipher() -> Error {
    Error::Generic {
        store: "encrypted",
        source: "the system gives no random numbers, or a part has no whole chunks".into(),
    }
}

/// Replaces the size of the encrypted object with the length of its content.
fn of_content(mut meta: ObjectMeta) -> ObjectMeta {
    meta.size = content_len(meta.size).unwrap_or_default();
    meta
}

impl fmt::Display for EncryptedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for EncryptedObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.openers.lock().remove(location);
        let sealer = Sealer::new(&self.key, location).ok_or_else(no_cipher)?;
        let sealed = sealer.finish(&Bytes::from(payload)).ok_or_else(no_cipher)?;
        self.inner.put_opts(location, sealed.into(), opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.openers.lock().remove(location);
        let sealer = Sealer::new(&self.key, location).ok_or_else(no_cipher)?;
        Ok(Box::new(Upload {
            inner: self.inner.put_multipart_opts(location, opts).await?,
            sealer: Some(sealer),
            held: None,
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            let mut found = self.inner.get_opts(location, options).await?;
            found.meta = of_content(found.meta);
            return Ok(found);
        }
        let opener = self.opener(location).await?;
        let range = match &options.range {
            Some(range) => range.as_range(opener.content).map_err(|error| Error::Generic {
                store: "encrypted",
                source: Box::new(error),
            })?,
            None => 0..opener.content,
        };
        let chunks = chunks_of(&range);
        let place =
            GetOptions::default().with_range(Some(GetRange::Bounded(place_of(&chunks, opener.content))));
        let found = self.inner.get_opts(location, place).await?;
        let (meta, attributes) = (of_content(found.meta.clone()), found.attributes.clone());
        let extensions = found.extensions.clone();
        let opened = opener.open(&chunks, &found.bytes().await?);
        let opened = Bytes::from(opened.ok_or_else(|| refused(location))?);
        let first = (range.start - chunks.start * CHUNK) as usize;
        let part = first..first + (range.end - range.start) as usize;
        if part.end > opened.len() {
            return Err(refused(location));
        }
        let content = opened.slice(part);
        Ok(GetResult {
            payload: GetResultPayload::Stream(futures::stream::once(async move { Ok(content) }).boxed()),
            range,
            meta,
            attributes,
            extensions,
        })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix).map(|found| found.map(of_content)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut listed = self.inner.list_with_delimiter(prefix).await?;
        listed.objects = listed.objects.into_iter().map(of_content).collect();
        Ok(listed)
    }

    async fn copy_opts(&self, _: &Path, to: &Path, _: CopyOptions) -> Result<()> {
        // A copy could not be decrypted, because the path is authenticated with the content.
        Err(Error::NotSupported {
            source: format!("{to}: encrypted objects are not copied").into(),
        })
    }

    delegate_to_inner! { delete_stream }
}

/// An upload that holds each part until the next one arrives, because the last part is encrypted differently.
struct Upload {
    inner: Box<dyn MultipartUpload>,
    /// `None` once the upload is complete.
    sealer: Option<Sealer>,
    held: Option<PutPayload>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let Some(before) = self.held.replace(data) else {
            return futures::future::ready(Ok(())).boxed();
        };
        let before = Bytes::from(before);
        let is_whole = (before.len() as u64).is_multiple_of(CHUNK);
        let sealer = self.sealer.as_mut().filter(|_| is_whole);
        match sealer.and_then(|sealer| sealer.seal(&before)) {
            Some(sealed) => self.inner.put_part(sealed.into()),
            None => futures::future::ready(Err(no_cipher())).boxed(),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let last = Bytes::from(self.held.take().unwrap_or_default());
        let sealed = self.sealer.take().and_then(|sealer| sealer.finish(&last));
        self.inner.put_part(sealed.ok_or_else(no_cipher)?.into()).await?;
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
