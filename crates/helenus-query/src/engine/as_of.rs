//! Reads of history: `SELECT … FROM table AS OF SNAPSHOT name`, and `AS OF` a time.
//!
//! The statement is planned against the tables as of that time. It also runs with that time as its clock, so that rows that have expired
//! since are still there.
//!
//! Rows of tables in use are read from pinned tablets. A time also needs the writes in the logs since the pin ([`super::history`]). Rows
//! that TRUNCATE, DROP or a restore have left behind are in the present tablets.
//!
//! Masks are those of that time and of today ([`crate::analysis::history_masks`]). Permissions are today's permissions on the table that is
//! read, not on a table that has its name now ([`super::access::as_of`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::value::timestamp;
use quick_cache::sync::Cache;

use super::Engine;
use super::open_times::{NotOpened, OpenTimes, Opened, OpenedTime, Share};
use crate::analysis::history_masks::with_current_masks;
use crate::analysis::plan::{AsOfKey, AsOfRead, Plan};
use crate::analysis::restrictions::view_filter::link_views;
use crate::analysis::{self, Planned};
use crate::clock::StoppedClock;
use crate::failure::store_error;
use crate::request::no_keyspace;
use crate::schema::{Keyspace, Schema, Snapshot, Table};
use crate::storage::ExecutionContext;

/// An open snapshot.
#[derive(Clone)]
struct OpenSnapshot {
    snapshot: Arc<Snapshot>,
    context: Arc<ExecutionContext>,
}

/// Maximum number of snapshots kept open.
const SNAPSHOTS_MAX: usize = 16;

/// The snapshots and times in history that are open.
pub(super) struct OpenHistory {
    snapshots: Cache<AsOfKey, OpenSnapshot>,
    times: OpenTimes,
}

impl Default for OpenHistory {
    fn default() -> OpenHistory {
        OpenHistory {
            snapshots: Cache::new(SNAPSHOTS_MAX),
            times: OpenTimes::default(),
        }
    }
}

impl OpenHistory {
    fn get(&self, key: &AsOfKey, snapshot: &Arc<Snapshot>) -> Option<Arc<ExecutionContext>> {
        let open = self.snapshots.get(key)?;
        Arc::ptr_eq(&open.snapshot, snapshot).then_some(open.context)
    }

    /// Closes the snapshots that the schema no longer has.
    pub fn close_cleared(&self, schema: &Schema) {
        let is_there = |open: &OpenSnapshot| {
            let known = schema.snapshots.get(&open.snapshot.key());
            known.is_some_and(|known| Arc::ptr_eq(known, &open.snapshot))
        };
        self.snapshots.retain(|_, open| is_there(open));
    }

    /// Returns the number of times that have been opened.
    pub fn times_opened(&self) -> u64 {
        self.times.opened()
    }

    /// Closes times whose files may have been deleted.
    pub fn close_times_before(&self, first_ms: i64) {
        let is_old = |key: &AsOfKey| matches!(key, AsOfKey::Time { time_ms, .. } if *time_ms < first_ms);
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
/// opened before ([`Engine::open_as_of`]).
pub(super) fn plan(
    today: &Schema,
    open_history: &OpenHistory,
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
            let earlier = with_current_masks(today, &snapshot.keyspace, Some(name));
            (snapshot_key(snapshot), schema_of(today, &earlier)?)
        }
        ast::AsOf::Time(literal) => {
            let key = time_key(literal, named)?;
            let opened = open_history.times.get(&key);
            let opened = opened.ok_or_else(|| {
                CqlError::Server(format!("AS OF {literal} is not open any more: try again"))
            })?;
            let opened = opened.schema();
            let earlier = with_current_masks(today, opened.require_keyspace(named)?, Some(name));
            (key, alone(today, earlier))
        }
    };
    let mut planned = analysis::plan(&schema, keyspace, parsed)?;
    planned.as_of = read_by(&planned.plan, &schema, key);
    Ok(planned)
}

