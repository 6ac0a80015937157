//! CREATE, ALTER and DROP TABLE.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value;
use helenus_row::{ColumnId, Order, TableId};
use uuid::Uuid;

use super::options;
use super::properties;
use super::{Applied, Change, DdlContext, TABLE_NAME_LEN_MAX, is_valid_name, unchanged};
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::{
    Column, ColumnKind, DroppedColumn, Keyspace, Schema, Table, TableBuilder, TableKind, TableOptions,
};
use crate::term::resolve_type;

impl Schema {
    /// The number of a new table in stored keys.
    pub(super) fn take_table_number(&mut self) -> TableId {
        let number = TableId(self.next_table_number);
        self.next_table_number += 1;
        number
    }
}

/// Where columns go in the key, and in which order.
struct Keys<'a> {
    partition: &'a [ast::Ident],
    clustering: &'a [ast::Ident],
    descending: BTreeMap<&'a str, bool>,
}

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateTable) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.table)?;
    let keyspace = ctx.keyspace_to_change(keyspace_name)?;
    let name = statement.table.name.as_str();
    if keyspace.tables.contains_key(name) {
        return match statement.if_not_exists {
            true => unchanged(),
            false => Err(already_exists(keyspace_name, name)),
        };
    }
    let keys = keys(statement, name)?;
    let columns = columns(ctx, keyspace, statement, &keys)?;
    if statement.compact_storage {
        return Err(CqlError::invalid(
            "COMPACT STORAGE tables are not supported: leave the option out; the table stores and answers the same",
        ));
    }
    let table_options = options::apply(&statement.properties, TableOptions::default())?;
    let id = new_id(&statement.properties)?;
    check_name(keyspace_name, name)?;
    let mut schema = ctx.schema.clone();
    let builder = TableBuilder {
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        id,
        number: schema.take_table_number(),
        kind: TableKind::Stored,
        options: table_options,
        next_column_id: ColumnId(u32::try_from(columns.len()).unwrap_or(u32::MAX)),
        columns,
        dropped_columns: BTreeMap::new(),
        indexes: Vec::new(),
        views: Vec::new(),
        view: None,
    };
    let table = builder.build();
    if check_counters(&table).is_err() {
        return Err(CqlError::invalid(
            "Cannot mix counter and non counter columns in the same table",
        ));
    }
    if table.is_counter && table.options.default_time_to_live_s > 0 {
        return Err(CqlError::invalid(
            "Cannot set default_time_to_live on a table with counters",
        ));
    }
    let schema = schema.with_table(table);
    Ok(Ok(Change::new(
        schema,
        ChangeKind::Created,
        keyspace_name,
        SchemaTarget::Table(name.to_owned()),
    )))
}

/// The id of a new table or view: the one that is given, or its own.
pub(super) fn new_id(given: &ast::Properties) -> Result<Uuid, CqlError> {
    match properties::text(given, "id")? {
        Some(text) => Uuid::parse_str(text).map_err(|_| CqlError::Config("Invalid table id".to_owned())),
        None => Ok(Uuid::new_v4()),
    }
}

/// Refuses a name that no table or view may have.
pub(super) fn check_name(keyspace_name: &str, name: &str) -> Result<(), CqlError> {
    if is_valid_name(name, TABLE_NAME_LEN_MAX) {
        return Ok(());
    }
    Err(CqlError::Config(format!(
        "{keyspace_name}.{name}: Table name must not be empty, more than 48 characters long, or contain \
         non-alphanumeric-underscore characters (got \"{name}\")"
    )))
}

