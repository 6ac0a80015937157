//! Moves the log of a store to another place, while no node runs (`helenus migrate-log`).
//!
//! While the object `LOG_MOVE` exists, no node opens the store. Every tablet that needs a log is opened, which fences and replays its logs,
//! then flushed and closed. After that no log is needed, and `FORMAT` names the new place. An interrupted move can be repeated.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use helenus_row::TokenRange;
use object_store::ObjectStore;
use object_store::path::Path;

use super::open::open_moving;
use super::tablet_logs::TabletLogs;
use crate::boxed;
use crate::bucket::connection::Bucket;
use crate::bucket::log_move::LogMoveRecord;
use crate::bucket::store_documents::StoreDocuments;
use crate::bucket::store_identity::BindTarget;
use crate::bucket::subfolders::subfolders;
use crate::bucket::{check, format, log_store};
use crate::config::{StoreConfig, StoreUrl};
use crate::data_model::DataModel;
use crate::error::{StoreError, chain};
use crate::metadata::format::Format;
use crate::store::Store;

/// A move of the log of a store.
pub struct LogMove {
    documents: StoreDocuments,
    from: StoreConfig,
    /// The new place, as `FORMAT` is to record it.
    target: Option<String>,
    format: Format,
    identity: uuid::Uuid,
    /// True if `FORMAT` names the new place already.
    is_named: bool,
}

/// Returns the place of the log of a store in a bucket, from `FORMAT`. `None` if the log is beside the store's data.
#[boxed]
pub async fn log_place(url: &StoreUrl) -> Result<Option<String>, StoreError> {
    let (_, format) = load(url).await?;
    Ok(format.log_store)
}

async fn load(url: &StoreUrl) -> Result<(Bucket, Format), StoreError> {
    let StoreUrl::Remote(remote) = url else {
        return Err(StoreError::InvalidConfig(format!(
            "store = \"{url}\": a store in a local folder has its log there"
        )));
    };
    let bucket = Bucket::connect(remote)?;
    check::check(&bucket).await?;
    let format = format::load(&bucket).await?;
    let format =
        format.ok_or_else(|| StoreError::InvalidConfig(format!("store = \"{url}\": there is no store")))?;
    Ok((bucket, format))
}

/// Returns the place of the log in the form in which `FORMAT` records it.
fn place(config: &StoreConfig, log: Option<&Bucket>) -> Option<String> {
    let topic = config.log_topic.as_ref().map(ToString::to_string);
    topic.or_else(|| log.map(|log| log.url.to_string()))
}

impl LogMove {
    /// Checks both places of a move of a store's log: from the one that `from` names to the one that `to` names. Continues a move that was
    /// interrupted.
    ///
    /// # Errors
    /// The log is not where `from` says, or the new place cannot be used.
    #[boxed]
    pub async fn begin(from: StoreConfig, to: StoreConfig) -> Result<LogMove, StoreError> {
        let refuse = |why: String| Err(StoreError::InvalidConfig(why));
        let (bucket, format) = load(&from.url).await?;
        let log = log_store::connect(&bucket, &to)?;
        let target = place(&to, log.as_ref());
        let begun = LogMoveRecord::load(&bucket).await?;
        match &begun {
            Some(begun) if begun.to != target => {
                return refuse(format!(
                    "the log of {} is being moved to {} already: finish that first",
                    bucket.url,
                    begun.to.as_deref().unwrap_or("store")
                ));
            }
            None if format.log_store == target => {
                return refuse(format!("the log of {} lies there already", bucket.url));
            }
            _ => {}
        }
        let bound = BindTarget::store(&bucket);
        let identity = match begun {
            None => bound.recorded().await?,
            Some(_) => bound.rebind().await?,
        };
        if let Some(log) = &log {
            log_store::adopt_place(log, format.store_id, identity).await?;
        }
        log_store::connect_topic(&to).await?;
        let is_named = format.log_store == target;
        Ok(LogMove {
            is_named,
            documents: StoreDocuments::of(bucket),
            from,
            target,
            format,
            identity,
        })
    }

    /// Writes `LOG_MOVE`, which keeps nodes from opening the store.
    #[boxed]
    pub async fn mark(&self) -> Result<(), StoreError> {
        let to = self.target.clone();
        LogMoveRecord { to }.store(&self.documents.bucket).await
    }

    /// Returns the store's documents.
    pub fn documents(&self) -> &StoreDocuments {
        &self.documents
    }

    /// Returns the store's identity.
    pub fn identity(&self) -> uuid::Uuid {
        self.identity
    }

