//! ALTER TABLE.

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::{ast, value};
use helenus_row::{ColumnId, Order};

use super::table::{
    self, check_counters, holds_nested_collections, masking_is_off, refuse_counters, table_to_change,
};
use super::view::UNDELIVERED;
use super::{Applied, Change, DdlContext, Effect, unchanged};
use crate::analysis::constraint;
use crate::analysis::mask::{self, MaskedColumn};
use crate::analysis::types::resolve_type;
use crate::java_order::by_name;
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::table_options;
use crate::schema::{Column, ColumnKind, DroppedColumn, Table, TableBuilder, TableOptions};

pub fn alter(ctx: &DdlContext<'_>, statement: &ast::AlterTable) -> Applied {
    if let ast::TableChange::Properties(properties) = &statement.change {
        ctx.modifiable(ctx.keyspace_of(&statement.table)?)?;
        table_options::check_form(properties)?;
    }
    if let Err(masked) = check_mask(ctx.masks_columns, &statement.change) {
        ctx.modifiable(ctx.keyspace_of(&statement.table)?)?;
        return Err(masked);
    }
    let (_, table) = match table_to_change(ctx, &statement.table) {
        Err(CqlError::Invalid(_)) if statement.if_exists => return unchanged(),
        found => found?,
    };
    refuse_log(table, &statement.change)?;
    let mut renames: &[(ast::Ident, ast::Ident)] = &[];
    let changed = match &statement.change {
        ast::TableChange::AlterType { .. } => {
            return Err(CqlError::invalid("Altering column types is no longer supported"));
        }
        ast::TableChange::Mask {
            column,
            if_exists,
            mask,
        } => change_mask(ctx, table, column, *if_exists, mask.as_ref())?,
        ast::TableChange::Constrain {
            column,
            if_exists,
            constraints,
        } => change_constraints(table, column, *if_exists, constraints)?,
        ast::TableChange::DropCompactStorage => drop_compact_storage(table)?,
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
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Updated,
        &keyspace,
        SchemaTarget::Table(name),
    )))
}

/// Refuses changes of a log of captured changes. Its columns follow from those of its base table. Its options may be changed.
fn refuse_log(table: &Table, change: &ast::TableChange) -> Result<(), CqlError> {
    let Some(base) = &table.cdc_log_of else {
        return Ok(());
    };
    match change {
        ast::TableChange::Properties(properties) if properties.get("cdc").is_none() => Ok(()),
        _ => Err(CqlError::invalid(format!(
            "Cannot alter CDC log table {}: its columns follow from those of {}.{base}, and only its options can be changed",
            table.full_name(),
            table.keyspace
        ))),
    }
}

/// Returns the table as an ordinary one, in which hidden columns become visible.
fn drop_compact_storage(table: &Table) -> Result<Option<Table>, CqlError> {
    if table.compact.is_none() {
        return Err(CqlError::invalid(
            "Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE",
        ));
    }
    let mut builder = table.to_builder();
    builder.compact = None;
    Ok(Some(builder.build()))
}

/// Refuses to mask an existing column if masks are off.
pub(crate) fn check_mask(is_enabled: bool, change: &ast::TableChange) -> Result<(), CqlError> {
    match change {
        ast::TableChange::Mask { mask: Some(_), .. } if !is_enabled => Err(masking_is_off()),
        _ => Ok(()),
    }
}

/// Returns the table with the constraints of the column replaced. `None` if nothing changes.
fn change_constraints(
    table: &Table,
    name: &ast::Ident,
    if_exists: bool,
    constraints: &[ast::ColumnConstraint],
) -> Result<Option<Table>, CqlError> {
    let Some((place, column)) = table.visible_column(name.as_str()) else {
        return missing_column(table, name, if_exists);
    };
    let constraints = constraint::declared(&table.full_name(), column, constraints)?;
    if *column.constraints == constraints {
        return Ok(None);
    }
    let mut builder = table.to_builder();
    if let Some(column) = builder.columns.get_mut(place) {
        column.constraints = constraints.into();
    }
    Ok(Some(builder.build()))
}

