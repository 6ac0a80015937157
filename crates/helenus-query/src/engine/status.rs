//! Facts about this node that operators ask for.

use super::system::local;
use super::{Engine, NodeInfo};

impl Engine {
    /// The node as it presents itself in `system.local`.
    pub fn node(&self) -> &NodeInfo {
        &self.node
    }

    /// `gossip_generation` of `system.local`: when the engine was opened, in seconds since the Unix epoch.
    pub fn generation_s(&self) -> i32 {
        self.generation_s
    }

    /// The last tokens of the ranges that this node owns. None of a node that has left its cluster.
    pub fn tokens(&self) -> Vec<i64> {
        local::tokens(self)
    }
}
