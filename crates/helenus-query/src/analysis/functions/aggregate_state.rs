//! What an aggregate remembers of the rows of a group.

use bytes::Bytes;
use helenus_cql::error::CqlError;

/// What an aggregate remembers of the rows of a group.
pub trait AggregateState: Send {
    /// Takes the arguments of one row.
    ///
    /// # Errors
    /// Of a user's function that fails.
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError>;
    /// Returns the result for the rows so far.
    ///
    /// # Errors
    /// As [`AggregateState::add`].
    fn result(&self) -> Result<Option<Bytes>, CqlError>;
    /// Forgets the rows.
    fn reset(&mut self);
    /// Returns the state of the rows so far, for [`AggregateState::merge`]; none of an aggregate that is not mergeable.
    fn partial(&self) -> Option<Bytes> {
        None
    }
    /// Takes the rows of a partial state of the same function, which come after those so far.
    fn merge(&mut self, _partial: &Bytes) {}
}

/// Returns the long that a partial state begins with.
pub(super) fn i64_of(partial: &[u8]) -> i64 {
    partial
        .first_chunk()
        .map_or(0, |bytes| i64::from_be_bytes(*bytes))
}
