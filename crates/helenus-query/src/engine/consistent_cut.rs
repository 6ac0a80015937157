//! The consistent cut of a snapshot: of a single node, or of all nodes of a cluster.
//!
//! Nodes that share a bucket write to one log each. The node that takes a snapshot makes all nodes freeze their tablets and hold their
//! logs. When the last one has frozen its tablets, all logs are released. A frozen node acknowledges no write until then. The cut therefore
//! never contains a write without those acknowledged before it.
//!
//! A log is held only for a short time. A node whose log was released too early reports an error. Tablets that are being moved are frozen
//! by no node. In both cases the whole cut is tried again.
//!
//! A batch over several tablets consists of several records, so that the cut may contain only a part of it. The cut also contains the
//! batch's entry in the batch log, from which the batch is completed ([`Store::complete_cut`]). The intents of transactions of several nodes
//! are in the cut too, and complete them in the same way.
//!
//! [`Store::complete_cut`]: helenus_tablet::Store::complete_cut

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use helenus_cql::error::CqlError;
use helenus_tablet::{HeldCut, PinnedTablet, Store, StoreError, TokenRange};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Engine, ddl};
use crate::boxed;
use crate::cluster::{Cluster, Pin, PinnedCut, RemoteError};
use crate::execution::at_cut;
use crate::failure::store_error;
use crate::schema::Schema;

/// Maximum time for which a node holds its log for other nodes.
const HOLD_MAX: Duration = Duration::from_millis(500);
/// Maximum time for which a node tries to freeze its tablets, while other nodes hold their logs.
const FREEZE_PATIENCE: Duration = Duration::from_millis(200);
/// Maximum time in which other nodes must answer: until their tablets are frozen, and until they are pinned.
const HOLD_TIMEOUT: Duration = Duration::from_secs(2);
const PIN_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time in which a node must answer the request that only shows that it is up.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time for which a cut of all nodes is tried, and the bounds of the pause between tries. The pause is random, so that two nodes
/// that try at the same time do not stay in step.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE_MIN_MS: u64 = 50;
const PAUSE_MAX_MS: u64 = 250;
/// Maximum time for which a cut is tried that no client waits for. It is short, so that other cuts go first.
const UNAWAITED_PATIENCE: Duration = Duration::from_secs(3);
/// Time after which a held cut is dropped if no request for it has come.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The cuts for which this node holds its log, or has held it.
#[derive(Default)]
pub(crate) struct HeldCuts(Mutex<HashMap<Uuid, (Instant, HeldCut)>>);

impl HeldCuts {
    fn insert(&self, id: Uuid, cut: HeldCut) {
        let mut held_cuts = self.0.lock();
        held_cuts.retain(|_, (since, _)| since.elapsed() < FORGOTTEN_AFTER);
        held_cuts.insert(id, (Instant::now(), cut));
    }

    fn take(&self, id: Uuid) -> Option<HeldCut> {
        self.0.lock().remove(&id).map(|(_, cut)| cut)
    }
}

impl Engine {
    /// Pins all tablets of all nodes at a consistent cut. `skip_flush` leaves out rows that are in no SSTable.
    ///
    /// # Errors
    /// The reason why no cut was possible. Tablets that remain pinned are unpinned by [`Engine::unpin`].
    pub(super) async fn pin(&self, skip_flush: bool) -> Result<PinnedCut, CqlError> {
        let store = &self.context.store;
        let flushed = |tablets| PinnedCut {
            tablets,
            positions: Vec::new(),
        };
        let pinned = match (self.cluster(), skip_flush) {
            (Some(cluster), false) => self.pin_whole_batches(cluster.as_ref()).await,
            (Some(cluster), true) => self.pin_everywhere(cluster.as_ref(), true, PATIENCE).await,
            (None, false) => self.pin_alone().await.map_err(store_error),
            (None, true) => store.pin_flushed().await.map(flushed).map_err(store_error),
        };
        match pinned {
            Ok(pinned) => Ok(pinned),
            Err(error) => {
                self.unpin_left().await;
                Err(error)
            }
        }
    }

    /// Unpins the tablets of a failed cut. In a bucket, tablets that were just pinned must stay for now, since another node may be about to
    /// write them down.
    async fn unpin_left(&self) {
        if !self.context.store.is_shared() {
            self.unpin().await;
        }
    }

    /// Pins all tablets of all nodes at a consistent cut. Batches in progress are not completed.
    ///
    /// # Errors
    /// The reason why no cut was possible. Tablets that remain pinned are unpinned by [`Engine::unpin`].
    pub(super) async fn pin_for_history(&self) -> Result<PinnedCut, CqlError> {
        let pinned = match self.cluster() {
            Some(cluster) => {
                self.pin_everywhere(cluster.as_ref(), false, UNAWAITED_PATIENCE)
                    .await
            }
            None => self.pin_alone().await.map_err(store_error),
        };
        if pinned.is_err() {
            self.unpin_left().await;
        }
        pinned
    }

