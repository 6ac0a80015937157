//! SELECT: planning and execution.
//!
//! [`plan()`] types the relations ([`relation`]), checks them together ([`restrictions`]) and says how rows become result
//! rows ([`group`], [`crate::selection`]). [`execute()`] binds the values of a request: partition keys, tokens and slices
//! ([`bounds`]), what is left to test ([`filter`]); reads partition by partition ([`source`]); and collects pages
//! ([`output`], [`paging`]). [`restrictions`] serve UPDATE and DELETE too.

mod bounds;
#[cfg(test)]
mod explain;
mod filter;
mod group;
mod index_choice;
mod index_read;
mod limits;
mod measure;
mod output;
mod paging;
mod plan;
mod point;
mod relation;
pub mod restriction;
mod restriction_set;
#[cfg(test)]
mod restriction_text;
pub mod restrictions;
mod row_view;
mod run;
mod similarity;
mod size;
mod source;
mod token;
mod tombstones;
mod view;
mod view_filter;
mod virtual_read;

pub use bounds::{DeletedSlices, partition_key};
pub use filter::{Expression, Filter, Operand};
pub use index_choice::is_storage_attached;
pub(crate) use measure::check_indexed;
pub(crate) use paging::check_paging_state;
pub use plan::{SelectPlan, plan};
pub use point::PointKey;
pub use relation::{relation_source, relation_text, require_column};
pub use row_view::{CellView, RowView};
pub use run::execute;
pub(crate) use run::tokens;
pub use view::{Live, View};
pub use view_filter::view_filter;

#[cfg(test)]
mod select_tests;
