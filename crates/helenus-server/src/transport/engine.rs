//! The query engine as the transport's [`Backend`].

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{BatchKind, BatchStatement, StatementRef};
use helenus_cql::frame::response::{Prepared, SchemaChange};
use helenus_cql::frame::{PreparedMetadata, ResultMetadata};
use helenus_query::analysis;
use helenus_query::cluster::{RelayAnswer, ReturnAddress, Sent};
use helenus_query::engine::clients::Clients;
use helenus_query::engine::relay::{Relayed, Unsettled};
use helenus_query::engine::{self, Engine};
use helenus_query::limits::client_memory::ClientMemory;
use helenus_query::metrics::slow_statements::SlowStatementSource;
use helenus_query::request::User;
use helenus_query::request::{BoundValues, ClientFrame, ClientState};
use helenus_query::response::Outcome;
use helenus_query::trace::{self, Trace, TraceEvent};
use tokio::sync::broadcast;
use uuid::Uuid;

use super::backend::Backend;
use crate::metrics::engine::{
    record_history, record_prepared, record_rate_limits, record_scan_parts, record_stale, record_store,
    record_waiting,
};

/// The CQL version of Cassandra 5.0.
const CQL_VERSION: &str = "3.4.7";
/// Name of Cassandra's authenticator. Drivers that see it send a name and a password.
const PASSWORD_AUTHENTICATOR: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

impl Backend for Arc<Engine> {
    type Prepared = engine::Prepared;
    type Relayed = Relayed;
    type Unsettled = Box<Unsettled>;

    fn cql_version(&self) -> &str {
        CQL_VERSION
    }

    fn has_tablets(&self) -> bool {
        self.is_clustered()
    }

    fn authenticator(&self) -> Option<&'static str> {
        self.authenticates().then_some(PASSWORD_AUTHENTICATOR)
    }

    async fn log_in(&self, address: IpAddr, token: Bytes) -> Result<Arc<User>, CqlError> {
        Engine::log_in(self, address, &token).await
    }

    fn may_stay(&self, user: &User) -> bool {
        Engine::may_stay(self, &user.name)
    }

    fn check_keyspace(&self, keyspace: &str) -> Result<(), CqlError> {
        Engine::check_keyspace(self, keyspace)
    }

    async fn query(
        &self,
        client: &ClientState,
        text: &str,
        frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        Engine::query(self, client, text, frame).await
    }

    async fn prepare(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> Result<(Prepared, Vec<String>), CqlError> {
        let (prepared, warnings) = Engine::prepare(self, client, keyspace, text).await?;
        let planned = self.current_plan(&prepared)?;
        let result_metadata = planned.result.clone().unwrap_or_default();
        let answer = Prepared {
            id: prepared.id.to_vec().into(),
            result_metadata_id: result_metadata.id().to_vec().into(),
            metadata: Arc::new(PreparedMetadata {
                columns: planned.markers.specs(),
                partition_key_indexes: planned.partition_key_indexes.clone(),
            }),
            result_metadata,
        };
        Ok((answer, warnings))
    }

    fn prepared(&self, id: &[u8]) -> Result<Arc<engine::Prepared>, CqlError> {
        Engine::prepared(self, id)
    }

    fn keyspace<'p>(&self, prepared: &'p engine::Prepared) -> Option<&'p str> {
        prepared.keyspace.as_deref()
    }

    fn statement<'p>(&self, prepared: &'p engine::Prepared) -> &'p str {
        &prepared.query
    }

    fn bound_variables(&self, prepared: &engine::Prepared, values: &BoundValues) -> Vec<(String, String)> {
        match self.current_plan(prepared) {
            Ok(planned) => trace::bound_variables(&planned.markers, values),
            Err(_) => Vec::new(),
        }
    }

    fn prepared_metadata(&self, prepared: &engine::Prepared) -> Arc<ResultMetadata> {
        prepared.first_result.clone()
    }

    fn use_warning(&self, client: &ClientState, prepared: &engine::Prepared) -> Option<String> {
        Engine::use_warning(self, client, prepared)
    }

    async fn execute(
        &self,
        client: &ClientState,
        prepared: &engine::Prepared,
        frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        Engine::execute(self, client, prepared, frame).await
    }

    fn relays(&self) -> bool {
        self.is_clustered()
    }

    fn relay(
        &self,
        client: &ClientState,
        prepared: &Arc<engine::Prepared>,
        frame: ClientFrame<'_>,
        back: impl FnOnce() -> ReturnAddress,
    ) -> Option<(Relayed, Sent)> {
        Engine::relay(self, client, prepared, frame, back)
    }

    fn settle(
        &self,
        relayed: Relayed,
        answer: RelayAnswer,
    ) -> Result<Result<Outcome, CqlError>, Box<Unsettled>> {
        Engine::settle(self, relayed, answer)
    }

    async fn resume(&self, unsettled: Box<Unsettled>, frame: ClientFrame<'_>) -> Result<Outcome, CqlError> {
        Engine::resume(self, *unsettled, frame).await
    }

    async fn batch(
        &self,
        client: &ClientState,
        kind: BatchKind,
        statements: Vec<BatchStatement>,
        frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        let resolve = |BatchStatement { statement, values }| {
            Ok(match statement {
                StatementRef::Query(text) => analysis::BatchStatement::Text(text, values),
                StatementRef::Prepared(id) => analysis::BatchStatement::Prepared(self.prepared(&id)?, values),
            })
        };
        let statements = statements
            .into_iter()
            .map(resolve)
            .collect::<Result<Vec<_>, CqlError>>()?;
        let kind = match kind {
            BatchKind::Logged => ast::BatchKind::Logged,
            BatchKind::Unlogged => ast::BatchKind::Unlogged,
            BatchKind::Counter => ast::BatchKind::Counter,
        };
        Engine::batch(self, client, kind, &statements, frame).await
    }

    fn clients(&self) -> Option<&Clients> {
        Some(&self.clients)
    }

    fn client_memory(&self) -> Option<Arc<ClientMemory>> {
        Some(Engine::client_memory(self).clone())
    }

    fn show_running_max(&self, requests: usize) {
        self.metrics().transport.set_running_max(requests);
    }

    fn show_slow_statements(&self, source: Arc<dyn SlowStatementSource>) {
        self.metrics().slow_statements.set(source);
    }

    fn show_waiting(&self, requests: usize) {
        self.metrics().transport.set_waiting(requests);
    }

    fn table_name(&self, id: Uuid) -> Option<(String, String)> {
        let schema = self.schema();
        let table = schema.stored_tables().find(|table| table.id == id)?;
        Some((table.keyspace.clone(), table.name.clone()))
    }

    fn schema_changes(&self) -> broadcast::Receiver<SchemaChange> {
        self.subscribe()
    }

    fn record_trace(&self, trace: Trace) {
        self.traces().record(trace);
    }

    fn add_to_trace(&self, id: Uuid, event: TraceEvent) {
        self.traces().add(id, event);
    }

    fn record_stats(&self) {
        record_store(&self.store_stats());
        record_stale(self.stale());
        record_rate_limits(&self.metrics().rate_limits);
        record_waiting(self.metrics().transport.read());
        record_scan_parts(self.scan_parts_running());
        record_prepared(&self.prepared_metrics());
        if let (Some((figures, reach)), Some(window)) = (self.history_figures(), self.history_window()) {
            record_history(&figures, reach, window);
        }
    }
}
