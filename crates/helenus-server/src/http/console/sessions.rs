//! The sessions of roles that have logged in at the console.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_query::request::User;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Maximum number of sessions. A further one ends the session that was idle for the longest time.
const SESSIONS_MAX: usize = 256;
/// Time without requests after which a session ends.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// Time after which a session ends in any case.
const AGE_MAX: Duration = Duration::from_secs(12 * 3600);

type Digested = [u8; 32];

/// Returns 256 random bits in hexadecimal digits.
pub(super) fn random_token() -> String {
    rand::random::<[u8; 32]>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns a digest for comparing secrets. The duration of a comparison of digests reveals nothing about the secret.
pub(super) fn digest(secret: &str) -> Digested {
    Sha256::digest(secret.as_bytes()).into()
}

/// A valid session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub user: Arc<User>,
    /// Token that commands must have in a header.
    pub token: String,
    began: Instant,
    used: Instant,
}

impl Session {
    fn is_valid(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE_MAX && now.duration_since(self.began) < AGE_MAX
    }
}

/// The sessions, by the digest of their cookie's value.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<Digested, Session>>);

impl Sessions {
    /// Begins a session, and returns the value of its cookie.
    pub fn begin(&self, user: Arc<User>, now: Instant) -> String {
        let id = random_token();
        let session = Session {
            user,
            token: random_token(),
            began: now,
            used: now,
        };
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| session.is_valid(now));
        if sessions.len() >= SESSIONS_MAX {
            let idlest = sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(idlest) = idlest.map(|(key, _)| *key) {
                sessions.remove(&idlest);
            }
        }
        sessions.insert(digest(&id), session);
        id
    }

    /// Returns the session of a cookie, and records that it was used now. `None` if there is no valid session.
    pub fn find(&self, id: &str, now: Instant) -> Option<Session> {
        let mut sessions = self.0.lock();
        let session = sessions
            .get_mut(&digest(id))
            .filter(|session| session.is_valid(now))?;
        session.used = now;
        Some(session.clone())
    }

    pub fn end(&self, id: &str) {
        self.0.lock().remove(&digest(id));
    }
}
