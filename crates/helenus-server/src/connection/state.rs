//! The states of a connection.
//!
//! [`SessionState`] says how far the client has come: greeting (STARTUP is awaited) → authenticating, if it has to log in → ready.
//! [`Lifecycle`] says whether the connection goes on: open → draining (the node stops) → closing. A connection in any session state can be
//! closed; one that is not ready when the node stops is closed at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use helenus_cql::frame::{Compression, ProtocolVersion};
use helenus_query::engine::clients::Connected;
use helenus_query::request::ClientState;
use helenus_query::request::User;
use tokio::sync::oneshot;

use crate::server_state::Stopping;

/// What STARTUP agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartupOptions {
    pub version: ProtocolVersion,
    pub compression: Option<Compression>,
    /// The client wants OVERLOADED instead of waiting for memory.
    pub throw_on_overload: bool,
    /// The client wants to know where it should have asked. Only versions from 4 on can tell it.
    pub knows_tablets: bool,
    /// The client knows the error of partitions that are asked for too often.
    pub knows_rate_limits: bool,
}

/// How far a client has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum SessionState {
    /// No STARTUP was accepted yet.
    Greeting {
        /// A STARTUP came and was refused.
        startup_refused: bool,
    },
    /// STARTUP was accepted; the client has to log in.
    Authenticating(StartupOptions),
    /// Statements are run.
    Ready(StartupOptions),
}

impl SessionState {
    pub fn is_ready(&self) -> bool {
        matches!(self, SessionState::Ready(_))
    }

    /// Returns the protocol version of a client that is ready.
    pub fn ready_version(&self) -> Option<ProtocolVersion> {
        match self {
            SessionState::Ready(options) => Some(options.version),
            SessionState::Greeting { .. } | SessionState::Authenticating(_) => None,
        }
    }

    /// What STARTUP has agreed on, once one was accepted.
    pub fn options(&self) -> Option<&StartupOptions> {
        match self {
            SessionState::Greeting { .. } => None,
            SessionState::Authenticating(options) | SessionState::Ready(options) => Some(options),
        }
    }

    /// Returns the client knows the error of partitions that are asked for too often.
    pub fn knows_rate_limits(&self) -> bool {
        self.options().is_some_and(|options| options.knows_rate_limits)
    }

    /// Returns the client wants OVERLOADED instead of waiting for memory.
    pub fn throws_on_overload(&self) -> bool {
        self.options().is_some_and(|options| options.throw_on_overload)
    }

    /// Returns the client has logged in.
    pub fn authenticated(self) -> SessionState {
        match self {
            SessionState::Authenticating(options) => SessionState::Ready(options),
            SessionState::Greeting { .. } | SessionState::Ready(_) => self,
        }
    }
}

/// What the server knows of the client.
pub(super) struct Session {
    pub state: SessionState,
    /// The keyspace in use and the user, as requests see them.
    pub client: Arc<ClientState>,
    /// Gets the user once the credentials are found right.
    pub logging_in: Option<oneshot::Receiver<Arc<User>>>,
    /// The connection's row in the list of clients.
    pub connected: Option<Connected>,
    /// The client was warned of prepared statements whose meaning depends on the keyspace in use.
    pub is_warned: Arc<AtomicBool>,
}

impl Session {
    pub fn new(connected: Option<Connected>) -> Session {
        Session {
            state: SessionState::Greeting {
                startup_refused: false,
            },
            client: Arc::default(),
            logging_in: None,
            connected,
            is_warned: Arc::default(),
        }
    }
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// Requests are read and served.
    Open,
    /// The node stops: the connection closes when nothing is running.
    Draining(Drain),
    /// No more is read: what runs is answered, then the connection closes.
    Closing(SocketClose),
}

/// What a draining connection does with requests that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    Serve,
    /// They are refused, so that the driver asks another node.
    Reject,
}

/// How the socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketClose {
    /// At once.
    Plain,
    /// After a moment in which the client can read its last answer: the client was refused, or the node stops.
    DrainInput,
}

impl Lifecycle {
    pub fn is_closing(&self) -> bool {
        matches!(self, Lifecycle::Closing(_))
    }

    /// Requests that come are to be refused.
    pub fn rejects(&self) -> bool {
        *self == Lifecycle::Draining(Drain::Reject)
    }

    /// How the socket is to be closed.
    pub fn socket_close(&self) -> SocketClose {
        match self {
            Lifecycle::Open => SocketClose::Plain,
            Lifecycle::Draining(_) => SocketClose::DrainInput,
            Lifecycle::Closing(close) => *close,
        }
    }

    /// Nothing more is to be read.
    pub fn close(&mut self) {
        *self = Lifecycle::Closing(self.socket_close());
    }

    /// The client sent bytes that are no request.
    pub fn refuse(&mut self) {
        *self = Lifecycle::Closing(SocketClose::DrainInput);
    }

    /// The node stops.
    pub fn node_stops(&mut self, stopping: Stopping) {
        *self = match (*self, stopping) {
            (_, Stopping::No) => return,
            (Lifecycle::Closing(_), _) => Lifecycle::Closing(SocketClose::DrainInput),
            (_, Stopping::WhenIdle) => Lifecycle::Draining(Drain::Serve),
            (_, Stopping::Now) => Lifecycle::Draining(Drain::Reject),
        };
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
