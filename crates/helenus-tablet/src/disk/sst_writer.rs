//! Writes SSTables to a local disk in steps, each of which is synced.
//!
//! A disk handles one sync after the other. If a file of tens of megabytes is synced only at its end, the log's syncs and all writers wait
//! until it is written. If the file is synced as it grows, each step delays them only briefly.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use crate::disk::durable_file::sync_folder;

/// Bytes that are written between two syncs.
const STRIDE: usize = 512 << 10;

/// A file that has a temporary name until it is complete.
pub(crate) struct TempFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    fsync: bool,
}

impl TempFile {
    /// Creates the temporary file of a file that will be at `path`.
    pub fn begin(path: PathBuf, fsync: bool) -> io::Result<TempFile> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        for number in 1u32.. {
            let mut name = path.as_os_str().to_owned();
            name.push(format!("#{number}"));
            let temporary = PathBuf::from(name);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    return Ok(TempFile {
                        file,
                        temporary,
                        path,
                        fsync,
                    });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn write(&self, payload: &PutPayload, mut offset: u64) -> io::Result<()> {
        let mut stride = Vec::with_capacity(STRIDE.min(payload.content_length()));
        for mut bytes in payload.iter().map(|bytes| bytes.as_ref()) {
            while !bytes.is_empty() {
                let (part, rest) = bytes.split_at(bytes.len().min(STRIDE - stride.len()));
                stride.extend_from_slice(part);
                bytes = rest;
                if stride.len() == STRIDE {
                    self.file.write_all_at(&stride, offset)?;
                    offset += STRIDE as u64;
                    stride.clear();
                    if self.fsync {
                        self.file.sync_data()?;
                    }
                }
            }
        }
        // The rest is shorter than a stride, and the next sync covers it.
        self.file.write_all_at(&stride, offset)
    }

    /// Syncs the file and renames it to its final name.
    fn finish(&self) -> io::Result<()> {
        if self.fsync {
            self.file.sync_all()?;
        }
        std::fs::rename(&self.temporary, &self.path)?;
        match self.path.parent() {
            Some(folder) if self.fsync => sync_folder(folder),
            _ => Ok(()),
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // An error is ignored: after a successful rename, the temporary name does not exist.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Writes a complete file at `path`.
pub(crate) async fn put(path: PathBuf, payload: PutPayload, fsync: bool) -> Result<PutResult> {
    blocking(path.clone(), move || {
        let temporary = TempFile::begin(path, fsync)?;
        temporary.write(&payload, 0)?;
        temporary.finish()
    })
    .await?;
    Ok(done())
}

/// A file that is written in parts.
pub(crate) struct TempFileUpload {
    temporary: Option<Arc<TempFile>>,
    path: PathBuf,
    offset: u64,
}

impl TempFileUpload {
    pub async fn begin(path: PathBuf, fsync: bool) -> Result<TempFileUpload> {
        let at = path.clone();
        let temporary = blocking(path.clone(), move || TempFile::begin(at, fsync)).await?;
        Ok(TempFileUpload {
            temporary: Some(Arc::new(temporary)),
            path,
            offset: 0,
        })
    }
}

impl fmt::Debug for TempFileUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagedUpload")
            .field("path", &self.path)
            .field("offset", &self.offset)
            .finish()
    }
}

#[async_trait]
impl MultipartUpload for TempFileUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let offset = self.offset;
        self.offset += data.content_length() as u64;
        let (temporary, path) = (self.temporary.clone(), self.path.clone());
        Box::pin(blocking(path, move || match temporary {
            Some(temporary) => temporary.write(&data, offset),
            None => Err(ended()),
        }))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let temporary = self.temporary.take();
        blocking(self.path.clone(), move || match temporary {
            Some(temporary) => temporary.finish(),
            None => Err(ended()),
        })
        .await?;
        Ok(done())
    }

    async fn abort(&mut self) -> Result<()> {
        self.temporary = None;
        Ok(())
    }
}

fn ended() -> io::Error {
    io::Error::other("the upload has ended")
}

fn done() -> PutResult {
    PutResult {
        e_tag: None,
        version: None,
        extensions: Default::default(),
    }
}

/// Runs disk work on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let failed = |error: io::Error| failed(&path, error);
    match crate::threads::spawn_blocking(work).await {
        Ok(result) => result.map_err(failed),
        Err(error) => Err(failed(io::Error::other(error))),
    }
}

/// An I/O error, with the path of its file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
struct FileError {
    path: PathBuf,
    source: io::Error,
}

fn failed(path: &Path, source: io::Error) -> object_store::Error {
    object_store::Error::Generic {
        store: "LocalStore",
        source: Box::new(FileError {
            path: path.to_path_buf(),
            source,
        }),
    }
}
