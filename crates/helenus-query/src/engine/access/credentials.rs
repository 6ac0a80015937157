//! Authentication by name and password (Cassandra's `PasswordAuthenticator`).

use std::net::IpAddr;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};

use super::login_limiter::LoginLimiter;
use super::password;
use crate::request::{User, Users};
use crate::schema::roles::Roles;

/// A name and a password from a token of the SASL mechanism PLAIN.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub name: String,
    pub password: String,
}

/// Maximum length of a name and of a password, in bytes.
pub(crate) const CREDENTIAL_LEN_MAX: usize = 1024;

impl Credentials {
    /// Decodes `authzId NUL authnId NUL password`. The token is read from its end, as in Cassandra, and `authzId` is ignored.
    ///
    /// # Errors
    /// Cassandra's errors for malformed tokens.
    pub fn from_token(token: &[u8]) -> Result<Credentials, CqlError> {
        let refused = |message: &str| Err(CqlError::BadCredentials(message.to_owned()));
        let mut parts = token.rsplit(|byte| *byte == 0);
        let last = parts.next();
        let (password, name) = match (parts.next(), parts.next()) {
            // A part counts only if it follows a NUL.
            (Some(name), Some(_)) => (last, Some(name)),
            (Some(_), None) => (last, None),
            (None, _) => (None, None),
        };
        if parts.next().is_some() {
            return refused(
                "Credential format error: username or password is empty or contains NUL(\\0) character",
            );
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match (name, password) {
            (_, None | Some([])) => refused("Password must not be null"),
            (None | Some([]), _) => refused("Authentication ID must not be null"),
            (Some(name), Some(password)) if name.len().max(password.len()) > CREDENTIAL_LEN_MAX => {
                refused("Username or password is longer than 1024 bytes")
            }
            (Some(name), Some(password)) => Ok(Credentials {
                name: text(name),
                password: text(password),
            }),
        }
    }
}

/// Number of recently verified passwords that are recognized by a digest of password and hash. bcrypt takes about 50 ms, and a driver opens
/// many connections.
const VERIFIED_MAX: usize = 1024;
/// Hash that a password is compared with if the role has none. The comparison takes the usual time, so that clients cannot find out which
/// roles exist. No password has this hash.
pub(crate) const DUMMY_HASH: &str = "$2a$10$.....................................................";
/// Maximum number of passwords that are checked at a time. At most half of the cores check passwords.
const AT_A_TIME_MAX: usize = 8;

fn at_a_time() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).clamp(1, AT_A_TIME_MAX)
}

/// Authenticates clients.
pub(crate) struct PasswordAuthenticator {
    pub users: Users,
    verified: Cache<[u8; 32], ()>,
    /// Random key of the digests, known only to this process.
    secret: [u8; 16],
    turns: LoginLimiter,
}

impl Default for PasswordAuthenticator {
    fn default() -> PasswordAuthenticator {
        PasswordAuthenticator {
            users: Users::default(),
            verified: Cache::new(VERIFIED_MAX),
            secret: *uuid::Uuid::new_v4().as_bytes(),
            turns: LoginLimiter::new(at_a_time()),
        }
    }
}

impl PasswordAuthenticator {
    /// Authenticates a client at that address. The password must be the role's, and the role must be allowed to log in.
    ///
    /// # Errors
    /// Cassandra's error, which is the same for a missing role and for a wrong password.
    pub async fn authenticate(
        &self,
        access: &Roles,
        address: IpAddr,
        credentials: Credentials,
    ) -> Result<Arc<User>, CqlError> {
        let refused = |message: String| Err(CqlError::BadCredentials(message));
        let name = credentials.name.clone();
        let role = access.role(&name);
        let hash = role.and_then(|role| role.salted_hash.clone());
        let hash = hash.filter(|hash| is_checkable(hash, &name));
        let hash = hash.unwrap_or_else(|| DUMMY_HASH.to_owned());
        if !self.is_right(address, credentials.password, hash).await {
            return refused(format!("Provided username {name} and/or password are incorrect"));
        }
        match role.is_some_and(|role| role.can_login) {
            true => Ok(self.users.get(&name)),
            false => refused(format!("{name} is not permitted to log in")),
        }
    }

    async fn is_right(&self, address: IpAddr, password: String, hash: String) -> bool {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(self.secret)
            .chain_update(hash.as_bytes())
            .chain_update([0])
            .chain_update(password.as_bytes())
            .finalize()
            .into();
        if self.verified.get(&digest).is_some() {
            return true;
        }
        let Some(turn) = self.turns.take(address).await else {
            return false;
        };
        // The turn ends when the password has been checked, even if the client is gone before.
        let verify = move || {
            let _turn = turn;
            password::is_of(&password, &hash)
        };
        let verified = helenus_tablet::threads::spawn_blocking(verify).await;
        let is_right = verified.unwrap_or(false);
        if is_right {
            self.verified.insert(digest, ());
        }
        is_right
    }
}

/// Returns true if checking the role's hash does not cost too much. Hashes copied from elsewhere may have a higher cost.
fn is_checkable(hash: &str, role: &str) -> bool {
    let is_checkable = password::cost(hash).is_none_or(|cost| cost <= password::COST_MAX);
    if !is_checkable {
        tracing::debug!(
            role,
            most = password::COST_MAX,
            "a role's hash costs too much to be checked: give it a new password"
        );
    }
    is_checkable
}
