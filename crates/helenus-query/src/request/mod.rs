//! The context of a statement: the connection's state and the options of one request.

pub mod markers;
pub(crate) mod user;

pub use markers::Markers;
pub use user::User;
pub(crate) use user::Users;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};

/// A bound value as the protocol encodes it.
pub use helenus_cql::frame::BoundValue;

/// The state of a connection between requests.
#[derive(Clone, Debug, Default)]
pub struct ClientState {
    /// The current keyspace. `None` before USE.
    pub keyspace: Option<String>,
    /// The authenticated role. `None` if authentication is off.
    pub user: Option<Arc<User>>,
    /// Ensures that the client is warned only once of table options without the requested effect.
    pub is_warned_of_options: Once,
}

/// A flag for something that is done once per connection. Copies of the connection's state share it.
#[derive(Clone, Debug, Default)]
pub struct Once(Arc<AtomicBool>);

impl Once {
    /// Returns true at the first call, false afterwards.
    pub fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

impl ClientState {
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

/// The values bound to a statement's markers.
#[derive(Clone, Debug, Default)]
pub enum BoundValues {
    #[default]
    None,
    Positional(Vec<BoundValue>),
    Named(Vec<(String, BoundValue)>),
}

impl BoundValues {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            BoundValues::None => 0,
            BoundValues::Positional(values) => values.len(),
            BoundValues::Named(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The partitions of each of a request's modifications that one node executes.
pub type Parts = Arc<[Vec<Bytes>]>;

/// The part that a node has in a request.
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// The node that received the client's request. It forwards what other nodes own.
    #[default]
    Coordinator,
    /// The owner of the request's rows.
    Owner,
    /// The owner of these partitions. It modifies no others.
    Part(Parts),
}

/// The options of one request (spec v5, section 4.1.4, `<query_parameters>`).
#[derive(Clone, Debug)]
pub struct QueryOptions {
    pub consistency: Consistency,
    pub serial_consistency: Option<Consistency>,
    /// Rows of a page. `None`, 0 or a negative number if all rows go into one page.
    pub page_size: Option<i32>,
    /// Paging state from the answer with the previous page. `None` for the first page.
    pub paging_state: Option<Bytes>,
    /// The client's default write timestamp, in microseconds since the Unix epoch.
    pub timestamp_us: Option<i64>,
    /// Time that replaces the server's clock for TTLs (v5).
    pub now_s: Option<i64>,
    pub values: BoundValues,
    pub protocol_version: u8,
    /// Keyspace of unqualified names in a statement that is sent as text. It overrides that of USE (v5).
    pub keyspace: Option<String>,
    pub place: Place,
    /// True if masked columns are shown masked. The coordinator has checked the role's permissions.
    pub masks: bool,
}

impl QueryOptions {
    /// Returns the keyspace of unqualified names in a statement that is sent as text.
    pub fn keyspace<'a>(&'a self, client: &'a ClientState) -> Option<&'a str> {
        self.keyspace.as_deref().or(client.keyspace.as_deref())
    }
}

impl Default for QueryOptions {
    fn default() -> QueryOptions {
        QueryOptions {
            consistency: Consistency::One,
            serial_consistency: None,
            page_size: None,
            paging_state: None,
            timestamp_us: None,
            now_s: None,
            values: BoundValues::None,
            protocol_version: 5,
            keyspace: None,
            place: Place::Coordinator,
            masks: false,
        }
    }
}
