//! The state of an aggregate over the rows of a group.

use bytes::Bytes;
use helenus_cql::error::CqlError;

/// The state of an aggregate over the rows of a group.
pub trait AggregateState: Send {
    /// Takes the arguments of one row.
    ///
    /// # Errors
    /// A user-defined function fails.
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError>;
    /// Returns the result for the rows so far.
    ///
    /// # Errors
    /// See [`AggregateState::add`].
    fn result(&self) -> Result<Option<Bytes>, CqlError>;
    /// Forgets the rows.
    fn reset(&mut self);
    /// Returns the state of the rows so far, for [`AggregateState::merge`]. `None` if the aggregate is not mergeable.
    fn partial(&self) -> Option<Bytes> {
        None
    }
    /// Adds a partial state of the same function. Its rows come after the rows so far.
    fn merge(&mut self, _partial: &Bytes) {}
}

/// Returns the 64-bit integer at the start of a partial state.
pub(super) fn i64_of(partial: &[u8]) -> i64 {
    partial
        .first_chunk()
        .map_or(0, |bytes| i64::from_be_bytes(*bytes))
}
