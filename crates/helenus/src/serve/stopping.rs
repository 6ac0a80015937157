//! Stops a node gracefully, within the time that service managers grant.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use helenus_query::engine::Engine;
use helenus_server::Server;
use helenus_server::http::HttpServer;
use helenus_server::node::{ClusterNode, Reader};
use tokio::sync::Notify;

use super::cluster;
use super::signals::StopSignals;

/// Time between the hand-over of a node's tablets and the refusal of its clients, in which clients can turn to other nodes.
const CLIENTS_PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time that a stopping node of a shared store waits for the store.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after the signal at which the process ends in any case. Must be less than `TimeoutStopSec` of the packaged unit (90 s).
const STOP_MAX: Duration = Duration::from_secs(85);

/// Parts of a node that are stopped.
pub struct Stopping {
    pub server: Server,
    /// `None` if HTTP is off.
    pub http: Option<HttpServer>,
    /// `None` if the store is not shared.
    pub node: Option<ClusterNode>,
    /// `None` if the node is not read-only.
    pub reader: Option<Reader>,
    pub engine: Arc<Engine>,
    /// Maximum time for running requests.
    pub shutdown_timeout: Duration,
}

impl Stopping {
    /// Hands over the tablets, lets requests end, and closes the store. A further signal ends the hand-over, and one more ends the rest. No
    /// acknowledged write is lost, because all of them are in the log.
    pub async fn run(self, signals: StopSignals) -> anyhow::Result<()> {
        end_process_after(STOP_MAX);
        let drained = Arc::new(Notify::new());
        let mut further = signals.clone();
        let at_once = {
            let drained = drained.clone();
            async move {
                drained.notified().await;
                further.forget();
                further.next().await
            }
        };
        tokio::select! {
            ended = self.in_order(signals, &drained) => ended,
            signal = at_once => {
                tracing::warn!(signal, "stopped at once: what was not flushed is in the log");
                Ok(())
            }
        }
    }

    async fn in_order(self, signals: StopSignals, drained: &Notify) -> anyhow::Result<()> {
        if let Some(http) = &self.http {
            http.set_stopping();
        }
        // Clients turn to other nodes during the hand-over. Their requests are forwarded meanwhile.
        match &self.node {
            Some(node) => {
                let draining = async {
                    cluster::drain(node, signals).await;
                    drained.notify_one();
                };
                self.server.stop_after(draining, CLIENTS_PATIENCE).await;
            }
            None => {
                drained.notify_one();
                self.server.stop().await;
            }
        }
        drop(self.reader);
        let is_shared = self.node.is_some();
        let ending = end(self.node, &self.engine, self.shutdown_timeout);
        if !is_shared {
            ending.await?;
        } else if let Ok(ended) = tokio::time::timeout(END_TIMEOUT, ending).await {
            ended?;
        } else {
            tracing::warn!(
                "the store does not answer; stopped without it: what was not flushed is in the log"
            );
        }
        if let Some(http) = self.http {
            http.stop();
        }
        Ok(())
    }
}

/// Leaves the cluster, and closes the store.
async fn end(node: Option<ClusterNode>, engine: &Engine, at_most: Duration) -> anyhow::Result<()> {
    if let Some(node) = node {
        node.stop(at_most).await;
    }
    let closed = engine.close().await;
    closed.map_err(|error| anyhow!("cannot close the store: {error}"))
}

/// Ends the process after `limit`. Uses a thread of its own, which nothing can block.
fn end_process_after(limit: Duration) {
    let watching = move || {
        std::thread::sleep(limit);
        tracing::warn!(
            limit_s = limit.as_secs(),
            "stopping takes too long; the process ends: what was not flushed is in the log"
        );
        std::process::exit(1);
    };
    // An error is ignored, because the service manager ends the process too.
    let _ = std::thread::Builder::new()
        .name("helenus-stop".to_owned())
        .spawn(watching);
}
