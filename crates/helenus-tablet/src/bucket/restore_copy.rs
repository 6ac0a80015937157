//! Turns the copy of a store in a bucket into an independent store (`helenus adopt`).
//!
//! The caller first changes the copied documents that name nodes of the original. Then [`CopyRestore::finish`] writes the copy's own
//! identity and location. After an interruption the bucket is still a copy, which no node opens, and the restore can be repeated.

use object_store::PutMode;
use uuid::Uuid;

use crate::boxed;
use crate::bucket::connection::Bucket;
use crate::bucket::log_move::LogMoveRecord;
use crate::bucket::store_documents::StoreDocuments;
use crate::bucket::store_identity::BindTarget;
use crate::bucket::{check, format, log_store};
use crate::config::{StoreConfig, StoreUrl};
use crate::error::StoreError;

/// A copy that is about to become an independent store. None of its tablets is open.
pub struct CopyRestore {
    documents: StoreDocuments,
    /// The separate log store, with the name of the store's folder in it. `None` if the log lies beside the data.
    log: Option<(Bucket, Uuid)>,
    identity: Uuid,
}

impl CopyRestore {
    /// Checks the copied store. Writes only the test object of the bucket check.
    ///
    /// # Errors
    /// There is no store, or its log is missing or is still the log of another store.
    #[boxed]
    pub async fn begin(config: &StoreConfig) -> Result<CopyRestore, StoreError> {
        let StoreUrl::Remote(url) = &config.url else {
            return Err(StoreError::InvalidConfig(
                "the copy of a folder is a store of its own as soon as a node is started on it".into(),
            ));
        };
        let bucket = Bucket::connect(url)?;
        check::check(&bucket).await?;
        let Some(found) = format::load(&bucket).await? else {
            return Err(StoreError::InvalidConfig(format!(
                "store = \"{url}\": there is no store"
            )));
        };
        LogMoveRecord::refuse(&bucket).await?;
        let log = match log_store::configured(&bucket, log_store::connect(&bucket, config)?, &found).await? {
            Some(log) => {
                log_store::refuse_in_use(&log, found.store_id).await?;
                Some((log, found.store_id))
            }
            None => None,
        };
        Ok(CopyRestore {
            documents: StoreDocuments::of(bucket),
            log,
            identity: Uuid::new_v4(),
        })
    }

    /// Returns the new identity of the copy.
    pub fn identity(&self) -> Uuid {
        self.identity
    }

    /// Returns the documents of the copy.
    pub fn documents(&self) -> &StoreDocuments {
        &self.documents
    }

    /// Binds the new identity to the location. Nodes can open the store from then on.
    #[boxed]
    pub async fn finish(self) -> Result<(), StoreError> {
        if let Some((log, store_id)) = &self.log {
            let target = log_store::bind_target(log, *store_id);
            let found = target.find().await?;
            target.write(&found, self.identity, PutMode::Overwrite).await?;
        }
        let target = BindTarget::store(&self.documents.bucket);
        let found = target.find().await?;
        target.write(&found, self.identity, PutMode::Overwrite).await?;
        Ok(())
    }
}
