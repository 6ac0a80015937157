//! Snapshots in the schema: those left behind by TRUNCATE, DROP TABLE and DROP KEYSPACE, and those taken of tables in use. Taking,
//! restoring and clearing them are changes of the schema; no row is read or written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_cql::types::UserType;
use helenus_row::TableId;
use helenus_tablet::PinnedTablet;
use serde::{Deserialize, Serialize};

use super::DdlContext;
use super::renumber::{branched, numbers_of, renumbered};
use crate::analysis::history_masks::with_current_masks;
use crate::analysis::restrictions::view_filter::link_views;
use crate::index::entries::hidden_table;
use crate::schema::documents::{read_table_into, table_doc};
use crate::schema::names::is_system_name;
use crate::schema::{Index, Keyspace, Schema, Snapshot, Table, TableBuilder, views_of};

/// Prefixes of the tags of snapshots that statements leave behind. The first two are Cassandra's.
const TRUNCATED: &str = "truncated";
const DROPPED: &str = "dropped";
const REPLACED: &str = "replaced";
const RESTORING: &str = "restoring";

/// Leaves a snapshot of a table to be truncated, with its views.
pub(super) fn before_truncate(ctx: &DdlContext<'_>, truncated: &mut Schema, table: &Table) {
    before_loss(ctx, truncated, TRUNCATED, table);
}

/// Leaves a snapshot of a table to be dropped. Its views have been dropped before.
pub(super) fn before_drop_table(ctx: &DdlContext<'_>, dropped: &mut Schema, table: &Table) {
    before_loss(ctx, dropped, DROPPED, table);
}

fn before_loss(ctx: &DdlContext<'_>, after: &mut Schema, cause: &str, table: &Table) {
    let Some(keyspace) = ctx.schema.keyspace(&table.keyspace) else {
        return;
    };
    let own = keyspace.tables.get(&table.name).into_iter();
    let tables: Vec<Arc<Table>> = own.chain(views_of(ctx.schema, table)).cloned().collect();
    leave(ctx, after, cause, &table.name, || keyspace.narrowed_to(tables));
}

/// Leaves one snapshot of all tables of a keyspace to be dropped, with its types, functions and aggregates.
pub(super) fn before_drop_keyspace(ctx: &DdlContext<'_>, dropped: &mut Schema, keyspace: &Keyspace) {
    leave(ctx, dropped, DROPPED, &keyspace.name, || keyspace.clone());
}

/// Leaves a snapshot of those tables of a keyspace whose options allow it.
fn leave(
    ctx: &DdlContext<'_>,
    schema: &mut Schema,
    cause: &str,
    name: &str,
    keyspace: impl FnOnce() -> Keyspace,
) {
    if !ctx.auto_snapshot.is_on {
        return;
    }
    let mut keyspace = keyspace();
    let wants = |table: &Table| {
        let base = table
            .view
            .as_ref()
            .and_then(|view| keyspace.tables.get(&view.base_table));
        base.map_or(table, Arc::as_ref).options.allow_auto_snapshot
    };
    let unwanted = keyspace.tables.values().filter(|table| !wants(table));
    let unwanted: Vec<String> = unwanted.map(|table| table.name.clone()).collect();
    for name in &unwanted {
        keyspace.tables.remove(name);
    }
    if !is_system_name(&keyspace.name) && !keyspace.tables.is_empty() {
        let now_ms = ctx.now_us.div_euclid(1000);
        schema.add_snapshot(cause, name, now_ms, ctx.auto_snapshot.ttl, keyspace);
    }
}

/// Settings of a restore from a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// Tag of the snapshot. `None` for the newest that TRUNCATE or DROP has left of the table or keyspace.
    pub tag: Option<String>,
    /// The keyspace. `None` for that of the snapshot.
    pub keyspace: Option<String>,
    /// The table. `None` for all tables of the snapshot.
    pub table: Option<String>,
    /// A time in history to restore instead of a snapshot, as a literal of type timestamp.
    pub as_of: Option<String>,
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Restored {
    #[serde(rename = "snapshot")]
    pub tag: String,
    pub keyspace: String,
    /// Names of the restored tables, without their views.
    pub tables: Vec<String>,
    /// Tag of the snapshot of the tables that were replaced. `None` if there were none.
    pub replaced: Option<String>,
}

