//! The query engine of a node: the facade that the server calls.

pub mod access;
mod adoption;
mod as_of;
pub mod backups;
pub mod branches;
pub mod change_logs;
pub mod clients;
mod consistent_cut;
mod copying;
mod cuts;
pub mod ddl;
pub mod describe;
pub(crate) mod guardrails;
pub mod history;
pub(crate) mod identity;
mod open_times;
pub(crate) mod prepared;
mod read_only;
pub mod relay;
pub mod sampling;
pub(crate) mod security;
pub(crate) mod serve;
mod service_levels;
pub mod sizes;
pub mod snapshots;
pub mod status;
mod sweeping;
pub mod system;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_tablet::{Store, StoreConfig, StoreStats, Throttles};
use tokio::sync::{Notify, broadcast};

use crate::analysis::{BatchStatement, DirectPlan, EvalContext, Plan, Planned, PlannedBatch, consistency};
use crate::boxed;
use crate::clock::{Clock, TimestampSource};
use crate::cluster::{Cluster, Request, RequestWork, Source};
use crate::execution;
use crate::execution::backfill::{self, SchemaChanges};
use crate::execution::routing::coordinate;
use crate::execution::timing::Timing;
use crate::failure::{ExecutionError, at_consistency, read_timeout, store_error};
use crate::index::splitting;
use crate::index::stale_entry::StaleCounts;
use crate::limits::client_memory::ClientMemory;
use crate::limits::guardrails::Guard;
use crate::limits::node_limits::NodeLimits;
use crate::limits::scope;
use crate::measurement;
use crate::metrics::running::{RunningStatements, StatementText};
use crate::metrics::{NodeMetrics, Side};
use crate::request::{BoundValue, ClientFrame, ClientState, QueryParameters};
use crate::response::{Outcome, Response, SchemaChange};
use crate::schema::Schema;
use crate::storage::change_streams::ChangeStreams;
use crate::storage::context::{IndexState, WriteState};
use crate::storage::{ExecutionContext, RowHooks, flush_periods};
use crate::trace::{self, Traces};
use change_logs::RecentChangeLogs;
use clients::Clients;
use cuts::Cuts;
use ddl::SchemaUpdates;
use futures::future::BoxFuture;
use history::History;
use prepared::PreparedStatements;
use security::ClientAccess;
use sizes::FileSizes;
use system::SystemTables;

pub use crate::analysis::Prepared;
pub use crate::limits::{Limits, Timeouts, guardrails as guardrail_settings};
pub use access::AccessControl;
pub use prepared::{AllocationMeter, PreparedMetrics};
pub use serve::ServedScan;
pub use system::settings::of_guardrails as guardrails_shown;

/// The documents of the store that all nodes of a cluster keep in memory: the schema, and the set of tables with partition headers.
/// [`Engine::load_newest`] reads them again.
pub const SHARED_DOCUMENTS: [&str; 2] = [
    crate::schema::documents::journal::NAME,
    crate::storage::HEADERS_DOCUMENT,
];

/// The node's description of itself in `system.local`.
#[derive(Clone, Debug)]
pub struct LocalNode {
    pub cluster_name: String,
    pub data_center: String,
    pub rack: String,
    pub host_id: uuid::Uuid,
    /// Address for drivers.
    pub native_address: std::net::SocketAddr,
    /// The Cassandra version that is reported to drivers.
    pub release_version: String,
}

/// Settings of an engine.
pub struct EngineConfig {
    pub store: StoreConfig,
    pub node: LocalNode,
    pub limits: Limits,
    pub clock: Arc<dyn Clock>,
    pub control: AccessControl,
}

#[cfg(test)]
impl EngineConfig {
    /// Returns the settings of a small store in a folder, for tests.
    pub(crate) fn small(folder: &std::path::Path) -> EngineConfig {
        EngineConfig {
            store: StoreConfig::small(folder),
            node: LocalNode {
                cluster_name: "test".to_owned(),
                data_center: "dc1".to_owned(),
                rack: "rack1".to_owned(),
                host_id: uuid::Uuid::nil(),
                native_address: ([127, 0, 0, 1], 9042).into(),
                release_version: "5.0.5".to_owned(),
            },
            limits: Limits::default(),
            control: AccessControl::default(),
            clock: Arc::new(crate::clock::SystemClock),
        }
    }
}

