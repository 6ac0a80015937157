//! Everything between a parsed statement and the store: the schema, name resolution, restrictions, plans and their execution, functions,
//! paging, batches, lightweight transactions, indexes and the system tables. No sockets.
//!
//! The path of a statement: [`engine::Engine::query`] or [`engine::Engine::prepare`] parses it and makes a [`analysis::Plan`] against a
//! [`schema::Schema`] snapshot. [`engine::Engine`] then has the plan executed ([`execution`]) with the bound values of a request
//! ([`request::ClientFrame`]) and answers with a [`response::Outcome`].
//!
//! The layers, each of which uses only those below it, from the bottom: requests and their limits ([`request`], [`response`], [`limits`],
//! [`measurement`], [`trace`]); rows as values ([`rows`]); the [`schema`]; [`analysis`], which has no side effects; the other nodes
//! ([`cluster`]); [`storage`]; [`execution`]; and the [`engine`] on top. Parts of the [`index`] module belong to several layers.

pub mod analysis;
pub mod clock;
pub mod cluster;
pub mod engine;
pub mod execution;
pub mod failure;
#[cfg(test)]
mod history_masks_tests;
pub mod index;
pub mod java_order;
pub mod limits;
pub mod measurement;
pub mod metrics;
#[cfg(test)]
mod plan_tests;
pub(crate) mod properties;
pub mod request;
pub mod response;
pub mod rows;
pub mod schema;
pub mod statement_shape;
pub mod storage;
pub mod trace;
#[cfg(test)]
mod transaction_tests;

/// Boxes the future of an `async fn` that other crates call.
///
/// A future that is not boxed is compiled by each crate that polls it, with all futures inside it: by the next crate, the binary and each
/// test. A boxed one is compiled once, in the crate of its function. The cost is one allocation per call.
pub(crate) use async_recursion::async_recursion as boxed;
