//! A short-lived cache of the boundaries of SlateDB's garbage collector (`gc/<kind>.boundary`).
//!
//! SlateDB reads the boundary after each look at a manifest and after each change of it. These reads are half of the requests of opening a
//! tablet, and of a tablet at rest.
//!
//! A boundary is cached for [`BOUNDARY_TTL`]. Boundaries protect against a writer that was suspended while the numbers that it considers
//! free were used and deleted. Only objects older than the `min_age` of [`DOCUMENTS`] are deleted, which is far longer than
//! [`BOUNDARY_TTL`]. So a number seen free within the last [`BOUNDARY_TTL`] is beyond every boundary that can have been written since. This
//! requires that the clocks of node and bucket differ by less than the difference of the two times.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use hashbrown::HashMap;
use object_store::path::Path;
use object_store::{
    Attributes, Error, Extensions, GetOptions, GetResult, GetResultPayload, ObjectMeta, ObjectStore, Result,
};
use parking_lot::Mutex;

use crate::clock::since_boot;
#[cfg(doc)]
use crate::metadata::slatedb_layout::DOCUMENTS;
use crate::metadata::slatedb_layout::tablet_path;

/// Time for which a boundary stays cached.
const BOUNDARY_TTL: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
enum CachedObject {
    Nothing,
    Object(ObjectMeta, Bytes),
}

/// The recently read boundaries of a tablet.
#[derive(Debug, Default)]
pub(crate) struct GcBoundaryCache(Mutex<HashMap<Path, (Duration, CachedObject)>>);

/// Returns true if the location has the form `tablets/<id>/gc/<kind>.boundary`.
pub(crate) fn is_boundary(location: &Path) -> bool {
    location.parts().nth(2).is_some_and(|part| part.as_ref() == "gc")
}

/// Returns the path of the boundary of a tablet's manifests.
pub(crate) fn of_manifests(tablet: u32) -> Path {
    tablet_path(tablet).join("gc").join("manifest.boundary")
}

impl GcBoundaryCache {
    /// Answers a GET of a boundary from memory if it was read recently, otherwise from the bucket.
    pub async fn get(
        &self,
        store: &dyn ObjectStore,
        location: &Path,
        options: GetOptions,
    ) -> Result<GetResult> {
        let whole = options.range.is_none() && !options.head;
        let now = since_boot();
        let fresh = self.0.lock().get(location).cloned();
        if whole
            && let Some((read, found)) = fresh
            && now.saturating_sub(read) < BOUNDARY_TTL
        {
            return answer(location, found, &options);
        }
        let known = options.if_none_match.is_some();
        let result = store.get_opts(location, options).await;
        match result {
            Ok(found) if whole => {
                let meta = found.meta.clone();
                let bytes = found.bytes().await?;
                let found = CachedObject::Object(meta, bytes);
                self.remember(location, now, found.clone());
                answer(location, found, &GetOptions::default())
            }
            Err(error @ Error::NotFound { .. }) if whole => {
                self.remember(location, now, CachedObject::Nothing);
                Err(error)
            }
            Err(error @ Error::NotModified { .. }) if whole && known => {
                if let Some((read, _)) = self.0.lock().get_mut(location) {
                    *read = now;
                }
                Err(error)
            }
            other => other,
        }
    }

    fn remember(&self, location: &Path, read: Duration, found: CachedObject) {
        self.0.lock().insert(location.clone(), (read, found));
    }

    /// Removes a boundary that has just been written.
    pub fn forget(&self, location: &Path) {
        self.0.lock().remove(location);
    }
}

fn answer(location: &Path, found: CachedObject, options: &GetOptions) -> Result<GetResult> {
    let path = location.to_string();
    match found {
        CachedObject::Nothing => Err(Error::NotFound {
            path,
            source: "it was not there a moment ago".into(),
        }),
        CachedObject::Object(meta, _)
            if options.if_none_match.is_some() && options.if_none_match == meta.e_tag =>
        {
            Err(Error::NotModified {
                path,
                source: "it was the same a moment ago".into(),
            })
        }
        CachedObject::Object(meta, bytes) => Ok(GetResult {
            range: 0..meta.size,
            meta,
            payload: GetResultPayload::Stream(futures::stream::once(async move { Ok(bytes) }).boxed()),
            attributes: Attributes::default(),
            extensions: Extensions::default(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    async fn read(boundaries: &GcBoundaryCache, store: &InMemory, path: &Path) -> Option<Bytes> {
        let found = boundaries.get(store, path, GetOptions::default()).await;
        match found {
            Ok(found) => Some(found.bytes().await.unwrap()),
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn a_boundary_is_remembered_until_it_is_written() {
        let (store, boundaries) = (InMemory::new(), GcBoundaryCache::default());
        let path = Path::from("tablets/7/gc/manifest.boundary");
        assert!(is_boundary(&path) && !is_boundary(&Path::from("tablets/7/manifest/00.manifest")));
        assert_eq!(read(&boundaries, &store, &path).await, None);
        store.put(&path, "5".into()).await.unwrap();
        assert_eq!(
            read(&boundaries, &store, &path).await,
            None,
            "it was not there a moment ago"
        );
        boundaries.forget(&path);
        assert_eq!(read(&boundaries, &store, &path).await.as_deref(), Some(&b"5"[..]));
        store.put(&path, "6".into()).await.unwrap();
        assert_eq!(read(&boundaries, &store, &path).await.as_deref(), Some(&b"5"[..]));
        let known = boundaries
            .get(&store, &path, GetOptions::default())
            .await
            .unwrap()
            .meta
            .e_tag;
        let options = GetOptions {
            if_none_match: known,
            ..GetOptions::default()
        };
        let same = boundaries.get(&store, &path, options).await;
        assert!(matches!(same, Err(Error::NotModified { .. })));
    }
}