/// The query engine, which executes statements against the store of this node.
pub struct Engine {
    pub(crate) context: Arc<ExecutionContext>,
    pub(crate) node: LocalNode,
    /// Time at which the engine was opened, in seconds since the Unix epoch. Cassandra's tools call it the generation.
    pub(crate) generation_s: i32,
    /// Throttles of the store.
    pub(crate) throttles: Throttles,
    pub(crate) access: ClientAccess,
    pub(crate) schema_updates: SchemaUpdates,
    cuts: Cuts,
    prepared: PreparedStatements,
    /// Sizes of tables in the SSTables that have been read so far.
    pub(crate) file_sizes: FileSizes,
    /// Figures of the logs of captured changes, for metrics.
    change_logs: RecentChangeLogs,
    /// The connected clients.
    pub clients: Clients,
}

impl Engine {
    /// Opens the store and reads the schema from it.
    #[boxed]
    pub async fn open(config: EngineConfig) -> Result<Arc<Engine>, CqlError> {
        let hooks = RowHooks::without_schema();
        guardrails::partitions::follow(&hooks.partitions, &config.limits);
        let throttles = config.store.throttles.clone();
        let keeps_history = config.limits.point_in_time_window.is_some();
        let store_config = StoreConfig {
            keeps_history,
            ..config.store
        };
        let store = Store::open(store_config, hooks.clone())
            .await
            .map_err(store_error)?;
        hooks.headers.load(&store).await?;
        let schema = ddl::load(&store, system::keyspaces).await?;
        hooks.live_tables.set(&schema);
        ddl::set_origins(&store, &schema);
        let timestamps = TimestampSource::default();
        // The machine's clock may have been set back since the node last ran.
        timestamps.raise(store.clock_us());
        store.keep_clock_beyond(timestamps.last_us());
        let metrics = Arc::new(NodeMetrics::default());
        metrics.begin_ticks();
        metrics
            .sampling
            .set_recent_interval(config.limits.partition_sampling_interval);
        let prepared = PreparedStatements::new(config.limits.prepared_cache_bytes);
        let history = History::new(config.limits.point_in_time_window);
        let opened_s = config.clock.now_us().div_euclid(1_000_000);
        Ok(Arc::new_cyclic(|engine| {
            let context = ExecutionContext {
                store,
                hooks,
                limits: NodeLimits::new(config.limits),
                clock: config.clock,
                schema: ArcSwap::from_pointee(schema),
                installed: Notify::default(),
                writing: WriteState {
                    timestamps,
                    ..WriteState::default()
                },
                indexes: IndexState::default(),
                change_streams: ChangeStreams::default(),
                traces: Arc::default(),
                metrics,
                running: RunningStatements::default(),
                cluster: OnceLock::new(),
                virtual_tables: Box::new(SystemTables::new(engine.clone())),
                history_memory: None,
            };
            let context = Arc::new(context);
            guardrails::partitions::log_reported(&context.hooks.partitions, Arc::downgrade(&context));
            Engine {
                context,
                node: config.node,
                generation_s: i32::try_from(opened_s).unwrap_or(i32::MAX),
                throttles,
                access: ClientAccess::new(config.control),
                schema_updates: SchemaUpdates::new(system::keyspaces),
                cuts: Cuts::new(history),
                prepared,
                file_sizes: FileSizes::default(),
                change_logs: RecentChangeLogs::default(),
                clients: Clients::default(),
            }
        }))
    }

    /// Returns the present limits.
    pub fn limits(&self) -> Arc<Limits> {
        self.context.limits.load_full()
    }

    /// Sets the limits of the requests that begin from now on. Memory that is divided when the engine is opened (`prepared_cache_bytes`,
    /// `client_memory_bytes`, `answers_bytes_max`) and `scan_concurrency` do not change.
    pub fn set_limits(&self, limits: Limits) {
        self.metrics()
            .sampling
            .set_recent_interval(limits.partition_sampling_interval);
        guardrails::partitions::follow(&self.context.hooks.partitions, &limits);
        self.context.limits.set(limits);
    }

    /// Returns the traces of the requests that wanted to be traced.
    pub fn traces(&self) -> &Arc<Traces> {
        &self.context.traces
    }

    /// Returns the latencies, and the rows and tombstones that reads meet.
    pub fn metrics(&self) -> &Arc<NodeMetrics> {
        &self.context.metrics
    }

