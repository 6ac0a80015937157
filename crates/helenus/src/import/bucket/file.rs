//! An open object, which is read forward in blocks.
//!
//! The first block is small, because most components are. The length doubles with each block, up to a maximum that depends on the
//! number of open files. So all blocks together stay within a bound.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use helenus_sstable::ComponentFile;
use object_store::path::Path;

use super::Bucket;

/// Bytes of the first block of a file.
const FIRST_BYTES: u64 = 128 << 10;
/// Minimum and maximum of the bytes of later blocks.
const BLOCK_BYTES_MIN: u64 = 64 << 10;
const BLOCK_BYTES_MAX: u64 = 4 << 20;
/// Bytes of the blocks of all open files: one that is consumed and one that is fetched for each. Thousands of files exceed it with blocks
/// of the minimum.
const BLOCKS_BYTES: u64 = 256 << 20;
/// Maximum time between two checks for Ctrl-C.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// An object of a bucket.
pub struct BucketFile {
    bucket: Arc<Bucket>,
    path: Path,
    size: u64,
    /// The block that is consumed.
    block: Block,
    /// The block that is fetched. `None` at the end, and before the first read.
    next: Option<Fetch>,
    /// Bytes of the block after those.
    next_len: u64,
    /// True if the file is counted as open.
    is_counted: bool,
}

#[derive(Default)]
struct Block {
    start: u64,
    content: Bytes,
}

struct Fetch {
    start: u64,
    answer: Receiver<io::Result<Bytes>>,
}

impl BucketFile {
    pub(super) fn new(bucket: Arc<Bucket>, path: Path, size: u64) -> BucketFile {
        BucketFile {
            bucket,
            path,
            size,
            block: Block::default(),
            next: None,
            next_len: FIRST_BYTES,
            is_counted: false,
        }
    }

    /// Starts to fetch the block at an offset. Nothing is fetched at the end of the file.
    fn fetch(&mut self, start: u64) {
        if !self.is_counted {
            self.is_counted = true;
            self.bucket.open_files.fetch_add(1, Ordering::Relaxed);
        }
        let files = self.bucket.open_files.load(Ordering::Relaxed).max(1) as u64;
        let len_max = block_bytes_max(files);
        let end = start.saturating_add(self.next_len.min(len_max)).min(self.size);
        self.next_len = (self.next_len * 2).min(len_max);
        if start >= end {
            self.next = None;
            return;
        }
        let (answers, answer) = sync_channel(1);
        let (requests, path) = (Arc::clone(&self.bucket.requests), self.path.clone());
        self.bucket.runtime.spawn(async move {
            let content = requests.read(&path, start..end).await;
            // The reader may have been dropped.
            let _ = answers.send(content);
        });
        self.next = Some(Fetch { start, answer });
    }

    /// Makes the block at an offset the current one, and starts to fetch the next.
    fn advance(&mut self, offset: u64) -> io::Result<()> {
        if self.next.as_ref().is_none_or(|next| next.start != offset) {
            self.fetch(offset);
        }
        let Some(next) = self.next.take() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let content = self.wait(&next.answer)?;
        let end = offset.saturating_add(content.len() as u64);
        self.block = Block {
            start: offset,
            content,
        };
        self.fetch(end);
        Ok(())
    }

    fn wait(&self, answer: &Receiver<io::Result<Bytes>>) -> io::Result<Bytes> {
        loop {
            match answer.recv_timeout(CHECK_INTERVAL) {
                Ok(content) => return content,
                Err(RecvTimeoutError::Timeout) if !self.bucket.interrupt.is_set() => {}
                Err(RecvTimeoutError::Timeout) => return Err(interrupted()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the request was dropped; report this error"));
                }
            }
        }
    }
}

impl ComponentFile for BucketFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut offset = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let skipped = offset
                .checked_sub(self.block.start)
                .and_then(|skipped| usize::try_from(skipped).ok());
            let found = skipped.and_then(|skipped| self.block.content.get(skipped..));
            let Some(found) = found.filter(|found| !found.is_empty()) else {
                self.advance(offset)?;
                continue;
            };
            let len = found.len().min(rest.len());
            let (filled, after) = rest.split_at_mut(len);
            filled.copy_from_slice(found.get(..len).unwrap_or_default());
            offset += len as u64;
            rest = after;
        }
        Ok(())
    }

    fn read_ahead(&mut self) {
        if self.next.is_none() && self.block.content.is_empty() {
            self.fetch(0);
        }
    }
}

impl Drop for BucketFile {
    fn drop(&mut self) {
        if self.is_counted {
            self.bucket.open_files.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns the error of a read during which Ctrl-C was pressed.
pub(super) fn interrupted() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "interrupted by Ctrl-C")
}

/// Returns the maximum length of a block if that many files are open.
fn block_bytes_max(files: u64) -> u64 {
    (BLOCKS_BYTES / 2 / files).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_share_a_bound() {
        assert_eq!(block_bytes_max(1), BLOCK_BYTES_MAX);
        assert_eq!(block_bytes_max(256), 512 << 10);
        assert_eq!(block_bytes_max(1_000_000), BLOCK_BYTES_MIN);
    }
}
