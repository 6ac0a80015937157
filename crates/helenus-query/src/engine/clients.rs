//! Who is connected and what was asked: what `system_views` shows of both. A connection counts in numbers of its own, so that threads don't
//! take them from each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The clients of a node.
#[derive(Debug, Default)]
pub struct Clients {
    inner: Arc<Inner>,
    next_id: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// What those have asked for that are gone.
    gone: Mutex<Asked>,
}

/// Statements that were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub prepared: u64,
    /// Given as text, each by itself.
    pub texts: u64,
}

/// What STARTUP said.
#[derive(Clone, Debug)]
pub struct Session {
    pub options: BTreeMap<String, String>,
    pub protocol_version: u8,
    pub keyspace: Option<String>,
    /// Who has logged in.
    pub user: Option<String>,
}

/// A client's connection.
#[derive(Debug)]
pub struct Client {
    pub address: SocketAddr,
    /// Protocol and cipher suite, if it is encrypted.
    pub encryption: Option<(String, String)>,
    session: Mutex<Option<Session>>,
    /// Its connection shall end.
    ended: Notify,
    requests: AtomicU64,
    prepared: AtomicU64,
    texts: AtomicU64,
}

impl Client {
    /// None before STARTUP.
    pub fn session(&self) -> Option<Session> {
        self.session.lock().clone()
    }

    /// Returns when the connection shall end.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Requests of every kind.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn asked(&self) -> Asked {
        Asked {
            prepared: self.prepared.load(Ordering::Relaxed),
            texts: self.texts.load(Ordering::Relaxed),
        }
    }
}

/// A client as its connection holds it; it is forgotten when this is dropped.
#[derive(Debug)]
pub struct Connected {
    id: u64,
    client: Arc<Client>,
    inner: Arc<Inner>,
}

/// Counts one; only the connection itself does so.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Connected {
    /// What others see of it.
    pub fn client(&self) -> Arc<Client> {
        self.client.clone()
    }

    /// The connection has started up.
    pub fn started(&self, session: Session) {
        *self.client.session.lock() = Some(session);
    }

    /// The connection is in another keyspace now.
    pub fn uses(&self, keyspace: &str) {
        if let Some(session) = &mut *self.client.session.lock() {
            session.keyspace = Some(keyspace.to_owned());
        }
    }

    /// The client has logged in.
    pub fn logged_in(&self, user: &str) {
        if let Some(session) = &mut *self.client.session.lock() {
            session.user = Some(user.to_owned());
        }
    }

    pub fn count_request(&self) {
        count(&self.client.requests);
    }

    pub fn count_prepared(&self) {
        count(&self.client.prepared);
    }

    pub fn count_text(&self) {
        count(&self.client.texts);
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.inner.connected.lock().remove(&self.id);
        self.inner.gone.lock().add(self.client.asked());
    }
}

impl Asked {
    fn add(&mut self, other: Asked) {
        self.prepared += other.prepared;
        self.texts += other.texts;
    }
}

impl Clients {
    /// Returns a client has connected, perhaps encrypted by a protocol and a cipher suite.
    pub fn connect(&self, address: SocketAddr, encryption: Option<(String, String)>) -> Connected {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client {
            address,
            encryption,
            session: Mutex::default(),
            ended: Notify::new(),
            requests: AtomicU64::new(0),
            prepared: AtomicU64::new(0),
            texts: AtomicU64::new(0),
        });
        let inner = self.inner.clone();
        inner.connected.lock().insert(id, client.clone());
        Connected { id, client, inner }
    }

    /// Returns the connections there are, oldest first.
    pub fn connected(&self) -> Vec<Arc<Client>> {
        self.inner.connected.lock().values().cloned().collect()
    }

    /// Ends the connections of users that may not be logged in any more.
    pub fn end_unless(&self, may_stay: impl Fn(&str) -> bool) {
        for client in self.connected() {
            let must_go = |session: &Session| session.user.as_deref().is_some_and(|user| !may_stay(user));
            if client.session.lock().as_ref().is_some_and(must_go) {
                client.ended.notify_one();
            }
        }
    }

    /// What was asked for since the node began.
    pub fn asked(&self) -> Asked {
        let mut asked = *self.inner.gone.lock();
        for client in self.connected() {
            asked.add(client.asked());
        }
        asked
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
