//! The folders of a bucket.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use helenus_import::source::SourceFolder;
use helenus_sstable::{ComponentFile, Folder};
use object_store::path::Path;
use parking_lot::Mutex;

use super::Bucket;
use super::file::BucketFile;

/// A folder of a bucket: the objects whose names begin with its path. It is listed once.
#[derive(Debug)]
pub struct BucketFolder {
    bucket: Arc<Bucket>,
    /// Path below the URL.
    path: Path,
    listed: Mutex<Option<Arc<Listed>>>,
}

/// The content of a folder by name.
#[derive(Debug, Default)]
struct Listed {
    /// Paths and sizes of objects.
    files: BTreeMap<String, (Path, u64)>,
    folders: BTreeMap<String, Path>,
}

impl BucketFolder {
    pub(super) fn root(bucket: Arc<Bucket>) -> BucketFolder {
        BucketFolder::new(bucket, Path::default())
    }

    fn new(bucket: Arc<Bucket>, path: Path) -> BucketFolder {
        BucketFolder {
            bucket,
            path,
            listed: Mutex::new(None),
        }
    }

    fn listed(&self) -> io::Result<Arc<Listed>> {
        let mut listed = self.listed.lock();
        if let Some(known) = &*listed {
            return Ok(Arc::clone(known));
        }
        let found = self
            .bucket
            .runtime
            .block_on(self.bucket.requests.list(&self.path))?;
        let mut content = Listed::default();
        for object in found.objects {
            if let Some(name) = object.location.filename() {
                content
                    .files
                    .insert(name.to_owned(), (object.location.clone(), object.size));
            }
        }
        for folder in found.common_prefixes {
            if let Some(name) = folder.filename() {
                content.folders.insert(name.to_owned(), folder.clone());
            }
        }
        Ok(Arc::clone(listed.insert(Arc::new(content))))
    }
}

impl Folder for BucketFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.listed()?.files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ComponentFile>> {
        let listed = self.listed()?;
        let (path, size) = listed.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(BucketFile::new(
            Arc::clone(&self.bucket),
            path.clone(),
            *size,
        )))
    }

    fn display_name(&self, name: &str) -> String {
        let parts = [self.bucket.url.as_str(), self.path.as_ref(), name];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("/")
    }
}

impl SourceFolder for BucketFolder {
    fn folders(&self) -> io::Result<Vec<String>> {
        Ok(self.listed()?.folders.keys().cloned().collect())
    }

    fn folder(&self, name: &str) -> Arc<dyn SourceFolder> {
        let known = self.listed.lock();
        let known = known
            .as_ref()
            .and_then(|listed| listed.folders.get(name).cloned());
        let path = known.unwrap_or_else(|| self.path.clone().join(name));
        Arc::new(BucketFolder::new(Arc::clone(&self.bucket), path))
    }

    fn path_names(&self) -> Vec<String> {
        let shown = self.display_name("");
        let (_, path) = shown.split_once("://").unwrap_or_default();
        path.split('/').map(str::to_owned).collect()
    }
}