/// Returns the answer to a change of a column that does not exist.
fn missing_column(table: &Table, name: &ast::Ident, if_exists: bool) -> Result<Option<Table>, CqlError> {
    match if_exists {
        true => Ok(None),
        false => Err(CqlError::invalid(format!(
            "Column with name '{name}' doesn't exist on table '{}'",
            table.name
        ))),
    }
}

/// Returns the table with the column's mask changed or removed. `None` if nothing changes.
fn change_mask(
    ctx: &DdlContext<'_>,
    table: &Table,
    name: &ast::Ident,
    if_exists: bool,
    mask: Option<&ast::ColumnMask>,
) -> Result<Option<Table>, CqlError> {
    let Some((place, column)) = table.visible_column(name.as_str()) else {
        return missing_column(table, name, if_exists);
    };
    let masked = MaskedColumn {
        keyspace: &table.keyspace,
        table: &table.name,
        name: &column.name,
        ty: &column.ty,
    };
    let mask = mask
        .map(|mask| mask::declared(ctx.schema, &masked, mask))
        .transpose()?
        .map(Arc::new);
    if column.mask == mask {
        return Ok(None);
    }
    let mut builder = table.to_builder();
    if let Some(column) = builder.columns.get_mut(place) {
        column.mask = mask;
    }
    Ok(Some(builder.build()))
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
        ctx.check_masks(std::slice::from_ref(definition))?;
        let mask = table::mask_of(ctx, &table.keyspace, &table.name, definition, &ty)?;
        if builder.columns.iter().any(|column| column.name == name) {
            if if_not_exists {
                continue;
            }
            return Err(CqlError::invalid(format!(
                "Column with name '{name}' already exists"
            )));
        }
        if table.compact.is_some() {
            return Err(CqlError::invalid(
                "Cannot add new column to a COMPACT STORAGE table",
            ));
        }
        if definition.is_static && table.clustering_count == 0 {
            return Err(CqlError::invalid(
                "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
            ));
        }
        if holds_nested_collections(&ty) {
            return Err(CqlError::invalid(format!(
                "Non-frozen UDTs with nested non-frozen collections are not supported for column {name}"
            )));
        }
        check_re_added(table, definition, &ty)?;
        let id = column_id(&mut builder, name);
        builder.columns.push(Column {
            name: name.to_owned(),
            ty,
            kind: if definition.is_static {
                ColumnKind::Static
            } else {
                ColumnKind::Regular
            },
            position: 0,
            id,
            order: Order::Asc,
            mask,
            constraints: Arc::default(),
        });
    }
    if builder.columns.len() == table.columns.len() {
        return Ok(None);
    }
    let added = builder.build();
    if table.is_counter {
        check_counters(&added)?;
    } else {
        refuse_counters(&added)?;
    }
    Ok(Some(added))
}

/// Returns the id of an added column: its former id if it was dropped before, and otherwise a new one.
fn column_id(builder: &mut TableBuilder, name: &str) -> ColumnId {
    if let Some(id) = builder.dropped_columns.get(name).and_then(|dropped| dropped.id) {
        return id;
    }
    let id = builder.next_column_id;
    builder.next_column_id = ColumnId(id.0 + 1);
    id
}

