//! What comes with a statement: the connection's state and the options of one request.

pub mod markers;
pub(crate) mod user;

pub use markers::Markers;
pub use user::User;
pub(crate) use user::Users;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};

/// A bound value as the protocol carries it.
pub use helenus_cql::frame::BoundValue;

/// What a connection remembers between requests.
#[derive(Clone, Debug, Default)]
pub struct ClientState {
    /// Set by USE.
    pub keyspace: Option<String>,
    /// Who has logged in; none where nobody is asked to.
    pub user: Option<Arc<User>>,
    /// Whether the client was warned of table options without the effect that it asked for.
    pub is_warned_of_options: Once,
}

/// Something that is done once for a connection, whose states share it.
#[derive(Clone, Debug, Default)]
pub struct Once(Arc<AtomicBool>);

impl Once {
    /// Returns true at the first call, false afterwards.
    pub fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

impl ClientState {
    /// Returns the keyspace that an unqualified name is in.
    pub fn require_keyspace(&self) -> Result<&str, CqlError> {
        self.keyspace.as_deref().ok_or_else(no_keyspace)
    }
}

/// Cassandra's error for an unqualified name without a current keyspace.
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
    /// How many there are.
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

/// For each modification of a request some of the partitions that it names.
pub type Parts = Arc<[Vec<Bytes>]>;

/// As what a node runs a request.
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// The node that the client asked: it passes on what belongs to others.
    #[default]
    Coordinator,
    /// The owner of what the request is about.
    Owner,
    /// The owner of these partitions, who modifies no others.
    Part(Parts),
}

/// The options of one request (spec v5, section 4.1.4, `<query_parameters>`).
#[derive(Clone, Debug)]
pub struct QueryOptions {
    pub consistency: Consistency,
    pub serial_consistency: Option<Consistency>,
    /// None or a value that is not positive: all rows in one page.
    pub page_size: Option<i32>,
    /// What the previous page's answer gave.
    pub paging_state: Option<Bytes>,
    /// Default write timestamp of the client, microseconds since the epoch.
    pub timestamp_us: Option<i64>,
    /// Overrides the server's clock for TTLs (v5).
    pub now_s: Option<i64>,
    pub values: BoundValues,
    pub protocol_version: u8,
    /// Where unqualified names of a statement that comes as text are, whatever USE has set (v5).
    pub keyspace: Option<String>,
    pub place: Place,
    /// Columns that have masks are shown masked, as the coordinator has found.
    pub masks: bool,
}

impl QueryOptions {
    /// Returns the keyspace that an unqualified name of a statement is in that comes as text.
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
