//! Cassandra's reconcile rules, on packed values.

use bytes::Bytes;

use crate::error::RowError;
use crate::key::KeyKind;

/// Merges a stored value, if there is one, and operands, in any order, into one packed value.
///
/// Associative, commutative and idempotent, and the bytes are canonical: whatever the order and the grouping of
/// merges, the result is byte for byte the same.
///
/// # Errors
/// [`RowError`] if any of the values is corrupt.
pub fn merge(_kind: KeyKind, _existing: Option<&Bytes>, _operands: &[Bytes]) -> Result<Bytes, RowError> {
    unimplemented!()
}
