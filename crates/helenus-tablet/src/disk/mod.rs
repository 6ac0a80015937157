//! Files on the local disk: the object store over a folder, checksums, permissions and free space.

pub(crate) mod checksummed_json;
pub(crate) mod checksummed_objects;
pub(crate) mod disk_reserve;
pub(crate) mod durable_file;
pub(crate) mod incremental_delete;
pub(crate) mod local_store;
pub(crate) mod open_files;
pub(crate) mod permissions;
pub(crate) mod sst_writer;
