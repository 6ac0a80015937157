//! The query engine of a node: the facade that the server calls.

mod failure;
mod identity;
mod prepared;
mod security;
mod timeouts;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_tablet::{Store, StoreConfig, StoreStats};
use tokio::sync::{Mutex, Notify, broadcast};

use crate::access::{AccessControl, Door};
use crate::answers::Answers;
use crate::client_memory::ClientMemory;
use crate::clients::Clients;
use crate::clock::{Clock, TimestampSource};
use crate::cluster::{Cluster, Source, coordinate, read_timeout};
use crate::consistency;
use crate::ddl::DdlQueue;
use crate::dml::PlannedBatch;
use crate::dml::build::Builds;
use crate::dml::stale::StaleCounts;
use crate::plan::{DirectPlan, Plan, Planned};
use crate::request::{BatchStatement, BoundValue, ClientState, QueryOptions};
use crate::response::{Outcome, Response, SchemaChange};
use crate::schema::Schema;
use crate::scope;
use crate::storage::{HeaderTables, LiveTables, PartitionLocks, RowHooks, WriteEpochs};
use crate::trace::{self, Traces};

pub(crate) use failure::store_error;
pub use prepared::Prepared;
pub use timeouts::Timeouts;

use failure::at_consistency;
use prepared::PreparedStatements;

/// What the node says of itself in `system.local`.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    pub cluster_name: String,
    pub data_center: String,
    pub rack: String,
    pub host_id: uuid::Uuid,
    /// Where drivers connect.
    pub native_address: std::net::SocketAddr,
    /// The Cassandra version that drivers are told.
    pub release_version: String,
}

/// Limits on what a statement may ask for, with Cassandra's names where it has them.
#[derive(Clone, Debug)]
pub struct Limits {
    pub statement_len_max: usize,
    pub batch_size_warn_bytes: usize,
    pub batch_size_fail_bytes: usize,
    pub tombstone_warn_threshold: usize,
    pub tombstone_failure_threshold: usize,
    /// Prepared statements kept, in bytes: about 2.5 KB each, so some 50,000 by default, a pair for each of 10,000 tables and room to spare.
    pub prepared_cache_bytes: usize,
    /// Bytes of rows after which a page ends early, whatever its size in rows.
    pub page_bytes_max: usize,
    /// Memory for clients' requests and answers; when it is short, pages end early.
    pub client_memory_bytes: usize,
    /// How long a request may take when other nodes are asked.
    pub request_timeout: Duration,
    /// How long requests may compute here.
    pub timeouts: Timeouts,
    /// Bytes of one answer, and of all that are being made and sent.
    pub answer_bytes_max: usize,
    pub answers_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            statement_len_max: 64 << 20,
            batch_size_warn_bytes: 5 << 10,
            batch_size_fail_bytes: 50 << 20,
            tombstone_warn_threshold: 1_000,
            tombstone_failure_threshold: 100_000,
            prepared_cache_bytes: 128 << 20,
            page_bytes_max: 64 << 20,
            client_memory_bytes: usize::MAX,
            request_timeout: Duration::from_secs(10),
            timeouts: Timeouts::default(),
            answer_bytes_max: 256 << 20,
            answers_bytes_max: 512 << 20,
        }
    }
}

/// How an engine is opened.
pub struct EngineConfig {
    pub store: StoreConfig,
    pub node: NodeInfo,
    pub limits: Limits,
    pub clock: Arc<dyn Clock>,
    pub control: AccessControl,
}

/// Executes statements against the store of this node.
pub struct Engine {
    pub(crate) store: Arc<Store>,
    pub(crate) node: NodeInfo,
    pub(crate) limits: Limits,
    pub(crate) control: AccessControl,
    pub(crate) door: Door,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timestamps: TimestampSource,
    pub(crate) schema: ArcSwap<Schema>,
    /// Held while a DDL statement runs: schema changes are serial.
    pub(crate) ddl: Mutex<()>,
    pub(crate) ddl_queue: DdlQueue,
    pub(crate) events: broadcast::Sender<SchemaChange>,
    pub(crate) live_tables: Arc<LiveTables>,
    pub(crate) headers: Arc<HeaderTables>,
    pub(crate) locks: PartitionLocks,
    /// Of requests that asked to be traced.
    pub traces: Traces,
    /// Who is connected.
    pub clients: Clients,
    /// What they hold.
    pub client_memory: Arc<ClientMemory>,
    pub(crate) writes: WriteEpochs,
    /// Wakes those who wait for a newer schema.
    pub(crate) installed: Notify,
    /// Index entries that stand for nothing.
    pub stale: StaleCounts,
    /// Indexes and views that are being built here.
    pub(crate) builds: Builds,
    /// Held while a newer schema is read.
    pub(crate) loading: Mutex<()>,
    /// Held while a schema is put in place.
    pub(crate) installing: parking_lot::Mutex<()>,
    /// Set once the node is one of several.
    pub(crate) cluster: OnceLock<Arc<dyn Cluster>>,
    prepared: PreparedStatements,
    /// The memory that answers may take.
    pub(crate) answers: Arc<Answers>,
}

