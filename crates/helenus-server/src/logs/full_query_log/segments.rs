//! The folder of the log. Its segments are written, rolled, and deleted when they take too many bytes.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_cql::query_log::{SEGMENT_HEADER, SEGMENT_SUFFIX};

use super::options::QueryLogOptions;
use crate::logs::RollCycle;

/// Maximum length of a segment, unless a single record is longer. It is limited because readers skip the rest of a damaged segment.
const SEGMENT_BYTES_MAX: u64 = 128 << 20;
/// Minimum number of segments that fit into the log, so that the oldest can be deleted.
const SEGMENTS_MIN: u64 = 4;
const BUFFER_BYTES: usize = 64 << 10;
/// Maximum number of names that are tried for a new segment.
const NAMES_MAX: u64 = 1000;

/// The segments of a log that is on.
pub(super) struct Segments {
    folder: PathBuf,
    roll_cycle: RollCycle,
    log_bytes_max: u64,
    open: Option<OpenSegment>,
    /// Complete segments and their lengths, the oldest first.
    closed: VecDeque<(PathBuf, u64)>,
    /// Channel to the archiver. `None` if segments are not archived.
    archive: Option<Sender<PathBuf>>,
}

struct OpenSegment {
    path: PathBuf,
    file: BufWriter<File>,
    len: u64,
    /// Number of the segment's roll cycle, counted from 1970.
    cycle: u64,
}

impl Segments {
    /// Opens the folder and begins a segment in it. Existing segments are kept.
    ///
    /// # Errors
    /// The folder cannot be created, read or written.
    pub fn open(options: &QueryLogOptions, archive: Option<Sender<PathBuf>>) -> io::Result<Segments> {
        fs::create_dir_all(&options.folder)?;
        let mut segments = Segments {
            folder: options.folder.clone(),
            roll_cycle: options.roll_cycle,
            log_bytes_max: options.log_bytes_max,
            open: None,
            closed: VecDeque::new(),
            archive,
        };
        for path in segment_paths(&options.folder)? {
            segments.hand_over(&path);
            segments.closed.push_back((path, 0));
        }
        segments.measure();
        segments.begin()?;
        Ok(segments)
    }

    /// Appends a record. If there is no room for it, the oldest segments are deleted.
    ///
    /// # Errors
    /// The record cannot be written. The next record begins a new segment.
    pub fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let len = record.len() as u64;
        if len + SEGMENT_HEADER.len() as u64 > self.log_bytes_max {
            return Err(io::Error::other("the entry is longer than max_log_size"));
        }
        if self.open.as_ref().is_some_and(|open| self.is_complete(open, len)) {
            self.close();
        }
        if self.open.is_none() {
            self.begin()?;
        }
        self.make_room(len);
        let Some(open) = &mut self.open else { return Ok(()) };
        let written = open.file.write_all(record);
        open.len += len;
        self.or_close(written)
    }

    /// Writes buffered records to the operating system.
    ///
    /// # Errors
    /// The records cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let flushed = open.file.flush();
        self.or_close(flushed)
    }

    /// Closes the open segment if its cycle is over.
    pub fn roll_if_due(&mut self) {
        if self.open.as_ref().is_some_and(|open| self.is_complete(open, 0)) {
            self.close();
        }
    }

    /// Closes the open segment. If it has no records, it is deleted.
    pub fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        if let Err(error) = open.file.flush() {
            tracing::warn!(path = %open.path.display(), %error, "the end of a segment of the full query log is lost");
        }
        if open.len <= SEGMENT_HEADER.len() as u64 {
            let _ = fs::remove_file(&open.path);
            return;
        }
        self.hand_over(&open.path);
        self.closed.push_back((open.path, open.len));
        self.measure();
    }

    /// Closes the open segment if writing has failed. It may end anywhere, so that no record may follow.
    fn or_close(&mut self, written: io::Result<()>) -> io::Result<()> {
        if written.is_err()
            && let Some(open) = self.open.take()
        {
            // Drops the buffered bytes without writing them.
            let (_, _) = open.file.into_parts();
            self.closed.push_back((open.path, open.len));
        }
        written
    }

    /// Returns true if the segment must be closed before the next record: its cycle is over, or the record would make it too long.
    fn is_complete(&self, open: &OpenSegment, next_len: u64) -> bool {
        let has_records = open.len > SEGMENT_HEADER.len() as u64;
        let len_max = (self.log_bytes_max / SEGMENTS_MIN).min(SEGMENT_BYTES_MAX);
        has_records && (open.cycle != self.cycle() || open.len + next_len > len_max)
    }

    fn cycle(&self) -> u64 {
        now_ms() / 1000 / self.roll_cycle.seconds()
    }

    /// Begins a segment. Its name is the current time.
    fn begin(&mut self) -> io::Result<()> {
        let now_ms = now_ms();
        let mut options = OpenOptions::new();
        // Only the owner may read the file, because it contains values of rows.
        options.write(true).create_new(true).mode(0o600);
        for ms in now_ms..now_ms + NAMES_MAX {
            let path = self.folder.join(format!("{ms:013}.{SEGMENT_SUFFIX}"));
            let file = match options.open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
            file.write_all(&SEGMENT_HEADER)?;
            file.flush()?;
            self.open = Some(OpenSegment {
                path,
                file,
                len: SEGMENT_HEADER.len() as u64,
                cycle: self.cycle(),
            });
            return Ok(());
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Deletes the oldest segments until there is room for `bytes` more.
    fn make_room(&mut self, bytes: u64) {
        while self.len() + bytes > self.log_bytes_max
            && let Some((oldest, _)) = self.closed.pop_front()
        {
            if let Err(error) = fs::remove_file(&oldest)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %oldest.display(), %error, "a segment of the full query log can't be deleted");
            }
        }
    }

    fn len(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |open| open.len);
        self.closed.iter().map(|(_, len)| len).sum::<u64>() + open
    }

    /// Reads the lengths of the closed segments again, and forgets those that no longer exist. The archive command may have moved them.
    fn measure(&mut self) {
        self.closed.retain_mut(|(path, len)| match fs::metadata(path) {
            Ok(found) => {
                *len = found.len();
                true
            }
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
    }

    fn hand_over(&self, path: &Path) {
        if let Some(archive) = &self.archive {
            // This does not fail, because the archiver's thread ends after this one.
            let _ = archive.send(path.to_owned());
        }
    }
}

/// Deletes the segments in a folder, and no other files. Does nothing if there is no such folder.
///
/// # Errors
/// A segment cannot be deleted.
pub(super) fn delete_all(folder: &Path) -> io::Result<()> {
    let paths = match segment_paths(folder) {
        Ok(paths) => paths,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    paths.iter().try_for_each(fs::remove_file)
}

/// Returns the segments of a folder, the oldest first.
fn segment_paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|suffix| suffix == SEGMENT_SUFFIX) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
