//! What this node has exchanged with each other node: messages, and the bytes of statements, keys and rows in them.

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

/// What one node has asked of this one.
#[derive(Debug, Default)]
pub struct InboundTraffic {
    pub received: MessageCounter,
    /// Answered, be it with an error for a client.
    pub processed: MessageCounter,
    /// Not answered, since something here has failed.
    pub failed: MessageCounter,
}

impl InboundTraffic {
    /// A message of that size has been worked on.
    pub fn ended(&self, bytes: usize, is_answered: bool) {
        match is_answered {
            true => self.processed.add(bytes),
            false => self.failed.add(bytes),
        }
    }
}

/// What this node has asked of another one.
#[derive(Debug, Default)]
pub struct OutboundTraffic {
    /// Put into a message, or into a call of its own.
    pub sent: MessageCounter,
    /// No answer in time.
    pub expired: MessageCounter,
    /// The node was not reached, or the connection has ended.
    pub failed: MessageCounter,
}

/// What this node asks of another one now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboundQueue {
    pub messages: u64,
    pub bytes: u64,
}

/// The other nodes that have asked something of this one.
#[derive(Debug, Default)]
pub struct Inbound {
    nodes: Mutex<HashMap<Uuid, Arc<InboundTraffic>>>,
}

impl Inbound {
    /// Returns the counters of a node, to be kept while it asks.
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
