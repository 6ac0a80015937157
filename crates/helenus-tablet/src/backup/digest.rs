//! Computes the checksum of a file part by part, and optionally uploads the parts to another place.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};

use crate::error::{StoreError, chain};

/// Bytes of a part. While a part is sent, the next one is read, so that two are in memory.
const PART_BYTES: u64 = 8 << 20;

/// Returns the SHA-256 of bytes, in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Returns the SHA-256 of the first `bytes` of a file. The bytes are also sent to `upload`, if given, in parts of equal size except the
/// last.
///
/// # Errors
/// The file is shorter or can't be read, or a part can't be sent.
pub(super) async fn digest(
    objects: &Arc<dyn ObjectStore>,
    path: &Path,
    bytes: u64,
    mut upload: Option<&mut dyn MultipartUpload>,
) -> Result<String, StoreError> {
    let mut sum = Sha256::new();
    let mut content = read(objects, path, 0, bytes).await?;
    let mut at = 0;
    loop {
        sum.update(&content);
        at += content.len() as u64;
        let sending = upload.as_mut().map(|upload| upload.put_part(content.into()));
        let send = async {
            match sending {
                Some(sending) => sending.await.map_err(|error| failed("cannot send", path, &error)),
                None => Ok(()),
            }
        };
        if at >= bytes {
            send.await?;
            return Ok(format!("{:x}", sum.finalize()));
        }
        ((), content) = try_join(send, read(objects, path, at, bytes)).await?;
    }
}

/// Returns the next part of a file after the first `at` bytes. Empty at the end.
async fn read(objects: &Arc<dyn ObjectStore>, path: &Path, at: u64, bytes: u64) -> Result<Bytes, StoreError> {
    let end = bytes.min(at + PART_BYTES);
    if at == end {
        return Ok(Bytes::new());
    }
    let read = objects.get_range(path, at..end).await;
    let content = read.map_err(|error| failed("cannot read", path, &error))?;
    match content.len() as u64 == end - at {
        true => Ok(content),
        false => Err(StoreError::Corrupt {
            file: path.to_string(),
            detail: format!("it has no {bytes} bytes"),
        }),
    }
}

fn failed(what: &str, path: &Path, error: &object_store::Error) -> StoreError {
    StoreError::Unavailable(format!("{what} {path}: {}", chain(error)))
}
