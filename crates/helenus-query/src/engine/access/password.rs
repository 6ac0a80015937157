//! Passwords and their hashes. Hashes use bcrypt, as in Cassandra, so that they can be copied from there.

use helenus_cql::error::CqlError;

/// Cost of new hashes. `2^COST` rounds (Cassandra's `auth_bcrypt_gensalt_log2_rounds`) take about 50 ms of a core.
const COST: u32 = 10;

/// Maximum cost of a hash that passwords are checked against, about 400 ms of a core. Each further step doubles the time. Without the
/// limit, a role that can set its own hash could keep the node busy for hours.
pub(crate) const COST_MAX: u32 = 13;

/// Returns the cost of a hash. `None` if the text is not a hash.
pub(crate) fn cost(hash: &str) -> Option<u32> {
    Some(hash.parse::<bcrypt::HashParts>().ok()?.get_cost())
}

/// Returns a hash of a password, with a new salt.
///
/// # Errors
/// No random numbers are available.
pub(crate) fn hash(password: &str) -> Result<String, CqlError> {
    bcrypt::hash_with_result(password, COST)
        .map(|parts| parts.format_for_version(bcrypt::Version::TwoA))
        .map_err(|error| CqlError::Server(format!("the password can't be hashed: {error}")))
}

/// Returns true if the hash is one of this password. False if the text is not a hash.
pub(crate) fn is_of(password: &str, hash: &str) -> bool {
    bcrypt::verify(password, hash).unwrap_or(false)
}
