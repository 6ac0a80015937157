//! The log tables of captured changes: their names, columns and options.
//!
//! A log table `<table>_scylla_cdc_log` has ScyllaDB's columns (`cdc::create_log_schema`). It is an ordinary table that only the server
//! writes. The ids of its columns follow from those of the base table, so that a write finds them without a lookup.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::{ColumnId, Order};
use uuid::Uuid;

use super::names::{TABLE_NAME_LEN_MAX, is_valid_name};
use super::table_options::CdcOptions;
use super::{
    Column, ColumnKind, ColumnMask, DroppedColumn, Keyspace, Schema, Table, TableBuilder, TableKind,
    TableOptions,
};

const SUFFIX: &str = "_scylla_cdc_log";

/// Columns of every log table.
pub(crate) const STREAM: ColumnId = ColumnId(0);
pub(crate) const TIME: ColumnId = ColumnId(1);
pub(crate) const BATCH_SEQUENCE: ColumnId = ColumnId(2);
pub(crate) const OPERATION: ColumnId = ColumnId(3);
pub(crate) const TTL: ColumnId = ColumnId(4);
pub(crate) const END_OF_BATCH: ColumnId = ColumnId(5);
/// Id of the first column that follows from a column of the base table.
const FIRST: u32 = 8;
/// Ids that each column of the base table occupies.
const STEP: u32 = 3;

/// Returns the log's column with a base column's value: its new value, or its added elements.
pub(crate) fn value_column(base: ColumnId) -> ColumnId {
    ColumnId(FIRST + STEP * base.0)
}

/// Returns the log's column that says that a base column was deleted.
pub(crate) fn deleted_column(base: ColumnId) -> ColumnId {
    ColumnId(value_column(base).0 + 1)
}

/// Returns the log's column with the deleted elements of a base column that is not frozen.
pub(crate) fn deleted_elements_column(base: ColumnId) -> ColumnId {
    ColumnId(value_column(base).0 + 2)
}

/// Returns the name of a table's log.
pub(crate) fn log_name(base: &str) -> String {
    format!("{base}{SUFFIX}")
}

/// Returns the type of a base column's values in the log. Lists are shown with the ids of their elements.
pub(crate) fn value_type(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::List {
            element,
            frozen: false,
        } => CqlType::map(CqlType::TIMEUUID, CqlType::clone(element), true),
        other => other.freeze(),
    }
}

/// Returns the type of the paths of a base column's elements. `None` if the column is a single cell.
pub(crate) fn path_type(ty: &CqlType) -> Option<CqlType> {
    match ty {
        CqlType::List { frozen: false, .. } => Some(CqlType::TIMEUUID),
        CqlType::Set {
            element,
            frozen: false,
        } => Some(element.freeze()),
        CqlType::Map {
            key, frozen: false, ..
        } => Some(key.freeze()),
        CqlType::Udt { frozen: false, .. } => Some(CqlType::SMALLINT),
        _ => None,
    }
}

impl Table {
    /// Returns true if the table is the log of another one.
    pub fn is_cdc_log(&self) -> bool {
        self.cdc_log_of.is_some()
    }
}

impl Schema {
    /// Returns the log of a table that captures changes.
    pub(crate) fn cdc_log(&self, base: &Table) -> Option<&Arc<Table>> {
        self.table(&base.keyspace, &log_name(&base.name))
            .filter(|log| log.is_cdc_log())
    }

    /// Returns the longest time for which a log keeps its changes, in seconds. `None` if a log keeps them forever.
    pub(crate) fn cdc_ttl_max_s(&self) -> Option<i64> {
        let bases = self.stored_tables().filter(|base| self.cdc_log(base).is_some());
        let mut longest_s = 0;
        for base in bases {
            match options_ttl_s(base) {
                0 => return None,
                ttl_s => longest_s = longest_s.max(i64::from(ttl_s)),
            }
        }
        Some(longest_s)
    }

    /// Returns true if any table captures changes, or has a log.
    pub(crate) fn has_cdc(&self) -> bool {
        self.stored_tables()
            .any(|table| table.is_cdc_log() || table.options.cdc != CdcOptions::default())
    }
}