/// Events that a slow subscriber may lag behind before it loses some.
const EVENTS_MAX: usize = 1024;

impl Engine {
    /// Opens the store and reads the schema from it.
    pub async fn open(config: EngineConfig) -> Result<Arc<Engine>, CqlError> {
        let live_tables = Arc::new(LiveTables::default());
        let headers = Arc::new(HeaderTables::default());
        let hooks = Arc::new(RowHooks {
            live_tables: live_tables.clone(),
            headers: headers.clone(),
        });
        let store = Store::open(config.store, hooks).await.map_err(store_error)?;
        headers.load(&store).await?;
        let schema = crate::ddl::load(&store).await?;
        live_tables.set(&schema);
        let timestamps = TimestampSource::default();
        // The machine's clock may have been set back since the node was last there.
        timestamps.raise(store.clock_us());
        store.keep_clock_beyond(timestamps.last_us());
        Ok(Arc::new(Engine {
            headers,
            store,
            node: config.node,
            clock: config.clock,
            control: config.control,
            door: Door::default(),
            timestamps,
            schema: ArcSwap::from_pointee(schema),
            ddl: Mutex::default(),
            ddl_queue: DdlQueue::default(),
            events: broadcast::channel(EVENTS_MAX).0,
            live_tables,
            locks: PartitionLocks::default(),
            traces: Traces::default(),
            clients: Clients::default(),
            client_memory: ClientMemory::new(config.limits.client_memory_bytes),
            writes: WriteEpochs::default(),
            loading: Mutex::default(),
            installing: parking_lot::Mutex::default(),
            installed: Notify::default(),
            stale: StaleCounts::default(),
            builds: Builds::default(),
            cluster: OnceLock::new(),
            prepared: PreparedStatements::new(config.limits.prepared_cache_bytes),
            answers: Arc::new(Answers::new(config.limits.answers_bytes_max)),
            limits: config.limits,
        }))
    }

    /// Goes on, in the background, with the indexes and views that were not built when the node that built them ended.
    pub fn resume_builds(self: &Arc<Self>) {
        crate::dml::build::resume(self);
    }

    /// Flushes what can be flushed and closes the store.
    pub async fn close(&self) -> Result<(), CqlError> {
        self.store.close().await.map_err(store_error)
    }
}

impl Engine {
    /// Runs a statement given as text.
    pub async fn query(
        self: &Arc<Self>,
        client: &ClientState,
        text: &str,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        let keyspace = options.keyspace(client);
        let (planned, _epoch) = trace::parsing(|| {
            let parsed = self.parse(text)?;
            let epoch = writes(&parsed.statement).then(|| self.writes.enter());
            Ok((self.plan(keyspace, &parsed)?, epoch))
        })?;
        if planned.markers.bind(&options.values).is_err() {
            return Err(CqlError::invalid("Invalid amount of bind variables"));
        }
        self.authorize(client, keyspace, &planned)?;
        planned.plan.validate()?;
        self.run(client, keyspace, Source::Text(text), &planned, options)
            .await
    }

    /// Runs a prepared statement.
    pub async fn execute(
        self: &Arc<Self>,
        client: &ClientState,
        prepared: &Prepared,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        let _epoch = prepared.is_write.then(|| self.writes.enter());
        let planned = self.current_plan(prepared)?;
        let keyspace = prepared.keyspace.as_deref();
        self.authorize(client, keyspace, &planned)?;
        self.run(client, keyspace, Source::Prepared(prepared), &planned, options)
            .await
    }

    /// Refuses a keyspace that is to be used and does not exist.
    pub fn check_keyspace(&self, keyspace: &str) -> Result<(), CqlError> {
        match self.schema.load().keyspace(keyspace) {
            Some(_) => Ok(()),
            None => Err(CqlError::invalid(format!("Keyspace '{keyspace}' does not exist"))),
        }
    }

    /// Schema changes as they happen.
    pub fn subscribe(&self) -> broadcast::Receiver<SchemaChange> {
        self.events.subscribe()
    }

    /// The store of this node.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// This node's clock of write timestamps, in microseconds.
    pub fn clock_us(&self) -> i64 {
        self.timestamps.next_us(self.clock.as_ref())
    }

    /// Goes on with write timestamps from where the former owners of the open tablets were.
    pub fn follow_former_owners(&self) {
        self.timestamps.raise(self.store.found_clock_us());
    }

    /// Takes note of another node's clock of write timestamps.
    pub fn observe_clock(&self, clock_us: i64) {
        self.timestamps.observe(self.clock.as_ref(), clock_us);
    }

    /// What the store counts.
    pub fn store_stats(&self) -> StoreStats {
        self.store.stats()
    }

