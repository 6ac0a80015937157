//! Reads SSTables through files that stay open. A small read that the page cache can serve runs on the calling thread.
//!
//! Large reads are those of compactions, which read ahead by themselves. The kernel's read-ahead is switched off for them: it would request
//! megabytes at once, and a sync of the log would wait behind these for milliseconds.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hashbrown::HashMap;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta};
use parking_lot::RwLock;

/// Maximum number of open files. Beyond it, all are closed, and those in use are opened again.
const OPEN_MAX: usize = 512;
/// Divisor of the process's limit of open files. The quotient is another maximum.
const OPEN_SHARE: u64 = 8;
/// Maximum bytes of a read. Larger ones are left to the object store.
const READ_MAX: u64 = 1 << 20;
/// Maximum bytes of a read that is tried on the calling thread. Larger ones are those of compactions.
const IN_PLACE_MAX: usize = 256 << 10;

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: File,
    /// Second descriptor of the file, for large reads without read-ahead.
    large: OnceLock<File>,
    meta: ObjectMeta,
}

impl OpenFile {
    fn new(location: Path, path: PathBuf) -> std::io::Result<OpenFile> {
        let file = File::open(&path)?;
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        let meta = ObjectMeta {
            location,
            last_modified: data.modified()?.into(),
            size: data.len(),
            e_tag: None,
            version: None,
        };
        Ok(OpenFile {
            path,
            file,
            large: OnceLock::new(),
            meta,
        })
    }

    /// Reads `len` bytes, and blocks if they are not in the page cache.
    fn read(&self, len: usize, offset: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let file = match len > IN_PLACE_MAX {
            true => self.large()?,
            false => &self.file,
        };
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    fn large(&self) -> std::io::Result<&File> {
        if let Some(file) = self.large.get() {
            return Ok(file);
        }
        let file = File::open(&self.path)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
        Ok(self.large.get_or_init(|| file))
    }
}

/// Returns the range of an SSTable that a request reads. `None` if the request is for another object, sets conditions, or has no bounded
/// range.
pub(crate) fn sstable_range(location: &Path, options: &GetOptions) -> Option<Range<u64>> {
    let is_plain = options.if_match.is_none()
        && options.if_none_match.is_none()
        && options.if_modified_since.is_none()
        && options.if_unmodified_since.is_none()
        && options.version.is_none()
        && !options.head;
    match &options.range {
        Some(GetRange::Bounded(range))
            if is_plain && location.as_ref().ends_with(".sst") && range.start < range.end =>
        {
            Some(range.clone())
        }
        _ => None,
    }
}

/// SSTables that were read and are still open. The content of an SSTable never changes.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    open: RwLock<HashMap<Path, Arc<OpenFile>>>,
}

impl OpenFiles {
    /// Returns the range that a request reads. `None` if such a request is not served here.
    pub fn wanted(location: &Path, options: &GetOptions) -> Option<Range<u64>> {
        sstable_range(location, options).filter(|range| range.end - range.start <= READ_MAX)
    }

    /// Reads a range. `None` if it cannot be served here, for any reason.
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
        let in_place = match len <= IN_PLACE_MAX {
            true => read_now(&open.file, len, range.start),
            false => None,
        };
        let bytes = match in_place {
            Some(bytes) => bytes,
            None => {
                let (open, start) = (open.clone(), range.start);
                let read = crate::threads::spawn_blocking(move || open.read(len, start));
                read.await.ok()?.ok()?
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

    async fn open(&self, location: &Path, path: PathBuf) -> Option<Arc<OpenFile>> {
        let name = location.clone();
        let opened = crate::threads::spawn_blocking(move || OpenFile::new(name, path))
            .await
            .ok()?;
        if opened.as_ref().is_err_and(is_out_of_descriptors) {
            // The other files only stay open for speed, so they are closed to free descriptors.
            self.open.write().clear();
        }
        let open = Arc::new(opened.ok()?);
        let mut files = self.open.write();
        if files.len() >= open_max() {
            files.clear();
        }
        files.insert(location.clone(), open.clone());
        Some(open)
    }

    /// Closes a file that was deleted or replaced.
    pub fn forget(&self, location: &Path) {
        self.open.write().remove(location);
    }
}

fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}

/// Returns the number of files that may stay open.
fn open_max() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let share = limit.map_or(OPEN_MAX as u64, |limit| limit / OPEN_SHARE);
    OPEN_MAX.min(usize::try_from(share).unwrap_or(OPEN_MAX))
}

/// Reads from the page cache. `None` if the read would wait for the disk.
fn read_now(file: &File, len: usize, offset: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let read = rustix::io::preadv2(file, &mut slices, offset, rustix::io::ReadWriteFlags::NOWAIT);
    (read == Ok(len)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use object_store::GetOptions;

    use super::*;

    #[tokio::test]
    async fn reads_of_any_size_give_the_bytes_that_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.sst");
        let written: Vec<u8> = (0..3_u32 << 18).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &written).unwrap();
        let (files, name) = (OpenFiles::default(), Path::from("1.sst"));
        let end = written.len() as u64;
        let large = IN_PLACE_MAX as u64 + 1;
        for range in [
            5..9,
            7..7 + large,
            0..READ_MAX,
            end - large..end,
            end - large..end + 5,
        ] {
            let requested = GetOptions {
                range: Some(GetRange::Bounded(range.clone())),
                ..GetOptions::default()
            };
            let wanted = OpenFiles::wanted(&name, &requested).expect("it is served here");
            let read = files.read(&name, path.clone(), wanted).await.unwrap();
            let there = range.start as usize..range.end.min(end) as usize;
            assert_eq!(read.bytes().await.unwrap(), written[there], "{range:?}");
        }
    }
}
