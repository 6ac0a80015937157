//! Everything between a parsed statement and the store: the schema, name resolution, restrictions, plans and
//! their execution, functions, paging, batches, lightweight transactions, indexes and the system tables.
//! No sockets.
//!
//! A statement's way: [`engine::Engine::query`] or [`engine::Engine::prepare`] parse it and make a [`plan::Plan`]
//! against a [`schema::Schema`] snapshot; [`engine::Engine`] then executes the plan with the bound values of
//! a request ([`request::QueryOptions`]) and answers with a [`response::Outcome`].

pub mod access;
pub mod answers;
pub mod bind;
pub mod client_memory;
pub mod clients;
pub mod clock;
pub mod cluster;
mod consistency;
pub mod ddl;
pub mod describe;
pub mod dml;
pub mod engine;
pub mod functions;
mod java_order;
pub mod plan;
#[cfg(test)]
mod plan_tests;
pub mod request;
pub mod response;
pub mod schema;
pub mod scope;
pub mod select;
pub mod selection;
pub mod storage;
pub mod system;
pub mod term;
pub mod trace;
