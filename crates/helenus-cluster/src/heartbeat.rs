//! Heartbeat documents, which contain the nodes' leases.
//!
//! A lease is a compare-and-set register. Its node renews it by writing the next counter over the version that it wrote last. Before a node
//! is expelled, *expelled* is written over the version that was unchanged for longer than the lease. So exactly one of the two writes
//! succeeds: a node that renews was not expelled before, and a node that was expelled cannot renew.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::document::{NAME, decode, encode};
use crate::environment::TabletLoad;
use crate::error::ClusterError;
use crate::ids::{HostId, Incarnation, Member, TabletId};

pub(crate) const FORMAT: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    pub format: u64,
    /// The store whose lease this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Uuid>,
    pub host_id: HostId,
    pub incarnation: Incarnation,
    pub state: HeartbeatState,
    /// Number of the renewal.
    pub counter: u64,
    pub written_at_ms: i64,
    pub lease_ms: u64,
    pub cql_address: String,
    pub rpc_address: String,
    pub tablets: Vec<LoadRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HeartbeatState {
    Live,
    /// The lease was ended by another node.
    Expelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoadRecord {
    pub id: TabletId,
    pub bytes: u64,
    pub ops_per_s: u64,
}

impl LoadRecord {
    pub fn new((id, load): (TabletId, TabletLoad)) -> Self {
        LoadRecord {
            id,
            bytes: load.bytes,
            ops_per_s: load.ops_per_s,
        }
    }

    pub fn load(&self) -> (TabletId, TabletLoad) {
        let load = TabletLoad {
            bytes: self.bytes,
            ops_per_s: self.ops_per_s,
        };
        (self.id, load)
    }
}

impl Heartbeat {
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, ClusterError> {
        decode(bytes, "heartbeat", FORMAT)
    }
}

const PREFIX: &str = "node";

/// Returns the name of the document with the member's lease. Each incarnation has its own document, so that a name is never used again.
pub(crate) fn name_of(member: Member) -> String {
    format!("{NAME}.{PREFIX}.{}.{}", member.host_id, member.incarnation)
}

/// Returns true for the name of a heartbeat, which contains the lease of a node.
pub fn is_heartbeat(name: &str) -> bool {
    member_of(name).is_some()
}

pub(crate) fn member_of(name: &str) -> Option<Member> {
    let rest = name.strip_prefix(NAME)?.strip_prefix('.')?;
    let (host_id, incarnation) = rest.strip_prefix(PREFIX)?.strip_prefix('.')?.split_once('.')?;
    Some(Member {
        host_id: HostId(Uuid::parse_str(host_id).ok()?),
        incarnation: Incarnation(Uuid::parse_str(incarnation).ok()?),
    })
}