/// Refuses a column that was dropped before with another type or kind (`AlterTableStatement.AddColumns`).
fn check_re_added(table: &Table, definition: &ast::ColumnDefinition, ty: &CqlType) -> Result<(), CqlError> {
    let name = definition.name.as_str();
    let Some(dropped) = table.dropped_columns.get(name) else {
        return Ok(());
    };
    let is_stored_alike = value::is_value_compatible_with(ty, &dropped.ty)
        && ty.fixed_len() == dropped.ty.fixed_len()
        && ty.is_multicell() == dropped.ty.is_multicell();
    if !is_stored_alike {
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

/// Returns the type of a dropped column, with tuples instead of user types. The dropped column may outlive these user types
/// (`AbstractType.expandUserTypes`).
fn without_user_types(ty: &CqlType) -> CqlType {
    match ty {
        CqlType::Udt { definition, .. } => {
            let fields = definition.fields.iter();
            CqlType::tuple(
                fields
                    .map(|field| without_user_types(&field.ty))
                    .collect::<Vec<_>>(),
            )
        }
        other => other.map_elements(&without_user_types),
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
    // Cassandra iterates over a hash table of the names.
    for name in by_name(names.iter().collect(), |name| name.as_str()) {
        let Some((_, column)) = table.column(name.as_str()) else {
            if if_exists {
                continue;
            }
            return Err(CqlError::invalid(format!(
                "Column {name} was not found in table '{}'",
                table.cql_name()
            )));
        };
        if column.is_primary_key() {
            return Err(CqlError::invalid(format!(
                "Cannot drop PRIMARY KEY column {name}"
            )));
        }
        if matches!(column.ty, CqlType::Udt { frozen: false, .. }) {
            return Err(CqlError::invalid(format!(
                "Cannot drop non-frozen column {name} of user type {}",
                column.ty
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
        if table.compact.is_some() && !column.is_static() {
            return Err(CqlError::invalid(format!(
                "Cannot drop column {name}, which is the value of a COMPACT STORAGE table"
            )));
        }
        builder.columns.retain(|known| known.name != column.name);
        builder.dropped_columns.insert(
            column.name.clone(),
            DroppedColumn {
                name: column.name.clone(),
                ty: without_user_types(&column.ty),
                kind: column.kind,
                id: Some(column.id),
                dropped_time_us: timestamp_us.unwrap_or(ctx.now_us),
                mask: column
                    .mask
                    .as_deref()
                    .map(|mask| Arc::new(mask.without_users_parts())),
            },
        );
    }
    Ok((builder.columns.len() != table.columns.len()).then(|| builder.build()))
}

/// Returns the names of the indexes on a column as text for messages.
fn dependent_indexes(table: &Table, column: &str) -> String {
    let on_column = table.indexes.iter().filter(|index| index.target.column == column);
    on_column
        .map(|index| index.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Renames columns of the primary key. IF EXISTS has no effect, because Cassandra parses it and fails all the same.
fn rename_columns(table: &Table, renames: &[(ast::Ident, ast::Ident)]) -> Result<Option<Table>, CqlError> {
    // Only the last of several renames of a column counts, and all of them use the names before the statement.
    let mut last: Vec<&(ast::Ident, ast::Ident)> = Vec::new();
    for rename in renames {
        last.retain(|(from, _)| *from != rename.0);
        last.push(rename);
    }
    let mut builder = table.to_builder();
    for (from, to) in by_name(last, |(from, _)| from.as_str()) {
        let Some((at, column)) = table.visible_column(from.as_str()) else {
            return Err(CqlError::invalid(format!(
                "Undefined column name {} in table {}",
                from.to_cql(),
                table.cql_name()
            )));
        };
        if !column.is_primary_key() {
            return Err(CqlError::invalid(format!(
                "Cannot rename non PRIMARY KEY column {from}"
            )));
        }
        let is_taken = builder.columns.iter().any(|column| column.name == to.as_str());
        if is_taken || table.column(to.as_str()).is_some() {
            return Err(CqlError::invalid(format!(
                "Cannot rename column {from} to {to} in table '{}'; another column with that name already exists",
                table.cql_name()
            )));
        }
        let indexes = dependent_indexes(table, from.as_str());
        if !indexes.is_empty() {
            return Err(CqlError::invalid(format!(
                "Can't rename column {from} because it has dependent secondary indexes ({indexes})"
            )));
        }
        if let Some(column) = builder.columns.get_mut(at) {
            column.name = to.0.clone();
        }
    }
    Ok((!renames.is_empty()).then(|| builder.build()))
}

fn change_options(table: &Table, properties: &ast::Properties) -> Result<Option<Table>, CqlError> {
    // Cassandra first checks the given options alone.
    table_options::apply(properties, TableOptions::default())?;
    let changed = table_options::read(properties, table.options.clone())?;
    if properties.get("id").is_some() {
        table::new_id(properties)?;
        return Err(CqlError::Config("Cannot alter table id.".to_owned()));
    }
    table::refuse_counter_ttl(table.is_counter, &changed)?;
    if changed.gc_grace_s == 0 && !table.views.is_empty() {
        return Err(CqlError::invalid(format!(
            "Cannot alter gc_grace_seconds of the base table of a materialized view to 0, {UNDELIVERED}"
        )));
    }
    if changed == table.options {
        return Ok(None);
    }
    let mut builder = table.to_builder();
    builder.options = changed;
    Ok(Some(builder.build()))
}
