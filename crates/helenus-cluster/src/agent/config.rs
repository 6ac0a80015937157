//! Configuration of an agent: its node's identity and its limits.

use std::net::SocketAddr;
use std::time::Duration;

use uuid::Uuid;

use crate::credentials::Credentials;
use crate::effects::TabletSpec;
use crate::ids::HostId;
use crate::policy::ReshapeLimits;

/// With this lease every partition answers again within 5 s of a node's death: up to [`renewal_interval`] until other nodes have seen its
/// last renewal, [`AgentConfig::expiry`] until they expel it, and the rest to open its tablets.
///
/// [`renewal_interval`]: AgentConfig::renewal_interval
pub const LEASE_DEFAULT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct AgentConfig {
    pub cluster_name: String,
    /// The identity of the store; documents of another store are refused. `None` if there is only one store, as in a simulator.
    pub store: Option<Uuid>,
    /// The credentials that this node and the others need to communicate. `None`: credentials are not checked.
    pub credentials: Option<Credentials>,
    pub host_id: HostId,
    pub name: String,
    /// The address that drivers are told.
    pub cql_address: SocketAddr,
    /// The address that other nodes are told: `host:port`.
    pub rpc_address: String,
    pub data_center: String,
    pub rack: String,
    pub software_version: String,
    /// The time for which this node may serve after the start of a successful renewal.
    pub lease: Duration,
    /// The time beyond the lease, in percent of it, that other nodes wait before they expel a node. It exceeds the difference of clock rates.
    pub lease_margin_percent: u32,
    /// The tablets of a new cluster: all that the store holds. They cover the ring, in order.
    pub initial_tablets: Vec<TabletSpec>,
    pub limits: ReshapeLimits,
    /// True if no other process with this host id can be running (for example because this process holds its lock), so that the agent need
    /// not wait for the lease of the previous incarnation.
    pub predecessor_is_gone: bool,
}

impl AgentConfig {
    /// The defaults, with the identity of a node.
    pub fn new(
        host_id: HostId,
        name: impl Into<String>,
        cql_address: SocketAddr,
        rpc_address: impl Into<String>,
    ) -> Self {
        AgentConfig {
            cluster_name: "helenus".into(),
            store: None,
            credentials: None,
            host_id,
            name: name.into(),
            cql_address,
            rpc_address: rpc_address.into(),
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            software_version: env!("CARGO_PKG_VERSION").into(),
            lease: LEASE_DEFAULT,
            lease_margin_percent: 10,
            initial_tablets: TabletSpec::ring(16),
            limits: ReshapeLimits::default(),
            predecessor_is_gone: false,
        }
    }

    /// From the start of one renewal to the start of the next.
    pub fn renewal_interval(&self) -> Duration {
        self.lease / 4
    }

    /// The time without renewals after which a node with this `lease` is expelled.
    pub fn expiry(&self, lease: Duration) -> Duration {
        lease + lease * self.lease_margin_percent / 100
    }
}