    /// Today's schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    /// A statement that is prepared, or a part of a batch.
    pub(crate) fn parse_and_plan(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> Result<(ast::ParsedStatement, Planned), CqlError> {
        trace::parsing(|| {
            let parsed = self.parse(text)?;
            let planned = self.plan(keyspace, &parsed)?;
            crate::ddl::check_prepare(self, client, keyspace, &parsed.statement)?;
            planned.plan.validate()?;
            Ok((parsed, planned))
        })
    }

    /// The plan of a statement that is run once. Call it within [`trace::parsing`].
    pub(crate) fn plan(
        &self,
        keyspace: Option<&str>,
        parsed: &ast::ParsedStatement,
    ) -> Result<Planned, CqlError> {
        trace::step(|| "Preparing statement");
        crate::plan::plan(&self.schema.load(), keyspace, parsed)
    }

    pub(crate) fn parse(&self, text: &str) -> Result<ast::ParsedStatement, CqlError> {
        trace::step(|| format!("Parsing {}", trace::shorten(text)));
        if text.len() > self.limits.statement_len_max {
            return Err(CqlError::invalid(format!(
                "Statement of {} bytes is longer than the limit of {} bytes",
                text.len(),
                self.limits.statement_len_max
            )));
        }
        helenus_cql::parser::parse_statement(text)
    }

    async fn run(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        source: Source<'_>,
        planned: &Planned,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        consistency::check_request(options.consistency)?;
        if let (Plan::Modification(_) | Plan::Batch(_), Some(state)) = (&planned.plan, &options.paging_state)
        {
            crate::select::check_paging_state(state)?;
        }
        let timeout = match &planned.plan {
            Plan::Select(plan) => plan.timeout(),
            Plan::Modification(_) | Plan::Batch(_) | Plan::Direct(_) => None,
        };
        let run = self.run_anywhere(client, keyspace, source, planned, options);
        let Some(timeout) = timeout else {
            return run.await;
        };
        // It may compute for that long, and wait.
        scope::limit_time(timeout, false);
        tokio::time::timeout(timeout, run)
            .await
            .unwrap_or_else(|_| Err(read_timeout(options.consistency)))
    }

    async fn run_anywhere(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        source: Source<'_>,
        planned: &Planned,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        let values = planned.markers.bind(&options.values)?;
        let Some(cluster) = self.cluster() else {
            return self.run_here(client, planned, &values, options).await;
        };
        let request = coordinate::Request {
            client,
            keyspace,
            source,
            work: coordinate::Work::Statement {
                planned,
                values: &values,
            },
            options,
        };
        coordinate::run(self, cluster.as_ref(), request).await
    }

    /// Runs a statement on this node, whoever owns what it is about.
    pub(crate) async fn run_here(
        self: &Arc<Self>,
        client: &ClientState,
        planned: &Planned,
        values: &[BoundValue],
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        self.limits.timeouts.limit(&planned.plan);
        let outcome = match &planned.plan {
            Plan::Select(plan) => crate::select::execute(self, plan, values, options).await,
            Plan::Modification(plan) => crate::dml::execute(self, plan, values, options).await,
            Plan::Batch(plan) => crate::dml::execute_batch(self, plan, values, options).await,
            Plan::Direct(plan) => return self.run_direct(client, plan, options).await,
        };
        outcome.map_err(|error| at_consistency(error, options.consistency, planned.plan.write_type()))
    }

    /// Runs a BATCH message.
    pub async fn batch(
        self: &Arc<Self>,
        client: &ClientState,
        kind: ast::BatchKind,
        statements: &[BatchStatement],
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        consistency::check_request(options.consistency)?;
        let _epoch = self.writes.enter();
        let keyspace = options.keyspace(client);
        scope::limit_time(
            self.limits.timeouts.write(crate::dml::batch_write_type(kind)),
            true,
        );
        let batch = PlannedBatch::plan(self, client, keyspace, kind, statements).await?;
        for planned in batch.planned() {
            self.authorize(client, keyspace, planned)?;
        }
        let Some(cluster) = self.cluster() else {
            let outcome = crate::dml::run_batch_message(self, &batch, options).await;
            let kind = crate::dml::batch_write_type(kind);
            return outcome.map_err(|error| at_consistency(error, options.consistency, kind));
        };
        let request = coordinate::Request {
            client,
            keyspace,
            source: Source::Batch(kind, statements),
            work: coordinate::Work::Batch(&batch),
            options,
        };
        coordinate::run(self, cluster.as_ref(), request).await
    }

    async fn run_direct(
        self: &Arc<Self>,
        client: &ClientState,
        plan: &DirectPlan,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        match &plan.statement {
            ast::Statement::Use(keyspace) => {
                let keyspace = keyspace.as_str();
                self.check_keyspace(keyspace)?;
                Ok(Response::SetKeyspace(keyspace.to_owned()).into())
            }
            ast::Statement::Describe(statement) => {
                scope::step_aside().await;
                crate::describe::execute(self, client, statement, options).await
            }
            statement => {
                scope::step_aside().await;
                crate::ddl::execute(self, client, plan.keyspace.as_deref(), statement).await
            }
        }
    }
}

/// True for statements that write rows.
pub(super) fn writes(statement: &ast::Statement) -> bool {
    use ast::Statement;
    matches!(
        statement,
        Statement::Insert(_)
            | Statement::InsertJson(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Batch(_)
    )
}
