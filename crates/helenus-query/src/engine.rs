//! The query engine of a node: the facade that the server calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use helenus_cql::ast;
use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_tablet::{Store, StoreConfig, StoreError, StoreStats};
use tokio::sync::{Mutex, Notify, broadcast};

use crate::clients::Clients;
use crate::clock::{Clock, TimestampSource};
use crate::cluster::{Cluster, Source, coordinate, read_timeout};
use crate::consistency;
use crate::ddl::DdlQueue;
use crate::dml::PlannedBatch;
use crate::dml::build::Builds;
use crate::plan::{Plan, Planned};
use crate::preparation::{is_qualified, prepared_id, use_warning};
use crate::request::{BatchStatement, BoundValue, ClientState, QueryOptions};
use crate::response::{Outcome, Response, ResultMetadata, SchemaChange};
use crate::schema::Schema;
use crate::storage::{HeaderTables, LiveTables, PartitionLocks, RowHooks, WriteEpochs};
use crate::trace::{self, Traces};

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
    /// Prepared statements kept, in bytes.
    pub prepared_cache_bytes: usize,
    /// Bytes of rows after which a page ends early, whatever its size in rows.
    pub page_bytes_max: usize,
    /// How long a request may take when other nodes are asked.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            statement_len_max: 64 << 20,
            batch_size_warn_bytes: 5 << 10,
            batch_size_fail_bytes: 50 << 20,
            tombstone_warn_threshold: 1_000,
            tombstone_failure_threshold: 100_000,
            prepared_cache_bytes: 64 << 20,
            page_bytes_max: 64 << 20,
            request_timeout: Duration::from_secs(10),
        }
    }
}

/// A prepared statement.
#[derive(Debug)]
pub struct Prepared {
    /// md5 of the query and, if that names tables without theirs, the keyspace: the same on every node.
    pub id: [u8; 16],
    pub query: String,
    pub keyspace: Option<String>,
    /// The result's columns when the statement was first prepared; none if it answers without rows.
    pub first_result: Arc<ResultMetadata>,
    parsed: ast::ParsedStatement,
    planned: ArcSwap<Planned>,
}

/// How an engine is opened.
pub struct EngineConfig {
    pub store: StoreConfig,
    pub node: NodeInfo,
    pub limits: Limits,
    pub clock: Arc<dyn Clock>,
}

/// Executes statements against the store of this node.
pub struct Engine {
    pub(crate) store: Arc<Store>,
    pub(crate) node: NodeInfo,
    pub(crate) limits: Limits,
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
    pub(crate) writes: WriteEpochs,
    /// Wakes those who wait for a newer schema.
    pub(crate) installed: Notify,
    /// Indexes and views that are being built here.
    pub(crate) builds: Builds,
    /// Held while a schema is put in place.
    pub(crate) installing: Mutex<()>,
    /// Set once the node is one of several.
    pub(crate) cluster: OnceLock<Arc<dyn Cluster>>,
    prepared: PreparedCache,
    /// Statements that were put into it, less those that the schema made void.
    prepared_made: AtomicU64,
}

type PreparedCache = quick_cache::sync::Cache<[u8; 16], Arc<Prepared>, PreparedWeight>;

/// Counts a prepared statement as its text and a fixed cost for its plan.
#[derive(Clone)]
struct PreparedWeight;

impl quick_cache::Weighter<[u8; 16], Arc<Prepared>> for PreparedWeight {
    fn weight(&self, _id: &[u8; 16], prepared: &Arc<Prepared>) -> u64 {
        (prepared.query.len() * 4 + 2048) as u64
    }
}

/// Events that a slow subscriber may lag behind before it loses some.
const EVENTS_MAX: usize = 1024;

/// A store's error as a client sees it. [`at_consistency`] puts the request's consistency in.
pub(crate) fn store_error(error: StoreError) -> CqlError {
    let message = error.to_string();
    match error {
        StoreError::Unknown(_) => CqlError::WriteTimeout {
            message,
            consistency: Consistency::One,
            received: 0,
            block_for: 1,
            write_type: WriteType::Simple,
        },
        StoreError::ReadTimeout(_) => CqlError::ReadTimeout {
            message,
            consistency: Consistency::One,
            received: 0,
            block_for: 1,
            data_present: false,
        },
        StoreError::Overloaded(_) => CqlError::Overloaded(message),
        // Another node has it, or will.
        StoreError::NotOwned(_) | StoreError::Fenced => crate::cluster::moved(),
        StoreError::DiskFull(_)
        | StoreError::Corrupt { .. }
        | StoreError::Locked { .. }
        | StoreError::NewerFormat { .. }
        | StoreError::Closed
        | StoreError::InvalidConfig(_)
        | StoreError::MetaConflict(_)
        | StoreError::TooLarge { .. }
        | StoreError::Unavailable(_) => CqlError::Server(message),
    }
}

