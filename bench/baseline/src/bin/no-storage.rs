//! A server that answers without storage: the cost of a request before any row is touched.
//!
//! The transport, the schema, parsing, planning, preparing and binding are Helenus's own. DDL and unprepared statements run as usual. The
//! execution of a prepared statement (alone or in a batch) finds its plan, binds its values, and answers: a SELECT with one row of values
//! of fixed lengths, all else with nothing. Neither keys nor operands are encoded, and no cache is used.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use clap::Parser;
use helenus_cql::error::CqlError;
use helenus_cql::frame::ResultMetadata;
use helenus_cql::frame::request::{BatchKind, BatchStatement, StatementRef};
use helenus_cql::frame::response::{Prepared, RowsBuilder, SchemaChange};
use helenus_query::clock::SystemClock;
use helenus_query::cluster::RelayAnswer;
use helenus_query::engine::{self, Engine, EngineConfig, Limits, LocalNode};
use helenus_query::request::{BoundValues, ClientFrame, ClientState};
use helenus_query::response::{Outcome, Response, Rows};
use helenus_query::trace::{Trace, TraceEvent};
use helenus_server::{Backend, Server, ServerConfig};
use helenus_tablet::{StoreConfig, StoreUrl};
use tokio::sync::broadcast;
use uuid::Uuid;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser, Debug)]
#[command(
    about = "Serves CQL without storage: prepared statements are bound and answered, no row is touched"
)]
struct Args {
    /// The address for CQL
    #[arg(long, default_value = "127.0.0.1:9042")]
    listen: SocketAddr,
    /// Bytes of each value in the answer to a SELECT
    #[arg(long, default_value_t = 256)]
    value_bytes: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let folder = tempfile::tempdir().context("can't make a folder for the schema")?;
    let store = StoreConfig::new(StoreUrl::File(folder.path().to_owned()));
    let node = LocalNode {
        cluster_name: "baseline".to_owned(),
        data_center: "datacenter1".to_owned(),
        rack: "rack1".to_owned(),
        host_id: Uuid::new_v4(),
        native_address: args.listen,
        release_version: "5.0.5".to_owned(),
    };
    let config = EngineConfig {
        store,
        node,
        limits: Limits::default(),
        control: helenus_query::engine::AccessControl::default(),
        clock: Arc::new(SystemClock),
    };
    let engine = Engine::open(config).await.map_err(|error| anyhow!("{error}"))?;
    let backend = NoStorage {
        engine,
        value: vec![b'x'; args.value_bytes].into(),
    };
    let memory_bytes = helenus_tablet::machine_memory_bytes();
    let server = Server::start(ServerConfig::new(args.listen, memory_bytes), backend).await?;
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    Ok(())
}

struct NoStorage {
    engine: Arc<Engine>,
    value: Bytes,
}

impl NoStorage {
    /// Answers a prepared statement without running it.
    fn answer(&self, prepared: &engine::Prepared, values: &BoundValues) -> Result<Response, CqlError> {
        let planned = self.engine.current_plan(prepared)?;
        planned.markers.bind(values)?;
        let Some(metadata) = &planned.result else {
            return Ok(Response::Void);
        };
        let columns = metadata.columns.len();
        let mut row = RowsBuilder::new(columns);
        (0..columns).for_each(|_| row.push(Some(&self.value)));
        Ok(Response::Rows(Rows {
            metadata: metadata.clone(),
            content: row.finish(),
            paging_state: None,
        }))
    }
}

impl Backend for NoStorage {
    type Prepared = engine::Prepared;
    type Relayed = Infallible;
    type Unsettled = Infallible;

    fn cql_version(&self) -> &str {
        self.engine.cql_version()
    }

    fn query(
        &self,
        client: &ClientState,
        text: &str,
        frame: ClientFrame<'_>,
    ) -> impl Future<Output = Result<Outcome, CqlError>> + Send {
        Backend::query(&self.engine, client, text, frame)
    }

    fn prepare(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> impl Future<Output = Result<(Prepared, Vec<String>), CqlError>> + Send {
        Backend::prepare(&self.engine, client, keyspace, text)
    }

    fn prepared(&self, id: &[u8]) -> Result<Arc<engine::Prepared>, CqlError> {
        Backend::prepared(&self.engine, id)
    }

    fn statement<'p>(&self, prepared: &'p engine::Prepared) -> &'p str {
        self.engine.statement(prepared)
    }

    fn bound_variables(&self, prepared: &engine::Prepared, values: &BoundValues) -> Vec<(String, String)> {
        self.engine.bound_variables(prepared, values)
    }

    fn prepared_metadata(&self, prepared: &engine::Prepared) -> Arc<ResultMetadata> {
        self.engine.prepared_metadata(prepared)
    }

    async fn execute(
        &self,
        _client: &ClientState,
        prepared: &engine::Prepared,
        frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        Ok(self.answer(prepared, &frame.parameters.values)?.into())
    }

    fn settle(&self, relayed: Infallible, _: RelayAnswer) -> Result<Result<Outcome, CqlError>, Infallible> {
        match relayed {}
    }

    async fn resume(&self, unsettled: Infallible, _: ClientFrame<'_>) -> Result<Outcome, CqlError> {
        match unsettled {}
    }

    async fn batch(
        &self,
        _client: &ClientState,
        _kind: BatchKind,
        statements: Vec<BatchStatement>,
        _frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        for BatchStatement { statement, values } in statements {
            if let StatementRef::Prepared(id) = statement {
                let prepared = Backend::prepared(&self.engine, &id)?;
                self.answer(&prepared, &BoundValues::Positional(values))?;
            }
        }
        Ok(Response::Void.into())
    }

    fn schema_changes(&self) -> broadcast::Receiver<SchemaChange> {
        self.engine.schema_changes()
    }

    fn record_trace(&self, trace: Trace) {
        self.engine.record_trace(trace);
    }

    fn add_to_trace(&self, id: Uuid, event: TraceEvent) {
        self.engine.add_to_trace(id, event);
    }

    fn record_stats(&self) {
        self.engine.record_stats();
    }
}
