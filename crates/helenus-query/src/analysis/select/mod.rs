//! Plans of SELECT.
//!
//! [`plan()`] types the relations and checks them together ([`super::restrictions`]). It decides how rows become result rows ([`group`],
//! [`super::selection`]). The limits of a request are bound here ([`limits`]), and paging states are read and written ([`paging`]).

#[cfg(test)]
mod explain;
pub(crate) mod group;
pub(crate) mod limits;
pub(crate) mod paging;
pub(crate) mod plan;
pub(crate) mod point_key;
pub(crate) mod similarity;
pub(crate) mod value_order;

pub(crate) use paging::check_paging_state;

pub use plan::{SelectPlan, plan};
pub use point_key::PointKey;
