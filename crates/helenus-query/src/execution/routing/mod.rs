//! Routing: the choice of the node for a request, or for each part of it.

pub(crate) mod coordinate;
pub(crate) mod route;
pub(crate) mod serve;
