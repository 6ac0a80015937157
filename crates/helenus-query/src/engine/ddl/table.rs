//! CREATE and DROP TABLE.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use helenus_cql::ast::{self, TypeName};
use helenus_cql::error::CqlError;
use helenus_cql::types::class_name::class_name;
use helenus_cql::types::{CqlType, NativeType};
use helenus_row::{ColumnId, Order, TableId};
use uuid::Uuid;

use super::{Applied, Change, DdlContext, Effect, compact_storage, snapshots, unchanged};
use crate::analysis::constraint;
use crate::analysis::definition_check::partition_key;
use crate::analysis::mask::{self, MaskedColumn};
use crate::analysis::types::resolve_type;
use crate::java_order;
use crate::properties;
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::names::{TABLE_NAME_LEN_MAX, is_valid_name};
use crate::schema::table_options::{self, TableOptions};
use crate::schema::{Column, ColumnKind, ColumnMask, Keyspace, Schema, Table, TableBuilder, TableKind};

impl Schema {
    /// Returns the number that a new table has in stored keys.
    pub(crate) fn take_table_number(&mut self) -> TableId {
        let number = TableId(self.next_table_number);
        self.next_table_number += 1;
        number
    }
}

/// The columns of the primary key, and their order.
struct Keys<'a> {
    partition: &'a [ast::Ident],
    clustering: &'a [ast::Ident],
    descending: BTreeMap<&'a str, bool>,
}

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateTable) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.table)?;
    let name = statement.table.name.as_str();
    ctx.modifiable(keyspace_name)?;
    table_options::check_form(&statement.properties)?;
    ctx.check_masks(&statement.columns)?;
    let keyspace = ctx.keyspace_to_change(keyspace_name)?;
    let taken = keyspace.tables.get(name);
    let taken_answer = || match statement.if_not_exists {
        true => unchanged(),
        false => Err(already_exists(keyspace_name, name)),
    };
    if taken.is_some_and(|taken| !taken.is_view()) {
        return taken_answer();
    }
    let new_options = table_options::of_new(&statement.properties)?;
    let types = types(ctx, keyspace, statement)?;
    let mut columns = columns(statement, &keys(statement, name, &types)?, types)?;
    add_masks(ctx, keyspace_name, statement, &mut columns)?;
    add_constraints(keyspace_name, statement, &mut columns)?;
    let compact = match statement.compact_storage {
        true => Some(compact_storage::complete(&mut columns)?),
        false => None,
    };
    let (id, incarnation) = new_id(&statement.properties)?;
    check_name(keyspace_name, name)?;
    // A view of that name is reported only after all other checks. Cassandra fails at this point too.
    if taken.is_some() {
        return taken_answer();
    }
    let mut schema = ctx.schema.clone();
    let builder = TableBuilder {
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        id,
        incarnation,
        number: schema.take_table_number(),
        kind: TableKind::Stored,
        compact,
        options: new_options,
        next_column_id: ColumnId(u32::try_from(columns.len()).unwrap_or(u32::MAX)),
        columns,
        dropped_columns: BTreeMap::new(),
        indexes: Vec::new(),
        views: Vec::new(),
        view: None,
        origin: None,
        adopts_origin: false,
        cdc_log_of: None,
    };
    let table = builder.build();
    refuse_counters_by_class(&table, &statement.columns)?;
    if check_counters(&table).is_err() {
        return Err(CqlError::invalid(
            "Cannot mix counter and non counter columns in the same table",
        ));
    }
    refuse_counter_ttl(table.is_counter, &table.options)?;
    let schema = schema.with_table(table);
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Created,
        keyspace_name,
        SchemaTarget::Table(name.to_owned()),
    )))
}

/// Refuses a default TTL for a table with counters.
pub(super) fn refuse_counter_ttl(is_counter: bool, options: &TableOptions) -> Result<(), CqlError> {
    match is_counter && options.default_time_to_live_s > 0 {
        true => Err(CqlError::invalid(
            "Cannot set default_time_to_live on a table with counters",
        )),
        false => Ok(()),
    }
}

/// Returns the id of a new table or view, and its incarnation. Only an id that the statement chooses needs an incarnation, because a
/// dropped table may have had the same id.
pub(crate) fn new_id(given: &ast::Properties) -> Result<(Uuid, Option<Uuid>), CqlError> {
    match properties::text(given, "id")? {
        Some(text) => {
            let id = Uuid::parse_str(text).map_err(|_| CqlError::Config("Invalid table id".to_owned()))?;
            Ok((id, Some(Uuid::new_v4())))
        }
        None => Ok((Uuid::new_v4(), None)),
    }
}