    /// Returns the tablets with which the store was created.
    pub fn initial_tablets(&self) -> Vec<(u32, TokenRange)> {
        let tablets = self.format.tablets.iter();
        tablets.map(|tablet| (tablet.id, tablet.tokens)).collect()
    }

    /// Cancels the move: nodes can open the store again, with its log in the old place.
    #[boxed]
    pub async fn cancel(self) -> Result<(), StoreError> {
        LogMoveRecord::delete(&self.documents.bucket).await
    }

    /// Flushes those of the store's current tablets that need a log. `progress` is called for each.
    pub async fn drain(
        &self,
        model: Arc<dyn DataModel>,
        tablets: &[(u32, TokenRange)],
        mut progress: impl FnMut(u32),
    ) -> Result<(), StoreError> {
        if self.is_named {
            return Ok(());
        }
        let config = StoreConfig {
            open_all_tablets: false,
            ..self.from.clone()
        };
        // The store gets connections of its own, because some end with its threads.
        let (bucket, _) = load(&self.from.url).await?;
        let store = open_moving(bucket, config, model).await?;
        let drained = self.drain_tablets(&store, tablets, &mut progress).await;
        let closed = store.close().await;
        drained?;
        closed?;
        match self.tablets_with_logs().await?.first() {
            None => self.forget_claims().await,
            Some(tablet) => Err(StoreError::Unavailable(format!(
                "tablet {tablet} still needs the log: try again"
            ))),
        }
    }

    async fn drain_tablets(
        &self,
        store: &Arc<Store>,
        tablets: &[(u32, TokenRange)],
        progress: &mut impl FnMut(u32),
    ) -> Result<(), StoreError> {
        for id in self.tablets_with_logs().await? {
            let Some((_, tokens)) = tablets.iter().find(|(other, _)| *other == id) else {
                return Err(StoreError::Unavailable(format!(
                    "tablet {id} needs the log and is no tablet of the cluster: start a node, and try again when it is at rest"
                )));
            };
            let tablet = store.open_tablet(id, *tokens).await?;
            tablet.flush().await?;
            store.close_tablet(id).await?;
            progress(id);
        }
        Ok(())
    }

    async fn tablets_with_logs(&self) -> Result<Vec<u32>, StoreError> {
        let store = &self.documents.bucket.store;
        let mut ids: Vec<u32> = subfolders(store.as_ref(), &Path::from("tablets")).await?;
        ids.sort_unstable();
        let mut found = Vec::new();
        for id in ids {
            if !TabletLogs::read(store, id).await?.logs.is_empty() {
                found.push(id);
            }
        }
        Ok(found)
    }

    /// Empties the partitions of the old topic and deletes its claims, because the claims of a new topic begin again.
    async fn forget_claims(&self) -> Result<(), StoreError> {
        let Some(client) = log_store::connect_topic(&self.from).await? else {
            return Ok(());
        };
        let topic = crate::log::topic::TopicLogs {
            client,
            store_identity: self.identity,
            bucket: self.documents.bucket.store.clone(),
        };
        topic.delete_all().await?;
        delete_below(&self.documents.bucket, "log_claims").await
    }

    /// Records the new place in `FORMAT`, and lets nodes open the store. Deletes the objects that are left in the old place.
    #[boxed]
    pub async fn finish(self) -> Result<(), StoreError> {
        let bucket = &self.documents.bucket;
        let format = self.format.clone().with_log_place(self.target.clone());
        format::replace(bucket, &format).await?;
        BindTarget::store(bucket).rebind().await?;
        LogMoveRecord::delete(bucket).await?;
        // If the move was repeated after that, the previously recorded place is no longer known.
        if self.from.log_topic.is_none() && !self.is_named {
            let left = match log_store::connect(bucket, &self.from)? {
                None => delete_below(bucket, "logs").await,
                Some(log) => delete_below(&log, &self.format.store_id.to_string()).await,
            };
            if let Err(error) = left {
                tracing::warn!(%error, "objects of the former log are left; nothing needs them");
            }
        }
        Ok(())
    }
}

async fn delete_below(bucket: &Bucket, folder: &str) -> Result<(), StoreError> {
    let folder = Path::from(folder);
    let listed = bucket.store.list(Some(&folder)).map_ok(|object| object.location);
    let deleted = bucket.store.delete_stream(listed.boxed());
    let deleted = deleted.try_for_each(|_| std::future::ready(Ok(())));
    deleted
        .await
        .map_err(|error| StoreError::Unavailable(chain(&error)))
}
