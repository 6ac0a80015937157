//! Reads of history: `SELECT … FROM table AS OF SNAPSHOT name`, and `AS OF` a time.
//!
//! The statement is planned against the tables as of that time. It also runs with that time as its clock, so that rows that have expired
//! since are still there.
//!
//! Rows of tables in use are read from pinned tablets. A time also needs the writes in the logs since the pin ([`super::history`]). Rows
//! that TRUNCATE, DROP or a restore have left behind are in the present tablets.
//!
//! Masks are those of that time and of today ([`crate::analysis::past_masks`]). Permissions are today's permissions on the table that is
//! read, not on a table that has its name now ([`super::access::past`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::value::timestamp;
use quick_cache::sync::Cache;

use super::Engine;
use super::open_times::{NotOpened, OpenTimes, Opened, OpenedTime, Share};
use crate::analysis::past_masks::masked_as_today;
use crate::analysis::plan::{PastKey, PastRead, Plan};
use crate::analysis::restrictions::view_filter::link_views;
use crate::analysis::{self, Planned};
use crate::clock::StoppedClock;
use crate::failure::store_error;
use crate::request::no_keyspace;
use crate::schema::{Keyspace, Schema, Snapshot, Table};
use crate::storage::ExecutionContext;

/// An open snapshot.
#[derive(Clone)]
struct Past {
    snapshot: Arc<Snapshot>,
    context: Arc<ExecutionContext>,
}

/// Maximum number of snapshots kept open.
const SNAPSHOTS_MAX: usize = 16;

/// The snapshots and times in history that are open.
pub(super) struct Pasts {
    snapshots: Cache<PastKey, Past>,
    times: OpenTimes,
}

impl Default for Pasts {
    fn default() -> Pasts {
        Pasts {
            snapshots: Cache::new(SNAPSHOTS_MAX),
            times: OpenTimes::default(),
        }
    }
}

impl Pasts {
    fn get(&self, key: &PastKey, snapshot: &Arc<Snapshot>) -> Option<Arc<ExecutionContext>> {
        let past = self.snapshots.get(key)?;
        Arc::ptr_eq(&past.snapshot, snapshot).then_some(past.context)
    }

    /// Closes the snapshots that the schema no longer has.
    pub fn forget_gone(&self, schema: &Schema) {
        let is_there = |past: &Past| {
            let known = schema.snapshots.get(&past.snapshot.key());
            known.is_some_and(|known| Arc::ptr_eq(known, &past.snapshot))
        };
        self.snapshots.retain(|_, past| is_there(past));
    }

    /// Returns the number of times that have been opened.
    pub fn times_opened(&self) -> u64 {
        self.times.opened()
    }

    /// Closes times whose files may have been deleted.
    pub fn forget_times_before(&self, first_ms: i64) {
        let is_old = |key: &PastKey| matches!(key, PastKey::Time { time_ms, .. } if *time_ms < first_ms);
        self.times.close(is_old);
    }
}

/// Returns the time or snapshot that a statement reads, and its table. `None` if the statement reads the present.
fn about(parsed: &ast::ParsedStatement) -> Option<(&ast::AsOf, &ast::QualifiedName)> {
    match &parsed.statement {
        ast::Statement::Select(select) => select.as_of.as_ref().map(|as_of| (as_of, &select.table)),
        _ => None,
    }
}

fn keyspace_of<'n>(table: &'n ast::QualifiedName, keyspace: Option<&'n str>) -> Result<&'n str, CqlError> {
    let own = table.keyspace.as_ref().map(|name| name.as_str());
    own.or(keyspace).ok_or_else(no_keyspace)
}

/// Returns the plan of a statement against the tables that it reads: the present ones, or those as of its time. A time must have been
/// opened before ([`Engine::see_past`]).
pub(super) fn plan(
    today: &Schema,
    pasts: &Pasts,
    keyspace: Option<&str>,
    parsed: &ast::ParsedStatement,
) -> Result<Planned, CqlError> {
    let Some((as_of, table)) = about(parsed) else {
        return analysis::plan(today, keyspace, parsed);
    };
    let named = keyspace_of(table, keyspace)?;
    let name = table.name.as_str();
    let (key, schema) = match as_of {
        ast::AsOf::Snapshot(tag) => {
            let snapshot = today.require_snapshot(tag, named)?;
            let then = masked_as_today(today, &snapshot.keyspace, Some(name));
            (snapshot_key(snapshot), schema_of(today, &then)?)
        }
        ast::AsOf::Time(literal) => {
            let key = time_key(literal, named)?;
            let opened = pasts.times.get(&key);
            let opened = opened.ok_or_else(|| {
                CqlError::Server(format!("AS OF {literal} is not open any more: try again"))
            })?;
            let opened = opened.schema();
            let then = masked_as_today(today, opened.require_keyspace(named)?, Some(name));
            (key, alone(today, then))
        }
    };
    let mut planned = analysis::plan(&schema, keyspace, parsed)?;
    planned.past = read_by(&planned.plan, &schema, key);
    Ok(planned)
}

fn read_by(plan: &Plan, then: &Schema, key: PastKey) -> Option<PastRead> {
    let Plan::Select(plan) = plan else { return None };
    let table = plan.table();
    let view = table.view.as_ref();
    let base = view.and_then(|view| then.table(&table.keyspace, &view.base_table));
    Some(PastRead {
        key,
        keyspace_id: then.keyspace(&table.keyspace).and_then(|keyspace| keyspace.id),
        base: base.unwrap_or(table).clone(),
    })
}

