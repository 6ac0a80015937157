//! Small reads of SSTables without a hop to another thread: files stay open, and what the page cache holds is read in place.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta};
use parking_lot::RwLock;

/// Open files at most; beyond that all are closed and those in use opened again.
const OPEN_MAX: usize = 512;
/// Larger reads are left to the object store.
const READ_MAX: u64 = 256 << 10;

#[derive(Debug)]
struct Open {
    file: File,
    meta: ObjectMeta,
}

/// The SSTables that were read from. They never change under their name.
#[derive(Debug, Default)]
pub(crate) struct Files {
    open: RwLock<HashMap<Path, Arc<Open>>>,
}

impl Files {
    /// The range that a request asks for, if it is one that is served here.
    pub fn wanted(location: &Path, options: &GetOptions) -> Option<Range<u64>> {
        let plain = options.if_match.is_none()
            && options.if_none_match.is_none()
            && options.if_modified_since.is_none()
            && options.if_unmodified_since.is_none()
            && options.version.is_none()
            && !options.head;
        match &options.range {
            Some(GetRange::Bounded(range))
                if plain
                    && location.as_ref().ends_with(".sst")
                    && range.start < range.end
                    && range.end - range.start <= READ_MAX =>
            {
                Some(range.clone())
            }
            _ => None,
        }
    }

    /// Reads a range; `None` if it cannot be served here, for whatever reason.
    pub async fn read(&self, location: &Path, path: PathBuf, range: Range<u64>) -> Option<GetResult> {
        let open = self.open.read().get(location).cloned();
        let open = match open {
            Some(open) => open,
            None => self.open(location, path).await?,
        };
        let range = range.start..range.end.min(open.meta.size);
        if range.start >= range.end {
            return None;
        }
        let len = usize::try_from(range.end - range.start).ok()?;
        let bytes = match read_now(&open.file, len, range.start) {
            Some(bytes) => bytes,
            None => {
                let (open, start) = (open.clone(), range.start);
                tokio::task::spawn_blocking(move || {
                    let mut bytes = vec![0; len];
                    open.file.read_exact_at(&mut bytes, start).ok().map(|()| bytes)
                })
                .await
                .ok()??
            }
        };
        let bytes = Bytes::from(bytes);
        Some(GetResult {
            payload: GetResultPayload::Stream(Box::pin(futures::stream::once(async move { Ok(bytes) }))),
            meta: open.meta.clone(),
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    async fn open(&self, location: &Path, path: PathBuf) -> Option<Arc<Open>> {
        let name = location.clone();
        let open = tokio::task::spawn_blocking(move || {
            let file = File::open(path).ok()?;
            let data = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(Arc::new(Open {
                meta: ObjectMeta {
                    location: name,
                    last_modified: data.modified().ok()?.into(),
                    size: data.len(),
                    e_tag: None,
                    version: None,
                },
                file,
            }))
        })
        .await
        .ok()??;
        let mut files = self.open.write();
        if files.len() >= OPEN_MAX {
            files.clear();
        }
        files.insert(location.clone(), open.clone());
        Some(open)
    }

    /// The file is deleted or replaced.
    pub fn forget(&self, location: &Path) {
        self.open.write().remove(location);
    }
}

/// Reads what the page cache holds; `None` if the disk would have to be waited for.
fn read_now(file: &File, len: usize, offset: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let read = rustix::io::preadv2(file, &mut slices, offset, rustix::io::ReadWriteFlags::NOWAIT);
    (read == Ok(len)).then_some(bytes)
}