/// Puts a request's consistency, and what kind of write it is, into the error of a store that knows of neither.
fn at_consistency(mut error: CqlError, asked: Consistency, kind: WriteType) -> CqlError {
    match &mut error {
        CqlError::WriteTimeout {
            consistency,
            write_type,
            ..
        } => (*consistency, *write_type) = (asked, kind),
        CqlError::ReadTimeout { consistency, .. } => *consistency = asked,
        CqlError::Warned { error, .. } => {
            let inner = std::mem::replace(error.as_mut(), CqlError::Server(String::new()));
            **error = at_consistency(inner, asked, kind);
        }
        _ => {}
    }
    error
}

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
        store.keep_clock_beyond(timestamps.last_us());
        Ok(Arc::new(Engine {
            headers,
            store,
            node: config.node,
            clock: config.clock,
            timestamps,
            schema: ArcSwap::from_pointee(schema),
            ddl: Mutex::default(),
            ddl_queue: DdlQueue::default(),
            events: broadcast::channel(EVENTS_MAX).0,
            live_tables,
            locks: PartitionLocks::default(),
            traces: Traces::default(),
            clients: Clients::default(),
            prepared_made: AtomicU64::new(0),
            writes: WriteEpochs::default(),
            installing: Mutex::default(),
            installed: Notify::default(),
            builds: Builds::default(),
            cluster: OnceLock::new(),
            prepared: quick_cache::sync::Cache::with_weighter(
                config.limits.prepared_cache_bytes / 2048,
                config.limits.prepared_cache_bytes as u64,
                PreparedWeight,
            ),
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
        let (planned, _epoch) = trace::parsing(|| {
            let parsed = self.parse(text)?;
            let epoch = writes(&parsed.statement).then(|| self.writes.enter(self.schema.load().generation));
            Ok((self.plan(client.keyspace.as_deref(), &parsed)?, epoch))
        })?;
        if planned.markers.bind(&options.values).is_err() {
            return Err(CqlError::invalid("Invalid amount of bind variables"));
        }
        let keyspace = client.keyspace.as_deref();
        self.run(client, keyspace, Source::Text(text), &planned, options)
            .await
    }

    /// Prepares a statement and remembers it; the same text in the same keyspace gives the same id, and in every keyspace if it names its
    /// own. A statement that was not known before may come with warnings.
    pub fn prepare(
        &self,
        keyspace: Option<&str>,
        text: &str,
    ) -> Result<(Arc<Prepared>, Vec<String>), CqlError> {
        for id in [prepared_id(None, text), prepared_id(keyspace, text)] {
            if let Some(prepared) = self.prepared.get(&id)
                && self.current_plan(&prepared).is_ok()
            {
                return Ok((prepared, Vec::new()));
            }
        }
        let (parsed, planned) = trace::parsing(|| {
            let parsed = self.parse(text)?;
            crate::ddl::check_prepare(self, &parsed.statement)?;
            let planned = self.plan(keyspace, &parsed)?;
            Ok((parsed, planned))
        })?;
        let is_qualified = is_qualified(&parsed.statement);
        let id = prepared_id(keyspace.filter(|_| !is_qualified), text);
        let warnings = keyspace
            .filter(|_| !is_qualified)
            .map(|keyspace| use_warning(keyspace, &id));
        let prepared = Arc::new(Prepared {
            id,
            query: text.to_owned(),
            keyspace: keyspace.map(str::to_owned),
            first_result: planned.result.clone().unwrap_or_default(),
            parsed,
            planned: ArcSwap::from_pointee(planned),
        });
        self.prepared.insert(id, prepared.clone());
        self.prepared_made.fetch_add(1, Ordering::Relaxed);
        Ok((prepared, warnings.into_iter().collect()))
    }

    /// The statement of that id, if it is still remembered and still makes sense in today's schema.
    pub fn prepared(&self, id: &[u8]) -> Result<Arc<Prepared>, CqlError> {
        let unknown = || CqlError::Unprepared(id.to_vec());
        let key: [u8; 16] = id.try_into().map_err(|_| unknown())?;
        self.prepared.get(&key).ok_or_else(unknown)
    }

    /// Every statement that is remembered.
    pub(crate) fn prepared_statements(&self) -> Vec<Arc<Prepared>> {
        self.prepared.iter().map(|(_, prepared)| prepared).collect()
    }

    /// Statements that were forgotten for want of room.
    pub(crate) fn prepared_evicted(&self) -> u64 {
        let made = self.prepared_made.load(Ordering::Relaxed);
        made.saturating_sub(self.prepared.len() as u64)
    }

    /// The statement's plan, made anew if the schema has changed since. A statement whose table is gone, or whose
    /// columns are no longer what clients were told, is forgotten and reported as unprepared, as in Cassandra: the
    /// driver prepares it again, and learns the reason or the new columns.
    pub fn current_plan(&self, prepared: &Prepared) -> Result<Arc<Planned>, CqlError> {
        let planned = prepared.planned.load_full();
        let schema = self.schema.load();
        if planned.generation == schema.generation {
            return Ok(planned);
        }
        let replan = || crate::plan::plan(&schema, prepared.keyspace.as_deref(), &prepared.parsed);
        match trace::parsing(replan) {
            Ok(new) if new.result == planned.result && new.markers.specs() == planned.markers.specs() => {
                let planned = Arc::new(new);
                prepared.planned.store(planned.clone());
                Ok(planned)
            }
            Ok(_) | Err(_) => {
                if self.prepared.remove(&prepared.id).is_some() {
                    self.prepared_made.fetch_sub(1, Ordering::Relaxed);
                }
                Err(CqlError::Unprepared(prepared.id.to_vec()))
            }
        }
    }

    /// Runs a prepared statement.
    pub async fn execute(
        self: &Arc<Self>,
        client: &ClientState,
        prepared: &Prepared,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        let _epoch =
            writes(&prepared.parsed.statement).then(|| self.writes.enter(self.schema.load().generation));
        let planned = self.current_plan(prepared)?;
        let keyspace = prepared.keyspace.as_deref();
        self.run(client, keyspace, Source::Prepared(prepared), &planned, options)
            .await
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
        if let Ok(clock_us) = self.store.clock_us() {
            self.timestamps.raise(clock_us);
        }
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
        let timeout = match &planned.plan {
            Plan::Select(plan) => plan.timeout(),
            Plan::Modification(_) | Plan::Batch(_) | Plan::Direct(_) => None,
        };
        let run = self.run_anywhere(client, keyspace, source, planned, options);
        match timeout {
            None => run.await,
            Some(timeout) => tokio::time::timeout(timeout, run)
                .await
                .unwrap_or_else(|_| Err(read_timeout(options.consistency))),
        }
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
        let (outcome, kind) = match &planned.plan {
            Plan::Select(plan) => (
                crate::select::execute(self, plan, values, options).await,
                WriteType::Simple,
            ),
            Plan::Modification(plan) => (
                crate::dml::execute(self, plan, values, options).await,
                plan.write_type(),
            ),
            Plan::Batch(plan) => (
                crate::dml::execute_batch(self, plan, values, options).await,
                plan.write_type(),
            ),
            Plan::Direct(statement) => return self.run_direct(client, statement, options).await,
        };
        outcome.map_err(|error| at_consistency(error, options.consistency, kind))
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
        let _epoch = self.writes.enter(self.schema.load().generation);
        let batch = PlannedBatch::plan(self, client, kind, statements)?;
        let Some(cluster) = self.cluster() else {
            let outcome = crate::dml::run_batch_message(self, &batch, options).await;
            let kind = crate::dml::batch_write_type(kind);
            return outcome.map_err(|error| at_consistency(error, options.consistency, kind));
        };
        let request = coordinate::Request {
            client,
            keyspace: client.keyspace.as_deref(),
            source: Source::Batch(kind, statements),
            work: coordinate::Work::Batch(&batch),
            options,
        };
        coordinate::run(self, cluster.as_ref(), request).await
    }

    async fn run_direct(
        self: &Arc<Self>,
        client: &ClientState,
        statement: &ast::Statement,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        match statement {
            ast::Statement::Use(keyspace) => {
                let keyspace = keyspace.as_str();
                if self.schema.load().keyspace(keyspace).is_none() {
                    return Err(CqlError::invalid(format!("Keyspace '{keyspace}' does not exist")));
                }
                Ok(Response::SetKeyspace(keyspace.to_owned()).into())
            }
            ast::Statement::Describe(statement) => {
                crate::describe::execute(self, client, statement, options).await
            }
            statement => crate::ddl::execute(self, client, statement).await,
        }
    }
}

/// True for statements that write rows.
fn writes(statement: &ast::Statement) -> bool {
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
