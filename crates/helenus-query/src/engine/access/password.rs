//! Passwords and their hashes: bcrypt, as in Cassandra, so that hashes can be taken along.

use helenus_cql::error::CqlError;

/// `2^COST` rounds (Cassandra's `auth_bcrypt_gensalt_log2_rounds`): some 50 ms of a core.
const COST: u32 = 10;

/// The highest cost of a hash that a password is held against: some 400 ms of a core. Each one more doubles that, and whoever can set its
/// own hash could keep the node busy for hours.
pub(crate) const COST_MAX: u32 = 13;

/// Returns the cost of a hash that a password can be held against; none for what is no hash.
pub(crate) fn cost(hash: &str) -> Option<u32> {
    Some(hash.parse::<bcrypt::HashParts>().ok()?.get_cost())
}

/// Returns a hash of a password, with a salt of its own.
///
/// # Errors
/// If there is no randomness to be had.
pub(crate) fn hash(password: &str) -> Result<String, CqlError> {
    bcrypt::hash_with_result(password, COST)
        .map(|parts| parts.format_for_version(bcrypt::Version::TwoA))
        .map_err(|error| CqlError::Server(format!("the password can't be hashed: {error}")))
}

/// Whether a hash is one of this password. False for what is no hash.
pub(crate) fn is_of(password: &str, hash: &str) -> bool {
    bcrypt::verify(password, hash).unwrap_or(false)
}