/// Returns the key of a time.
///
/// # Errors
/// The literal is not a time.
fn time_key(literal: &str, keyspace: &str) -> Result<PastKey, CqlError> {
    Ok(PastKey::Time {
        time_ms: time_of(literal)?,
        keyspace: keyspace.to_owned(),
    })
}

/// Parses a time, in milliseconds since the Unix epoch.
///
/// # Errors
/// The literal is not a time.
pub(super) fn time_of(literal: &str) -> Result<i64, CqlError> {
    // The literal `now` is refused as a time in the future. Without AS OF, a statement reads the present anyway.
    timestamp::parse(literal, || i64::MAX).map_err(CqlError::invalid)
}

fn snapshot_key(snapshot: &Snapshot) -> PastKey {
    let (tag, keyspace) = snapshot.key();
    PastKey::Snapshot { tag, keyspace }
}

impl Engine {
    /// Returns the context in which reads of a snapshot or time are executed.
    ///
    /// # Errors
    /// The snapshot or time no longer exists, or its files can't be read.
    pub(super) async fn past(&self, key: &PastKey) -> Result<Arc<ExecutionContext>, CqlError> {
        match key {
            PastKey::Snapshot { tag, keyspace } => self.past_of_snapshot(key, tag, keyspace).await,
            PastKey::Time { time_ms, keyspace } => self.past_of_time(key, *time_ms, keyspace).await,
        }
    }

    async fn past_of_snapshot(
        &self,
        key: &PastKey,
        tag: &str,
        keyspace: &str,
    ) -> Result<Arc<ExecutionContext>, CqlError> {
        let schema = self.schema();
        let snapshot = schema.require_snapshot(tag, keyspace)?;
        if let Some(context) = self.cuts.pasts.get(key, snapshot) {
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
        let clock = Arc::new(StoppedClock::at_ms(snapshot.taken_ms));
        let then = schema_of(&schema, &snapshot.keyspace)?;
        let context = Arc::new(self.context.of_past(store, then, clock));
        let past = Past {
            snapshot: snapshot.clone(),
            context: context.clone(),
        };
        self.cuts.pasts.snapshots.insert(key.clone(), past);
        Ok(context)
    }

    async fn past_of_time(
        &self,
        key: &PastKey,
        time_ms: i64,
        keyspace: &str,
    ) -> Result<Arc<ExecutionContext>, CqlError> {
        let open = |share| self.open_time(share, time_ms, keyspace).boxed();
        self.cuts.pasts.times.get_or_open(key, open).boxed().await
    }

    async fn open_time(&self, share: Share, time_ms: i64, keyspace: &str) -> Opened {
        let all = self.context.store.past_bytes_max();
        let all = all.map_err(|error| NotOpened::Failed(store_error(error)))?;
        let opening = async {
            let of = self.schema_then(time_ms).await?;
            let of_then = Keyspace::clone(of.schema.require_keyspace(keyspace)?);
            let then = self.then_within(of, std::slice::from_ref(&of_then), share.bytes(all));
            let Some(then) = then.await? else {
                return Ok(None);
            };
            let schema = schema_of(&self.schema(), &Arc::new(of_then))?;
            Ok::<_, CqlError>(Some((then, schema)))
        };
        match opening.await.map_err(NotOpened::Failed)? {
            Some((then, schema)) => {
                let clock = Arc::new(StoppedClock::at_ms(time_ms));
                let held = then.bytes();
                let context = self.context.of_past(then.store, schema, clock);
                Ok(OpenedTime { context, held, all })
            }
            None => Err(NotOpened::TooLarge(self.too_much_before(time_ms, all).await)),
        }
    }

    /// Opens the time that a statement reads, because [`plan`] can't wait for that. The time stays open as long as the result exists.
    /// `None` if the statement reads no time.
    ///
    /// # Errors
    /// The time can't be read.
    pub(crate) async fn see_past(
        &self,
        keyspace: Option<&str>,
        parsed: &ast::ParsedStatement,
    ) -> Result<Option<Arc<ExecutionContext>>, CqlError> {
        let Some((ast::AsOf::Time(literal), table)) = about(parsed) else {
            return Ok(None);
        };
        let key = time_key(literal, keyspace_of(table, keyspace)?)?;
        self.past(&key).boxed().await.map(Some)
    }
}

/// Returns today's schema with only one keyspace, which is a former one.
fn alone(today: &Schema, keyspace: Arc<Keyspace>) -> Schema {
    Schema {
        keyspaces: BTreeMap::from([(keyspace.name.clone(), keyspace)]),
        snapshots: Arc::default(),
        access: today.access.clone(),
        journal: today.journal.clone(),
        ..*today
    }
}

/// Returns a schema of only one former keyspace. Links its views with their base tables.
fn schema_of(today: &Schema, keyspace: &Arc<Keyspace>) -> Result<Schema, CqlError> {
    let mut schema = alone(today, keyspace.clone());
    let views = keyspace.tables.values().filter(|table| table.is_view());
    let views: Vec<Arc<Table>> = views.cloned().collect();
    link_views(&mut schema, views)?;
    Ok(schema)
}