    /// Returns the memory held for clients.
    pub fn client_memory(&self) -> &Arc<ClientMemory> {
        &self.context.limits.client_memory
    }

    /// Returns the counts of stale index entries.
    pub fn stale(&self) -> &Arc<StaleCounts> {
        &self.context.indexes.stale
    }

    /// Makes the node one of several. Called once, before the node serves clients.
    pub fn join(&self, cluster: Arc<dyn Cluster>) {
        if self.context.cluster.set(cluster).is_err() {
            tracing::error!("the node has joined a cluster already");
        }
        self.load_transactions();
    }

    /// Returns true if the node is one of several.
    pub fn is_clustered(&self) -> bool {
        self.context.cluster().is_some()
    }

    /// Returns the cluster that the node is in. `None` for a single node.
    pub(crate) fn cluster(&self) -> Option<&Arc<dyn Cluster>> {
        self.context.cluster()
    }

    /// Starts the background tasks, which run as long as the engine exists. Must be called once.
    pub fn begin_upkeep(self: &Arc<Self>) {
        if self.context.store.is_read_only() {
            return;
        }
        self.resume_builds();
        splitting::begin(&self.context);
        flush_periods::begin(&self.context);
        snapshots::begin_expiry(self);
        history::keeper::begin(self);
        sweeping::begin(self);
    }

    /// Continues, in the background, indexes, views and branches whose node ended before they were complete. Must be called with each new
    /// schema.
    fn resume_builds(self: &Arc<Self>) {
        if self.context.store.is_read_only() {
            return;
        }
        let schemas: Arc<dyn SchemaChanges> = self.clone();
        backfill::resume(&self.context, &schemas);
        adoption::resume(self);
    }

    /// Flushes as much as possible and closes the store.
    #[boxed]
    pub async fn close(&self) -> Result<(), CqlError> {
        self.context.store.close().await.map_err(store_error)
    }
}

