//! Caches: merged rows in memory, by key and by partition, with the generations that invalidate them, and parts of SSTables on the local
//! disk.

pub(crate) mod disk;
pub(crate) mod generations;
pub(crate) mod hot_keys;
pub(crate) mod partition_cache;
pub(crate) mod row_cache;
pub(crate) mod row_cache_handle;
