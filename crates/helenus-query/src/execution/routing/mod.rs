//! Which node runs a request, or which part of it.

pub(crate) mod coordinate;
pub(crate) mod request;
pub(crate) mod route;