/// Returns the schema `after` a change of `before`, with the logs that its tables need. New logs are created, logs of changed tables are
/// changed, and logs of dropped tables are dropped.
///
/// # Errors
/// ScyllaDB's, for tables whose changes cannot be captured.
pub(crate) fn with_logs(before: &Schema, mut after: Schema, now_us: i64) -> Result<Schema, CqlError> {
    let changed: Vec<Arc<Keyspace>> = after
        .keyspaces
        .iter()
        .filter(|(name, keyspace)| {
            let old = before.keyspaces.get(*name);
            !keyspace.is_virtual && old.is_none_or(|old| !Arc::ptr_eq(old, keyspace))
        })
        .map(|(_, keyspace)| keyspace.clone())
        .collect();
    for keyspace in changed {
        let old = before.keyspaces.get(&keyspace.name);
        let is_changed = |table: &Arc<Table>| {
            let old = old.and_then(|old| old.tables.get(&table.name));
            old.is_none_or(|old| !Arc::ptr_eq(old, table))
        };
        let bases = keyspace
            .tables
            .values()
            .filter(|table| table.captures_changes && is_changed(table));
        for base in bases {
            let old = old.and_then(|old| old.tables.get(&base.name));
            let goes_on = old.is_some_and(|old| old.captures_changes && old.is_same_as(base));
            let log = log_table(&mut after, &keyspace, base)?;
            if !goes_on {
                let mut builder = base.to_builder();
                builder.options.cdc.since_us = now_us;
                after = after.with_table(builder.build());
            }
            after = after.with_table(log);
        }
        let is_orphan = |log: &Arc<Table>| {
            let base = log.cdc_log_of.as_ref();
            let was_there = |base| old.is_some_and(|old| old.tables.contains_key(base));
            base.is_some_and(|base| was_there(base) && !keyspace.tables.contains_key(base))
        };
        let orphans: Vec<&String> = keyspace
            .tables
            .values()
            .filter(|log| is_orphan(log))
            .map(|log| &log.name)
            .collect();
        if let (false, Some(current)) = (orphans.is_empty(), after.keyspaces.get(&keyspace.name)) {
            let mut current = Keyspace::clone(current);
            current.tables.retain(|name, _| !orphans.contains(&name));
            after = after.with_keyspace(current);
        }
    }
    Ok(after)
}

/// Returns the log of a table: a new one, or the existing one with the table's present columns.
fn log_table(schema: &mut Schema, keyspace: &Keyspace, base: &Table) -> Result<Table, CqlError> {
    let name = log_name(&base.name);
    check(base, &name)?;
    let existing = keyspace.tables.get(&name);
    if existing.is_some_and(|existing| !existing.is_cdc_log()) {
        let (keyspace, base) = (&base.keyspace, base.full_name());
        return Err(CqlError::invalid(format!(
            "Cannot create CDC log table for table {base} because a table of name {keyspace}.{name} already exists"
        )));
    }
    let mut builder = match existing {
        Some(existing) => existing.to_builder(),
        None => TableBuilder {
            keyspace: base.keyspace.clone(),
            name,
            id: Uuid::new_v4(),
            incarnation: None,
            number: schema.take_table_number(),
            kind: TableKind::Stored,
            compact: None,
            options: log_options(base),
            columns: Vec::new(),
            next_column_id: ColumnId(0),
            dropped_columns: BTreeMap::new(),
            indexes: Vec::new(),
            views: Vec::new(),
            view: None,
            origin: None,
            adopts_origin: false,
            cdc_log_of: Some(base.name.clone()),
        },
    };
    builder.columns = own_columns();
    builder
        .columns
        .extend(base.columns.iter().flat_map(|column| columns_of(column)));
    builder.next_column_id = value_column(base.next_column_id);
    builder.dropped_columns = base
        .dropped_columns
        .values()
        .flat_map(dropped_columns_of)
        .map(|dropped| (dropped.name.clone(), dropped))
        .collect();
    let mut names: Vec<&str> = builder
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(CqlError::invalid(format!(
            "Cannot create CDC log table for table {}: column name {} would be there twice",
            base.full_name(),
            twice[0]
        )));
    }
    Ok(builder.build())
}

/// Refuses tables whose changes cannot be captured.
fn check(base: &Table, log_name: &str) -> Result<(), CqlError> {
    let refused = |why: String| Err(CqlError::invalid(why));
    let name = base.full_name();
    if base.is_cdc_log() {
        return refused(format!(
            "Cannot create a CDC log for a table {name}, because creating nested CDC logs is not allowed"
        ));
    }
    if base.is_counter {
        return refused(format!(
            "Cannot create CDC log for table {name}. Counter support not implemented"
        ));
    }
    if base.compact.is_some() {
        return refused(format!(
            "Cannot create CDC log for table {name}: it has COMPACT STORAGE. Drop that first with ALTER TABLE {name} \
             DROP COMPACT STORAGE"
        ));
    }
    if !is_valid_name(log_name, TABLE_NAME_LEN_MAX) {
        return refused(format!(
            "Cannot create CDC log for table {name}: the name {log_name} has more than {TABLE_NAME_LEN_MAX} characters"
        ));
    }
    Ok(())
}

