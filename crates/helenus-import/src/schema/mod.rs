//! The schema of the source, what the target lacks of it, and the differences between the two.

pub mod compare;
pub mod live;
pub mod missing_types;
pub mod plan;
pub mod replication;
mod resolve;
pub mod script;
pub mod shape;
pub mod source;
mod type_scripts;

#[cfg(test)]
mod schema_tests;

pub use compare::differences;
pub use live::LiveSchema;
pub use plan::{Plan, PlanOptions, plan};
pub use resolve::{UserTypes, resolve_type};
pub use shape::{ColumnRole, ColumnShape, TableShape};
pub use source::SourceSchema;