impl Engine {
    /// Runs a statement given as text.
    pub fn query<'s>(
        self: &'s Arc<Self>,
        client: &'s ClientState,
        text: &'s str,
        frame: impl Into<ClientFrame<'s>>,
    ) -> BoxFuture<'s, Result<Outcome, CqlError>> {
        self.run_text(client, text, frame.into())
    }

    /// Runs a prepared statement.
    pub fn execute<'s>(
        self: &'s Arc<Self>,
        client: &'s ClientState,
        prepared: &'s Prepared,
        frame: impl Into<ClientFrame<'s>>,
    ) -> BoxFuture<'s, Result<Outcome, CqlError>> {
        self.run_prepared(client, prepared, frame.into())
    }

    fn run_text<'s>(
        self: &'s Arc<Self>,
        client: &'s ClientState,
        text: &'s str,
        frame: ClientFrame<'s>,
    ) -> BoxFuture<'s, Result<Outcome, CqlError>> {
        Box::pin(async move {
            let keyspace = client.keyspace_for(frame.parameters);
            let parsed = measurement::parsing(|| self.parse(text))?;
            let _open = self.open_as_of(keyspace, &parsed).await?;
            let _epoch = writes(&parsed.statement).then(|| self.context.writing.epochs.enter());
            let planned = measurement::parsing(|| self.plan(keyspace, &parsed))?;
            if planned.markers.bind(&frame.parameters.values).is_err() {
                return Err(CqlError::invalid("Invalid amount of bind variables"));
            }
            self.authorize(client, keyspace, &planned)?;
            planned.plan.validate()?;
            self.run(client, keyspace, Source::Text(text), &Arc::new(planned), frame)
                .await
        })
    }

    fn run_prepared<'s>(
        self: &'s Arc<Self>,
        client: &'s ClientState,
        prepared: &'s Prepared,
        frame: ClientFrame<'s>,
    ) -> BoxFuture<'s, Result<Outcome, CqlError>> {
        Box::pin(async move {
            let _epoch = prepared.is_write.then(|| self.context.writing.epochs.enter());
            let planned = self.current_plan(prepared)?;
            let keyspace = prepared.keyspace.as_deref();
            self.authorize(client, keyspace, &planned)?;
            self.run(client, keyspace, Source::Prepared(prepared), &planned, frame)
                .await
        })
    }

    /// Refuses to use a keyspace that does not exist.
    pub fn check_keyspace(&self, keyspace: &str) -> Result<(), CqlError> {
        match self.context.schema.load().keyspace(keyspace) {
            Some(_) => Ok(()),
            None => Err(CqlError::invalid(format!("Keyspace '{keyspace}' does not exist"))),
        }
    }

    /// Returns a receiver of changes of the schema.
    pub fn subscribe(&self) -> broadcast::Receiver<SchemaChange> {
        self.schema_updates.subscribe()
    }

    /// Returns the store of this node.
    pub fn store(&self) -> &Arc<Store> {
        &self.context.store
    }

    /// Returns a new write timestamp of this node, in microseconds.
    pub fn clock_us(&self) -> i64 {
        self.context.next_timestamp_us()
    }

    /// Returns the time of the machine's clock, in microseconds.
    pub fn wall_clock_us(&self) -> i64 {
        self.context.clock.now_us()
    }

    /// Raises write timestamps beyond those of the former owners of the open tablets.
    pub fn follow_former_owners(&self) {
        self.context
            .writing
            .timestamps
            .raise(self.context.store.found_clock_us());
    }

    /// Takes another node's clock of write timestamps into account.
    pub fn observe_clock(&self, clock_us: i64) {
        self.context
            .writing
            .timestamps
            .observe(self.context.clock.as_ref(), clock_us);
    }

    /// Returns the counters of the store.
    pub fn store_stats(&self) -> StoreStats {
        self.context.store.stats()
    }

    /// Returns the number of running parts of table scans. They run in their own tasks, beside those of the requests.
    pub fn scan_parts_running(&self) -> usize {
        self.context.limits.scan_parts_running()
    }

    /// Returns the present schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.context.schema.load_full()
    }

    /// Returns a parsed statement and its plan, for a prepared statement or a part of a batch.
    pub(crate) fn parse_and_plan(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> Result<(ast::ParsedStatement, Planned), CqlError> {
        measurement::parsing(|| {
            let parsed = self.parse(text)?;
            let planned = self.plan_checked(client, keyspace, &parsed)?;
            Ok((parsed, planned))
        })
    }

    /// Returns the plan of a statement that will run later, or in a batch.
    fn plan_checked(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        parsed: &ast::ParsedStatement,
    ) -> Result<Planned, CqlError> {
        let planned = self.plan(keyspace, parsed)?;
        ddl::check_prepare(self, client, keyspace, &parsed.statement)?;
        planned.plan.validate()?;
        Ok(planned)
    }

    /// Returns the plan of a statement that runs once. Must be called within [`measurement::parsing`].
    pub(crate) fn plan(
        &self,
        keyspace: Option<&str>,
        parsed: &ast::ParsedStatement,
    ) -> Result<Planned, CqlError> {
        trace::step(|| "Preparing statement");
        as_of::plan(
            &self.context.schema.load(),
            &self.cuts.open_history,
            keyspace,
            parsed,
        )
    }

    pub(crate) fn parse(&self, text: &str) -> Result<ast::ParsedStatement, CqlError> {
        trace::step(|| format!("Parsing {}", trace::shorten(text)));
        self.check_length(text)?;
        helenus_cql::parser::parse_statement(text)
    }

    /// Refuses statements that are too long.
    ///
    /// # Errors
    /// The statement is longer than the limit.
    fn check_length(&self, text: &str) -> Result<(), CqlError> {
        let most = self.context.limits().statement_len_max;
        match text.len() > most {
            true => Err(CqlError::invalid(format!(
                "Statement of {} bytes is longer than the limit of {most} bytes",
                text.len()
            ))),
            false => Ok(()),
        }
    }

    async fn run(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        source: Source<'_>,
        planned: &Arc<Planned>,
        frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        let parameters = frame.parameters;
        consistency::check_request(parameters.consistency)?;
        if self.context.store.is_read_only() {
            read_only::check(&planned.plan, parameters)?;
        }
        if let (
            Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) | Plan::Transaction(_),
            Some(state),
        ) = (&planned.plan, &parameters.paging_state)
        {
            crate::analysis::select::check_paging_state(state)?;
        }
        let service_timeout = self.count_statement(client, &planned.plan)?;
        let read_timeout_limit = match &planned.plan {
            Plan::Select(plan) => plan.timeout().into_iter().chain(service_timeout).min(),
            Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) | Plan::Transaction(_) => {
                limit_write(service_timeout);
                None
            }
            Plan::Direct(_) => None,
        };
        let text = match source {
            Source::Text(text) => StatementText::Text(trace::shorten(text).into()),
            Source::Prepared(prepared) => StatementText::Prepared(prepared.query.clone()),
            Source::Batch(..) => StatementText::Batch,
        };
        let timing = Timing::begin(service_timeout);
        let _running = self.context.running.begin(text, timing.began);
        let run = self.run_anywhere(client, keyspace, source, planned, frame, timing);
        let ran = match read_timeout_limit {
            None => run.await,
            Some(timeout) => {
                // The timeout limits both the time spent computing and the time spent waiting.
                scope::limit_time(timeout, false);
                tokio::time::timeout(timeout, run)
                    .await
                    .unwrap_or_else(|_| Err(read_timeout(parameters.consistency)))
            }
        };
        let ended = Timing::ended(&ran);
        timing.end(&self.context, Side::Coordinator, planned, &source, ended);
        ran
    }

    async fn run_anywhere(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        source: Source<'_>,
        planned: &Arc<Planned>,
        frame: ClientFrame<'_>,
        timing: Timing,
    ) -> Result<Outcome, CqlError> {
        let values = planned.markers.bind(&frame.parameters.values)?;
        let warnings = self.check_guardrails(client, planned, &values, frame.parameters)?;
        if let Plan::Direct(plan) = &planned.plan {
            let ran = self.run_direct(client, plan, frame.parameters).boxed().await;
            return guardrails::with_warnings(warnings, ran);
        }
        let history_context = match &planned.as_of {
            Some(history_context) => Some(self.context_as_of(&history_context.key).boxed().await?),
            None => None,
        };
        let (planned, masks) = self.masked_for(client, planned);
        let values = &*values;
        let work = RequestWork::Statement { planned, values };
        let schema_version = self.context.schema.load().document_version;
        let request = Request {
            masks,
            ..Request::new(frame, source, work, keyspace, schema_version)
        };
        let ran = match (history_context, self.cluster()) {
            (Some(history_context), _) => execution::run_here(&history_context, &request)
                .await
                .map_err(ExecutionError::into_client_error),
            (None, Some(cluster)) => coordinate::run(&self.context, cluster.as_ref(), request, timing).await,
            (None, None) => self.run_alone(&request).await,
        };
        guardrails::with_warnings(warnings, ran)
    }

    /// Returns the warnings of the guardrails about a statement.
    ///
    /// # Errors
    /// A guardrail refuses the statement.
    fn check_guardrails(
        &self,
        client: &ClientState,
        planned: &Planned,
        values: &[BoundValue],
        parameters: &QueryParameters,
    ) -> Result<Vec<String>, CqlError> {
        let Some(mut guard) = self.guard_of(client) else {
            return Ok(Vec::new());
        };
        let eval = self.eval(values, parameters);
        guardrails::requests::check(&mut guard, &self.context.store, &planned.plan, &eval, parameters)?;
        Ok(guard.warnings)
    }

    /// Returns the guard of a client's requests. `None` if they are not guarded.
    fn guard_of(&self, client: &ClientState) -> Option<Guard> {
        let limits = self.context.limits();
        let guardrails = &limits.guardrails;
        // Most nodes have no guardrails, and need not load the schema.
        if guardrails.is_empty() {
            return None;
        }
        guardrails::guard_of(guardrails, &self.context.schema.load(), client.user.as_deref())
    }

    fn eval<'v>(&'v self, values: &'v [BoundValue], parameters: &QueryParameters) -> EvalContext<'v> {
        EvalContext {
            values,
            clock: self.context.clock.as_ref(),
            protocol_version: parameters.version.number(),
        }
    }

    /// Runs a BATCH message.
    pub fn batch<'s>(
        self: &'s Arc<Self>,
        client: &'s ClientState,
        kind: ast::BatchKind,
        statements: &'s [BatchStatement],
        frame: impl Into<ClientFrame<'s>>,
    ) -> BoxFuture<'s, Result<Outcome, CqlError>> {
        self.run_message(client, kind, statements, frame.into())
    }

    fn run_message<'s>(
        self: &'s Arc<Self>,
        client: &'s ClientState,
        kind: ast::BatchKind,
        statements: &'s [BatchStatement],
        frame: ClientFrame<'s>,
    ) -> BoxFuture<'s, Result<Outcome, CqlError>> {
        Box::pin(async move {
            let parameters = frame.parameters;
            consistency::check_request(parameters.consistency)?;
            if self.context.store.is_read_only() {
                return Err(read_only::refuse_writes());
            }
            let _epoch = self.context.writing.epochs.enter();
            let keyspace = client.keyspace_for(parameters);
            let write_type = crate::analysis::modification::batch::write_type(kind);
            scope::limit_time(self.context.limits().timeouts.write(write_type), true);
            let batch = self.plan_batch(client, keyspace, kind, statements).await?;
            for planned in batch.planned() {
                self.authorize(client, keyspace, planned)?;
            }
            let warnings = match self.guard_of(client) {
                Some(mut guard) => {
                    let (store, eval) = (&self.context.store, self.eval(&[], parameters));
                    guardrails::requests::check_batch(&mut guard, store, &batch, &eval, parameters)?;
                    guard.warnings
                }
                None => Vec::new(),
            };
            let timeout = self.count_request(client)?;
            limit_write(timeout);
            let timing = Timing::begin(timeout);
            let _running = self.context.running.begin(StatementText::Batch, timing.began);
            let source = Source::Batch(kind, statements);
            let schema_version = self.context.schema.load().document_version;
            let request = Request::new(
                frame,
                source,
                RequestWork::Batch(&batch),
                keyspace,
                schema_version,
            );
            let ran = match self.cluster() {
                Some(cluster) => coordinate::run(&self.context, cluster.as_ref(), request, timing).await,
                None => execution::run_here(&self.context, &request)
                    .await
                    .map_err(|error| {
                        at_consistency(error.into_client_error(), parameters.consistency, write_type)
                    }),
            };
            let ended = Timing::ended(&ran);
            timing.end_batch(&self.context, Side::Coordinator, &batch, ended);
            guardrails::with_warnings(warnings, ran)
        })
    }

    /// Plans the statements of a BATCH message, which are prepared statements or text.
    ///
    /// # Errors
    /// Cassandra's errors for invalid statements, and for statements that can't be in one batch.
    pub(crate) async fn plan_batch(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        kind: ast::BatchKind,
        statements: &[BatchStatement],
    ) -> Result<PlannedBatch, CqlError> {
        let mut batch = PlannedBatch::new(kind);
        for statement in statements {
            scope::checkpoint().await?;
            match statement {
                BatchStatement::Text(text, values) => {
                    let (_, planned) = self.parse_and_plan(client, keyspace, text)?;
                    batch.push(Arc::new(planned), values)?;
                }
                BatchStatement::Prepared(prepared, values) => {
                    batch.push(self.current_plan(prepared)?, values)?;
                }
            }
        }
        batch.check()?;
        Ok(batch)
    }
}