pub(super) fn already_exists(keyspace: &str, name: &str) -> CqlError {
    CqlError::AlreadyExists {
        message: format!("Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""),
        keyspace: keyspace.to_owned(),
        table: name.to_owned(),
    }
}

/// The primary key and the clustering order as declared, checked against each other and the columns.
fn keys<'a>(statement: &'a ast::CreateTable, name: &str) -> Result<Keys<'a>, CqlError> {
    let Some(partition) = &statement.partition_key else {
        return Err(CqlError::invalid(format!(
            "No PRIMARY KEY specifed for table '{name}' (exactly one required)"
        )));
    };
    let clustering = &statement.clustering_columns;
    let mut seen = BTreeSet::new();
    for column in partition.iter().chain(clustering) {
        if !statement
            .columns
            .iter()
            .any(|definition| definition.name == *column)
        {
            return Err(CqlError::invalid(format!(
                "Unknown column '{column}' referenced in PRIMARY KEY for table '{name}'"
            )));
        }
        if !seen.insert(column.as_str()) {
            return Err(CqlError::invalid(format!(
                "Duplicate column '{column}' in PRIMARY KEY clause for table '{name}'"
            )));
        }
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
    ctx: &DdlContext<'_>,
    keyspace: &Keyspace,
    statement: &ast::CreateTable,
    keys: &Keys<'_>,
) -> Result<Vec<Column>, CqlError> {
    let mut columns = Vec::with_capacity(statement.columns.len());
    for (number, definition) in statement.columns.iter().enumerate() {
        let ty = resolve_type(ctx.schema, &keyspace.name, &definition.ty)?;
        refuse_nested_collections(&ty)?;
        refuse_mask(definition)?;
        let position = |columns: &[ast::Ident]| columns.iter().position(|column| *column == definition.name);
        let (kind, position) = match (position(keys.partition), position(keys.clustering)) {
            (Some(at), _) => (ColumnKind::PartitionKey, at),
            (None, Some(at)) => (ColumnKind::Clustering, at),
            (None, None) if definition.is_static => (ColumnKind::Static, 0),
            (None, None) => (ColumnKind::Regular, 0),
        };
        check_key_type(definition, kind, &ty)?;
        if kind == ColumnKind::Static && keys.clustering.is_empty() {
            return Err(CqlError::invalid(
                "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
            ));
        }
        let descending = keys
            .descending
            .get(definition.name.as_str())
            .copied()
            .unwrap_or(false);
        columns.push(Column {
            name: definition.name.0.clone(),
            ty,
            kind,
            position,
            id: ColumnId(u32::try_from(number).unwrap_or(u32::MAX)),
            order: if descending { Order::Desc } else { Order::Asc },
        });
    }
    Ok(columns)
}

/// A user type whose fields are cells of their own can't hold collections whose elements are.
fn refuse_nested_collections(ty: &CqlType) -> Result<(), CqlError> {
    match ty {
        CqlType::Udt {
            definition,
            frozen: false,
        } if definition.fields.iter().any(|field| field.ty.is_multicell()) => Err(CqlError::invalid(
            "Non-frozen UDTs with nested non-frozen collections are not supported",
        )),
        _ => Ok(()),
    }
}

fn refuse_mask(definition: &ast::ColumnDefinition) -> Result<(), CqlError> {
    match &definition.mask {
        Some(_) => Err(masking_is_off()),
        None => Ok(()),
    }
}

fn masking_is_off() -> CqlError {
    CqlError::invalid(
        "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the \
         dynamic_data_masking_enabled property on cassandra.yaml",
    )
}

fn check_key_type(
    definition: &ast::ColumnDefinition,
    kind: ColumnKind,
    ty: &CqlType,
) -> Result<(), CqlError> {
    if !matches!(kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        return Ok(());
    }
    let name = &definition.name;
    if definition.is_static {
        return Err(CqlError::invalid(format!(
            "Static column '{name}' cannot be part of the PRIMARY KEY"
        )));
    }
    if ty.is_counter() {
        return Err(CqlError::invalid(format!(
            "counter type is not supported for PRIMARY KEY column '{name}'"
        )));
    }
    if references_duration(ty) {
        return Err(CqlError::invalid(format!(
            "duration type is not supported for PRIMARY KEY column '{name}'"
        )));
    }
    match ty {
        CqlType::Udt {
            frozen: false,
            definition,
        } => Err(CqlError::invalid(format!(
            "Invalid non-frozen user-defined type \"{}.{ty}\" for PRIMARY KEY column '{name}'",
            definition.keyspace
        ))),
        ty if ty.is_multicell() => Err(CqlError::invalid(format!(
            "Invalid non-frozen collection type {ty} for PRIMARY KEY column '{name}'"
        ))),
        _ => Ok(()),
    }
}

