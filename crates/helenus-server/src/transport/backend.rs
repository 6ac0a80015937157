//! The interface of the transport to the query engine.
//!
//! The query engine is the only implementation in a node ([`engine`](super::engine)). The trait exists for tests and measurements of the
//! transport alone. `crates/helenus-server/tests/transport/mock.rs` has statements that wait, fail or panic on command. In
//! `bench/baseline/src/bin/no-storage.rs`, writes succeed without being stored.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::ResultMetadata;
use helenus_cql::frame::request::{BatchKind, BatchStatement};
use helenus_cql::frame::response::{Prepared, SchemaChange};
use helenus_query::cluster::{RelayAnswer, ReturnAddress, Sent};
use helenus_query::engine::clients::Clients;
use helenus_query::limits::client_memory::ClientMemory;
use helenus_query::metrics::slow_statements::SlowStatementSource;
use helenus_query::request::User;
use helenus_query::request::{BoundValues, ClientFrame, ClientState};
use helenus_query::response::Outcome;
use helenus_query::trace::{Trace, TraceEvent};
use tokio::sync::broadcast;
use uuid::Uuid;

/// Runs statements. A request that has begun always runs to its end, even if its connection closes.
pub trait Backend: Send + Sync + 'static {
    /// A prepared statement.
    type Prepared: Send + Sync + 'static;
    /// A request that was relayed to its owner ([`Backend::relay`]).
    type Relayed: Send + 'static;
    /// A relayed request that must be tried again ([`Backend::settle`]).
    type Unsettled: Send + 'static;

    /// Returns the version of CQL for the SUPPORTED message.
    fn cql_version(&self) -> &str;

    /// Returns true if responses may name the node that owns the requested tablet. Then the protocol's extension for tablets is offered.
    fn has_tablets(&self) -> bool {
        false
    }

    /// Returns the name of Cassandra's class that clients authenticate with. `None` if authentication is off.
    fn authenticator(&self) -> Option<&'static str> {
        None
    }

    /// Logs a client in. `token` has its credentials, `address` is where the client connects from.
    fn log_in(
        &self,
        _address: IpAddr,
        _token: Bytes,
    ) -> impl Future<Output = Result<Arc<User>, CqlError>> + Send {
        let refused = CqlError::BadCredentials("authentication is not enabled".to_owned());
        std::future::ready(Err(refused))
    }

    /// Returns true if a logged-in user may stay connected. Otherwise [`Clients::end_unless`] ends the user's connections.
    fn may_stay(&self, _user: &User) -> bool {
        true
    }

    /// Refuses a keyspace that a request names and that does not exist.
    fn check_keyspace(&self, _keyspace: &str) -> Result<(), CqlError> {
        Ok(())
    }

    /// Runs a statement given as text.
    fn query(
        &self,
        client: &ClientState,
        text: &str,
        frame: ClientFrame<'_>,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send;

    /// Prepares a statement. The result includes warnings, which the transport sends only once per connection.
    fn prepare(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> impl Future<Output = Result<(Prepared, Vec<String>), CqlError>> + Send;

    /// Returns the prepared statement with this id, or [`CqlError::Unprepared`].
    fn prepared(&self, id: &[u8]) -> Result<Arc<Self::Prepared>, CqlError>;

    /// Returns the keyspace of a prepared statement's unqualified table names. `None` if the statement has no such keyspace.
    fn keyspace<'p>(&self, _prepared: &'p Self::Prepared) -> Option<&'p str> {
        None
    }

    /// Returns the text of a prepared statement.
    fn statement<'p>(&self, prepared: &'p Self::Prepared) -> &'p str;

    /// Returns the names and the values of a statement's bind markers, for a trace.
    fn bound_variables(&self, prepared: &Self::Prepared, values: &BoundValues) -> Vec<(String, String)>;

    /// Returns the result metadata that clients received when the statement was first prepared. Without columns if the statement is not a
    /// SELECT.
    fn prepared_metadata(&self, prepared: &Self::Prepared) -> Arc<ResultMetadata>;

    /// Returns a warning if a client runs the statement from another keyspace than it was prepared in. The transport sends it only once per
    /// connection.
    fn use_warning(&self, _client: &ClientState, _prepared: &Self::Prepared) -> Option<String> {
        None
    }

    /// Runs a prepared statement.
    fn execute(
        &self,
        client: &ClientState,
        prepared: &Self::Prepared,
        frame: ClientFrame<'_>,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send;

    /// Returns true if requests may be relayed.
    fn relays(&self) -> bool {
        false
    }

    /// Queues a prepared statement for the node that owns its rows, and returns at once. The answer goes to the address that `back` returns.
    /// `None` if nothing was done, so that the statement must be run by [`Backend::execute`].
    fn relay(
        &self,
        _client: &ClientState,
        _prepared: &Arc<Self::Prepared>,
        _frame: ClientFrame<'_>,
        _back: impl FnOnce() -> ReturnAddress,
    ) -> Option<(Self::Relayed, Sent)> {
        None
    }

    /// Ends a relayed request. Its measurement must be that of the thread.
    ///
    /// # Errors
    /// The request, if it must be tried again. The inner error is for the client.
    fn settle(
        &self,
        relayed: Self::Relayed,
        answer: RelayAnswer,
    ) -> Result<Result<Outcome, CqlError>, Self::Unsettled>;

    /// Goes on with a relayed request that must be tried again.
    fn resume(
        &self,
        unsettled: Self::Unsettled,
        frame: ClientFrame<'_>,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send;

    /// Runs a BATCH message.
    fn batch(
        &self,
        client: &ClientState,
        kind: BatchKind,
        statements: Vec<BatchStatement>,
        frame: ClientFrame<'_>,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send;

    /// Returns the list of client connections. `None` if the backend keeps no such list.
    fn clients(&self) -> Option<&Clients> {
        None
    }

    /// Returns the counter of memory that clients take, if the backend counts its responses there too. `None` if the transport must make
    /// its own.
    fn client_memory(&self) -> Option<Arc<ClientMemory>> {
        None
    }

    /// Sets the maximum number of running requests that is shown.
    fn show_running_max(&self, _requests: usize) {}

    /// Sets the source of the slow statements that are shown.
    fn show_slow_statements(&self, _source: Arc<dyn SlowStatementSource>) {}

    /// Sets the number of waiting requests that is shown.
    fn show_waiting(&self, _requests: usize) {}

    /// Returns the keyspace and the name of the table with this id. `None` if there is no such table.
    fn table_name(&self, _id: Uuid) -> Option<(String, String)> {
        None
    }

    /// Returns a channel that receives each schema change.
    fn schema_changes(&self) -> broadcast::Receiver<SchemaChange>;

    /// Stores the trace of a request. Called before the response is sent.
    fn record_trace(&self, trace: Trace);

    /// Adds an event to a stored trace, for what happens after [`Backend::record_trace`].
    fn add_to_trace(&self, id: Uuid, event: TraceEvent);

    /// Sets the gauges of the store. Called just before the metrics are read.
    fn record_stats(&self);
}
