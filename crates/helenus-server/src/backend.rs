//! The interface of the transport to the query engine.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::ResultMetadata;
use helenus_cql::frame::request::{BatchKind, BatchStatement};
use helenus_cql::frame::response::{Prepared, SchemaChange};
use helenus_query::engine::clients::Clients;
use helenus_query::limits::client_memory::ClientMemory;
use helenus_query::request::User;
use helenus_query::request::{BoundValues, ClientState, QueryOptions};
use helenus_query::response::Outcome;
use helenus_query::trace::{Trace, TraceEvent};
use tokio::sync::broadcast;
use uuid::Uuid;

/// Runs statements. A request that has begun is always run to its end, even when its connection is gone.
pub trait Backend: Send + Sync + 'static {
    /// A statement that was prepared.
    type Prepared: Send + Sync + 'static;

    /// Returns the version of CQL that SUPPORTED names.
    fn cql_version(&self) -> &str;

    /// Returns true if answers may say which node a request should have gone to, so that the protocol's extension for it is offered.
    fn has_tablets(&self) -> bool {
        false
    }

    /// What clients must authenticate themselves with, by the name that Cassandra has for it; none if they need not.
    fn authenticator(&self) -> Option<&'static str> {
        None
    }

    /// Lets a client in that has answered with that token, from there.
    fn log_in(
        &self,
        _address: IpAddr,
        _token: Bytes,
    ) -> impl Future<Output = Result<Arc<User>, CqlError>> + Send {
        let refused = CqlError::BadCredentials("authentication is not enabled".to_owned());
        std::future::ready(Err(refused))
    }

    /// Returns true if who has logged in may stay. Whoever may not any more is told so by [`Clients::end_unless`].
    fn may_stay(&self, _user: &User) -> bool {
        true
    }

    /// Refuses a request's own keyspace that does not exist.
    fn check_keyspace(&self, _keyspace: &str) -> Result<(), CqlError> {
        Ok(())
    }

    /// Runs a statement given as text.
    fn query(
        &self,
        client: &ClientState,
        text: &str,
        options: &QueryOptions,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send;

    /// Prepares a statement. The answer comes with warnings, which a connection is given once.
    fn prepare(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> impl Future<Output = Result<(Prepared, Vec<String>), CqlError>> + Send;

    /// Returns the prepared statement of that id, or [`CqlError::Unprepared`].
    fn prepared(&self, id: &[u8]) -> Result<Arc<Self::Prepared>, CqlError>;

    /// Returns the keyspace that the names of a prepared statement are in which name none.
    fn keyspace<'p>(&self, _prepared: &'p Self::Prepared) -> Option<&'p str> {
        None
    }

    /// Returns the text of a prepared statement.
    fn statement<'p>(&self, prepared: &'p Self::Prepared) -> &'p str;

    /// Names and values of its markers, as a trace shows them.
    fn bound_variables(&self, prepared: &Self::Prepared, values: &BoundValues) -> Vec<(String, String)>;

    /// Returns the result metadata that clients were given when the statement was first prepared; without columns for
    /// what is not a SELECT.
    fn prepared_metadata(&self, prepared: &Self::Prepared) -> Arc<ResultMetadata>;

    /// What a client is to be told, once, that runs the statement from another keyspace than it was prepared in.
    fn use_warning(&self, _client: &ClientState, _prepared: &Self::Prepared) -> Option<String> {
        None
    }

    /// Runs a prepared statement.
    fn execute(
        &self,
        client: &ClientState,
        prepared: &Self::Prepared,
        options: &QueryOptions,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send;

    /// Runs a BATCH message.
    fn batch(
        &self,
        client: &ClientState,
        kind: BatchKind,
        statements: Vec<BatchStatement>,
        options: &QueryOptions,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send;

    /// Where connections are entered, if they are.
    fn clients(&self) -> Option<&Clients> {
        None
    }

    /// Returns the memory that clients take, where whoever makes answers counts too.
    fn client_memory(&self) -> Option<Arc<ClientMemory>> {
        None
    }

    /// How many requests may run at a time.
    fn show_running_max(&self, _requests: usize) {}

    /// How many requests wait.
    fn show_waiting(&self, _requests: usize) {}

    /// Returns the keyspace and the name of the table of that id, if it is there.
    fn table_name(&self, _id: Uuid) -> Option<(String, String)> {
        None
    }

    /// Schema changes as they happen.
    fn schema_changes(&self) -> broadcast::Receiver<SchemaChange>;

    /// Keeps the trace of a request, before its answer is sent.
    fn record_trace(&self, trace: Trace);

    /// Adds to a trace what happened after that.
    fn add_to_trace(&self, id: Uuid, event: TraceEvent);

    /// Sets the gauges of the store, just before they are read.
    fn record_stats(&self);
}
