//! The states of a connection.
//!
//! [`SessionState`] is the progress of the client: greeting (STARTUP is awaited) → authenticating, if authentication is on → ready.
//! [`Lifecycle`] is the progress towards the end of the connection: open → draining (the node stops) → closing. A connection can be closed
//! in any session state. If it is not ready when the node stops, it is closed at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use helenus_cql::frame::{Compression, ProtocolVersion};
use helenus_query::engine::clients::Connected;
use helenus_query::request::ClientState;
use helenus_query::request::User;
use tokio::sync::oneshot;

use crate::transport::server_state::Stopping;

/// The options that STARTUP has set.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartupOptions {
    pub version: ProtocolVersion,
    pub compression: Option<Compression>,
    /// True if the client wants OVERLOADED instead of waiting for memory.
    pub throw_on_overload: bool,
    /// True if responses may name the owner of a tablet, for requests that the client sent to another node. This needs version 4 of the
    /// protocol or later.
    pub knows_tablets: bool,
    /// True if the client knows the error of a partition's rate limit.
    pub knows_rate_limits: bool,
}

/// The progress of a client until it may run statements.
#[derive(Clone, Copy, Debug)]
pub(super) enum SessionState {
    /// No STARTUP has been accepted yet.
    Greeting {
        /// True if a STARTUP was refused.
        startup_refused: bool,
    },
    /// STARTUP was accepted, and the client has to log in.
    Authenticating(StartupOptions),
    /// The client may run statements.
    Ready(StartupOptions),
}

impl SessionState {
    pub fn is_ready(&self) -> bool {
        matches!(self, SessionState::Ready(_))
    }

    /// Returns the protocol version of a client that is ready. `None` if the client is not ready.
    pub fn ready_version(&self) -> Option<ProtocolVersion> {
        match self {
            SessionState::Ready(options) => Some(options.version),
            SessionState::Greeting { .. } | SessionState::Authenticating(_) => None,
        }
    }

    /// Returns the options of the accepted STARTUP. `None` before that.
    pub fn options(&self) -> Option<&StartupOptions> {
        match self {
            SessionState::Greeting { .. } => None,
            SessionState::Authenticating(options) | SessionState::Ready(options) => Some(options),
        }
    }

    /// Returns true if the client knows the error of a partition's rate limit.
    pub fn knows_rate_limits(&self) -> bool {
        self.options().is_some_and(|options| options.knows_rate_limits)
    }

    /// Returns true if the client wants OVERLOADED instead of waiting for memory.
    pub fn throws_on_overload(&self) -> bool {
        self.options().is_some_and(|options| options.throw_on_overload)
    }

    /// Returns the state after the client has logged in.
    pub fn authenticated(self) -> SessionState {
        match self {
            SessionState::Authenticating(options) => SessionState::Ready(options),
            SessionState::Greeting { .. } | SessionState::Ready(_) => self,
        }
    }
}

/// The server's knowledge about the client.
pub(super) struct Session {
    pub state: SessionState,
    /// The keyspace in use and the user, for the client's requests.
    pub client: Arc<ClientState>,
    /// Receives the user when the credentials were found to be right. `None` if no log-in runs.
    pub logging_in: Option<oneshot::Receiver<Arc<User>>>,
    /// The connection's entry in the list of clients. `None` if the backend keeps no list.
    pub connected: Option<Connected>,
    /// True if the client was warned about a prepared statement whose meaning depends on the keyspace in use.
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

/// The progress of a connection towards its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// Requests are read and served.
    Open,
    /// The node stops. The connection closes when nothing runs on it.
    Draining(Drain),
    /// No more requests are read. The connection closes when running requests are answered.
    Closing(SocketClose),
}

/// The treatment of requests that arrive on a draining connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    Serve,
    /// Requests are refused, so that the driver sends them to another node.
    Reject,
}

/// The way in which the socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketClose {
    /// At once.
    Plain,
    /// After a short time in which the client can read its last response. Used if the client was refused, or the node stops.
    DrainInput,
}

impl Lifecycle {
    pub fn is_closing(&self) -> bool {
        matches!(self, Lifecycle::Closing(_))
    }

    /// Returns true if requests that arrive must be refused.
    pub fn rejects(&self) -> bool {
        *self == Lifecycle::Draining(Drain::Reject)
    }

    /// Returns the way in which the socket must be closed.
    pub fn socket_close(&self) -> SocketClose {
        match self {
            Lifecycle::Open => SocketClose::Plain,
            Lifecycle::Draining(_) => SocketClose::DrainInput,
            Lifecycle::Closing(close) => *close,
        }
    }

    /// Closes the connection: no more requests are read.
    pub fn close(&mut self) {
        *self = Lifecycle::Closing(self.socket_close());
    }

    /// Closes the connection of a client that sent invalid bytes.
    pub fn refuse(&mut self) {
        *self = Lifecycle::Closing(SocketClose::DrainInput);
    }

    /// Applies a stage of stopping the node.
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
