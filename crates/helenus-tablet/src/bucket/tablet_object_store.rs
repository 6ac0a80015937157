//! The object store of one tablet's database. The store caches the boundaries of garbage collection, which SlateDB reads often, and marks
//! conflicts that should be retried.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetResult, ObjectStore, PutOptions, PutPayload, PutResult, Result};

use crate::bucket::gc_boundary_cache;
use crate::bucket::gc_boundary_cache::{GcBoundaryCache, is_boundary};
use crate::error::chain;
use crate::object_store_layers::delegate_to_inner;

/// The object store as seen by one tablet.
#[derive(Debug)]
pub(crate) struct TabletObjectStore {
    inner: Arc<dyn ObjectStore>,
    boundaries: GcBoundaryCache,
}

impl TabletObjectStore {
    pub fn new(inner: Arc<dyn ObjectStore>) -> TabletObjectStore {
        TabletObjectStore {
            inner,
            boundaries: GcBoundaryCache::default(),
        }
    }

    /// Reads the boundary of the manifests into the cache ahead of its use. After a failure, the boundary is read on demand.
    pub async fn read_boundary(&self, tablet: u32) {
        let boundary = gc_boundary_cache::of_manifests(tablet);
        let _ = self.get_opts(&boundary, GetOptions::default()).await;
    }
}

fn names_conflict(source: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    chain(source).contains("ConditionalRequestConflict")
}

/// Converts a retryable conflict to an error that is retried. S3 answers 409 to one of two simultaneous PUTs of a name, and expects another
/// try.
fn retry_conflict(error: Error) -> Error {
    match error {
        Error::AlreadyExists { source, .. } if names_conflict(source.as_ref()) => Error::Generic {
            store: "helenus",
            source,
        },
        other => other,
    }
}

impl fmt::Display for TabletObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for TabletObjectStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let put = self.inner.put_opts(location, payload, opts).await;
        if is_boundary(location) {
            self.boundaries.forget(location);
        }
        put.map_err(retry_conflict)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match is_boundary(location) {
            true => self.boundaries.get(self.inner.as_ref(), location, options).await,
            false => self.inner.get_opts(location, options).await,
        }
    }

    delegate_to_inner! {
        put_multipart_opts,
        get_ranges,
        delete_stream,
        list, list_with_offset, list_with_delimiter,
        copy_opts, rename_opts,
    }
}
