//! JSON documents whose last field is a checksum of the other fields.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checksum::crc32c;

/// A document with a checksum field: the CRC-32C of the document without that field, as eight hexadecimal digits.
pub(crate) trait ChecksummedDocument: Serialize + DeserializeOwned {
    fn checksum(&mut self) -> &mut Option<String>;
}

/// Encodes a document with its checksum.
pub(crate) fn encode<T: ChecksummedDocument>(mut document: T) -> Vec<u8> {
    let sum = sum(&mut document);
    *document.checksum() = Some(sum);
    plain(&document)
}

/// Encodes a document without adding a checksum.
pub(crate) fn plain<T: Serialize>(document: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Decodes a document. A missing checksum is accepted unless it is `required`. A wrong one is never accepted.
///
/// # Errors
/// A description of the problem.
pub(crate) fn decode<T: ChecksummedDocument>(bytes: &[u8], required: bool) -> Result<T, String> {
    let mut document: T = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match document.checksum().take() {
        Some(found) if found == sum(&mut document) => Ok(document),
        None if !required => Ok(document),
        Some(_) => Err("the document does not match its checksum".into()),
        None => Err("the document has no checksum".into()),
    }
}

fn sum<T: ChecksummedDocument>(document: &mut T) -> String {
    *document.checksum() = None;
    format!("{:08x}", crc32c(&plain(document)))
}
