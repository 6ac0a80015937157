//! Keeps a read-only node up to date. Such a node reads a store in a bucket and takes no part in its cluster.
//!
//! In each round the node reads the list of tablets from the cluster document, then the tablets' manifests, then the schema and the roles.
//! Each is read only if it has changed. The node sends no requests to the owners, and they do not know of it.

use std::sync::Arc;
use std::time::Duration;

use crate::boxed;
use helenus_cluster::{CLUSTER_DOCUMENT, ClusterError, TabletSpec, tablets_in};
use helenus_cql::error::CqlError;
use helenus_query::engine::Engine;
use helenus_tablet::{StoreError, TokenRange};
use tokio::task::JoinHandle;

/// The rounds of a read-only node. They end when the reader is dropped.
pub struct Reader {
    rounds: JoinHandle<()>,
}

/// Error of a round.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the cluster document: {0}")]
    Cluster(#[from] ClusterError),
    #[error("the schema: {0}")]
    Schema(CqlError),
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.rounds.abort();
    }
}

impl Reader {
    /// Reads the store, and then reads the changes once in each interval and whenever a read finds its tablet gone.
    ///
    /// # Errors
    /// The first round fails.
    #[boxed]
    pub async fn start(engine: &Arc<Engine>, interval: Duration) -> Result<Reader, ReaderError> {
        round(engine, true).await?;
        let rounds = tokio::spawn(follow(engine.clone(), interval));
        Ok(Reader { rounds })
    }
}

async fn follow(engine: Arc<Engine>, interval: Duration) {
    let mut is_failing = false;
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = engine.store().refresh_requested() => {}
        }
        match round(&engine, false).await {
            Ok(()) => is_failing = false,
            Err(error) if is_failing => tracing::debug!(%error, "cannot read what is new in the store"),
            Err(error) => {
                tracing::warn!(%error, "cannot read what is new in the store; what was read is served, and gets older");
                is_failing = true;
            }
        }
    }
}

async fn round(engine: &Arc<Engine>, is_first: bool) -> Result<(), ReaderError> {
    let store = engine.store();
    let round = store.begin_refresh()?;
    let refreshed = refresh(engine, is_first).await;
    let failure = refreshed.as_ref().err().map(ToString::to_string);
    store.end_refresh(&round, failure);
    refreshed
}

async fn refresh(engine: &Arc<Engine>, is_first: bool) -> Result<(), ReaderError> {
    let store = engine.store();
    if is_first || store.meta_may_differ(CLUSTER_DOCUMENT).await? {
        store.follow_tablets(&tablets(engine).await?).await?;
    }
    // Both parts are tried, so that a failure of one does not delay the other.
    let tablets = store.refresh_tablets().await;
    let documents = engine.load_changed().await;
    tablets?;
    documents.map_err(ReaderError::Schema)
}

/// Returns the tablets of the cluster. Before the first node has joined, these are the store's initial tablets.
async fn tablets(engine: &Engine) -> Result<Vec<(u32, TokenRange)>, ReaderError> {
    let store = engine.store();
    let Some(document) = store.meta_get(CLUSTER_DOCUMENT).await? else {
        return Ok(store.initial_tablets());
    };
    let tablets = tablets_in(&document.content, store.identity()?)?;
    let of_store = |TabletSpec { id, tokens }: TabletSpec| (id.0, tokens);
    Ok(tablets.into_iter().map(of_store).collect())
}
