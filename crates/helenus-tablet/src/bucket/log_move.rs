//! The object `LOG_MOVE`, which exists while the log of a store is moved. No node opens the store during that time.

use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutPayload};
use serde::{Deserialize, Serialize};

use crate::bucket::check::{explain, patiently};
use crate::bucket::connection::Bucket;
use crate::error::StoreError;

const NAME: &str = "LOG_MOVE";

/// Content of the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogMoveRecord {
    /// Destination of the log. `None` if the log moves beside the data.
    pub to: Option<String>,
}

impl LogMoveRecord {
    /// Returns the move that is in progress. `None` if there is none.
    pub async fn load(bucket: &Bucket) -> Result<Option<LogMoveRecord>, StoreError> {
        let read = async {
            match bucket.store.get(&Path::from(NAME)).await {
                Ok(found) => found.bytes().await.map(Some),
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let found = patiently(bucket, read).await?;
        let found = found.map_err(|error| explain(bucket, &error))?;
        let decoded = found.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        decoded.map_err(|error| StoreError::Corrupt {
            file: format!("{}/{NAME}", bucket.url),
            detail: error.to_string(),
        })
    }

    pub async fn store(&self, bucket: &Bucket) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let path = Path::from(NAME);
        let put = bucket.store.put(&path, PutPayload::from(bytes));
        let put = patiently(bucket, put).await?;
        put.map(|_| ()).map_err(|error| explain(bucket, &error))
    }

    pub async fn delete(bucket: &Bucket) -> Result<(), StoreError> {
        let path = Path::from(NAME);
        match patiently(bucket, bucket.store.delete(&path)).await? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(explain(bucket, &error)),
        }
    }

    /// Refuses a store whose log is being moved.
    pub async fn refuse(bucket: &Bucket) -> Result<(), StoreError> {
        match LogMoveRecord::load(bucket).await? {
            None => Ok(()),
            Some(LogMoveRecord { to }) => Err(StoreError::InvalidConfig(format!(
                "store = \"{}\": its log is being moved. If that was interrupted, finish it:  helenus migrate-log --store {} --to {}",
                bucket.url,
                bucket.url,
                to.as_deref().unwrap_or("store")
            ))),
        }
    }
}
