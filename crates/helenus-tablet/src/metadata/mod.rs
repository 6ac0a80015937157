//! Records of a store about itself: format, inventory, and the small documents of the crates above.

pub(crate) mod documents;
pub(crate) mod folders;
pub(crate) mod format;
pub(crate) mod inventory;
pub(crate) mod slatedb_layout;
pub(crate) mod store_metadata;
