//! Who has logged in at the console.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_query::request::User;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Sessions at a time; another one ends the one that was idle the longest.
const SESSIONS_MAX: usize = 256;
/// A session ends when nothing is asked for so long.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// And in any case after so long.
const AGE_MAX: Duration = Duration::from_secs(12 * 3600);

type Digested = [u8; 32];

/// 256 random bits in hexadecimal.
pub(super) fn random_token() -> String {
    rand::random::<[u8; 32]>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What a secret is compared by, so that the time of a comparison tells nothing of the secret.
pub(super) fn digest(secret: &str) -> Digested {
    Sha256::digest(secret.as_bytes()).into()
}

/// A session that is valid now.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub user: Arc<User>,
    /// What commands must bring along in a header.
    pub token: String,
    began: Instant,
    used: Instant,
}

impl Session {
    fn is_valid(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE_MAX && now.duration_since(self.began) < AGE_MAX
    }
}

/// The sessions by the digest of what their cookies hold.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<Digested, Session>>);

impl Sessions {
    /// Returns a new session; what its cookie holds.
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

    /// Returns the session of a cookie, which is used by that.
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