/// Returns the options of a new log: ScyllaDB's, with windows of a 24th of the time for which changes are kept.
fn log_options(base: &Table) -> TableOptions {
    let mut options = TableOptions {
        comment: format!("CDC log for {}", base.full_name()),
        ..TableOptions::default()
    };
    for part in ["keys", "rows_per_partition"] {
        options.caching.insert(part.to_owned(), "NONE".to_owned());
    }
    let class = "org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy";
    let mut compaction = vec![("class", class.to_owned())];
    let ttl_s = options_ttl_s(base);
    if ttl_s > 0 {
        options.gc_grace_s = 0;
        let window_minutes = ttl_s.div_ceil(24).div_ceil(60);
        compaction.push(("compaction_window_size", window_minutes.to_string()));
        compaction.push(("compaction_window_unit", "MINUTES".to_owned()));
    }
    options.compaction = compaction
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    options
}

fn options_ttl_s(base: &Table) -> u32 {
    u32::try_from(base.options.cdc.ttl_s).unwrap_or(0)
}

fn own_columns() -> Vec<Column> {
    let column = |id, name: &str, ty, kind, position| Column {
        ty,
        id,
        kind,
        order: Order::Asc,
        position,
        name: format!("cdc${name}"),
        mask: None,
        constraints: Arc::default(),
    };
    use ColumnKind::{Clustering, PartitionKey, Regular};
    vec![
        column(STREAM, "stream_id", CqlType::BLOB, PartitionKey, 0),
        column(TIME, "time", CqlType::TIMEUUID, Clustering, 0),
        column(BATCH_SEQUENCE, "batch_seq_no", CqlType::INT, Clustering, 1),
        column(OPERATION, "operation", CqlType::TINYINT, Regular, 0),
        column(TTL, "ttl", CqlType::BIGINT, Regular, 0),
        column(END_OF_BATCH, "end_of_batch", CqlType::BOOLEAN, Regular, 0),
    ]
}

/// Returns the log's columns for a column of the base table.
fn columns_of(base: &Column) -> Vec<Column> {
    let is_key = matches!(base.kind, ColumnKind::PartitionKey | ColumnKind::Clustering);
    log_columns(&base.name, &base.ty, is_key)
        .into_iter()
        .map(|(id, name, ty)| Column {
            id: id(base.id),
            mask: mask(base.mask.as_ref(), &base.ty, &ty),
            constraints: Arc::default(),
            name,
            ty,
            kind: ColumnKind::Regular,
            order: Order::Asc,
            position: 0,
        })
        .collect()
}

/// Returns the mask of a log's column: that of the base column, or one that shows null if the types differ.
fn mask(of_base: Option<&Arc<ColumnMask>>, base: &CqlType, ty: &CqlType) -> Option<Arc<ColumnMask>> {
    of_base.map(|mask| match base == ty {
        true => mask.clone(),
        false => Arc::new(ColumnMask::null()),
    })
}

fn dropped_columns_of(base: &DroppedColumn) -> Vec<DroppedColumn> {
    log_columns(&base.name, &base.ty, false)
        .into_iter()
        .map(|(id, name, ty)| DroppedColumn {
            id: base.id.map(id),
            name,
            ty,
            kind: ColumnKind::Regular,
            dropped_time_us: base.dropped_time_us,
            mask: base.mask.as_ref().map(|_| Arc::new(ColumnMask::null())),
        })
        .collect()
}

/// Id of a log's column by that of the base column, its name and its type.
type LogColumn = (fn(ColumnId) -> ColumnId, String, CqlType);

fn log_columns(name: &str, ty: &CqlType, is_key: bool) -> Vec<LogColumn> {
    let mut columns: Vec<LogColumn> = vec![(value_column, name.to_owned(), value_type(ty))];
    if !is_key {
        columns.push((deleted_column, format!("cdc$deleted_{name}"), CqlType::BOOLEAN));
    }
    if let Some(path) = path_type(ty) {
        let elements = CqlType::set(path, true);
        columns.push((
            deleted_elements_column,
            format!("cdc$deleted_elements_{name}"),
            elements,
        ));
    }
    columns
}
