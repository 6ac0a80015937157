//! The node's identity, and its part in the cluster if its store is shared.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use helenus_cluster::{AgentConfig, AgentState, HostId, NodeDescription};
use helenus_query::engine::Engine;
use helenus_server::node::{ClusterNode, NodeConfig, NodeEnvironment};
use helenus_server::rpc::secret::Secret;
use helenus_server::rpc::{Tls, TlsFiles};
use helenus_tablet::StoreUrl;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::config::Config;
use super::host_id;
use super::signals::StopSignals;

/// Maximum time that a stopping node may take to hand over its tablets.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Time without a lease after which a stopping node no longer waits for the store.
const STORE_PATIENCE: Duration = Duration::from_secs(5);
const LEASE_POLL: Duration = Duration::from_millis(100);

/// Host id and description of the node.
pub struct Identity {
    pub host_id: Uuid,
    pub description: NodeDescription,
}

/// Returns the node's identity. The host id of a local store is kept in its folder. A node of a shared store keeps nothing, so its host id
/// is derived from its name, or from its host and address.
pub fn identity(config: &Config) -> anyhow::Result<Identity> {
    let listen = config.reachable(config.rpc_listen());
    let rpc_address = config.rpc_advertise.clone().unwrap_or_else(|| listen.to_string());
    let named = |name: &String| (name.clone(), name.clone());
    let (name, seed) = match &config.name {
        Some(name) => named(name),
        None => {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let seed = format!("{host} {rpc_address}");
            (host, seed)
        }
    };
    let host_id = match &config.store.url {
        StoreUrl::File(folder) => host_id::load(folder)?,
        // A read-only node may run beside a node with the same settings, so its id must differ.
        StoreUrl::Remote(_) if config.store.read_only => derived(&format!("{seed} read-only")),
        StoreUrl::Remote(_) => derived(&seed),
    };
    let mut description = NodeDescription::new(name, config.advertised(), rpc_address);
    description.data_center = config.data_center.clone();
    description.rack = config.rack.clone();
    Ok(Identity { host_id, description })
}

/// Returns an id derived from a text. The same text always has the same id.
fn derived(seed: &str) -> Uuid {
    let digest = Sha256::digest(format!("helenus node {seed}"));
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

fn tls(config: &Config) -> anyhow::Result<Option<Tls>> {
    let files = (
        &config.rpc_tls_certificate,
        &config.rpc_tls_key,
        &config.rpc_tls_authority,
    );
    match files {
        (None, None, None) => Ok(None),
        (Some(certificate), Some(key), Some(authority)) => {
            let files = TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                authority: authority.clone(),
            };
            Ok(Some(Tls::load(&files).map_err(|error| anyhow!(error))?))
        }
        _ => bail!("TLS between nodes takes all of rpc_tls_certificate, rpc_tls_key and rpc_tls_authority"),
    }
}

/// Joins the other nodes of a shared store, and returns when this node serves its tablets. `None` if the store is local or the node is
/// read-only.
pub async fn join(
    config: &Config,
    identity: &Identity,
    engine: &Arc<Engine>,
) -> anyhow::Result<Option<ClusterNode>> {
    if matches!(config.store.url, StoreUrl::File(_)) || config.store.read_only {
        return Ok(None);
    }
    let mut agent = AgentConfig::of(HostId(identity.host_id), identity.description.clone());
    agent.cluster_name = config.cluster_name.clone();
    agent.lease = config.lease;
    agent.limits.merge_after = config.merge_after;
    let rpc = config.rpc_listen();
    let tls = tls(config)?;
    if tls.is_none() && !rpc.ip().is_loopback() {
        tracing::warn!(%rpc, "traffic between nodes is not encrypted; set rpc_tls_certificate, rpc_tls_key and rpc_tls_authority");
    }
    let node_config = NodeConfig {
        environment: NodeEnvironment::default(),
        agent,
        rpc,
        secret: config.cluster_secret.as_deref().map(Secret::new),
        tls,
    };
    let node = ClusterNode::start(engine, node_config)
        .await
        .context("cannot join the cluster")?;
    if let AgentState::Joining(why) = node.agent().state() {
        tracing::info!(why, "joining");
    }
    node.joined().await.context("cannot join the cluster")?;
    Ok(Some(node))
}

/// Returns when the node leaves the cluster, by command or because of a failure. Never returns for a node that is alone.
pub async fn leaves(node: Option<&ClusterNode>) {
    let Some(node) = node else {
        return std::future::pending().await;
    };
    let mut states = node.agent().states();
    let leaves = |state: &AgentState| {
        matches!(
            state,
            AgentState::Leaving | AgentState::Left | AgentState::Failed(_)
        )
    };
    let _ = states.wait_for(leaves).await;
}

/// Hands over the tablets. Gives up after a timeout, if the store does not answer, or at another signal.
pub async fn drain(node: &ClusterNode, mut signals: StopSignals) {
    let drained = tokio::select! {
        drained = node.drain() => drained.map_err(|error| error.to_string()),
        () = tokio::time::sleep(DRAIN_TIMEOUT) => Err("it takes too long".to_owned()),
        () = without_lease(node) => Err("the store does not answer".to_owned()),
        _ = signals.next() => Err("a second signal to stop was received".to_owned()),
    };
    match drained {
        Ok(()) => tracing::info!("all tablets are handed over"),
        Err(why) => tracing::warn!(
            why,
            "stopped before the hand-over of all tablets; other nodes take the rest when the lease ends"
        ),
    }
}

/// Returns when the node has had no lease for a while. Such a node cannot reach the store, and owns no tablets to hand over.
async fn without_lease(node: &ClusterNode) {
    let mut since = None;
    loop {
        tokio::time::sleep(LEASE_POLL).await;
        if node.agent().may_serve() {
            since = None;
        } else if since.get_or_insert_with(Instant::now).elapsed() >= STORE_PATIENCE {
            return;
        }
    }
}
