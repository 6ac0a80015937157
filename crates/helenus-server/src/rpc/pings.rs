//! Greetings of the other nodes, once a second.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helenus_cluster::NodeInfo;
use helenus_query::engine::Engine;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::ClusterClient;
use super::failure::{CallError, Reason, Refusal};
use super::proto::GreetRequest;
use super::refusal_log::RefusalLog;

/// Interval of greetings to the other nodes, and maximum time until a response to them.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which a node checks whether it is in the cluster.
const JOINING_INTERVAL: Duration = Duration::from_millis(50);

impl ClusterClient {
    /// Greets the other nodes in each interval, until the task is aborted. This keeps clocks in agreement and connections open.
    pub fn ping_loop(self: &Arc<Self>, engine: Arc<Engine>) -> JoinHandle<()> {
        let members = self.clone();
        tokio::spawn(async move {
            loop {
                while !members.has_joined() {
                    tokio::time::sleep(JOINING_INTERVAL).await;
                }
                members.ping_all(&engine).await;
                tokio::time::sleep(PING_INTERVAL).await;
            }
        })
    }

    /// Returns true if this node is in the cluster document. Other nodes refuse calls from nodes that are not.
    fn has_joined(&self) -> bool {
        let view = self.agent.view();
        let here = view.node(self.here).map(|node| node.incarnation);
        here.is_some() && here == self.agent.incarnation()
    }

    async fn ping_all(&self, engine: &Engine) {
        let view = self.agent.view();
        let others = view.nodes().iter().filter(|node| node.host_id != self.here);
        let others: Vec<&NodeInfo> = others.map(Arc::as_ref).collect();
        let addresses: Vec<&str> = others
            .iter()
            .map(|node| node.description.rpc_address.as_str())
            .collect();
        self.peers.keep_only(&addresses);
        let ids: Vec<Uuid> = others.iter().map(|node| node.host_id.0).collect();
        self.clock_skew.keep_only(&ids);
        let greetings = others
            .into_iter()
            .map(|node| self.ping(node, view.cluster_name(), engine));
        futures::future::join_all(greetings).await;
    }

    async fn ping(&self, node: &NodeInfo, cluster_name: &str, engine: &Engine) {
        let (name, address) = (&node.description.name, &node.description.rpc_address);
        let message = GreetRequest {
            cluster_name: cluster_name.to_owned(),
            host_id: Bytes::copy_from_slice(self.here.0.as_bytes()),
            clock_us: engine.clock_us(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let requested_us = engine.wall_clock_us();
        match self.peers.ping(node, &message, PING_INTERVAL).await {
            Ok(answer) if answer.store != self.store.as_bytes().as_slice() => {
                tracing::warn!(node = name, address, here = %self.store, "the node at this address belongs to another store");
            }
            Ok(answer) => {
                engine.observe_clock(answer.clock_us);
                if answer.wall_clock_us != 0 {
                    let span_us = (requested_us, engine.wall_clock_us());
                    self.clock_skew
                        .observe(node.host_id.0, name, answer.wall_clock_us, span_us);
                }
            }
            Err(CallError::Refused(refusal)) => self.note_refusal(node, &refusal),
            Err(error) => {
                tracing::debug!(
                    node = name,
                    address,
                    error = error.text(),
                    "a node does not answer"
                );
            }
        }
    }

    fn note_refusal(&self, node: &NodeInfo, refusal: &Refusal) {
        let grace = match refusal.reason {
            // Other nodes may not know yet of a node that has just joined.
            Reason::NotMember => RefusalLog::JOIN_GRACE,
            Reason::Stranger | Reason::Incompatible => Duration::ZERO,
        };
        if self.refusals.should_log(node.host_id.0, &refusal.text, grace) {
            let (name, address) = (&node.description.name, &node.description.rpc_address);
            tracing::warn!(node = name, address, here = %self.store, error = refusal.text, "a node has refused this one");
        }
    }
}