impl Engine {
    /// Runs a statement that concerns no rows: a change of the schema or of roles, USE, DESCRIBE.
    async fn run_direct(
        self: &Arc<Self>,
        client: &ClientState,
        plan: &DirectPlan,
        parameters: &QueryParameters,
    ) -> Result<Outcome, CqlError> {
        let ran = match &plan.statement {
            ast::Statement::Use(keyspace) => {
                let keyspace = keyspace.as_str();
                self.check_keyspace(keyspace)?;
                Ok(Response::SetKeyspace(keyspace.to_owned()).into())
            }
            ast::Statement::Describe(statement) => {
                scope::step_aside().await;
                describe::execute(self, client, statement, parameters).await
            }
            statement @ (ast::Statement::CopyKeyspace(_) | ast::Statement::CopyTable(_)) => {
                scope::step_aside().await;
                self.branch(client, plan.keyspace.as_deref(), statement)
                    .boxed()
                    .await
            }
            statement => {
                scope::step_aside().await;
                ddl::execute(self, client, plan.keyspace.as_deref(), statement).await
            }
        };
        match self.is_clustered() {
            true => ran.map_err(|error| coordinate::client_error(error, parameters.consistency, None)),
            false => ran,
        }
    }
}

/// Limits the time that a write may compute to the timeout of its role. Writes that have been handed to the log are not abandoned.
fn limit_write(timeout: Option<Duration>) {
    if let Some(timeout) = timeout {
        scope::limit_time(timeout, true);
    }
}

/// Returns true for statements that write rows.
pub(super) fn writes(statement: &ast::Statement) -> bool {
    use ast::Statement;
    matches!(
        statement,
        Statement::Insert(_)
            | Statement::InsertJson(_)
            | Statement::InsertRows(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Batch(_)
            | Statement::Transaction(_)
    )
}
