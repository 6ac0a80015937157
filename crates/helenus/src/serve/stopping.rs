//! Ends a node in order, and in any case within the time that service managers grant.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use helenus_query::engine::Engine;
use helenus_server::Server;
use helenus_server::http::HttpServer;
use helenus_server::node::ClusterNode;
use helenus_server::reader::Reader;
use tokio::sync::Notify;

use super::cluster;
use super::signals::StopSignals;

/// Time for clients of a node that has handed its tablets over to turn to other nodes before they are turned away.
const CLIENTS_PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time that a node of a shared store waits for the store when it stops.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time from the signal after which the process ends whatever still runs: less than `TimeoutStopSec` of the packaged unit (90 s).
const STOP_MAX: Duration = Duration::from_secs(85);

/// The parts of a node that are stopped.
pub struct Stopping {
    pub server: Server,
    /// `None` if HTTP is off.
    pub http: Option<HttpServer>,
    /// `None` if the store is not shared.
    pub node: Option<ClusterNode>,
    /// `None` if the node does not only read.
    pub reader: Option<Reader>,
    pub engine: Arc<Engine>,
    /// Maximum time for running requests.
    pub shutdown_timeout: Duration,
}

impl Stopping {
    /// Hands tablets over, lets requests end, and closes the store. A further signal ends the hand-over, and one more the rest. Acknowledged
    /// writes are in the log whatever is left undone.
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
        // Clients turn to other nodes while the tablets do so too; until then requests are passed on.
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

/// Takes no more part in the cluster, and closes the store.
async fn end(node: Option<ClusterNode>, engine: &Engine, at_most: Duration) -> anyhow::Result<()> {
    if let Some(node) = node {
        node.stop(at_most).await;
    }
    let closed = engine.close().await;
    closed.map_err(|error| anyhow!("cannot close the store: {error}"))
}

/// Ends the process after that time, from a thread that waits for nothing else.
fn end_process_after(limit: Duration) {
    let watching = move || {
        std::thread::sleep(limit);
        tracing::warn!(
            limit_s = limit.as_secs(),
            "stopping takes too long; the process ends: what was not flushed is in the log"
        );
        std::process::exit(1);
    };
    // Without the thread, the service manager ends the process.
    let _ = std::thread::Builder::new()
        .name("helenus-stop".to_owned())
        .spawn(watching);
}
