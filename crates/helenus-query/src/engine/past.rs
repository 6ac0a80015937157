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

use super::Engine;
use crate::analysis::restrictions::view_filter::link_views;
use crate::analysis::{self, Planned};
use crate::clock::Clock;
use crate::failure::store_error;
use crate::request::no_keyspace;
use crate::schema::{Schema, Snapshot, Table};
use crate::storage::ExecutionContext;

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

/// The plan of a statement against the tables that it is about: those of today, or of a snapshot.
pub(super) fn plan(
    today: &Schema,
    keyspace: Option<&str>,
    parsed: &ast::ParsedStatement,
) -> Result<Planned, CqlError> {
    let about = match &parsed.statement {
        ast::Statement::Select(select) => select.as_of_snapshot.as_ref().map(|tag| (tag, &select.table)),
        _ => None,
    };
    let Some((tag, table)) = about else {
        return analysis::plan(today, keyspace, parsed);
    };
    let own = table.keyspace.as_ref().map(|name| name.as_str());
    let named = own.or(keyspace).ok_or_else(no_keyspace)?;
    let snapshot = today.require_snapshot(tag, named)?;
    let mut planned = analysis::plan(&schema_of(today, snapshot)?, keyspace, parsed)?;
    planned.snapshot = Some(snapshot.key());
    Ok(planned)
}

impl Engine {
    /// What reads stand on that are about a snapshot, by its tag and keyspace.
    ///
    /// # Errors
    /// There is no such snapshot any more, or its files can't be read.
    pub(super) async fn past(&self, key: &(String, String)) -> Result<Arc<ExecutionContext>, CqlError> {
        let schema = self.schema();
        let snapshot = schema.require_snapshot(&key.0, &key.1)?;
        if let Some(context) = self.pasts.get(snapshot) {
            return Ok(context);
        }
        let store = match &snapshot.pinned {
            Some(pinned) => {
                let tables = snapshot.keyspace.tables.values();
                let origins = tables.flat_map(|table| table.origins()).collect();
                let opened = self.context.store.open_pinned_with(pinned, origins).await;
                opened.map_err(store_error)?
            }
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
