//! A load generator on the bare protocol, for benchmarks whose client shares the cores with the server: a driver would take more CPU
//! time a request than some of the measured servers do.
//!
//! A benchmark implements [`RequestSource`] and runs a [`RawLoad`] of it. Each [`Target`] is one [`Connection`] with a fixed number of
//! requests in flight. The [`Pace`] says when requests are sent and from when their response times count:
//!
//! | pace | a request is sent | its response time counts from |
//! |---|---|---|
//! | [`Pace::Closed`] | as soon as another one is answered | sending |
//! | [`Pace::Open`] | when it is due, or late if all slots are busy | the time when it was due |
//! | [`Pace::Spaced`] | an interval after the one before; lateness is not caught up | sending |
//!
//! Everything runs on the caller's runtime; with a current-thread runtime the load takes one thread.

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

/// The shape of a load; its requests come from the sources of its targets.
#[derive(Clone, Debug)]
pub struct RawLoad {
    /// Requests in flight on each connection.
    pub in_flight: usize,
    pub pace: Pace,
    /// The number of slowest requests whose times are kept one by one; 0 for none.
    pub slowest_kept: usize,
}

/// Makes the requests of one connection and checks their responses.
pub trait RequestSource {
    /// Returns the statement that all requests execute, or the first of several.
    fn statement(&self) -> &str;

    /// Returns the statements, which executions name by their place.
    fn statements(&self) -> Vec<&str> {
        vec![self.statement()]
    }

    /// Returns the next request; none when the load is over.
    fn next(&mut self, random: &mut SmallRng) -> Option<Execution>;

    /// Checks a response; an error ends the load.
    ///
    /// # Errors
    /// If the response is not the expected one.
    fn check(&self, response: helenus_cql::frame::Response) -> anyhow::Result<Answer>;
}

/// The worth of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Operations that the response counts for.
    pub operations: u64,
    /// The paging state of the next page, which is requested at once.
    pub next_page: Option<Bytes>,
}

impl Answer {
    /// Returns a last page that counts for a number of operations.
    pub fn last(operations: u64) -> Self {
        Self {
            operations,
            next_page: None,
        }
    }
}

/// Returns a value of `len` bytes that do not compress.
pub fn random_value(len: usize, random: &mut SmallRng) -> Bytes {
    let mut value = Vec::with_capacity(len);
    random_bytes(&mut value, len, random);
    value.into()
}
