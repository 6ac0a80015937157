//! Operations of batches that were in progress at a cut. They are stored beside the pinned tablets, and added to them in memory when these
//! are opened.
//!
//! `moments/<id>` is a frame of the log with one record ([`crate::log::frame`]). `<id>` is the cut's id ([`PinnedTablet::cut_id`]). The
//! object exists if there were such batches, and is deleted with the checkpoints.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use uuid::Uuid;

use super::Store;
use crate::boxed;
use crate::error::{StoreError, chain};
use crate::log::frame::{FRAME_HEADER_LEN, FrameHeader};
use crate::log::{decode_records, encode_record};
use crate::operation::Op;
use crate::tablet::pin::PinnedTablet;

pub(crate) const FOLDER: &str = "moments";
/// The segment number in the header of such frames.
const SEGMENT: u64 = 1;

/// Returns the path of a cut's operations. `None` if the cut has no tablets.
pub(crate) fn path(pinned: &[PinnedTablet]) -> Option<Path> {
    let id = PinnedTablet::cut_id(pinned)?;
    Some(Path::from(FOLDER).join(id.to_string()))
}

impl Store {
    /// Adds operations to pinned tablets, for all that open them from now on. They complete batches that were in progress at the cut.
    ///
    /// # Errors
    /// The operations cannot be written.
    #[boxed]
    pub async fn complete_cut(&self, pinned: &[PinnedTablet], ops: Vec<Op>) -> Result<(), StoreError> {
        let files = self.files()?;
        let Some(path) = path(pinned) else {
            return Ok(());
        };
        let frame = encode(&ops, files.databases.clock.now_ms());
        let put = files.objects.put(&path, frame.into()).await;
        put.map(|_| ())
            .map_err(|error| StoreError::Unavailable(chain(&error)))
    }
}

fn encode(ops: &[Op], now_ms: i64) -> Bytes {
    let mut frame = vec![0; FRAME_HEADER_LEN];
    encode_record(1, ops, &mut frame);
    FrameHeader::finish(&mut frame, SEGMENT, now_ms, 0);
    frame.into()
}

fn decode(frame: &Bytes) -> Option<Vec<Op>> {
    let (_, body) = FrameHeader::decode(frame, SEGMENT)?;
    let records = decode_records(frame.slice_ref(body))?;
    Some(records.into_iter().flat_map(|record| record.ops).collect())
}

/// Returns the operations that were added to pinned tablets.
///
/// # Errors
/// The object is damaged, or cannot be read.
pub(super) async fn read(
    objects: &Arc<dyn ObjectStore>,
    pinned: &[PinnedTablet],
) -> Result<Vec<Op>, StoreError> {
    let Some(path) = path(pinned) else {
        return Ok(Vec::new());
    };
    let failed = |error: Error| StoreError::Unavailable(chain(&error));
    let found = match objects.get(&path).await {
        Ok(found) => found.bytes().await.map_err(failed)?,
        Err(Error::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    decode(&found).ok_or_else(|| StoreError::Corrupt {
        file: path.to_string(),
        detail: "its checksum is wrong".to_owned(),
    })
}

/// Deletes the operations of cuts that are gone.
pub(super) async fn delete(
    objects: &Arc<dyn ObjectStore>,
    is_gone: impl Fn(Uuid, &ObjectMeta) -> bool,
) -> Result<(), StoreError> {
    let failed = |error: Error| StoreError::Unavailable(chain(&error));
    let found: Vec<ObjectMeta> = objects
        .list(Some(&Path::from(FOLDER)))
        .try_collect()
        .await
        .map_err(failed)?;
    for object in found {
        let id = object
            .location
            .filename()
            .and_then(|name| Uuid::parse_str(name).ok());
        if id.is_some_and(|id| is_gone(id, &object)) {
            objects.delete(&object.location).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// Returns the ids of the tablets' checkpoints.
pub(super) fn ids(pinned: &[PinnedTablet]) -> BTreeSet<Uuid> {
    pinned.iter().map(|tablet| tablet.checkpoint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip_and_damage_is_detected() {
        let op = |token: i64| Op {
            token,
            key: Bytes::from(token.to_string()),
            operand: Bytes::from_static(b"operand"),
        };
        let ops = vec![op(-1), op(i64::MAX)];
        let written = encode(&ops, 5);
        assert_eq!(decode(&written), Some(ops));
        for at in 0..written.len() {
            let mut damaged = written.to_vec();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged.into()), None, "byte {at}");
            assert_eq!(decode(&written.slice(..at)), None, "{at} bytes");
        }
    }
}
