//! Snapshots of tables: what TRUNCATE, DROP TABLE and DROP KEYSPACE leave behind, and what is taken of tables in use; how it is put back and
//! how it is cleared. All of it is changes of the schema; no row is read or written.

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
use crate::analysis::past_masks::masked_as_today;
use crate::analysis::restrictions::view_filter::link_views;
use crate::index::entries::hidden_table;
use crate::schema::documents::{read_table_into, table_doc};
use crate::schema::names::is_system_name;
use crate::schema::{Index, Keyspace, Schema, Snapshot, Table, TableBuilder, views_of};

/// How the tags begin of snapshots that are left behind; the first two are Cassandra's.
const TRUNCATED: &str = "truncated";
const DROPPED: &str = "dropped";
const REPLACED: &str = "replaced";
const RESTORING: &str = "restoring";

/// Leaves a snapshot of a table that is truncated, and of its views.
pub(super) fn before_truncate(ctx: &DdlContext<'_>, truncated: &mut Schema, table: &Table) {
    before_loss(ctx, truncated, TRUNCATED, table);
}

/// Leaves a snapshot of a table that is dropped. Its views were dropped before.
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

/// Leaves one snapshot of all tables of a keyspace, with its types, functions and aggregates.
pub(super) fn before_drop_keyspace(ctx: &DdlContext<'_>, dropped: &mut Schema, keyspace: &Keyspace) {
    leave(ctx, dropped, DROPPED, &keyspace.name, || keyspace.clone());
}

/// Leaves a snapshot of those tables of a keyspace that are to have one.
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

/// What is put back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The snapshot; without, the newest that TRUNCATE or DROP has left of the table or keyspace.
    pub tag: Option<String>,
    /// Without, that of the snapshot.
    pub keyspace: Option<String>,
    /// Without, all tables of the snapshot.
    pub table: Option<String>,
    /// A time of the past in the place of a snapshot, as a literal of type timestamp has it.
    pub as_of: Option<String>,
}

/// What has been put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Restored {
    #[serde(rename = "snapshot")]
    pub tag: String,
    pub keyspace: String,
    /// The tables, without their views.
    pub tables: Vec<String>,
    /// The snapshot of what the tables were until now, if some of them were there.
    pub replaced: Option<String>,
}

/// Returns the schema with tables put back as they are in a snapshot: with the rows, columns, options, indexes and views of then, and masks
/// of then and of today. Tables of these names that are there become a snapshot themselves, so that this can be undone too. What is put
/// back is in its snapshot no more.
///
/// # Errors
/// In words: there is no such snapshot or table, or what the keyspace has now stands in the way.
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

