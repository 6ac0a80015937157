//! The agent's tablet host, which opens and closes tablets of the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use helenus_cluster::{Epoch, HostError, Removal, TabletHost, TabletId, TabletLoad, TabletSpec, TokenRange};
use helenus_query::engine::Engine;
use helenus_tablet::{Store, StoreError};
use parking_lot::Mutex;

use crate::rpc::ClusterClient;

/// Tablet host for an engine's store.
pub struct StoreHost {
    engine: Arc<Engine>,
    /// Notified of each tablet that was opened, and of each that was closed for its next owner.
    members: Arc<ClusterClient>,
    /// Operations of each tablet, and the time, when its load was last computed.
    counted: Mutex<HashMap<u32, (u64, Instant)>>,
    /// The runtime that serves requests. The agent's own runtime renews the lease and must not be kept busy.
    serving: tokio::runtime::Handle,
}

impl StoreHost {
    /// Returns a tablet host. Call it from the runtime that serves requests.
    pub fn new(engine: Arc<Engine>, members: Arc<ClusterClient>) -> StoreHost {
        StoreHost {
            engine,
            members,
            counted: Mutex::default(),
            serving: tokio::runtime::Handle::current(),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> HostError {
    HostError::Failed(error.to_string())
}

/// Returns the initial tablets of a store in a bucket.
pub(super) fn tablets(store: &Store) -> Vec<TabletSpec> {
    let spec = |(id, tokens): (u32, TokenRange)| TabletSpec {
        id: TabletId(id),
        tokens,
    };
    store.initial_tablets().into_iter().map(spec).collect()
}

#[async_trait]
impl TabletHost for StoreHost {
    async fn open(&self, tablet: TabletId, tokens: TokenRange, _epoch: Epoch) -> Result<(), HostError> {
        let began = Instant::now();
        let store = self.engine.store();
        // Loads schema changes that were made while this node was not in the cluster.
        let (engine, this) = (self.engine.clone(), self.engine.clone());
        let loading = self.serving.spawn(async move { engine.load_newest().await });
        let loaded = async move {
            let unavailable = |error: &dyn std::fmt::Display| StoreError::Unavailable(error.to_string());
            let loaded = loading.await.map_err(|error| unavailable(&error))?;
            this.follow_former_owners();
            loaded.map_err(|error| unavailable(&error))
        };
        let opening = store.open_tablet_after(tablet.0, tokens, loaded);
        opening.await.map_err(failed)?;
        self.members.has_opened();
        let took_ms = began.elapsed().as_millis();
        let engine = self.engine.clone();
        let recovering = self
            .serving
            .spawn(async move { engine.recover_batches(tokens).await });
        let unfinished = recovering.await.map_err(failed)?.map_err(failed)?;
        // The bytes are those that the node has read so far, for all tablets.
        let read_bytes = store.stats().bucket.map_or(0, |bucket| bucket.read_bytes);
        tracing::info!(%tablet, %tokens, took_ms, unfinished, read_bytes, "tablet open");
        Ok(())
    }

    async fn close(&self, tablet: TabletId) -> Result<(), HostError> {
        let began = Instant::now();
        self.engine
            .store()
            .hand_over_tablet(tablet.0)
            .await
            .map_err(failed)?;
        self.members.release(tablet);
        let took_ms = began.elapsed().as_millis();
        tracing::info!(%tablet, took_ms, "tablet closed");
        Ok(())
    }

    async fn abandon(&self, tablet: TabletId) {
        if let Err(error) = self.engine.store().abandon_tablet(tablet.0) {
            tracing::warn!(%tablet, %error, "cannot close a tablet for its hand-over");
        }
    }

    async fn split(&self, parent: TabletId, children: [TabletSpec; 2]) -> Result<(), HostError> {
        let children = children.map(|child| (child.id.0, child.tokens));
        let store = self.engine.store();
        store.split_tablet(parent.0, children).await.map_err(failed)
    }

    async fn merge(&self, parents: &[TabletId], child: TabletSpec) -> Result<(), HostError> {
        let parents: Vec<u32> = parents.iter().map(|parent| parent.0).collect();
        let child = (child.id.0, child.tokens);
        let store = self.engine.store();
        store.merge_tablets(&parents, child).await.map_err(failed)
    }

    fn is_open(&self, tablet: TabletId) -> bool {
        let tablets = self.engine.store().tablets();
        tablets.iter().any(|open| open.id() == tablet.0)
    }

    async fn stored(&self) -> Result<Vec<TabletId>, HostError> {
        let stored = self.engine.store().stored_tablets().await.map_err(failed)?;
        Ok(stored.into_iter().map(TabletId).collect())
    }

    async fn remove(&self, tablet: TabletId) -> Result<Removal, HostError> {
        let is_gone = self.engine.store().remove_tablet(tablet.0).await;
        Ok(match is_gone.map_err(failed)? {
            true => Removal::Gone,
            false => Removal::StillNeeded,
        })
    }

    fn load(&self) -> Vec<(TabletId, TabletLoad)> {
        let now = Instant::now();
        let mut counted = self.counted.lock();
        let stats: Vec<_> = self
            .engine
            .store()
            .tablets()
            .iter()
            .map(|tablet| tablet.stats())
            .collect();
        counted.retain(|id, _| stats.iter().any(|stats| stats.id == *id));
        let load = |stats: &helenus_tablet::TabletStats| {
            let ops = stats.operands + stats.gets + stats.scans;
            let ops_per_s = match counted.insert(stats.id, (ops, now)) {
                Some((before, at)) => {
                    let seconds = now.saturating_duration_since(at).as_secs_f64().max(0.001);
                    (ops.saturating_sub(before) as f64 / seconds) as u64
                }
                None => 0,
            };
            let load = TabletLoad {
                bytes: stats.data_bytes,
                ops_per_s,
            };
            (TabletId(stats.id), load)
        };
        stats.iter().map(load).collect()
    }
}
