//! The object `FORMAT`, which marks a bucket as a store.

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use crate::bucket::check::{explain, patiently};
use crate::bucket::connection::{Bucket, FORMAT_NAME};
use crate::bucket::log_store;
use crate::config::TopicUrl;
use crate::error::StoreError;
use crate::metadata::format::{BUCKET_FORMAT_VERSION, Format};

/// Reads the format, or creates a store with `tablet_count` tablets in an empty bucket. If several nodes do this concurrently, one creates
/// the store and the others read its format. `log` is the separate location of the log. `None` if the log lies beside the data or in a
/// topic.
pub(crate) async fn load_or_create(
    bucket: &Bucket,
    log: Option<&Bucket>,
    topic: Option<&TopicUrl>,
    tablet_count: usize,
) -> Result<Format, StoreError> {
    if let Some(format) = load(bucket).await? {
        return Ok(format);
    }
    refuse_remains(bucket).await?;
    let mut format = Format::new(uuid::Uuid::new_v4(), tablet_count).in_bucket();
    if let Some(log) = log {
        log_store::begin(log, format.store_id).await?;
        format = format.with_log_store(log.url.to_string());
    }
    if let Some(topic) = topic {
        format = format.with_log_store(topic.to_string());
    }
    if create(bucket, &format).await? {
        return Ok(format);
    }
    load(bucket).await?.ok_or_else(|| StoreError::Corrupt {
        file: FORMAT_NAME.into(),
        detail: "it existed, and is missing now".into(),
    })
}

/// Creates a store in the bucket. Returns false if the bucket has one already.
pub(crate) async fn create(bucket: &Bucket, format: &Format) -> Result<bool, StoreError> {
    let options = PutOptions {
        mode: PutMode::Create,
        ..PutOptions::default()
    };
    let path = Path::from(FORMAT_NAME);
    let put = bucket.store.put_opts(&path, format.encode().into(), options);
    match patiently(bucket, put).await? {
        Ok(_) => Ok(true),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
        Err(error) => Err(explain(bucket, &error)),
    }
}

/// Overwrites the format of a store. The caller must bind the identity again afterwards ([`super::store_identity`]).
pub(crate) async fn replace(bucket: &Bucket, format: &Format) -> Result<(), StoreError> {
    let path = Path::from(FORMAT_NAME);
    let put = bucket.store.put(&path, format.encode().into());
    let put = patiently(bucket, put).await?;
    put.map(|_| ()).map_err(|error| explain(bucket, &error))
}

/// Returns the format of the store in the bucket. `None` if there is no store.
pub(crate) async fn load(bucket: &Bucket) -> Result<Option<Format>, StoreError> {
    let path = Path::from(FORMAT_NAME);
    let read = async {
        match bucket.store.get(&path).await {
            Ok(found) => found.bytes().await.map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let found = patiently(bucket, read).await?;
    match found.map_err(|error| explain(bucket, &error))? {
        Some(bytes) => decode(&bytes, &format!("{}/{FORMAT_NAME}", bucket.url)).map(Some),
        None => Ok(None),
    }
}

fn decode(bytes: &[u8], name: &str) -> Result<Format, StoreError> {
    let format = Format::decode(bytes, name, BUCKET_FORMAT_VERSION)?;
    if format.format < BUCKET_FORMAT_VERSION {
        return Err(StoreError::OlderFormat {
            found: format.format,
            supported: BUCKET_FORMAT_VERSION,
        });
    }
    Ok(format)
}

/// Refuses a bucket that has tablets but no `FORMAT`. The tablets are remains of a store, which must not be overwritten.
pub(crate) async fn refuse_remains(bucket: &Bucket) -> Result<(), StoreError> {
    let folder = Path::from("tablets");
    let list = bucket.store.list_with_delimiter(Some(&folder));
    let found = patiently(bucket, list).await?;
    let found = found.map_err(|error| explain(bucket, &error))?;
    if found.common_prefixes.is_empty() && found.objects.is_empty() {
        return Ok(());
    }
    Err(StoreError::Corrupt {
        file: format!("{}/{FORMAT_NAME}", bucket.url),
        detail: "the object is missing, yet there are tablets below the prefix: delete what is left there, or take another prefix".into(),
    })
}