/// Refuses names that no table or view may have.
pub(crate) fn check_name(keyspace_name: &str, name: &str) -> Result<(), CqlError> {
    if is_valid_name(name, TABLE_NAME_LEN_MAX) {
        return Ok(());
    }
    Err(CqlError::Config(format!(
        "{keyspace_name}.{name}: Table name must not be empty, more than 48 characters long, or contain \
         non-alphanumeric-underscore characters (got \"{name}\")"
    )))
}

pub(crate) fn already_exists(keyspace: &str, name: &str) -> CqlError {
    CqlError::AlreadyExists {
        message: format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""),
        keyspace: keyspace.to_owned(),
        table: name.to_owned(),
    }
}

/// Returns the types of the columns. As in Cassandra, all types are resolved before the key is checked, and in the same order.
fn types<'a>(
    ctx: &DdlContext<'_>,
    keyspace: &Keyspace,
    statement: &'a ast::CreateTable,
) -> Result<BTreeMap<&'a str, CqlType>, CqlError> {
    let mut types = BTreeMap::new();
    for definition in java_order::by_name(statement.columns.iter().collect(), |column| column.name.as_str()) {
        let ty = resolve_type(ctx.schema, &keyspace.name, &definition.ty)?;
        types.insert(definition.name.as_str(), ty);
    }
    if types.values().any(holds_nested_collections) {
        return Err(CqlError::invalid(
            "Non-frozen UDTs with nested non-frozen collections are not supported",
        ));
    }
    Ok(types)
}

/// Returns the declared primary key and clustering order, after checking them against each other and the columns.
fn keys<'a>(
    statement: &'a ast::CreateTable,
    name: &str,
    types: &BTreeMap<&str, CqlType>,
) -> Result<Keys<'a>, CqlError> {
    let partition = partition_key(statement)?;
    let clustering = &statement.clustering_columns;
    let mut seen = BTreeSet::new();
    for column in partition.iter().chain(clustering) {
        let definition = statement
            .columns
            .iter()
            .find(|definition| definition.name == *column);
        let (Some(definition), Some(ty)) = (definition, types.get(column.as_str())) else {
            return Err(CqlError::invalid(format!(
                "Unknown column '{column}' referenced in PRIMARY KEY for table '{name}'"
            )));
        };
        if !seen.insert(column.as_str()) {
            return Err(CqlError::invalid(format!(
                "Duplicate column '{column}' in PRIMARY KEY clause for table '{name}'"
            )));
        }
        check_key_type(definition, ty)?;
    }
    check_clustering_order(statement, clustering)?;
    let order = &statement.clustering_order;
    let descending = order
        .iter()
        .map(|order| (order.column.as_str(), order.descending))
        .collect();
    Ok(Keys {
        partition,
        clustering,
        descending,
    })
}

fn check_clustering_order(statement: &ast::CreateTable, clustering: &[ast::Ident]) -> Result<(), CqlError> {
    let ordered: Vec<&str> = statement
        .clustering_order
        .iter()
        .map(|order| order.column.as_str())
        .collect();
    let foreign: Vec<&str> = ordered
        .iter()
        .copied()
        .filter(|column| !clustering.iter().any(|known| known == column))
        .collect();
    if !foreign.is_empty() {
        return Err(CqlError::invalid(format!(
            "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not clustering columns",
            foreign.join(", ")
        )));
    }
    for (position, column) in ordered.iter().enumerate() {
        let Some(expected) = clustering.get(position) else {
            continue;
        };
        if expected == column {
            continue;
        }
        if !ordered.contains(&expected.as_str()) {
            return Err(CqlError::invalid(format!(
                "Missing CLUSTERING ORDER for column {expected}"
            )));
        }
        return Err(CqlError::invalid(format!(
            "The order of columns in the CLUSTERING ORDER directive must match that of the clustering columns \
             ({expected} must appear before {column})"
        )));
    }
    Ok(())
}

fn columns(
    statement: &ast::CreateTable,
    keys: &Keys<'_>,
    mut types: BTreeMap<&str, CqlType>,
) -> Result<Vec<Column>, CqlError> {
    let mut columns = Vec::with_capacity(statement.columns.len());
    for (number, definition) in statement.columns.iter().enumerate() {
        let Some(ty) = types.remove(definition.name.as_str()) else {
            continue;
        };
        let position = |columns: &[ast::Ident]| columns.iter().position(|column| *column == definition.name);
        let (kind, position) = match (position(keys.partition), position(keys.clustering)) {
            (Some(at), _) => (ColumnKind::PartitionKey, at),
            (None, Some(at)) => (ColumnKind::Clustering, at),
            (None, None) if definition.is_static => (ColumnKind::Static, 0),
            (None, None) => (ColumnKind::Regular, 0),
        };
        if kind == ColumnKind::Static && keys.clustering.is_empty() && !statement.compact_storage {
            return Err(CqlError::invalid(
                "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
            ));
        }
        let named = keys.descending.get(definition.name.as_str()).copied();
        let descending =
            named.unwrap_or(false) || kind == ColumnKind::Clustering && is_reversed(&definition.ty);
        columns.push(Column {
            name: definition.name.0.clone(),
            ty,
            kind,
            position,
            id: ColumnId(u32::try_from(number).unwrap_or(u32::MAX)),
            order: if descending { Order::Desc } else { Order::Asc },
            mask: None,
            constraints: Arc::default(),
        });
    }
    Ok(columns)
}