/// Returns the schema with tables restored from a snapshot: their rows, columns, options, indexes and views. Masks are those of the
/// snapshot and of today. Existing tables of the same names become a snapshot, so that the restore can be undone. The restored tables are
/// removed from their snapshot.
///
/// # Errors
/// A message: there is no such snapshot or table, or the restored tables conflict with the present content of the keyspace.
pub(crate) fn restore(
    before: &Schema,
    wanted: &Restore,
    now_ms: i64,
    ttl: Option<Duration>,
) -> Result<(Schema, Restored), String> {
    let found = find(before, wanted)?;
    let snapshot = as_today(before, found);
    let selected = select(&snapshot, wanted.table.as_deref())?;
    let bases: Vec<&Arc<Table>> = selected.iter().filter(|table| !table.is_view()).collect();
    let is_whole = selected.len() == snapshot.keyspace.tables.len();
    let head = match is_whole {
        true => Keyspace::clone(&snapshot.keyspace),
        false => snapshot.keyspace.narrowed_to(selected.clone()),
    };
    let mut schema = before.clone();
    let mut keyspace = match schema.keyspaces.get(&head.name) {
        Some(keyspace) => Keyspace::clone(keyspace),
        None => Keyspace {
            tables: BTreeMap::new(),
            ..head.clone()
        },
    };
    bring_types(&mut keyspace, &head, &selected)?;
    bring_functions(&mut keyspace, &head);
    let there = take_out(before, &mut keyspace, &bases)?;
    let mut views = Vec::new();
    for table in &selected {
        let table = put_in(&mut keyspace, table)?;
        views.extend(table.is_view().then_some(table));
    }
    schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    link_views(&mut schema, views).map_err(|error| error.to_string())?;
    schema.shrink_snapshot(found, &selected);
    let replaced = before.keyspace(&head.name).filter(|_| !there.is_empty());
    let replaced = replaced.map(|keyspace| {
        let name = match bases.as_slice() {
            [table] => &table.name,
            _ => &keyspace.name,
        };
        schema.add_snapshot(REPLACED, name, now_ms, ttl, keyspace.narrowed_to(there))
    });
    let restored = Restored {
        tag: snapshot.tag.clone(),
        keyspace: head.name,
        tables: bases.iter().map(|table| table.name.clone()).collect(),
        replaced,
    };
    Ok((schema, restored))
}

/// Returns the snapshot with today's masks added to its tables.
fn as_today(today: &Schema, snapshot: &Snapshot) -> Snapshot {
    Snapshot {
        keyspace: with_current_masks(today, &snapshot.keyspace, None),
        ..snapshot.clone()
    }
}