fn read_by(plan: &Plan, earlier: &Schema, key: AsOfKey) -> Option<AsOfRead> {
    let Plan::Select(plan) = plan else { return None };
    let table = plan.table();
    let view = table.view.as_ref();
    let base = view.and_then(|view| earlier.table(&table.keyspace, &view.base_table));
    Some(AsOfRead {
        key,
        keyspace_id: earlier.keyspace(&table.keyspace).and_then(|keyspace| keyspace.id),
        base: base.unwrap_or(table).clone(),
    })
}

/// Returns the key of a time.
///
/// # Errors
/// The literal is not a time.
fn time_key(literal: &str, keyspace: &str) -> Result<AsOfKey, CqlError> {
    Ok(AsOfKey::Time {
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

fn snapshot_key(snapshot: &Snapshot) -> AsOfKey {
    let (tag, keyspace) = snapshot.key();
    AsOfKey::Snapshot { tag, keyspace }
}

impl Engine {
    /// Returns the context in which reads of a snapshot or time are executed.
    ///
    /// # Errors
    /// The snapshot or time no longer exists, or its files can't be read.
    pub(super) async fn context_as_of(&self, key: &AsOfKey) -> Result<Arc<ExecutionContext>, CqlError> {
        match key {
            AsOfKey::Snapshot { tag, keyspace } => self.context_of_snapshot(key, tag, keyspace).await,
            AsOfKey::Time { time_ms, keyspace } => self.context_of_time(key, *time_ms, keyspace).await,
        }
    }

    async fn context_of_snapshot(
        &self,
        key: &AsOfKey,
        tag: &str,
        keyspace: &str,
    ) -> Result<Arc<ExecutionContext>, CqlError> {
        let schema = self.schema();
        let snapshot = schema.require_snapshot(tag, keyspace)?;
        if let Some(context) = self.cuts.open_history.get(key, snapshot) {
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
        let earlier = schema_of(&schema, &snapshot.keyspace)?;
        let context = Arc::new(self.context.as_of(store, earlier, clock));
        let open = OpenSnapshot {
            snapshot: snapshot.clone(),
            context: context.clone(),
        };
        self.cuts.open_history.snapshots.insert(key.clone(), open);
        Ok(context)
    }

    async fn context_of_time(
        &self,
        key: &AsOfKey,
        time_ms: i64,
        keyspace: &str,
    ) -> Result<Arc<ExecutionContext>, CqlError> {
        let open = |share| self.open_time(share, time_ms, keyspace).boxed();
        self.cuts.open_history.times.get_or_open(key, open).boxed().await
    }

    async fn open_time(&self, share: Share, time_ms: i64, keyspace: &str) -> Opened {
        let all = self.context.store.history_bytes_max();
        let all = all.map_err(|error| NotOpened::Failed(store_error(error)))?;
        let opening = async {
            let of = self.schema_as_of(time_ms).await?;
            let earlier_keyspace = Keyspace::clone(of.schema.require_keyspace(keyspace)?);
            let earlier =
                self.tables_as_of_within(of, std::slice::from_ref(&earlier_keyspace), share.bytes(all));
            let Some(earlier) = earlier.await? else {
                return Ok(None);
            };
            let schema = schema_of(&self.schema(), &Arc::new(earlier_keyspace))?;
            Ok::<_, CqlError>(Some((earlier, schema)))
        };
        match opening.await.map_err(NotOpened::Failed)? {
            Some((earlier, schema)) => {
                let clock = Arc::new(StoppedClock::at_ms(time_ms));
                let held = earlier.bytes();
                let context = self.context.as_of(earlier.store, schema, clock);
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
    pub(crate) async fn open_as_of(
        &self,
        keyspace: Option<&str>,
        parsed: &ast::ParsedStatement,
    ) -> Result<Option<Arc<ExecutionContext>>, CqlError> {
        let Some((ast::AsOf::Time(literal), table)) = about(parsed) else {
            return Ok(None);
        };
        let key = time_key(literal, keyspace_of(table, keyspace)?)?;
        self.context_as_of(&key).boxed().await.map(Some)
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