fn add_constraints(
    keyspace: &str,
    statement: &ast::CreateTable,
    columns: &mut [Column],
) -> Result<(), CqlError> {
    let table = format!("{keyspace}.{}", statement.table.name);
    for definition in &statement.columns {
        let column = columns
            .iter_mut()
            .find(|column| definition.name == *column.name.as_str());
        if let Some(column) = column {
            column.constraints = constraint::declared(&table, column, &definition.constraints)?.into();
        }
    }
    Ok(())
}

fn add_masks(
    ctx: &DdlContext<'_>,
    keyspace: &str,
    statement: &ast::CreateTable,
    columns: &mut [Column],
) -> Result<(), CqlError> {
    for definition in &statement.columns {
        let column = columns
            .iter_mut()
            .find(|column| definition.name == *column.name.as_str());
        if let Some(column) = column {
            let table = statement.table.name.as_str();
            column.mask = mask_of(ctx, keyspace, table, definition, &column.ty)?;
        }
    }
    Ok(())
}

/// Returns the mask in a column's definition. `None` if there is none.
pub(crate) fn mask_of(
    ctx: &DdlContext<'_>,
    keyspace: &str,
    table: &str,
    definition: &ast::ColumnDefinition,
    ty: &CqlType,
) -> Result<Option<Arc<ColumnMask>>, CqlError> {
    let Some(mask) = &definition.mask else {
        return Ok(None);
    };
    let column = MaskedColumn {
        keyspace,
        table,
        name: definition.name.as_str(),
        ty,
    };
    mask::declared(ctx.schema, &column, mask).map(|mask| Some(Arc::new(mask)))
}

/// Returns true for a non-frozen user type that contains a non-frozen collection. Such types are not supported, because each field is a
/// cell of its own.
pub(crate) fn holds_nested_collections(ty: &CqlType) -> bool {
    match ty {
        CqlType::Udt {
            definition,
            frozen: false,
        } => definition.fields.iter().any(|field| field.ty.is_multicell()),
        _ => false,
    }
}

/// Refuses masks if they are off.
pub(crate) fn check_masks(is_enabled: bool, columns: &[ast::ColumnDefinition]) -> Result<(), CqlError> {
    match is_enabled || columns.iter().all(|column| column.mask.is_none()) {
        true => Ok(()),
        false => Err(masking_is_off()),
    }
}

pub(crate) fn masking_is_off() -> CqlError {
    CqlError::invalid(
        "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the \
         dynamic_data_masking_enabled property on cassandra.yaml",
    )
}

/// Returns true if a type given as a class has reversed order, which means the same as `CLUSTERING ORDER BY (… DESC)`.
fn is_reversed(ty: &TypeName) -> bool {
    let TypeName::Custom(class) = ty else {
        return false;
    };
    let class = class.trim_start();
    class
        .strip_prefix("org.apache.cassandra.db.marshal.")
        .unwrap_or(class)
        .starts_with("ReversedType(")
}

fn check_key_type(definition: &ast::ColumnDefinition, ty: &CqlType) -> Result<(), CqlError> {
    let name = &definition.name;
    if matches!(definition.ty, TypeName::Custom(_)) && ty.is_multicell() {
        return Err(not_frozen_in_key(name.as_str(), ty));
    }
    match ty {
        CqlType::Udt {
            frozen: false,
            definition,
        } => {
            return Err(CqlError::invalid(format!(
                "Invalid non-frozen user-defined type \"{}.{ty}\" for PRIMARY KEY column '{name}'",
                definition.keyspace
            )));
        }
        ty if ty.is_multicell() => {
            return Err(CqlError::invalid(format!(
                "Invalid non-frozen collection type {ty} for PRIMARY KEY column '{name}'"
            )));
        }
        ty if ty.is_counter() => {
            return Err(CqlError::invalid(format!(
                "counter type is not supported for PRIMARY KEY column '{name}'"
            )));
        }
        ty if ty.references_duration() => {
            return Err(CqlError::invalid(format!(
                "duration type is not supported for PRIMARY KEY column '{name}'"
            )));
        }
        _ => {}
    }
    if definition.is_static {
        return Err(CqlError::invalid(format!(
            "Static column '{name}' cannot be part of the PRIMARY KEY"
        )));
    }
    if ty.holds_dynamic_composite() {
        return Err(composite_in_key(name.as_str(), ty));
    }
    Ok(())
}

