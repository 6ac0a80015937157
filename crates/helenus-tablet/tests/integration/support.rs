use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use helenus_tablet::{
    CompactFilter, DataModelError, Decision, FilterOutcome, OlderOverlap, Store, StoreConfig, WriteBatch,
};

use crate::plain_model::PlainModel;

/// A data model that concatenates all written values, so that wrong order and repetition are found. Keys have the form
/// `partition/clustering`.
pub const APPEND: PlainModel = PlainModel {
    token_of: |key| Some(token(key)),
    partition_prefix_len: |key| key.iter().position(|&byte| byte == b'/').map(|at| at + 1),
    compaction: |_| Box::new(Sweep),
    ..PlainModel::new(append)
};

fn append(_key: &[u8], existing: Option<&Bytes>, operands: &[Bytes]) -> Result<Bytes, DataModelError> {
    let parts: Vec<&[u8]> = existing.into_iter().chain(operands).map(Bytes::as_ref).collect();
    Ok(parts.concat().into())
}

/// End of a value that is a tombstone.
pub const DEAD: &str = "[dead]";

/// A compaction filter. Always drops `gone…`, and drops values that end with [`DEAD`] if nothing is below. Changes `upper…` to upper case
/// if nothing is below.
struct Sweep;

impl CompactFilter for Sweep {
    fn entry(
        &mut self,
        key: &[u8],
        value: &Bytes,
        below: OlderOverlap,
    ) -> Result<FilterOutcome, DataModelError> {
        let is_tombstone = value.ends_with(DEAD.as_bytes());
        let decision = if key.starts_with(b"gone") || is_tombstone && below != OlderOverlap::Something {
            Decision::Drop
        } else if key.starts_with(b"upper") && below == OlderOverlap::Nothing {
            Decision::Replace(value.to_ascii_uppercase().into())
        } else {
            Decision::Keep
        };
        Ok(FilterOutcome {
            decision,
            purge_blocked: is_tombstone && below == OlderOverlap::Something,
            is_dead: is_tombstone,
            purged_covering_deletion: false,
        })
    }
}

pub fn key(text: impl AsRef<str>) -> Bytes {
    Bytes::copy_from_slice(text.as_ref().as_bytes())
}

/// Returns a token that depends on the key's content and is evenly distributed.
pub fn token(key: &[u8]) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in key {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) as i64
}

pub async fn open(path: &Path) -> Arc<Store> {
    Store::open(StoreConfig::small(path), Arc::new(APPEND))
        .await
        .unwrap()
}

pub async fn write(store: &Store, name: impl AsRef<str>, operand: impl AsRef<str>) {
    try_write(store, name, operand).await.unwrap();
}

pub async fn try_write(
    store: &Store,
    name: impl AsRef<str>,
    operand: impl AsRef<str>,
) -> Result<(), helenus_tablet::StoreError> {
    let key = key(name);
    let mut batch = WriteBatch::new();
    batch.merge(
        token(&key),
        key,
        Bytes::copy_from_slice(operand.as_ref().as_bytes()),
    );
    store.write(batch, true).await
}

pub async fn read(store: &Store, name: impl AsRef<str>) -> Option<String> {
    let key = key(name);
    let row = store.tablet(token(&key)).unwrap().get(&key).await.unwrap();
    row.map(|row| String::from_utf8(row.to_vec()).unwrap())
}

/// Returns all rows of the store by key, in the order of the tablets.
pub async fn dump(store: &Store) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for tablet in store.tablets().iter() {
        let mut scan = tablet.scan(.., false).await.unwrap();
        while let Some((key, value)) = scan.next().await.unwrap() {
            rows.push((
                String::from_utf8(key.to_vec()).unwrap(),
                String::from_utf8(value.to_vec()).unwrap(),
            ));
        }
    }
    rows
}