    /// Checks that all nodes answer, so that no node holds its log in vain.
    async fn all_answer(&self, cluster: &dyn Cluster) -> Result<(), String> {
        let nothing = Pin::Release(Uuid::nil());
        let nodes = nodes_alive(cluster);
        let answers = self.pin_on_all(cluster, &nodes, nothing, ANSWER_TIMEOUT).await;
        answers
            .into_iter()
            .collect::<Result<Vec<PinnedCut>, String>>()
            .map(|_| ())
    }

    async fn pin_alone(&self) -> Result<PinnedCut, StoreError> {
        let held = self.context.store.hold_cut(PATIENCE, Duration::ZERO).await?;
        pinned_cut(held).await
    }

    /// Pins a consistent cut of all nodes, and completes the batches that were in progress.
    async fn pin_whole_batches(&self, cluster: &dyn Cluster) -> Result<PinnedCut, CqlError> {
        let cut = self.pin_everywhere(cluster, false, PATIENCE).await?;
        match self.complete_batches(&cut.tablets).await {
            Ok(()) => Ok(cut),
            Err(error) => {
                unpin_failed(&self.context.store, &cut.tablets).await;
                Err(error)
            }
        }
    }

    async fn complete_batches(&self, pinned: &[PinnedTablet]) -> Result<(), CqlError> {
        let (schema, store) = (self.schema(), &self.context.store);
        let opened = store.open_pinned_with(pinned, ddl::origins(&schema)).await;
        let clock = self.context.clock.clone();
        let context = self
            .context
            .as_of(opened.map_err(store_error)?, Schema::clone(&schema), clock);
        let ops = Box::pin(at_cut::under_way(&context)).await?;
        match ops.is_empty() {
            true => Ok(()),
            false => store.complete_cut(pinned, ops).await.map_err(store_error),
        }
    }

