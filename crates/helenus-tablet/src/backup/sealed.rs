//! Format of an encrypted file: chunks, each with its tag, and a trailer with the salt of the file's key.
//!
//! ```text
//! chunk…   64 KiB of the content (the last has the rest, and may be empty), encrypted, and a tag of 16 bytes
//! salt     32 bytes
//! magic    HLNSENC1
//! ```
//!
//! The cipher is AES-256-GCM. A nonce is the number of the chunk (8 bytes, big-endian), three zeros, and a byte that is 1 for the last
//! chunk, else 0. The path of the file is authenticated with each chunk. So an exchanged chunk, an exchanged file or a truncated file is
//! detected.

use std::ops::Range;

use object_store::path::Path;
use ring::aead::{Aad, LessSafeKey, Nonce};
use ring::rand::{SecureRandom, SystemRandom};

use super::key::{BackupKey, SALT_LEN};

/// Bytes of the content in a chunk.
pub(super) const CHUNK: u64 = 64 << 10;
const TAG: u64 = 16;
const MAGIC: [u8; 8] = *b"HLNSENC1";
/// Bytes of the trailer behind the chunks.
pub(super) const TRAILER: u64 = SALT_LEN as u64 + MAGIC.len() as u64;

/// Returns the length of the content of an encrypted file of `bytes` bytes. `None` if no encrypted file has that length.
pub(super) fn content_len(bytes: u64) -> Option<u64> {
    let chunks = bytes.checked_sub(TRAILER)?;
    chunks.checked_sub(TAG * chunks.div_ceil(CHUNK + TAG).max(1))
}

/// Returns the numbers of the chunks that contain a range of the content.
pub(super) fn chunks_of(range: &Range<u64>) -> Range<u64> {
    range.start / CHUNK..range.end.div_ceil(CHUNK).max(range.start / CHUNK + 1)
}

/// Returns the byte range of chunks in a file whose content has `content` bytes.
pub(super) fn place_of(chunks: &Range<u64>, content: u64) -> Range<u64> {
    let end = content + TAG * content.div_ceil(CHUNK).max(1);
    chunks.start * (CHUNK + TAG)..(chunks.end * (CHUNK + TAG)).min(end)
}

/// Encrypts a file sequentially.
pub(super) struct Sealer {
    key: LessSafeKey,
    salt: [u8; SALT_LEN],
    path: Path,
    /// The number of the next chunk.
    next: u64,
}

impl Sealer {
    /// Returns a sealer with a random salt. `None` if the system gives no random numbers.
    pub fn new(key: &BackupKey, path: &Path) -> Option<Sealer> {
        let mut salt = [0; SALT_LEN];
        SystemRandom::new().fill(&mut salt).ok()?;
        Some(Sealer {
            key: key.of_file(&salt)?,
            salt,
            path: path.clone(),
            next: 0,
        })
    }

    /// Encrypts whole chunks that are not the last ones of the file.
    pub fn seal(&mut self, content: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = Vec::with_capacity(content.len() + content.len() / 1024);
        for chunk in content.chunks(CHUNK as usize) {
            self.seal_chunk(chunk, false, &mut sealed)?;
        }
        Some(sealed)
    }

    /// Encrypts the rest of the content and appends the trailer.
    pub fn finish(mut self, content: &[u8]) -> Option<Vec<u8>> {
        let last = content.len().saturating_sub(1) / CHUNK as usize * CHUNK as usize;
        let (before, last) = content.split_at_checked(last)?;
        let mut sealed = self.seal(before)?;
        self.seal_chunk(last, true, &mut sealed)?;
        sealed.extend_from_slice(&self.salt);
        sealed.extend_from_slice(&MAGIC);
        Some(sealed)
    }

    fn seal_chunk(&mut self, chunk: &[u8], is_last: bool, to: &mut Vec<u8>) -> Option<()> {
        let mut chunk = chunk.to_vec();
        let aad = Aad::from(self.path.as_ref().as_bytes());
        self.key
            .seal_in_place_append_tag(nonce(self.next, is_last), aad, &mut chunk)
            .ok()?;
        to.extend_from_slice(&chunk);
        self.next += 1;
        Some(())
    }
}

/// Decrypts a file.
#[derive(Debug)]
pub(super) struct Opener {
    key: LessSafeKey,
    path: Path,
    pub content: u64,
}

impl Opener {
    /// Returns the opener of a file with `content` bytes of content and the given trailer. `None` if the trailer is not one of an encrypted
    /// file.
    pub fn new(key: &BackupKey, path: &Path, content: u64, trailer: &[u8]) -> Option<Opener> {
        let salt = trailer.strip_suffix(&MAGIC)?.try_into().ok()?;
        Some(Opener {
            key: key.of_file(salt)?,
            path: path.clone(),
            content,
        })
    }

    /// Decrypts chunks. `None` if they were changed or belong to another place.
    pub fn open(&self, chunks: &Range<u64>, sealed: &[u8]) -> Option<Vec<u8>> {
        let last = self.content.div_ceil(CHUNK).max(1) - 1;
        let parts = sealed.chunks((CHUNK + TAG) as usize);
        if parts.len() as u64 != chunks.end.checked_sub(chunks.start)? {
            return None;
        }
        let mut content = Vec::with_capacity(sealed.len());
        for (number, part) in chunks.clone().zip(parts) {
            let mut part = part.to_vec();
            let aad = Aad::from(self.path.as_ref().as_bytes());
            let opened = self
                .key
                .open_in_place(nonce(number, number == last), aad, &mut part);
            content.extend_from_slice(opened.ok()?);
        }
        Some(content)
    }
}

fn nonce(chunk: u64, is_last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&chunk.to_be_bytes());
    nonce[11] = u8::from(is_last);
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