/// Returns a snapshot whose tables have the masks of today.
fn as_today(today: &Schema, snapshot: &Snapshot) -> Snapshot {
    Snapshot {
        keyspace: masked_as_today(today, &snapshot.keyspace, None),
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
        // What a restore has replaced is asked for by its tag: else the second restore would undo the first.
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

/// Returns the tables of a snapshot that are asked for, with their views.
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

/// Brings the types of then into a keyspace. One that has got more fields since stays as it is, unless keys are made of it.
pub(super) fn bring_types(
    keyspace: &mut Keyspace,
    then: &Keyspace,
    tables: &[Arc<Table>],
) -> Result<(), String> {
    for (name, ty) in &then.types {
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

/// Brings the functions and aggregates of then into a keyspace. Those that it has stay as they are.
pub(super) fn bring_functions(keyspace: &mut Keyspace, then: &Keyspace) {
    for (signature, function) in &then.functions {
        let functions = &mut keyspace.functions;
        functions
            .entry(signature.clone())
            .or_insert_with(|| function.clone());
    }
    for (signature, aggregate) in &then.aggregates {
        let aggregates = &mut keyspace.aggregates;
        aggregates
            .entry(signature.clone())
            .or_insert_with(|| aggregate.clone());
    }
}

/// Returns true if a type has the fields of an earlier one, whatever they are called now, and perhaps more.
fn extends(now: &UserType, then: &UserType) -> bool {
    let mut fields = now.fields.iter().zip(&then.fields);
    now.fields.len() >= then.fields.len()
        && fields.all(|(now, then)| now.ty.to_string() == then.ty.to_string())
}

/// Takes the tables of these names out of a keyspace, with their views.
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

/// Puts a table or view of a snapshot into a keyspace, whose types it takes.
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

/// Which tables in use a snapshot is taken of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    pub tag: String,
    /// All tables of these; without `tables` too, of all keyspaces.
    #[serde(default)]
    pub keyspaces: Vec<String>,
    /// `KEYSPACE.TABLE` each, with their views.
    #[serde(default)]
    pub tables: Vec<String>,
    /// How long it is kept; without, until it is cleared.
    pub ttl_ms: Option<u64>,
    /// What is in no SSTable is left out.
    #[serde(default)]
    pub skip_flush: bool,
    /// A time of the past, as a literal of type timestamp has it; without, now.
    #[serde(default)]
    pub as_of: Option<String>,
}

/// The shortest time for which Cassandra keeps a snapshot.
const TTL_MIN_MS: u64 = 60_000;

/// Returns the keyspaces of which a snapshot is taken, each with the tables that are asked for.
///
/// # Errors
/// In Cassandra's words where it has some: there is no such keyspace or table.
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
        return Err("a snapshot of a time of the past has what was in memory then".to_owned());
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
            .ok_or_else(|| format!("{name} is no table as KEYSPACE.TABLE"))?;
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

/// Refuses a snapshot that there is already.
///
/// # Errors
/// In Cassandra's words.
pub(crate) fn check_new(schema: &Schema, take: &Take, keyspaces: &[Keyspace]) -> Result<(), String> {
    let mut tagged = schema.tagged(&take.tag);
    let is_there = |of: &Arc<Snapshot>| keyspaces.iter().any(|keyspace| keyspace.name == of.keyspace.name);
    match tagged.any(is_there) {
        true => Err(format!("Snapshot {} already exists.", take.tag)),
        false => Ok(()),
    }
}

/// Returns the schema with snapshots of keyspaces as they were when the tablets were pinned, which [`to_take`] has given.
///
/// # Errors
/// Those of [`check_new`].
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

/// Tables that are about to be put back.
pub(crate) struct Restoring {
    /// The tag of the snapshot that has the tables under their new numbers.
    pub tag: String,
    /// Of tables and indexes: where their rows were, and from now on.
    pub numbers: Vec<(TableId, TableId)>,
}

/// For how long tables are kept that are about to be put back: if the node ends meanwhile, they are left over.
const RESTORING_TTL: Duration = Duration::from_secs(24 * 3600);

/// Returns the schema with a snapshot of tables under new numbers, of which the rows of pinned tablets are the origin. None if what is to
/// be put back has its rows in the tablets of today.
///
/// # Errors
/// In words: there is no such snapshot or table.
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

/// Returns the schema with a snapshot that has the tables of another one, or one of them with its views, under new numbers, to which their
/// rows are to be copied.
///
/// # Errors
/// In words: there is no such table.
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

/// Returns the schema in which a table that adopts its origin has all rows itself; none if it is another table by now.
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

/// Which snapshots are cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clear {
    /// The one with this tag; without, all.
    pub tag: Option<String>,
    /// Those of these keyspaces alone, if there are any here.
    #[serde(default)]
    pub keyspaces: Vec<String>,
    /// Those alone that were taken before that time, in milliseconds since the Unix epoch.
    pub taken_before_ms: Option<i64>,
}

/// Returns the schema without some snapshots, whose tags are given too. None if there are no such snapshots.
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

/// Returns the same without those whose time has passed.
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
    /// Adds a snapshot; its tag.
    fn add_snapshot(
        &mut self,
        cause: &str,
        name: &str,
        now_ms: i64,
        ttl: Option<Duration>,
        keyspace: Keyspace,
    ) -> String {
        // The same may happen twice within a millisecond.
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

    /// Returns the snapshots with that tag, of which each keyspace has one at most.
    fn tagged<'s>(&'s self, tag: &'s str) -> impl Iterator<Item = &'s Arc<Snapshot>> {
        self.snapshots
            .values()
            .filter(move |snapshot| snapshot.tag == tag)
    }

    /// Takes tables out of a snapshot, which goes with the last one.
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
