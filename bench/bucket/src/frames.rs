//! Bytes in a file, compressed in frames. Repetitive data can then be larger than the disk of a test machine.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use tempfile::{NamedTempFile, TempPath};

const FRAME_BYTES: usize = 2 << 20;
const LEVEL: i32 = 1;

/// A compressed file, which is deleted with this value. It is not kept open, because there may be a hundred thousand of them.
pub struct Frames {
    path: TempPath,
    len: u64,
    /// Start of each frame in the file, and end of the last one.
    bounds: Vec<u64>,
}

impl Frames {
    pub fn write(folder: &Path, bytes: &[u8]) -> Result<Frames> {
        let file = NamedTempFile::new_in(folder)?;
        let (mut end, mut bounds) = (0, vec![0]);
        for frame in bytes.chunks(FRAME_BYTES) {
            let compressed = zstd::bulk::compress(frame, LEVEL)?;
            file.as_file().write_all_at(&compressed, end)?;
            end += compressed.len() as u64;
            bounds.push(end);
        }
        Ok(Frames {
            path: file.into_temp_path(),
            len: bytes.len() as u64,
            bounds,
        })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn read(&self, range: Range<u64>) -> Result<Bytes> {
        ensure!(
            range.start <= range.end && range.end <= self.len,
            "outside of the object"
        );
        let (start, end) = (usize::try_from(range.start)?, usize::try_from(range.end)?);
        let mut read = BytesMut::with_capacity(end - start);
        let file = File::open(&self.path)?;
        let frames = start / FRAME_BYTES..end.div_ceil(FRAME_BYTES);
        for number in frames {
            let frame = self.frame(&file, number)?;
            let begins = number * FRAME_BYTES;
            let part = start.saturating_sub(begins)..(end - begins).min(frame.len());
            read.extend_from_slice(frame.get(part).context("a frame is short")?);
        }
        Ok(read.freeze())
    }

    fn frame(&self, file: &File, number: usize) -> Result<Vec<u8>> {
        let (Some(&begin), Some(&end)) = (self.bounds.get(number), self.bounds.get(number + 1)) else {
            anyhow::bail!("no frame {number}");
        };
        let mut compressed = vec![0; usize::try_from(end - begin)?];
        file.read_exact_at(&mut compressed, begin)?;
        Ok(zstd::bulk::decompress(&compressed, FRAME_BYTES)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_of_what_was_written_is_read() {
        let bytes: Vec<u8> = (0..2 * FRAME_BYTES as u32 + 10)
            .map(|at| (at / 7) as u8)
            .collect();
        let frames = Frames::write(&std::env::temp_dir(), &bytes).unwrap();
        assert_eq!(frames.len(), bytes.len() as u64);
        let one = FRAME_BYTES;
        for (start, end) in [
            (0, bytes.len()),
            (0, 0),
            (one, one),
            (one - 1, one + 1),
            (5, 9),
            (one + 3, 2 * one),
            (2 * one - 1, bytes.len()),
            (2 * one + 10, bytes.len()),
        ] {
            let read = frames.read(start as u64..end as u64).unwrap();
            assert_eq!(read, bytes[start..end], "{start}..{end}");
        }
        assert!(frames.read(0..bytes.len() as u64 + 1).is_err());
    }
}
