//! Calls between the nodes of a cluster: gRPC, as `proto/node.proto` defines it.
//!
//! [`RpcServer`] serves the engine to the other nodes. [`ClusterClient`] is the engine's [`Cluster`](helenus_query::cluster::Cluster): it finds
//! owners in the agent's view and calls them through [`Peers`]. Every call carries a deadline, and a proof that its sender knows the cluster's
//! secret ([`secret`]) and belongs to the same store ([`peer_auth`]).

mod client;
mod cluster_client;
mod codec;
mod failure;
mod message_batching;
mod metrics;
mod moment_codec;
mod part_codec;
mod peer_auth;
mod refusal_log;
mod request_handler;
mod request_stream;
mod scoped;
pub mod secret;
mod server;
mod tls;

use uuid::Uuid;

#[allow(clippy::all, missing_docs, reason = "generated")]
mod proto {
    tonic::include_proto!("helenus.rpc.v1");
}

pub use client::Peers;
pub use cluster_client::ClusterClient;
pub use peer_auth::LocalIdentity;
pub use server::RpcServer;
pub use tls::{Tls, TlsFiles};

/// The version of the protocol between nodes that this binary speaks, and the oldest that it understands.
pub const PROTOCOL: u32 = 6;
pub const PROTOCOL_MIN: u32 = 2;

/// The largest message: a page of rows with room to spare.
const MESSAGE_BYTES_MAX: usize = 512 << 20;

/// Questions that may be without an answer.
const OPEN_MAX: usize = 1024;

/// Another node says that it has closed a tablet, which is about to be another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TabletReleased {
    pub by: Uuid,
    pub tablet: u32,
    /// At which it had the tablet.
    pub epoch: u64,
}
