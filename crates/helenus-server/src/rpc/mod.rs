//! What nodes of a cluster say to each other: gRPC, as `proto/node.proto` has it.
//!
//! [`RpcServer`] serves the engine to the others, [`Members`] is the engine's [`Cluster`](helenus_query::cluster::Cluster): it finds owners
//! in the agent's view and asks them through [`Peers`]. Every call carries a deadline, and a proof that its
//! sender knows the cluster's secret ([`auth`]) and is of the same store ([`hello`]).

mod answering;
pub mod auth;
mod client;
mod codec;
mod counts;
mod exchange;
mod grouping;
mod hello;
mod members;
mod refusals;
mod scoped;
mod server;
mod tls;

#[allow(clippy::all, missing_docs, reason = "generated")]
mod proto {
    tonic::include_proto!("helenus.rpc.v1");
}

pub use client::Peers;
pub use hello::Own;
pub use members::Members;
pub use server::{Released, RpcServer};
pub use tls::{Tls, TlsFiles};

/// The version of the protocol between nodes that this binary speaks, and the oldest that it understands.
pub const PROTOCOL: u32 = 2;
pub const PROTOCOL_MIN: u32 = 2;

/// The largest message: a page of rows with room to spare.
const MESSAGE_BYTES_MAX: usize = 512 << 20;
