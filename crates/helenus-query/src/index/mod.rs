//! Secondary indexes: their definition, the restrictions that they answer, and their entries. Entries are written with the rows, built for
//! rows that existed before the index, read, and removed when they are stale.

pub(crate) mod analyzer;
pub(crate) mod building;
pub(crate) mod choice;
pub(crate) mod definition;
pub mod entries;
pub(crate) mod kinds;
pub mod list_search;
pub(crate) mod lookup;
pub(crate) mod nearest;
pub(crate) mod pattern;
pub(crate) mod posting_lists;
pub(crate) mod read;
pub(crate) mod similarity;
pub(crate) mod splitting;
pub mod stale_entry;
pub mod stale_removal;
pub mod upkeep;
pub(crate) mod value_range;
pub(crate) mod values;