fn find<'s>(schema: &'s Schema, wanted: &'s Restore) -> Result<&'s Arc<Snapshot>, String> {
    let is_of_keyspace = |snapshot: &Snapshot| {
        wanted
            .keyspace
            .as_ref()
            .is_none_or(|keyspace| *keyspace == snapshot.keyspace.name)
    };
    if let Some(tag) = &wanted.tag {
        let tagged: Vec<_> = schema.tagged(tag).collect();
        let keyspaces = || {
            let names = tagged.iter().map(|of| of.keyspace.name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let mut found = tagged.iter().filter(|snapshot| is_of_keyspace(snapshot));
        return match (found.next(), found.next()) {
            (Some(found), None) => Ok(*found),
            (Some(_), Some(_)) => Err(format!(
                "snapshot {tag} is of keyspaces {}: name the one to restore",
                keyspaces()
            )),
            (None, _) if tagged.is_empty() => {
                Err(format!("there is no snapshot {tag}; see nodetool listsnapshots"))
            }
            (None, _) => Err(format!(
                "snapshot {tag} is of keyspace {}, not of {}",
                keyspaces(),
                wanted.keyspace.as_deref().unwrap_or_default()
            )),
        };
    }
    let Some(keyspace) = &wanted.keyspace else {
        return Err("name a snapshot, a keyspace or a table; see nodetool listsnapshots".to_owned());
    };
    let has_table = |snapshot: &Snapshot| {
        let mut tables = snapshot.base_tables();
        wanted
            .table
            .as_ref()
            .is_none_or(|name| tables.any(|table| table.name == *name))
    };
    let candidates = schema.snapshots.values().filter(|snapshot| {
        // A snapshot made by a restore must be named by its tag. Otherwise a second restore would undo the first.
        let is_of_restore = [REPLACED, RESTORING]
            .iter()
            .any(|cause| snapshot.tag.starts_with(cause));
        let is_left_behind = snapshot.pinned.is_none() && !is_of_restore;
        is_left_behind && is_of_keyspace(snapshot) && has_table(snapshot)
    });
    let newest = candidates.max_by_key(|snapshot| (snapshot.taken_ms, &snapshot.tag));
    newest.ok_or_else(|| {
        let table = wanted.table.as_ref().map(|table| format!(".{table}"));
        let what = format!("{keyspace}{}", table.unwrap_or_default());
        format!("there is no snapshot of {what}; see nodetool listsnapshots")
    })
}

/// Returns the wanted tables of a snapshot, with their views.
fn select(snapshot: &Snapshot, name: Option<&str>) -> Result<Vec<Arc<Table>>, String> {
    let Some(name) = name else {
        return Ok(snapshot.keyspace.tables.values().cloned().collect());
    };
    let (tag, keyspace) = (&snapshot.tag, &snapshot.keyspace);
    let Some(table) = keyspace.tables.get(name) else {
        return Err(format!(
            "snapshot {tag} has no table {name} of keyspace {}",
            keyspace.name
        ));
    };
    match &table.view {
        Some(view) => Err(format!(
            "{name} is a materialized view: restore its base table, {}",
            view.base_table
        )),
        None => Ok(std::iter::once(table)
            .chain(snapshot.views_of(table))
            .cloned()
            .collect()),
    }
}

/// Adds the types of the former keyspace `earlier`. An existing type stays as it is if it only has more fields, unless a key is of that type.
pub(super) fn bring_types(
    keyspace: &mut Keyspace,
    earlier: &Keyspace,
    tables: &[Arc<Table>],
) -> Result<(), String> {
    for (name, ty) in &earlier.types {
        let Some(now) = keyspace.types.get(name) else {
            keyspace.types.insert(name.clone(), ty.clone());
            continue;
        };
        let is_key = tables.iter().any(|table| {
            let mut key = table.primary_key().iter();
            key.any(|column| column.ty.references_udt(&keyspace.name, name))
        });
        let fits = match is_key {
            true => now == ty,
            false => extends(now, ty),
        };
        if !fits {
            return Err(format!(
                "type {}.{name} is not what it was when the snapshot was taken, and the rows are of that type",
                keyspace.name
            ));
        }
    }
    Ok(())
}

/// Adds the functions and aggregates of the former keyspace `earlier`. Existing ones stay as they are.
pub(super) fn bring_functions(keyspace: &mut Keyspace, earlier: &Keyspace) {
    for (signature, function) in &earlier.functions {
        let functions = &mut keyspace.functions;
        functions
            .entry(signature.clone())
            .or_insert_with(|| function.clone());
    }
    for (signature, aggregate) in &earlier.aggregates {
        let aggregates = &mut keyspace.aggregates;
        aggregates
            .entry(signature.clone())
            .or_insert_with(|| aggregate.clone());
    }
}

/// Returns true if a type has all fields of its former definition, and perhaps more. Names of fields may differ.
fn extends(now: &UserType, earlier: &UserType) -> bool {
    let mut fields = now.fields.iter().zip(&earlier.fields);
    now.fields.len() >= earlier.fields.len()
        && fields.all(|(now, earlier)| now.ty.to_string() == earlier.ty.to_string())
}

/// Removes the tables of these names from a keyspace, with their views, and returns them.
fn take_out(
    schema: &Schema,
    keyspace: &mut Keyspace,
    named: &[&Arc<Table>],
) -> Result<Vec<Arc<Table>>, String> {
    let mut out = Vec::new();
    for table in named {
        let Some(there) = keyspace.tables.get(&table.name).cloned() else {
            continue;
        };
        if there.is_view() {
            return Err(format!(
                "{} is a materialized view now: drop it first",
                there.full_name()
            ));
        }
        out.extend(views_of(schema, &there).cloned());
        out.push(there);
    }
    for table in &out {
        keyspace.tables.remove(&table.name);
    }
    Ok(out)
}

/// Adds a table or view of a snapshot to a keyspace, with the keyspace's definitions of its types.
pub(super) fn put_in(keyspace: &mut Keyspace, table: &Table) -> Result<Arc<Table>, String> {
    if let Some(there) = keyspace.tables.get(&table.name) {
        return Err(format!(
            "there is another {} by now: drop it first",
            there.full_name()
        ));
    }
    for index in &table.indexes {
        if let Some((on, _)) = keyspace.index(&index.name) {
            return Err(format!(
                "index {} is on table {} by now: drop it first",
                index.name,
                on.full_name()
            ));
        }
    }
    let table = Arc::new(read_table_into(keyspace, &table_doc(table), hidden_table)?);
    keyspace.tables.insert(table.name.clone(), table.clone());
    Ok(table)
}

/// Settings of a snapshot of tables in use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    pub tag: String,
    /// Keyspaces to take as a whole. If this and `tables` are empty, all keyspaces are taken.
    #[serde(default)]
    pub keyspaces: Vec<String>,
    /// Tables to take, each as `KEYSPACE.TABLE`. Their views are taken too.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Milliseconds until the snapshot expires. `None` if it stays until it is cleared.
    pub ttl_ms: Option<u64>,
    /// True if rows that are in no SSTable yet are left out.
    #[serde(default)]
    pub skip_flush: bool,
    /// A time in history, as a literal of type timestamp. `None` for the present.
    #[serde(default)]
    pub as_of: Option<String>,
}

/// Cassandra's minimum for the expiry of a snapshot, in milliseconds.
const TTL_MIN_MS: u64 = 60_000;

/// Returns the keyspaces to take, each with only the wanted tables.
///
/// # Errors
/// A message that there is no such keyspace or table, in Cassandra's wording if it has one.
pub(crate) fn to_take(schema: &Schema, take: &Take) -> Result<Vec<Keyspace>, String> {
    if take.tag.is_empty() {
        return Err("You must supply a snapshot name.".to_owned());
    }
    if take.tag.contains(['/', '\0']) {
        return Err("Snapshot name cannot contain /".to_owned());
    }
    if take.ttl_ms.is_some_and(|ttl_ms| ttl_ms < TTL_MIN_MS) {
        return Err(format!(
            "ttl for snapshot must be at least {} seconds",
            TTL_MIN_MS / 1000
        ));
    }
    if take.skip_flush && take.as_of.is_some() {
        return Err("a snapshot of a time always has the rows that were in memory at that time: leave out --skip-flush".to_owned());
    }
    let is_users = |keyspace: &&Arc<Keyspace>| !keyspace.is_virtual && !is_system_name(&keyspace.name);
    let named = |name: &str| {
        let keyspace = schema.keyspace(name).filter(is_users);
        keyspace.ok_or_else(|| format!("Keyspace {name} does not exist"))
    };
    let mut taken: BTreeMap<String, Keyspace> = BTreeMap::new();
    for name in &take.tables {
        let (keyspace, table) = name
            .split_once('.')
            .ok_or_else(|| format!("{name} is not of the form KEYSPACE.TABLE"))?;
        let of = named(keyspace)?;
        let unknown = || format!("Unknown keyspace/cf pair ({keyspace}.{table})");
        let table = of.tables.get(table).filter(|table| !table.is_view());
        let table = table.ok_or_else(unknown)?;
        let mut tables: Vec<Arc<Table>> = taken
            .get(keyspace)
            .map(|taken| taken.tables.values().cloned().collect())
            .unwrap_or_default();
        tables.extend(
            [table.clone()]
                .into_iter()
                .chain(views_of(schema, table).cloned()),
        );
        taken.insert(keyspace.to_owned(), of.narrowed_to(tables));
    }
    for name in &take.keyspaces {
        taken.insert(name.clone(), Keyspace::clone(named(name)?));
    }
    if take.tables.is_empty() && take.keyspaces.is_empty() {
        let all = schema.keyspaces.values().filter(is_users);
        taken.extend(all.map(|keyspace| (keyspace.name.clone(), Keyspace::clone(keyspace))));
    }
    let mut taken: Vec<Keyspace> = taken.into_values().collect();
    taken.retain(|keyspace| !keyspace.tables.is_empty());
    Ok(taken)
}

/// Refuses a snapshot that exists already.
///
/// # Errors
/// Cassandra's message.
pub(crate) fn check_new(schema: &Schema, take: &Take, keyspaces: &[Keyspace]) -> Result<(), String> {
    let mut tagged = schema.tagged(&take.tag);
    let is_there = |of: &Arc<Snapshot>| keyspaces.iter().any(|keyspace| keyspace.name == of.keyspace.name);
    match tagged.any(is_there) {
        true => Err(format!("Snapshot {} already exists.", take.tag)),
        false => Ok(()),
    }
}

/// Returns the schema with a snapshot of each of the keyspaces, which are from [`to_take`] and as of the time of the pin.
///
/// # Errors
/// See [`check_new`].
pub(crate) fn take(
    before: &Schema,
    take: &Take,
    keyspaces: &[Keyspace],
    pinned: &Arc<[PinnedTablet]>,
    taken_ms: i64,
) -> Result<Schema, String> {
    let mut schema = before.clone();
    check_new(before, take, keyspaces)?;
    for keyspace in keyspaces {
        schema.insert_snapshot(Snapshot {
            tag: take.tag.clone(),
            taken_ms,
            expires_ms: expiry_ms(taken_ms, take.ttl_ms.map(Duration::from_millis)),
            pinned: Some(pinned.clone()),
            keyspace: Arc::new(keyspace.clone()),
        });
    }
    Ok(schema)
}

/// Tables that are about to be restored.
pub(crate) struct Restoring {
    /// Tag of the snapshot that contains the tables under their new numbers.
    pub tag: String,
    /// The old and the new number of each table and index.
    pub numbers: Vec<(TableId, TableId)>,
}

/// Time after which tables that are about to be restored expire, in case the node ends before the restore is complete.
const RESTORING_TTL: Duration = Duration::from_secs(24 * 3600);

/// Returns the schema with a snapshot of the wanted tables under new numbers, whose origin are the rows of pinned tablets. `None` if the
/// rows to be restored are still in the present tablets.
///
/// # Errors
/// A message: there is no such snapshot or table.
pub(crate) fn begin_adoption(
    before: &Schema,
    wanted: &Restore,
    now_ms: i64,
) -> Result<Option<(Schema, Restoring)>, String> {
    let snapshot = find(before, wanted)?;
    let Some(pinned) = &snapshot.pinned else {
        return Ok(None);
    };
    let renew = |schema: &mut Schema, table: &Table| {
        let change = |builder: &mut TableBuilder| {
            builder.id = table.id;
            builder.incarnation = table.incarnation;
            builder.adopts_origin = true;
        };
        let name = |_: &TableBuilder, index: &Index| index.name.clone();
        branched(schema, table, pinned, change, name)
    };
    begin_restore(before, snapshot, wanted.table.as_deref(), now_ms, renew).map(Some)
}

/// Returns the schema with a copy of a snapshot, or of one of its tables with its views, under new numbers. The rows are to be copied to
/// these numbers.
///
/// # Errors
/// A message: there is no such table.
pub(crate) fn begin_copy(
    before: &Schema,
    snapshot: &Snapshot,
    table: Option<&str>,
    now_ms: i64,
) -> Result<(Schema, Restoring), String> {
    begin_restore(before, snapshot, table, now_ms, |schema, table| {
        renumbered(schema, table, false)
    })
}

fn begin_restore(
    before: &Schema,
    snapshot: &Snapshot,
    table: Option<&str>,
    now_ms: i64,
    renew: impl Fn(&mut Schema, &Table) -> Result<Table, CqlError>,
) -> Result<(Schema, Restoring), String> {
    let snapshot = &as_today(before, snapshot);
    let selected = select(snapshot, table)?;
    let mut schema = before.clone();
    let mut numbers = Vec::new();
    let mut tables = Vec::new();
    for table in &selected {
        let renewed = renew(&mut schema, table).map_err(|error| error.to_string())?;
        numbers.extend(numbers_of(table, &renewed));
        tables.push(Arc::new(renewed));
    }
    let keyspace = match selected.len() == snapshot.keyspace.tables.len() {
        true => Keyspace {
            tables: tables
                .iter()
                .map(|table| (table.name.clone(), table.clone()))
                .collect(),
            ..Keyspace::clone(&snapshot.keyspace)
        },
        false => snapshot.keyspace.narrowed_to(tables),
    };
    let tag = schema.add_snapshot(RESTORING, &snapshot.tag, now_ms, Some(RESTORING_TTL), keyspace);
    Ok((schema, Restoring { tag, numbers }))
}

/// Returns the schema in which a table no longer needs its origin, because all rows have been copied. `None` if the table has been replaced
/// by another one.
pub(crate) fn end_adoption(before: &Schema, adopted: &Table) -> Option<Schema> {
    let table = before.table(&adopted.keyspace, &adopted.name)?;
    if !table.adopts_origin || table.number != adopted.number {
        return None;
    }
    let mut builder = table.to_builder();
    builder.origin = None;
    builder.adopts_origin = false;
    for index in &mut builder.indexes {
        let mut hidden = Table::clone(&index.table);
        hidden.origin = None;
        *index = Arc::new(Index {
            table: Arc::new(hidden),
            ..Index::clone(index)
        });
    }
    Some(before.with_table(builder.build()))
}

/// Selection of snapshots to clear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clear {
    /// Tag of the snapshot. `None` for all snapshots.
    pub tag: Option<String>,
    /// Keyspaces whose snapshots are cleared. Empty for all keyspaces.
    #[serde(default)]
    pub keyspaces: Vec<String>,
    /// Time in milliseconds since the Unix epoch. Only snapshots that were taken before it are cleared. `None` for no limit.
    pub taken_before_ms: Option<i64>,
}

