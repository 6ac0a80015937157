//! When tablets are split and merged.

/// The sizes between which tablets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReshapeLimits {
    /// A tablet with more is split.
    pub split_bytes: u64,
    pub split_ops_per_s: u64,
    /// Neighbours that have less together are merged.
    pub merge_bytes: u64,
    pub merge_ops_per_s: u64,
    /// With fewer, tablets are split until each node can have its share; they are not merged below it.
    pub tablets_per_node_min: u32,
    /// With more, nothing is split.
    pub tablets_per_node_max: u32,
}

impl Default for ReshapeLimits {
    fn default() -> Self {
        ReshapeLimits {
            split_bytes: 32 << 30,
            split_ops_per_s: 50_000,
            merge_bytes: 4 << 30,
            merge_ops_per_s: 5_000,
            tablets_per_node_min: 4,
            tablets_per_node_max: 64,
        }
    }
}
