//! Full query logs of Helenus: shown, replayed on other servers, and the results of those compared, as Cassandra's fqltool does.
//!
//! [`reader`] reads a log and [`ordered`] brings the entries of several into the order of time; [`target`] is a connection to a server, and
//! [`results`] what it has answered.

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
