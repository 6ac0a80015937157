//! A load generator on the bare protocol, for benchmarks whose client shares the cores with the server. A driver would need more CPU time
//! per request than some of the measured servers.
//!
//! A benchmark implements [`RequestSource`] and runs a [`RawLoad`] with it. Each [`Target`] is one [`Connection`] with a fixed number of
//! requests in flight. The [`Pace`] decides when requests are sent, and the start of their response times:
//!
//! | pace | a request is sent | its response time counts from |
//! |---|---|---|
//! | [`Pace::Closed`] | as soon as another one is answered | sending |
//! | [`Pace::Open`] | when it is due, or late if all slots are busy | the time when it was due |
//! | [`Pace::Spaced`] | an interval after the one before; delays are not made up for | sending |
//!
//! Everything runs on the caller's runtime. With a current-thread runtime the load uses one thread.

mod connection;
mod driver;
mod load;
mod pacing;
mod slowest;
mod timer;

use bytes::Bytes;
use rand::rngs::SmallRng;

use crate::data::value::random_bytes;
pub use connection::{Connection, Execution, run_statements};
pub use load::{Outcome, Target};
pub use pacing::Pace;
pub use slowest::{SlowestRequests, Stall, Undisturbed};

/// The shape of a load. Its requests come from the sources of its targets.
#[derive(Clone, Debug)]
pub struct RawLoad {
    /// Requests in flight on each connection.
    pub in_flight: usize,
    pub pace: Pace,
    /// Number of the slowest requests whose times are kept. 0 keeps none.
    pub slowest_kept: usize,
}

/// Source of the requests of one connection, which also checks their responses.
pub trait RequestSource {
    /// Returns the statement of all requests, or the first of several statements.
    fn statement(&self) -> &str;

    /// Returns all statements. Executions refer to them by index.
    fn statements(&self) -> Vec<&str> {
        vec![self.statement()]
    }

    /// Returns the next request. `None` ends the load.
    fn next(&mut self, random: &mut SmallRng) -> Option<Execution>;

    /// Checks a response. An error ends the load.
    ///
    /// # Errors
    /// Fails if the response is not the expected one.
    fn check(&self, response: helenus_cql::frame::Response) -> anyhow::Result<Answer>;
}

/// The content of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Number of operations of the response.
    pub operations: u64,
    /// The paging state of the next page, which is requested at once. `None` after the last page.
    pub next_page: Option<Bytes>,
}

impl Answer {
    /// Returns the answer of a last page with a number of operations.
    pub fn last(operations: u64) -> Self {
        Self {
            operations,
            next_page: None,
        }
    }
}

/// Returns a value of `len` incompressible bytes.
pub fn random_value(len: usize, random: &mut SmallRng) -> Bytes {
    let mut value = Vec::with_capacity(len);
    random_bytes(&mut value, len, random);
    value.into()
}
