//! Object stores that nodes share. This module has connections and credentials, checks at the start, the objects that mark a bucket as a
//! store, and the wrappers through which a tablet's database sees the bucket.

pub(crate) mod availability;
pub(crate) mod aws;
pub(crate) mod check;
pub(crate) mod connection;
pub(crate) mod format;
pub(crate) mod gc_boundary_cache;
pub(crate) mod log_move;
pub(crate) mod log_store;
pub(crate) mod metered_object_store;
pub(crate) mod restore_copy;
pub(crate) mod store_documents;
pub(crate) mod store_identity;
pub(crate) mod subfolders;
pub(crate) mod tablet_object_store;