/// Returns the error for a key column whose type was given as a class and is not frozen.
pub(crate) fn not_frozen_in_key(name: &str, ty: &CqlType) -> CqlError {
    let what = if ty.is_collection() {
        "collection"
    } else {
        "user-defined"
    };
    CqlError::invalid(format!(
        "Invalid non-frozen {what} type '{}' for PRIMARY KEY column '{name}'",
        class_name(ty)
    ))
}

/// Returns the error for a key column with a dynamic composite. Unlike Cassandra, this server does not order them in keys.
pub(crate) fn composite_in_key(name: &str, ty: &CqlType) -> CqlError {
    CqlError::invalid(format!(
        "Dynamic composites are not supported in PRIMARY KEY columns: '{name}' is of type {ty}"
    ))
}

/// Refuses a counter table with other columns beside its key and the counters.
pub(crate) fn check_counters(table: &Table) -> Result<(), CqlError> {
    if !table.is_counter {
        return Ok(());
    }
    let other = table
        .static_columns()
        .iter()
        .chain(table.regular_columns())
        .find(|column| !column.ty.is_counter());
    match other {
        Some(column) => Err(CqlError::Config(format!(
            "{}: Cannot have a non counter column (\"{}\") in a counter table",
            table.full_name(),
            column.name
        ))),
        None => Ok(()),
    }
}

/// Refuses counters that were given by their class only. A counter table needs a column of the type `counter`.
fn refuse_counters_by_class(table: &Table, declared: &[ast::ColumnDefinition]) -> Result<(), CqlError> {
    let is_counter = |column: &ast::ColumnDefinition| column.ty == ast::TypeName::Native(NativeType::Counter);
    match declared.iter().any(is_counter) {
        true => Ok(()),
        false => refuse_counters(table),
    }
}

/// Refuses counters in a table that is not a counter table.
pub(crate) fn refuse_counters(table: &Table) -> Result<(), CqlError> {
    let mut columns = table.static_columns().iter().chain(table.regular_columns());
    match columns.find(|column| column.ty.is_counter()) {
        Some(column) => Err(CqlError::Config(format!(
            "{}: Cannot have a counter column (\"{}\") in a non counter table",
            table.full_name(),
            column.name
        ))),
        None => Ok(()),
    }
}

/// Returns the table that a statement changes. It must exist, and must not be a view.
pub(crate) fn table_to_change<'a>(
    ctx: &'a DdlContext<'_>,
    name: &ast::QualifiedName,
) -> Result<(&'a Keyspace, &'a Table), CqlError> {
    match ctx.found(name)? {
        Some((_, table)) if table.is_view() => Err(CqlError::invalid(
            "Cannot use ALTER TABLE on a materialized view; use ALTER MATERIALIZED VIEW instead",
        )),
        Some(found) => Ok(found),
        None => Err(CqlError::invalid(format!(
            "Table '{}' doesn't exist",
            super::qualified(ctx, name)?
        ))),
    }
}

pub fn drop(ctx: &DdlContext<'_>, statement: &ast::DropTable) -> Applied {
    let named = ctx
        .schema
        .table(ctx.keyspace_of(&statement.table)?, statement.table.name.as_str());
    if named.is_some_and(|table| table.is_view()) {
        return Err(CqlError::invalid(
            "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW instead.",
        ));
    }
    let (keyspace, table) = match table_to_change(ctx, &statement.table) {
        Err(CqlError::Invalid(_)) if statement.if_exists => return unchanged(),
        found => found?,
    };
    if !table.views.is_empty() {
        return Err(CqlError::invalid(format!(
            "Cannot drop a table when materialized views still depend on it ({})",
            keyspace.name
        )));
    }
    if let Some(base) = &table.cdc_log_of
        && keyspace
            .tables
            .get(base)
            .is_some_and(|base| base.captures_changes)
    {
        let (log, base) = (table.full_name(), format!("{}.{base}", keyspace.name));
        return Err(CqlError::invalid(format!(
            "Cannot drop CDC log table {log} while changes of {base} are captured: disable that first with ALTER TABLE {base} \
             WITH cdc = {{'enabled': false}}"
        )));
    }
    let mut keyspace = keyspace.clone();
    keyspace.tables.remove(&table.name);
    let (keyspace_name, name) = (table.keyspace.clone(), table.name.clone());
    let mut schema = ctx.schema.with_keyspace(keyspace);
    snapshots::before_drop_table(ctx, &mut schema, table);
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Dropped,
        &keyspace_name,
        SchemaTarget::Table(name),
    )))
}