/// True if a duration is, or is in, the type: durations have no order.
pub fn references_duration(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(_) => *ty == CqlType::DURATION,
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            references_duration(element)
        }
        CqlType::Map { key, value, .. } => references_duration(key) || references_duration(value),
        CqlType::Tuple(elements) => elements.iter().any(references_duration),
        CqlType::Udt { definition, .. } => definition
            .fields
            .iter()
            .any(|field| references_duration(&field.ty)),
    }
}

/// A table has counters only, beside its key, or none.
fn check_counters(table: &Table) -> Result<(), CqlError> {
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

/// The table that a statement changes: it must exist and hold rows of its own.
fn table_to_change<'a>(
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

pub fn alter(ctx: &DdlContext<'_>, statement: &ast::AlterTable) -> Applied {
    let (_, table) = match table_to_change(ctx, &statement.table) {
        Err(CqlError::Invalid(_)) if statement.if_exists => return unchanged(),
        found => found?,
    };
    let mut renames: &[(ast::Ident, ast::Ident)] = &[];
    let changed = match &statement.change {
        ast::TableChange::AlterType { .. } => {
            return Err(CqlError::invalid("Altering column types is no longer supported"));
        }
        ast::TableChange::Mask {
            column,
            if_exists,
            mask,
        } => {
            if mask.is_some() {
                return Err(masking_is_off());
            }
            if table.column(column.as_str()).is_none() && !if_exists {
                return Err(CqlError::invalid(format!(
                    "Column with name '{column}' doesn't exist on table '{}'",
                    table.name
                )));
            }
            return unchanged();
        }
        ast::TableChange::DropCompactStorage => {
            return Err(CqlError::invalid(
                "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE",
            ));
        }
        ast::TableChange::Add {
            if_not_exists,
            columns,
        } => add_columns(ctx, table, *if_not_exists, columns)?,
        ast::TableChange::Drop {
            if_exists,
            columns,
            timestamp,
        } => drop_columns(ctx, table, *if_exists, columns, *timestamp)?,
        ast::TableChange::Rename { columns, .. } => {
            renames = columns.as_slice();
            rename_columns(table, columns)?
        }
        ast::TableChange::Properties(properties) => change_options(table, properties)?,
    };
    let Some(changed) = changed else {
        return unchanged();
    };
    let (keyspace, name) = (table.keyspace.clone(), table.name.clone());
    let schema = super::view::with_base(ctx.schema, table, changed, renames)?;
    Ok(Ok(Change::new(
        schema,
        ChangeKind::Updated,
        &keyspace,
        SchemaTarget::Table(name),
    )))
}

fn add_columns(
    ctx: &DdlContext<'_>,
    table: &Table,
    if_not_exists: bool,
    definitions: &[ast::ColumnDefinition],
) -> Result<Option<Table>, CqlError> {
    let mut builder = table.to_builder();
    for definition in definitions {
        let name = definition.name.as_str();
        let ty = resolve_type(ctx.schema, &table.keyspace, &definition.ty)?;
        refuse_nested_collections(&ty)?;
        refuse_mask(definition)?;
        if builder.columns.iter().any(|column| column.name == name) {
            if if_not_exists {
                continue;
            }
            return Err(CqlError::invalid(format!(
                "Column with name '{name}' already exists"
            )));
        }
        if ty.is_counter() && !table.is_counter {
            return Err(CqlError::Config(format!(
                "{}: Cannot have a counter column (\"{name}\") in a non counter table",
                table.full_name()
            )));
        }
        if definition.is_static && table.clustering_count == 0 {
            return Err(CqlError::invalid(
                "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
            ));
        }
        check_re_added(table, definition, &ty)?;
        builder.columns.push(Column {
            name: name.to_owned(),
            ty,
            kind: if definition.is_static {
                ColumnKind::Static
            } else {
                ColumnKind::Regular
            },
            position: 0,
            id: builder.next_column_id,
            order: Order::Asc,
        });
        builder.next_column_id = ColumnId(builder.next_column_id.0 + 1);
    }
    if builder.columns.len() == table.columns.len() {
        return Ok(None);
    }
    let table = builder.build();
    check_counters(&table)?;
    Ok(Some(table))
}

/// A column that was dropped may come back only as what it was (`AlterTableStatement.AddColumns`).
fn check_re_added(table: &Table, definition: &ast::ColumnDefinition, ty: &CqlType) -> Result<(), CqlError> {
    let name = definition.name.as_str();
    let Some(dropped) = table.dropped_columns.get(name) else {
        return Ok(());
    };
    if !value::is_value_compatible_with(ty, &dropped.ty) || ty.is_multicell() != dropped.ty.is_multicell() {
        return Err(CqlError::invalid(format!(
            "Cannot re-add previously dropped column '{name}' of type {ty}, incompatible with previous type {}",
            dropped.ty
        )));
    }
    if definition.is_static != (dropped.kind == ColumnKind::Static) {
        let kind = |is_static: bool| if is_static { "static" } else { "regular" };
        return Err(CqlError::invalid(format!(
            "Cannot re-add previously dropped column '{name}' of kind {}, incompatible with previous kind {}",
            kind(definition.is_static).to_uppercase(),
            kind(!definition.is_static).to_uppercase()
        )));
    }
    match dropped.ty.is_counter() {
        true => Err(CqlError::invalid(format!(
            "Cannot re-add previously dropped counter column {name}"
        ))),
        false => Ok(()),
    }
}

/// The type of a dropped column: it may outlive the user types in it, so tuples take their place (`AbstractType.expandUserTypes`).
fn without_user_types(ty: &CqlType) -> CqlType {
    let inner = |ty: &CqlType| Arc::new(without_user_types(ty));
    match ty {
        CqlType::Native(_) => ty.clone(),
        CqlType::List { element, frozen } => CqlType::List {
            element: inner(element),
            frozen: *frozen,
        },
        CqlType::Set { element, frozen } => CqlType::Set {
            element: inner(element),
            frozen: *frozen,
        },
        CqlType::Map { key, value, frozen } => CqlType::Map {
            key: inner(key),
            value: inner(value),
            frozen: *frozen,
        },
        CqlType::Vector { element, dimension } => CqlType::Vector {
            element: inner(element),
            dimension: *dimension,
        },
        CqlType::Tuple(elements) => CqlType::Tuple(elements.iter().map(without_user_types).collect()),
        CqlType::Udt { definition, .. } => {
            let fields = definition.fields.iter();
            CqlType::Tuple(fields.map(|field| without_user_types(&field.ty)).collect())
        }
    }
}

fn drop_columns(
    ctx: &DdlContext<'_>,
    table: &Table,
    if_exists: bool,
    names: &[ast::Ident],
    timestamp_us: Option<i64>,
) -> Result<Option<Table>, CqlError> {
    let mut builder = table.to_builder();
    for name in names {
        let Some((_, column)) = table.column(name.as_str()) else {
            if if_exists {
                continue;
            }
            return Err(CqlError::invalid(format!(
                "Column {name} was not found in table '{}'",
                table.full_name()
            )));
        };
        if column.is_primary_key() {
            return Err(CqlError::invalid(format!(
                "Cannot drop PRIMARY KEY column {name}"
            )));
        }
        let indexes = dependent_indexes(table, &column.name);
        if !indexes.is_empty() {
            return Err(CqlError::invalid(format!(
                "Cannot drop column {name} because it has dependent secondary indexes ({indexes})"
            )));
        }
        if !table.views.is_empty() {
            return Err(CqlError::invalid(format!(
                "Cannot drop column {name} on base table {} with materialized views",
                table.name
            )));
        }
        builder.columns.retain(|known| known.name != column.name);
        builder.dropped_columns.insert(
            column.name.clone(),
            DroppedColumn {
                name: column.name.clone(),
                ty: without_user_types(&column.ty),
                kind: column.kind,
                dropped_time_us: timestamp_us.unwrap_or(ctx.now_us),
            },
        );
    }
    Ok((builder.columns.len() != table.columns.len()).then(|| builder.build()))
}

/// The names of the indexes on a column, as messages list them.
fn dependent_indexes(table: &Table, column: &str) -> String {
    let on_column = table.indexes.iter().filter(|index| index.target.column == column);
    on_column
        .map(|index| index.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Cassandra parses IF EXISTS here, and fails all the same.
fn rename_columns(table: &Table, renames: &[(ast::Ident, ast::Ident)]) -> Result<Option<Table>, CqlError> {
    let mut changed = table.clone();
    let mut has_changed = false;
    for (from, to) in renames {
        let Some((at, column)) = changed.column(from.as_str()) else {
            return Err(CqlError::invalid(format!(
                "Undefined column name {from} in table {}",
                table.full_name()
            )));
        };
        if !column.is_primary_key() {
            return Err(CqlError::invalid(format!(
                "Cannot rename non PRIMARY KEY column {from}"
            )));
        }
        if changed.column(to.as_str()).is_some() {
            return Err(CqlError::invalid(format!(
                "Cannot rename column {from} to {to} in table '{}'; another column with that name already exists",
                table.full_name()
            )));
        }
        let indexes = dependent_indexes(table, from.as_str());
        if !indexes.is_empty() {
            return Err(CqlError::invalid(format!(
                "Can't rename column {from} because it has dependent secondary indexes ({indexes})"
            )));
        }
        let mut builder = changed.to_builder();
        if let Some(column) = builder.columns.get_mut(at) {
            column.name = to.0.clone();
        }
        changed = builder.build();
        has_changed = true;
    }
    Ok(has_changed.then_some(changed))
}

fn change_options(table: &Table, properties: &ast::Properties) -> Result<Option<Table>, CqlError> {
    // Cassandra looks at what was given on its own first.
    options::apply(properties, TableOptions::default())?;
    let changed = options::apply(properties, table.options.clone())?;
    if properties.get("id").is_some() {
        return Err(CqlError::Config("Cannot alter table id.".to_owned()));
    }
    if table.is_counter && changed.default_time_to_live_s > 0 {
        return Err(CqlError::invalid(
            "Cannot set default_time_to_live on a table with counters",
        ));
    }
    if changed.gc_grace_s == 0 && !table.views.is_empty() {
        return Err(CqlError::invalid(
            "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, since this value is used to TTL \
             undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to expire before being \
             replayed.",
        ));
    }
    if changed == table.options {
        return Ok(None);
    }
    let mut builder = table.to_builder();
    builder.options = changed;
    Ok(Some(builder.build()))
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
            std::iter::repeat_n(keyspace.name.as_str(), table.views.len())
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    let mut keyspace = keyspace.clone();
    keyspace.tables.remove(&table.name);
    let (keyspace_name, name) = (table.keyspace.clone(), table.name.clone());
    let schema = ctx.schema.with_keyspace(keyspace);
    Ok(Ok(Change::new(
        schema,
        ChangeKind::Dropped,
        &keyspace_name,
        SchemaTarget::Table(name),
    )))
}
