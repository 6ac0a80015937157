//! Full query logs of Helenus: prints them, replays them on other servers, and compares the results, like Cassandra's fqltool.
//!
//! [`reader`] reads a log and [`ordered`] merges the entries of several by time. [`target`] is a connection to a server, and [`results`]
//! has its answers.

mod compare;
mod dump;
mod hex;
mod ordered;
mod reader;
mod replay;
mod results;
mod target;

pub use compare::compare;
pub use dump::dump;
pub use replay::{Replayed, replay};
