//! Configuration of an agent: its node's identity and its limits.

use std::net::SocketAddr;
use std::time::Duration;

use uuid::Uuid;

use crate::credentials::Credentials;
use crate::environment::TabletSpec;
use crate::ids::HostId;
use crate::node::NodeDescription;
use crate::reshape_policy::ReshapeLimits;

/// Default lease. With this lease every partition answers again within 5 s of a node's death. Up to [`check_interval`] passes until other
/// nodes have seen the node's last renewal, then [`AgentConfig::expiry`] until they expel it. The rest is time to open its tablets.
///
/// [`check_interval`]: AgentConfig::check_interval
pub const LEASE_DEFAULT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct AgentConfig {
    pub cluster_name: String,
    /// The identity of the store. Documents of another store are refused. `None` if there is only one store, as in a simulator.
    pub store: Option<Uuid>,
    /// The credentials that this node and the others need to communicate. `None` if credentials are not checked.
    pub credentials: Option<Credentials>,
    pub host_id: HostId,
    pub description: NodeDescription,
    /// Time for which this node may serve after the start of a successful renewal.
    pub lease: Duration,
    /// Time beyond the lease, in percent of it, that other nodes wait before they expel a node. It must exceed the difference of clock
    /// rates.
    pub lease_margin_percent: u32,
    /// The tablets of a new cluster: all tablets of the store. They cover the ring, in order.
    pub initial_tablets: Vec<TabletSpec>,
    pub limits: ReshapeLimits,
    /// True if no other process with this host id can still be running, for example because this process holds the lock of the other one.
    /// The lease of this node's previous incarnation is then not waited for.
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

    /// Returns the defaults for a node with this description.
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

    /// Returns the time from the start of one renewal to the start of the next. Each is a PUT, the most expensive kind of request. So
    /// renewals are as rare as possible, with time for a second attempt ([`AgentConfig::renewal_timeout`]).
    pub fn renewal_interval(&self) -> Duration {
        self.lease / 2
    }

    /// Returns the time after which an unanswered renewal is looked up in the store, and repeated if it is not there.
    pub fn renewal_timeout(&self) -> Duration {
        self.lease / 4
    }

    /// Returns the time between two checks of the heartbeats of `others` other nodes. Few heartbeats are checked more often, because that
    /// costs little.
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
