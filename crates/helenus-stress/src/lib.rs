//! A load generator for any CQL endpoint. It links no engine, so that it measures every server alike.
//!
//! - [`results`]: what a run leaves behind, as types and as files
//! - [`report`]: those files as one page for a browser

pub mod report;
pub mod results;
