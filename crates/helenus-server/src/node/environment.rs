//! The parts of the machine that a node needs apart from the store. A simulator replaces them.

use std::sync::Arc;

use helenus_cluster::{Clock, SystemClock};

use crate::network::{Network, Tcp};

/// The clock, the network and the randomness of a node.
#[derive(Clone)]
pub struct NodeEnvironment {
    /// The clock that measures the lease.
    pub clock: Arc<dyn Clock>,
    /// The network to other nodes.
    pub network: Arc<dyn Network>,
    /// The seed from which the node's incarnations are generated.
    pub seed: u64,
}

impl Default for NodeEnvironment {
    /// Returns the machine's clock and network, and a random seed.
    fn default() -> NodeEnvironment {
        NodeEnvironment {
            clock: Arc::new(SystemClock),
            network: Arc::new(Tcp),
            seed: rand::random(),
        }
    }
}
