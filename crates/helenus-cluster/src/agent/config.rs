//! Configuration of an agent: its node's identity and its limits.

use std::net::SocketAddr;
use std::time::Duration;

use uuid::Uuid;

use crate::credentials::Credentials;
use crate::environment::TabletSpec;
use crate::ids::HostId;
use crate::node::NodeDescription;
use crate::reshape_policy::ReshapeLimits;

/// With this lease every partition answers again within 5 s of a node's death: up to [`check_interval`] until other nodes have seen its
/// last renewal, [`AgentConfig::expiry`] until they expel it, and the rest to open its tablets.
///
/// [`check_interval`]: AgentConfig::check_interval
pub const LEASE_DEFAULT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct AgentConfig {
    pub cluster_name: String,
    /// The identity of the store; documents of another store are refused. `None` if there is only one store, as in a simulator.
    pub store: Option<Uuid>,
    /// The credentials that this node and the others need to communicate. `None`: credentials are not checked.
    pub credentials: Option<Credentials>,
    pub host_id: HostId,
    pub description: NodeDescription,
    /// How long this node may serve after the start of a successful renewal.
    pub lease: Duration,
    /// The time beyond the lease, in percent of it, that other nodes wait before they expel a node. It exceeds the difference of clock rates.
    pub lease_margin_percent: u32,
    /// The tablets of a new cluster: all that the store holds. They cover the ring, in order.
    pub initial_tablets: Vec<TabletSpec>,
    pub limits: ReshapeLimits,
    /// No other process with this host id can still be running (it held a lock that this one holds now, say), so that the lease of
    /// this node's previous incarnation need not be waited for.
    pub previous_incarnation_stopped: bool,
}

impl AgentConfig {
    /// Returns the defaults, with the identity of a node.
    pub fn new(
        host_id: HostId,
        name: impl Into<String>,
        cql_address: SocketAddr,
        rpc_address: impl Into<String>,
    ) -> Self {
        AgentConfig::of(host_id, NodeDescription::new(name, cql_address, rpc_address))
    }

    /// Returns the same for a node with that description.
    pub fn of(host_id: HostId, description: NodeDescription) -> Self {
        AgentConfig {
            cluster_name: "helenus".into(),
            store: None,
            credentials: None,
            host_id,
            description,
            lease: LEASE_DEFAULT,
            lease_margin_percent: 10,
            initial_tablets: TabletSpec::ring(16),
            limits: ReshapeLimits::default(),
            previous_incarnation_stopped: false,
        }
    }

    /// From the start of one renewal to the start of the next. Each is a PUT, the dearest kind of request, so renewals are as rare as they can
    /// be with time for a second attempt ([`AgentConfig::renewal_timeout`]).
    pub fn renewal_interval(&self) -> Duration {
        self.lease / 2
    }

    /// Returns the time after which a renewal that was not answered is looked for in the store, and repeated if it is not there.
    pub fn renewal_timeout(&self) -> Duration {
        self.lease / 4
    }

    /// From one look at the heartbeats of so many other nodes to the next. Few heartbeats are looked at more often: it costs little.
    pub fn check_interval(&self, others: usize) -> Duration {
        match others {
            0..=2 => self.lease / 4,
            _ => self.lease / 2,
        }
    }

    /// Returns the pause after a failure, before the next attempt.
    pub fn retry_interval(&self) -> Duration {
        self.lease / 16
    }

    /// Returns the time without renewals after which a node with this `lease` is expelled.
    pub fn expiry(&self, lease: Duration) -> Duration {
        lease + lease * self.lease_margin_percent / 100
    }
}
