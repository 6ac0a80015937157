//! The connected clients and counts of their statements, for `system_views`. Each connection has its own counters, so that threads do not
//! contend for them.

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
    /// Statements of the connections that have ended.
    gone: Mutex<StatementCounts>,
}

/// Numbers of statements that were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementCounts {
    pub prepared: u64,
    /// Statements that were sent as text, each alone.
    pub texts: u64,
}

/// The settings of a connection, from STARTUP on.
#[derive(Clone, Debug)]
pub struct Session {
    pub options: BTreeMap<String, String>,
    pub protocol_version: u8,
    pub keyspace: Option<String>,
    /// The authenticated role. `None` if no client has logged in.
    pub user: Option<String>,
}

/// A client's connection.
#[derive(Debug)]
pub struct Client {
    pub address: SocketAddr,
    /// Protocol and cipher suite. `None` if the connection is not encrypted.
    pub encryption: Option<(String, String)>,
    session: Mutex<Option<Session>>,
    /// Notified when the connection shall end.
    ended: Notify,
    requests: AtomicU64,
    prepared: AtomicU64,
    texts: AtomicU64,
}

impl Client {
    /// Returns the session. `None` before STARTUP.
    pub fn session(&self) -> Option<Session> {
        self.session.lock().clone()
    }

    /// Waits until the connection shall end.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Returns the number of requests of any kind.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn statement_counts(&self) -> StatementCounts {
        StatementCounts {
            prepared: self.prepared.load(Ordering::Relaxed),
            texts: self.texts.load(Ordering::Relaxed),
        }
    }
}

/// Registration of a client by its connection. Dropping it removes the client.
#[derive(Debug)]
pub struct Connected {
    id: u64,
    client: Arc<Client>,
    inner: Arc<Inner>,
}

/// Adds one to a counter. Only the connection itself changes its counters, so no atomic addition is needed.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Connected {
    /// Returns the client as others see it.
    pub fn client(&self) -> Arc<Client> {
        self.client.clone()
    }

    /// Notes that the connection has started up.
    pub fn started(&self, session: Session) {
        *self.client.session.lock() = Some(session);
    }

    /// Notes that the connection now uses another keyspace.
    pub fn uses(&self, keyspace: &str) {
        if let Some(session) = &mut *self.client.session.lock() {
            session.keyspace = Some(keyspace.to_owned());
        }
    }

    /// Notes that the client has logged in.
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
        self.inner.gone.lock().add(self.client.statement_counts());
    }
}

impl StatementCounts {
    fn add(&mut self, other: StatementCounts) {
        self.prepared += other.prepared;
        self.texts += other.texts;
    }
}

impl Clients {
    /// Registers a new connection. `encryption` is its protocol and cipher suite, `None` if it is not encrypted.
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

    /// Returns the open connections, oldest first.
    pub fn connected(&self) -> Vec<Arc<Client>> {
        self.inner.connected.lock().values().cloned().collect()
    }

    /// Ends the connections of users for whom `may_stay` is false.
    pub fn end_unless(&self, may_stay: impl Fn(&str) -> bool) {
        for client in self.connected() {
            let must_go = |session: &Session| session.user.as_deref().is_some_and(|user| !may_stay(user));
            if client.session.lock().as_ref().is_some_and(must_go) {
                client.ended.notify_one();
            }
        }
    }

    /// Returns the numbers of statements since the node started.
    pub fn statement_counts(&self) -> StatementCounts {
        let mut counts = *self.inner.gone.lock();
        for client in self.connected() {
            counts.add(client.statement_counts());
        }
        counts
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