    async fn pin_everywhere(
        &self,
        cluster: &dyn Cluster,
        skip_flush: bool,
        patience: Duration,
    ) -> Result<PinnedCut, CqlError> {
        let deadline = Instant::now() + patience;
        loop {
            let why = match self.try_to_pin(cluster, skip_flush).await {
                Ok(pinned) => return Ok(pinned),
                Err(why) => why,
            };
            if Instant::now() >= deadline {
                return Err(CqlError::Server(format!(
                    "no consistent cut of all nodes was possible: {why}"
                )));
            }
            tracing::debug!(why, "a consistent cut of all nodes is tried again");
            let pause_ms = rand::random_range(PAUSE_MIN_MS..PAUSE_MAX_MS);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
    }

    async fn try_to_pin(&self, cluster: &dyn Cluster, skip_flush: bool) -> Result<PinnedCut, String> {
        self.all_answer(cluster).await?;
        // Positions of nodes that take no part, such as former nodes, are read from the store. All their writes are in tablets that other
        // nodes have by now. The positions are read before the logs are held, since a log that begins after that has nothing before the
        // cut.
        let store = &self.context.store;
        let mut positions = match self.cuts.history.is_on() && !skip_flush {
            true => store
                .history_positions()
                .await
                .map_err(|error| error.to_string())?,
            false => Vec::new(),
        };
        let nodes = nodes_alive(cluster);
        let pin = match skip_flush {
            true => Pin::Flushed,
            false => self.hold_everywhere(cluster, &nodes).await?,
        };
        let pinned = self.pin_on_all(cluster, &nodes, pin, PIN_TIMEOUT).await;
        let failure = pinned.iter().find_map(|pinned| pinned.as_ref().err()).cloned();
        let mut tablets = Vec::new();
        for part in pinned.into_iter().flatten() {
            tablets.extend(part.tablets);
            for position in part.positions {
                positions.retain(|other| other.log != position.log);
                positions.push(position);
            }
        }
        let tokens = tablets.iter().map(|tablet| tablet.tokens).collect();
        match failure.map_or_else(|| check_all_tokens(tokens), Err) {
            Ok(()) => Ok(PinnedCut { tablets, positions }),
            Err(why) => {
                unpin_failed(store, &tablets).await;
                Err(why)
            }
        }
    }

    /// Makes all nodes hold their logs at the same time.
    async fn hold_everywhere(&self, cluster: &dyn Cluster, nodes: &[Uuid]) -> Result<Pin, String> {
        let cut = Uuid::new_v4();
        let deadline = Instant::now() + HOLD_TIMEOUT;
        let holding = nodes.iter().map(|node| async move {
            match *node == cluster.here() {
                true => self.serve_hold(cut).await.map_err(|error| error.to_string()),
                false => cluster.hold(*node, cut, deadline).await.map_err(in_words),
            }
        });
        let held: Result<Vec<Vec<TokenRange>>, String> = join_all(holding).await.into_iter().collect();
        match held.and_then(|held| check_all_tokens(held.concat())) {
            Ok(()) => Ok(Pin::Held(cut)),
            Err(why) => {
                self.pin_on_all(cluster, nodes, Pin::Release(cut), HOLD_TIMEOUT)
                    .await;
                Err(why)
            }
        }
    }

    async fn pin_on_all(
        &self,
        cluster: &dyn Cluster,
        nodes: &[Uuid],
        pin: Pin,
        timeout: Duration,
    ) -> Vec<Result<PinnedCut, String>> {
        let deadline = Instant::now() + timeout;
        let pinning = nodes.iter().map(|node| async move {
            match *node == cluster.here() {
                true => self.serve_pin(pin).await.map_err(|error| error.to_string()),
                false => cluster.pin(*node, pin, deadline).await.map_err(in_words),
            }
        });
        join_all(pinning).await
    }

    /// Freezes this node's tablets, and holds its log until [`Engine::serve_pin`] or for a short time. Returns the tokens of the tablets.
    ///
    /// # Errors
    /// The store could not be frozen in time.
    #[boxed]
    pub async fn serve_hold(&self, cut: Uuid) -> Result<Vec<TokenRange>, CqlError> {
        let held = self.context.store.hold_cut(FREEZE_PATIENCE, HOLD_MAX).await;
        let held = held.map_err(store_error)?;
        let tokens = held.tablets().iter().map(|(_, tokens)| *tokens).collect();
        self.cuts.held_cuts.insert(cut, held);
        Ok(tokens)
    }

    /// Releases this node's log, and pins the frozen tablets, unless the cut is only to be dropped.
    ///
    /// # Errors
    /// The log was released too early, or the tablets could not be pinned.
    #[boxed]
    pub async fn serve_pin(&self, pin: Pin) -> Result<PinnedCut, CqlError> {
        let store = &self.context.store;
        match pin {
            Pin::Flushed => Ok(PinnedCut {
                tablets: store.pin_flushed().await.map_err(store_error)?,
                positions: Vec::new(),
            }),
            Pin::Held(cut) => {
                let held = self.cuts.held_cuts.take(cut);
                // A cut whose log was not held long enough unpins its tablets itself.
                let held = held.filter(HeldCut::release).ok_or_else(|| {
                    CqlError::Server("a log was released before all nodes were frozen".to_owned())
                })?;
                pinned_cut(held).await.map_err(store_error)
            }
            Pin::Release(cut) => {
                drop(self.cuts.held_cuts.take(cut));
                Ok(PinnedCut::default())
            }
        }
    }
}

/// Returns the nodes that take part in a cut. Nodes without a tablet take part too, because one may be moving there.
fn nodes_alive(cluster: &dyn Cluster) -> Vec<Uuid> {
    let nodes = cluster.nodes().into_iter().filter(|node| node.is_alive);
    nodes.map(|node| node.host_id).collect()
}

/// Waits until a held cut is pinned.
async fn pinned_cut(held: HeldCut) -> Result<PinnedCut, StoreError> {
    Ok(PinnedCut {
        positions: held.position().into_iter().collect(),
        tablets: held.pinned().await?,
    })
}

/// Unpins the tablets of a cut that failed.
async fn unpin_failed(store: &Store, pinned: &[PinnedTablet]) {
    if let Err(error) = store.unpin(pinned).await {
        tracing::debug!(%error, "tablets of a failed cut are unpinned later");
    }
}

/// Checks that each token is in exactly one tablet.
fn check_all_tokens(mut tablets: Vec<TokenRange>) -> Result<(), String> {
    tablets.sort_unstable_by_key(|tokens| tokens.first);
    let mut next = Some(i64::MIN);
    for tokens in tablets {
        if next != Some(tokens.first) {
            return Err(format!(
                "tablets are moving: token {} is in none, or in two",
                next.unwrap_or(i64::MAX).min(tokens.first)
            ));
        }
        next = tokens.last.checked_add(1);
    }
    match next {
        None => Ok(()),
        Some(token) => Err(format!("no node serves token {token}")),
    }
}

fn in_words(error: RemoteError) -> String {
    match error {
        RemoteError::NotOwned => "a node has left".to_owned(),
        RemoteError::Unreachable(why) | RemoteError::NoAnswer(why) => why,
        RemoteError::Failed(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tablets: &[(i64, i64)]) -> Result<(), String> {
        let tokens = tablets.iter().map(|&(first, last)| TokenRange { first, last });
        check_all_tokens(tokens.collect())
    }

    #[test]
    fn each_token_has_to_be_in_one_tablet() {
        assert_eq!(check(&[(i64::MIN, i64::MAX)]), Ok(()));
        assert_eq!(check(&[(0, i64::MAX), (i64::MIN, -1)]), Ok(()));
        assert!(check(&[]).is_err());
        assert!(check(&[(i64::MIN, 0)]).is_err());
        assert!(check(&[(i64::MIN, -1), (1, i64::MAX)]).is_err());
        assert!(check(&[(i64::MIN, 0), (0, i64::MAX)]).is_err());
        assert!(check(&[(i64::MIN, i64::MAX), (i64::MIN, i64::MAX)]).is_err());
    }
}