/// Returns the schema without the selected snapshots, and their tags. `None` if there are no such snapshots.
pub(crate) fn clear(before: &Schema, clear: &Clear) -> Option<(Schema, Vec<String>)> {
    without(before, |snapshot| {
        let is_tagged = clear.tag.as_ref().is_none_or(|tag| *tag == snapshot.tag);
        let is_old = clear
            .taken_before_ms
            .is_none_or(|time_ms| snapshot.taken_ms < time_ms);
        let is_of_keyspace = clear.keyspaces.is_empty() || clear.keyspaces.contains(&snapshot.keyspace.name);
        is_tagged && is_old && is_of_keyspace
    })
}

/// Returns the schema without expired snapshots, and their tags. `None` if there are none.
pub(crate) fn expire(before: &Schema, now_ms: i64) -> Option<(Schema, Vec<String>)> {
    without(before, |snapshot| snapshot.is_expired(now_ms))
}

fn without(before: &Schema, goes: impl Fn(&Snapshot) -> bool) -> Option<(Schema, Vec<String>)> {
    let gone = before.snapshots.values().filter(|snapshot| goes(snapshot));
    let gone: Vec<(String, String)> = gone.map(|snapshot| snapshot.key()).collect();
    if gone.is_empty() {
        return None;
    }
    let mut schema = before.clone();
    let snapshots = Arc::make_mut(&mut schema.snapshots);
    for key in &gone {
        snapshots.remove(key);
    }
    let mut tags: Vec<String> = gone.into_iter().map(|(tag, _)| tag).collect();
    tags.dedup();
    Some((schema, tags))
}

