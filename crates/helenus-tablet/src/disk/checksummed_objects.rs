//! Checksums of SlateDB's small documents (manifests and lists of compactions). SlateDB stores them without a checksum, and a document with
//! a flipped bit may still be readable.
//!
//! An object ends with a seal: the CRC-32C of the content, and a magic. The seal is added when the object is written, and checked and
//! removed when it is read.

use std::path::Path as FilePath;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf, Bytes};
use futures::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetResult, GetResultPayload, PutPayload, Result};
use slatedb_common::retry::NonRetryable;

use crate::checksum::crc32c;
use crate::disk::durable_file::write_atomically;
use crate::error::StoreError;

const MAGIC: [u8; 8] = *b"HLNSSUM1";
const SEAL_LEN: usize = 12;
/// Name endings of the objects that are sealed.
const ENDINGS: [&str; 2] = [".manifest", ".compactions"];

/// Seals and verifies the documents of a store.
#[derive(Debug, Default)]
pub(crate) struct ManifestChecksums {
    /// True if a document without a seal counts as damaged. In a store of an older format, unsealed documents are accepted, because they
    /// are older than seals.
    required: AtomicBool,
}

impl ManifestChecksums {
    /// Treats documents without a seal as damaged from now on.
    pub fn require(&self) {
        self.required.store(true, Ordering::Release);
    }

    /// Returns true if the request reads a whole sealed document.
    pub fn applies_to(location: &Path, options: &GetOptions) -> bool {
        is_sealed(location.as_ref()) && !options.head && options.range.is_none()
    }

    /// Returns the bytes to write for `payload`, with a seal if the object is sealed.
    pub fn seal(location: &Path, payload: PutPayload) -> PutPayload {
        match is_sealed(location.as_ref()) {
            true => PutPayload::from(sealed(&Bytes::from(payload))),
            false => payload,
        }
    }

    /// Verifies and removes the seal of a document that was read.
    pub async fn verify(&self, result: GetResult) -> Result<GetResult> {
        let mut meta = result.meta.clone();
        let attributes = result.attributes.clone();
        let extensions = result.extensions.clone();
        let bytes = result.bytes().await?;
        let content = opened(&bytes, self.required.load(Ordering::Acquire)).map_err(|detail| {
            let corrupt = StoreError::Corrupt {
                file: meta.location.to_string(),
                detail: detail.into(),
            };
            object_store::Error::Generic {
                store: "sealed",
                source: Box::new(NonRetryable(Box::new(corrupt))),
            }
        })?;
        meta.size = content.len() as u64;
        Ok(GetResult {
            range: 0..meta.size,
            payload: GetResultPayload::Stream(futures::stream::once(async move { Ok(content) }).boxed()),
            meta,
            attributes,
            extensions,
        })
    }
}

/// Seals the documents in the folder of a store that no process has open.
pub(crate) fn seal_all(root: &FilePath, fsync: bool) -> std::result::Result<(), StoreError> {
    let failed = |error| StoreError::io("cannot read", root, &error);
    for tablet in std::fs::read_dir(root.join("tablets")).into_iter().flatten() {
        let tablet = tablet.map_err(failed)?.path();
        for kind in ["manifest", "compactions"] {
            for document in std::fs::read_dir(tablet.join(kind)).into_iter().flatten() {
                let path = document.map_err(failed)?.path();
                if path.extension().is_some_and(|ending| ending == "tmp") {
                    // An interrupted earlier run left this temporary file.
                    std::fs::remove_file(&path).map_err(failed)?;
                }
                if !is_sealed(&path.to_string_lossy()) {
                    continue;
                }
                let bytes = Bytes::from(std::fs::read(&path).map_err(failed)?);
                if !bytes.ends_with(&MAGIC) {
                    write_atomically(&path, &sealed(&bytes), fsync)?;
                }
            }
        }
    }
    Ok(())
}

fn is_sealed(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn sealed(content: &Bytes) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + SEAL_LEN);
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(&crc32c(content).to_le_bytes());
    bytes.extend_from_slice(&MAGIC);
    bytes
}

fn opened(bytes: &Bytes, required: bool) -> std::result::Result<Bytes, &'static str> {
    if !bytes.ends_with(&MAGIC) {
        return match required {
            true => Err("the document has no checksum, or was cut off"),
            false => Ok(bytes.clone()),
        };
    }
    let len = bytes
        .len()
        .checked_sub(SEAL_LEN)
        .ok_or("the document was cut off")?;
    let content = bytes.slice(..len);
    match bytes.slice(len..).get_u32_le() == crc32c(&content) {
        true => Ok(content),
        false => Err("the document does not match its checksum"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: Bytes = Bytes::from_static(b"123456789");

    #[test]
    fn a_seal_is_the_checksum_and_a_magic() {
        assert_eq!(sealed(&CONTENT), b"123456789\x83\x92\x06\xe3HLNSSUM1");
        assert_eq!(opened(&Bytes::from(sealed(&CONTENT)), true), Ok(CONTENT));
    }

    #[test]
    fn any_damage_is_noticed() {
        let bytes = sealed(&CONTENT);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(opened(&damaged.into(), true).is_err(), "byte {at}, bit {bit}");
            }
            let cut = Bytes::copy_from_slice(&bytes[..at]);
            assert!(opened(&cut, true).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn what_predates_seals_is_read_only_where_none_are_required() {
        assert_eq!(opened(&CONTENT, false), Ok(CONTENT));
        assert!(opened(&CONTENT, true).is_err());
    }

    #[test]
    fn the_documents_of_an_older_store_are_sealed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder
            .path()
            .join("tablets/7/manifest/00000000000000000003.manifest");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, CONTENT).unwrap();
        for _ in 0..2 {
            seal_all(folder.path(), false).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), sealed(&CONTENT));
        }
    }
}
