//! A backend whose statements are instructions: `void`, `rows N`, `sleep MS`, `held N`, `spin N`, `fail`, `panic`, `use KS`, `create KS`,
//! `keyspace`, `count`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{BatchKind, BatchStatement};
use helenus_cql::frame::response::{ChangeKind, Prepared, SchemaChange, SchemaTarget};
use helenus_cql::frame::{ColumnSpec, PreparedMetadata, ResultMetadata, RowsBuilder};
use helenus_cql::types::CqlType;
use helenus_query::cluster::RelayAnswer;
use helenus_query::request::{BoundValues, ClientFrame, ClientState, QueryParameters};
use helenus_query::response::{Outcome, Response, Rows};
use helenus_query::trace::{Trace, TraceEvent, step};
use helenus_server::Backend;
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use uuid::Uuid;

use crate::LIMIT;

#[derive(Clone)]
pub struct Mock {
    pub changes: broadcast::Sender<SchemaChange>,
    /// Number of statements that have begun.
    pub begun: Arc<AtomicUsize>,
    /// Number of statements that have ended.
    pub ended: Arc<AtomicUsize>,
    /// Statements `held N` and `spin N` end once this is N or more.
    pub gate: Arc<watch::Sender<u64>>,
    /// Number of columns in the result of `rows`.
    pub columns: Arc<AtomicUsize>,
    pub traces: Arc<Mutex<Vec<Trace>>>,
}

impl Default for Mock {
    fn default() -> Mock {
        Mock {
            changes: broadcast::channel(16).0,
            begun: Arc::default(),
            ended: Arc::default(),
            gate: Arc::new(watch::channel(0).0),
            columns: Arc::new(AtomicUsize::new(1)),
            traces: Arc::default(),
        }
    }
}

fn metadata(columns: usize) -> Arc<ResultMetadata> {
    let columns = (0..columns)
        .map(|i| ColumnSpec::new("ks", "t", format!("c{i}"), CqlType::TEXT))
        .collect();
    Arc::new(ResultMetadata::new(columns))
}

fn one_row(texts: &[String]) -> Response {
    let mut builder = RowsBuilder::new(texts.len());
    for text in texts {
        builder.push(Some(text.as_bytes()));
    }
    Response::Rows(Rows {
        metadata: metadata(texts.len()),
        content: builder.finish(),
        paging_state: None,
    })
}

async fn reaches(counter: &AtomicUsize, count: usize) {
    let reached = async {
        while counter.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let ended = tokio::time::timeout(LIMIT, reached).await;
    assert!(
        ended.is_ok(),
        "expected {count} statements, got {}",
        counter.load(Ordering::Relaxed)
    );
}

impl Mock {
    /// Waits until `count` statements have begun.
    pub async fn begins(&self, count: usize) {
        reaches(&self.begun, count).await;
    }

    /// Waits until `count` statements have ended.
    pub async fn ends(&self, count: usize) {
        reaches(&self.ended, count).await;
    }

    async fn run(
        &self,
        client: &ClientState,
        text: &str,
        parameters: &QueryParameters,
    ) -> Result<Outcome, CqlError> {
        let (word, argument) = text.split_once(' ').unwrap_or((text, ""));
        let number: u64 = argument.parse().unwrap_or(0);
        self.begun.fetch_add(1, Ordering::Relaxed);
        let response = match word {
            "void" => {
                step(|| "Doing nothing");
                Response::Void
            }
            "rows" => {
                let columns = self.columns.load(Ordering::Relaxed);
                let mut builder = RowsBuilder::new(columns);
                for _ in 0..number * columns as u64 {
                    builder.push(Some(&[b'x'; 1000]));
                }
                Response::Rows(Rows {
                    metadata: metadata(columns),
                    content: builder.finish(),
                    paging_state: None,
                })
            }
            "sleep" => {
                tokio::time::sleep(Duration::from_millis(number)).await;
                Response::Void
            }
            "held" => {
                let mut gate = self.gate.subscribe();
                gate.wait_for(|open| *open >= number).await.unwrap();
                Response::Void
            }
            "spin" => {
                while *self.gate.borrow() < number {
                    let turn = Instant::now() + Duration::from_millis(20);
                    while Instant::now() < turn {
                        std::hint::spin_loop();
                    }
                    tokio::task::yield_now().await;
                }
                Response::Void
            }
            "keyspace" => one_row(&[client.keyspace_for(parameters).unwrap_or_default().to_owned()]),
            "values" => one_row(&[format!("{:?}", parameters.values)]),
            "use" => Response::SetKeyspace(argument.to_owned()),
            "create" => {
                let change = SchemaChange {
                    change: ChangeKind::Created,
                    keyspace: argument.to_owned(),
                    target: SchemaTarget::Keyspace,
                };
                let _ = self.changes.send(change.clone());
                Response::SchemaChange(change)
            }
            "panic" => panic!("as told"),
            _ => return Err(CqlError::Syntax(format!("no {word}"))),
        };
        self.ended.fetch_add(1, Ordering::Relaxed);
        let warnings = if word == "values" {
            vec!["mind".to_owned()]
        } else {
            Vec::new()
        };
        Ok(response.with(warnings))
    }
}

impl Backend for Mock {
    type Prepared = String;
    type Relayed = Infallible;
    type Unsettled = Infallible;

    fn cql_version(&self) -> &str {
        "3.4.7"
    }

    async fn query(
        &self,
        client: &ClientState,
        text: &str,
        frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        self.run(client, text, frame.parameters).await
    }

    async fn prepare(
        &self,
        _client: &ClientState,
        _keyspace: Option<&str>,
        text: &str,
    ) -> Result<(Prepared, Vec<String>), CqlError> {
        let result_metadata = if text.starts_with("rows") {
            metadata(1)
        } else {
            Arc::default()
        };
        let prepared = Prepared {
            id: text.as_bytes().to_vec().into(),
            result_metadata_id: result_metadata.id().to_vec().into(),
            metadata: Arc::new(PreparedMetadata::default()),
            result_metadata,
        };
        Ok((prepared, Vec::new()))
    }

    fn prepared(&self, id: &[u8]) -> Result<Arc<String>, CqlError> {
        if id.len() == 16 {
            return Err(CqlError::Unprepared(id.to_vec()));
        }
        Ok(Arc::new(String::from_utf8_lossy(id).into_owned()))
    }

    fn statement<'p>(&self, prepared: &'p String) -> &'p str {
        prepared
    }

    fn bound_variables(&self, _prepared: &String, values: &BoundValues) -> Vec<(String, String)> {
        vec![("bound_var_0_x".to_owned(), format!("{values:?}"))]
    }

    fn prepared_metadata(&self, prepared: &String) -> Arc<ResultMetadata> {
        if prepared.starts_with("rows") {
            metadata(1)
        } else {
            Arc::default()
        }
    }

    async fn execute(
        &self,
        client: &ClientState,
        prepared: &String,
        frame: ClientFrame<'_>,
    ) -> Result<Outcome, CqlError> {
        self.run(client, prepared, frame.parameters).await
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
        Ok(one_row(&[format!("{} statements", statements.len())]).into())
    }

    fn schema_changes(&self) -> broadcast::Receiver<SchemaChange> {
        self.changes.subscribe()
    }

    fn record_trace(&self, trace: Trace) {
        self.traces.lock().push(trace);
    }

    fn add_to_trace(&self, id: Uuid, event: TraceEvent) {
        let mut traces = self.traces.lock();
        let trace = traces.iter_mut().find(|trace| trace.id == id);
        trace.expect("a known trace").events.push(event);
    }

    fn record_stats(&self) {}
}
