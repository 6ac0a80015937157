//! Reads a log from its segments, entry by entry.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use helenus_cql::query_log::{Entry, SEGMENT_SUFFIX, take_header, take_record};

const CHUNK_BYTES: usize = 1 << 20;

/// A log: a folder of segments, or one segment.
pub struct LogReader {
    path: PathBuf,
    segment: Option<Segment>,
    /// The segment that was opened last.
    last: Option<PathBuf>,
}

struct Segment {
    path: PathBuf,
    file: File,
    buffer: BytesMut,
    /// True if the header has been read.
    has_begun: bool,
}

impl LogReader {
    /// Opens a log.
    ///
    /// # Errors
    /// Fails if the path does not exist.
    pub fn open(path: &Path) -> Result<LogReader> {
        path.metadata()
            .with_context(|| format!("can't read {}", path.display()))?;
        Ok(LogReader {
            path: path.to_owned(),
            segment: None,
            last: None,
        })
    }

    /// Returns the next entry and its size in bytes. `None` at the end of the log, which may still grow. Entries that cannot be read are
    /// skipped with a warning on stderr.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub fn next(&mut self) -> Result<Option<(Entry, usize)>> {
        loop {
            let Some(segment) = &mut self.segment else {
                let Some(next) = self.next_segment()? else {
                    return Ok(None);
                };
                self.last = Some(next.path.clone());
                self.segment = Some(next);
                continue;
            };
            match segment.take() {
                Ok(Some(payload)) => match Entry::decode(payload.clone()) {
                    Ok(entry) => return Ok(Some((entry, payload.len()))),
                    Err(error) => segment.warn(&format!("an entry can't be read: {error}")),
                },
                Ok(None) if segment.fill()? => {}
                Ok(None) => {
                    let Some(next) = self.next_segment()? else {
                        return Ok(None);
                    };
                    // The node may have written more to this segment before it began the next one.
                    if let Some(segment) = &mut self.segment
                        && segment.fill()?
                    {
                        continue;
                    }
                    self.warn_of_rest();
                    self.last = Some(next.path.clone());
                    self.segment = Some(next);
                }
                Err(why) => {
                    segment.warn(&format!("{why}; the rest of the file is left out"));
                    self.segment = None;
                }
            }
        }
    }

    /// Warns if the log ends within an entry.
    pub fn warn_of_rest(&self) {
        if let Some(segment) = self.segment.as_ref().filter(|segment| !segment.buffer.is_empty()) {
            segment.warn("it ends within an entry, which is left out");
        }
    }

    /// Returns the segment after the last one. `None` if there is none yet.
    fn next_segment(&self) -> Result<Option<Segment>> {
        let mut paths = match self.path.is_dir() {
            true => segment_paths(&self.path)?,
            false => vec![self.path.clone()],
        };
        paths.retain(|path| self.last.as_ref().is_none_or(|last| path > last));
        for path in paths.into_iter() {
            match File::open(&path) {
                Ok(file) => {
                    return Ok(Some(Segment {
                        path,
                        file,
                        buffer: BytesMut::new(),
                        has_begun: false,
                    }));
                }
                // The node deleted this segment after the folder was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
            }
        }
        Ok(None)
    }
}

impl Segment {
    /// Returns the next record. `None` if it is not complete in the buffer.
    fn take(&mut self) -> Result<Option<Bytes>, helenus_cql::query_log::UnreadableRecord> {
        if !self.has_begun {
            self.has_begun = take_header(&mut self.buffer)?;
        }
        match self.has_begun {
            true => take_record(&mut self.buffer),
            false => Ok(None),
        }
    }

    /// Reads more bytes. Returns false at the end of the file.
    fn fill(&mut self) -> Result<bool> {
        let start = self.buffer.len();
        self.buffer.resize(start + CHUNK_BYTES, 0);
        let read = self.file.read(self.buffer.get_mut(start..).unwrap_or_default());
        self.buffer.truncate(start + *read.as_ref().unwrap_or(&0));
        let read = read.with_context(|| format!("can't read {}", self.path.display()))?;
        Ok(read > 0)
    }

    fn warn(&self, what: &str) {
        eprintln!("{}: {what}", self.path.display());
    }
}

/// Returns the segments of a folder, the oldest first.
fn segment_paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("can't read {}", folder.display());
    let mut paths = Vec::new();
    for entry in folder.read_dir().with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.extension().is_some_and(|suffix| suffix == SEGMENT_SUFFIX) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
pub(super) mod tests;