impl Schema {
    /// Adds a snapshot and returns its tag.
    fn add_snapshot(
        &mut self,
        cause: &str,
        name: &str,
        now_ms: i64,
        ttl: Option<Duration>,
        keyspace: Keyspace,
    ) -> String {
        // Two such snapshots may be taken in the same millisecond.
        let mut taken_ms = now_ms;
        let tag = |taken_ms: i64| format!("{cause}-{taken_ms}-{name}");
        while self.tagged(&tag(taken_ms)).next().is_some() {
            taken_ms += 1;
        }
        self.insert_snapshot(Snapshot {
            tag: tag(taken_ms),
            taken_ms,
            expires_ms: expiry_ms(taken_ms, ttl),
            pinned: None,
            keyspace: Arc::new(keyspace),
        });
        tag(taken_ms)
    }

    fn insert_snapshot(&mut self, snapshot: Snapshot) {
        Arc::make_mut(&mut self.snapshots).insert(snapshot.key(), Arc::new(snapshot));
    }

    /// Returns the snapshots with that tag. Each keyspace has at most one.
    fn tagged<'s>(&'s self, tag: &'s str) -> impl Iterator<Item = &'s Arc<Snapshot>> {
        self.snapshots
            .values()
            .filter(move |snapshot| snapshot.tag == tag)
    }

    /// Removes tables from a snapshot. The snapshot is removed with its last table.
    fn shrink_snapshot(&mut self, snapshot: &Snapshot, tables: &[Arc<Table>]) {
        let mut keyspace = Keyspace::clone(&snapshot.keyspace);
        for table in tables {
            keyspace.tables.remove(&table.name);
        }
        if keyspace.tables.is_empty() {
            Arc::make_mut(&mut self.snapshots).remove(&snapshot.key());
            return;
        }
        self.insert_snapshot(Snapshot {
            keyspace: Arc::new(keyspace),
            ..snapshot.clone()
        });
    }
}

fn expiry_ms(taken_ms: i64, ttl: Option<Duration>) -> Option<i64> {
    let ttl_ms = ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
    ttl_ms.map(|ttl_ms| taken_ms.saturating_add(ttl_ms))
}

#[cfg(test)]
#[path = "snapshots_tests.rs"]
mod tests;
