//! The description of a node that it announces to other nodes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The facts of a node that do not change while it runs. Its settings, the cluster document and the view of the cluster contain them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDescription {
    pub name: String,
    /// The address for drivers.
    pub cql_address: SocketAddr,
    /// The address for peers: `host:port`.
    pub rpc_address: String,
    pub data_center: String,
    pub rack: String,
    pub software_version: String,
}

impl NodeDescription {
    /// Returns the description of a node of this binary's version, in the default rack.
    pub fn new(name: impl Into<String>, cql_address: SocketAddr, rpc_address: impl Into<String>) -> Self {
        NodeDescription {
            name: name.into(),
            cql_address,
            rpc_address: rpc_address.into(),
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            software_version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}
