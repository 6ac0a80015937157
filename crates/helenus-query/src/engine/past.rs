//! Reads of the past: `SELECT … FROM table AS OF SNAPSHOT name`.
//!
//! The statement is planned against the tables that the snapshot has, and run at the time when the snapshot was taken: what has expired since
//! is there. Rows of tables in use are read from the pinned tablets; those that TRUNCATE, DROP or a restore have left behind lie in the
//! tablets of today. Who asks needs the permissions of today.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use quick_cache::sync::Cache;

use super::{Engine, within};
use crate::analysis::restrictions::view_filter::link_views;
use crate::analysis::{self, Plan, consistency};
use crate::clock::Clock;
use crate::execution;
use crate::failure::{ExecutionError, store_error};
use crate::figures::running::StatementText;
use crate::request::{ClientState, QueryOptions, no_keyspace};
use crate::response::Outcome;
use crate::schema::{Schema, Snapshot, Table};
use crate::storage::ExecutionContext;
use crate::trace;

/// A time that stands still.
struct StoppedClock {
    now_us: i64,
}

impl Clock for StoppedClock {
    fn now_us(&self) -> i64 {
        self.now_us
    }
}

/// A snapshot that is read.
#[derive(Clone)]
struct Past {
    snapshot: Arc<Snapshot>,
    context: Arc<ExecutionContext>,
}

/// Snapshots that are kept open.
const OPEN_MAX: usize = 16;

/// The snapshots that were read last, by tag and keyspace.
pub(super) struct Pasts(Cache<(String, String), Past>);

impl Default for Pasts {
    fn default() -> Pasts {
        Pasts(Cache::new(OPEN_MAX))
    }
}

impl Pasts {
    fn get(&self, snapshot: &Arc<Snapshot>) -> Option<Arc<ExecutionContext>> {
        let past = self.0.get(&snapshot.key())?;
        Arc::ptr_eq(&past.snapshot, snapshot).then_some(past.context)
    }

    /// Forgets the snapshots that a schema has no more.
    pub fn forget_gone(&self, schema: &Schema) {
        let is_there = |past: &Past| {
            let known = schema.snapshots.get(&past.snapshot.key());
            known.is_some_and(|known| Arc::ptr_eq(known, &past.snapshot))
        };
        self.0.retain(|_, past| is_there(past));
    }
}

/// The snapshot that a statement reads; none if it is about today.
pub(super) fn snapshot_of(statement: &ast::Statement) -> Option<&str> {
    match statement {
        ast::Statement::Select(select) => select.as_of_snapshot.as_deref(),
        _ => None,
    }
}

/// Refuses a statement about the past where it can't be run.
pub(super) fn refuse(statement: &ast::Statement) -> Result<(), CqlError> {
    match snapshot_of(statement) {
        Some(_) => Err(CqlError::invalid(
            "A statement AS OF SNAPSHOT can't be prepared: send it as a simple statement, with values if need be",
        )),
        None => Ok(()),
    }
}

impl Engine {
    /// Runs a SELECT AS OF SNAPSHOT.
    pub(super) async fn query_past(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
        parsed: &ast::ParsedStatement,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError> {
        let ast::Statement::Select(select) = &parsed.statement else {
            return Err(CqlError::invalid("Only a SELECT is AS OF SNAPSHOT"));
        };
        let own = select.table.keyspace.as_ref().map(|name| name.as_str());
        let named = own.or(keyspace).ok_or_else(no_keyspace)?;
        let tag = select.as_of_snapshot.as_deref().unwrap_or_default();
        let context = self.past(tag, named).await?;
        let planned = Arc::new(trace::parsing(|| {
            analysis::plan(&context.schema.load(), keyspace, parsed)
        })?);
        if planned.markers.bind(&options.values).is_err() {
            return Err(CqlError::invalid("Invalid amount of bind variables"));
        }
        self.authorize(client, keyspace, &planned)?;
        planned.plan.validate()?;
        consistency::check_request(options.consistency)?;
        let service_timeout = self.count_statement(client, &planned.plan)?;
        let values = planned.markers.bind(&options.values)?;
        let (planned, options) = self.masked_for(client, &planned, options);
        let _running = self
            .context
            .running
            .begin(StatementText::Text(trace::shorten(text).into()));
        let own_timeout = match &planned.plan {
            Plan::Select(plan) => plan.timeout(),
            _ => None,
        };
        let timeout = own_timeout.into_iter().chain(service_timeout).min();
        let consistency = options.consistency;
        let run = async {
            let ran = execution::run_here(&context, self, client, planned, &values, &options, None).await;
            ran.map_err(ExecutionError::into_client_error)
        };
        within(timeout, consistency, run).await
    }

    /// What reads stand on that are about a snapshot of a keyspace.
    async fn past(&self, tag: &str, keyspace: &str) -> Result<Arc<ExecutionContext>, CqlError> {
        let schema = self.schema();
        let snapshot = schema.snapshots.get(&(tag.to_owned(), keyspace.to_owned()));
        let snapshot = snapshot.ok_or_else(|| {
            CqlError::invalid(format!(
                "There is no snapshot {tag} of keyspace {keyspace}; system_views.snapshots has those that there are"
            ))
        })?;
        if self.context.store.is_shared() {
            return Err(CqlError::invalid(
                "Snapshots are read on a store in a folder alone so far",
            ));
        }
        if let Some(context) = self.pasts.get(snapshot) {
            return Ok(context);
        }
        let store = match &snapshot.pinned {
            Some(pinned) => self
                .context
                .store
                .open_pinned(pinned)
                .await
                .map_err(store_error)?,
            None => self.context.store.clone(),
        };
        let clock = Arc::new(StoppedClock {
            now_us: snapshot.taken_ms.saturating_mul(1000),
        });
        let then = schema_of(&schema, snapshot)?;
        let context = Arc::new(self.context.of_past(store, then, clock));
        self.pasts.0.insert(
            snapshot.key(),
            Past {
                snapshot: snapshot.clone(),
                context: context.clone(),
            },
        );
        Ok(context)
    }
}

/// The schema as a snapshot has it: its keyspace alone.
fn schema_of(today: &Schema, snapshot: &Snapshot) -> Result<Schema, CqlError> {
    let mut schema = today.clone();
    schema.keyspaces = BTreeMap::from([(snapshot.keyspace.name.clone(), snapshot.keyspace.clone())]);
    schema.snapshots = Arc::default();
    let views = snapshot.keyspace.tables.values().filter(|table| table.is_view());
    let views: Vec<Arc<Table>> = views.cloned().collect();
    link_views(&mut schema, views)?;
    Ok(schema)
}
