//! Traffic between this node and each other node: messages, and the bytes of statements, keys and rows in them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use uuid::Uuid;

/// A number of messages and their bytes.
#[derive(Debug, Default)]
pub struct MessageCounter {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl MessageCounter {
    pub fn add(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Requests from one other node to this one.
#[derive(Debug, Default)]
pub struct InboundTraffic {
    pub received: MessageCounter,
    /// Requests that were answered, even if with an error for a client.
    pub processed: MessageCounter,
    /// Requests that were not answered because of a failure on this node.
    pub failed: MessageCounter,
}

impl InboundTraffic {
    /// Counts a request of that size as processed, or as failed if it was not answered.
    pub fn ended(&self, bytes: usize, is_answered: bool) {
        match is_answered {
            true => self.processed.add(bytes),
            false => self.failed.add(bytes),
        }
    }
}

/// Requests from this node to one other node.
#[derive(Debug, Default)]
pub struct OutboundTraffic {
    /// Requests sent, in a shared message or in a call of their own.
    pub sent: MessageCounter,
    /// Requests without an answer in time.
    pub expired: MessageCounter,
    /// Requests that failed because the node was not reached or the connection ended.
    pub failed: MessageCounter,
}

/// Pending requests from this node to one other node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboundQueue {
    pub messages: u64,
    pub bytes: u64,
}

/// Traffic from the other nodes that have sent requests to this one.
#[derive(Debug, Default)]
pub struct Inbound {
    nodes: Mutex<HashMap<Uuid, Arc<InboundTraffic>>>,
}

impl Inbound {
    /// Returns the counters of a node, which the caller keeps while it serves that node.
    pub fn of(&self, node: Uuid) -> Arc<InboundTraffic> {
        self.nodes.lock().entry(node).or_default().clone()
    }

    pub fn list(&self) -> Vec<(Uuid, Arc<InboundTraffic>)> {
        let nodes = self.nodes.lock();
        nodes
            .iter()
            .map(|(node, traffic)| (*node, traffic.clone()))
            .collect()
    }
}
