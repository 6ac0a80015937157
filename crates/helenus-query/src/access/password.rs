//! Passwords and their hashes: bcrypt, as in Cassandra, so that hashes can be taken along.

use helenus_cql::error::CqlError;

/// `2^COST` rounds (Cassandra's `auth_bcrypt_gensalt_log2_rounds`): some 50 ms of a core.
const COST: u32 = 10;

/// Whether a text is a hash that a password can be held against.
pub(super) fn is_hash(text: &str) -> bool {
    text.parse::<bcrypt::HashParts>().is_ok()
}

/// A hash of a password, with a salt of its own.
///
/// # Errors
/// If there is no randomness to be had.
pub(super) fn hash(password: &str) -> Result<String, CqlError> {
    bcrypt::hash_with_result(password, COST)
        .map(|parts| parts.format_for_version(bcrypt::Version::TwoA))
        .map_err(|error| CqlError::Server(format!("the password can't be hashed: {error}")))
}

/// Whether a hash is one of this password. False for what is no hash.
pub(super) fn is_of(password: &str, hash: &str) -> bool {
    bcrypt::verify(password, hash).unwrap_or(false)
}
