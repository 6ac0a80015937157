//! The context of a statement: the connection's state and the parameters of one request.

pub mod markers;
pub(crate) mod user;

pub use markers::Markers;
pub use user::User;
pub(crate) use user::Users;

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;

pub use helenus_cql::frame::{BoundValue, BoundValues, QueryParameters};

/// The state of a connection between requests.
#[derive(Clone, Debug, Default)]
pub struct ClientState {
    /// The current keyspace. `None` before USE.
    pub keyspace: Option<String>,
    /// The authenticated role. `None` if authentication is off.
    pub user: Option<Arc<User>>,
}

impl ClientState {
    /// Returns the keyspace of unqualified names in a statement that is sent as text with these parameters.
    pub fn keyspace_for<'a>(&'a self, parameters: &'a QueryParameters) -> Option<&'a str> {
        parameters.keyspace.as_deref().or(self.keyspace.as_deref())
    }

    /// Returns the keyspace of unqualified names.
    pub fn require_keyspace(&self) -> Result<&str, CqlError> {
        self.keyspace.as_deref().ok_or_else(no_keyspace)
    }
}

/// Returns Cassandra's error for an unqualified name without a current keyspace.
pub fn no_keyspace() -> CqlError {
    CqlError::invalid(
        "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
    )
}

/// The parameters of a client's request, and the body in which they came.
#[derive(Clone, Copy, Debug)]
pub struct ClientFrame<'a> {
    pub parameters: &'a QueryParameters,
    /// The body of QUERY, EXECUTE or BATCH as the client sent it, without a custom payload. The owner of the rows gets the same bytes. `None`
    /// if this node makes the request itself and reads its rows.
    pub body: Option<&'a Bytes>,
}

impl<'a> From<&'a QueryParameters> for ClientFrame<'a> {
    fn from(parameters: &'a QueryParameters) -> ClientFrame<'a> {
        ClientFrame {
            parameters,
            body: None,
        }
    }
}
