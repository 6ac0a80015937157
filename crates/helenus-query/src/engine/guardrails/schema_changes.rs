//! The guardrails of statements that change the schema (the calls in Cassandra's `cql3.statements.schema`).

use helenus_cql::ast::{self, Properties, Statement, TableChange, TypeChange, TypeName};
use helenus_cql::error::CqlError;

use super::count;
use crate::limits::guardrails::{Flag, Guard, ThresholdKind, ValueKind};
use crate::schema::names::is_system_name;
use crate::schema::{Keyspace, Schema, Table};

/// Checks a statement without the schema, and removes the properties that are to be ignored.
///
/// # Errors
/// A guardrail refuses the statement.
pub(crate) fn check_statement(guard: &mut Guard, statement: &mut Statement) -> Result<(), CqlError> {
    match statement {
        Statement::DropKeyspace(_) => guard.require(Flag::DropKeyspace),
        Statement::DropTable(_) | Statement::Truncate(_) => guard.require(Flag::DropTruncateTable),
        Statement::CreateIndex(_) => guard.require(Flag::SecondaryIndexes),
        Statement::CreateTable(statement) => {
            if statement.compact_storage {
                guard.require(Flag::CompactTables)?;
            }
            check_properties(guard, &mut statement.properties)?;
            check_vectors(guard, "Column", columns(&statement.columns))
        }
        Statement::CreateTableLike(statement) => check_properties(guard, &mut statement.properties),
        Statement::CreateView(statement) => check_properties(guard, &mut statement.properties),
        Statement::AlterView(statement) => check_properties(guard, &mut statement.properties),
        Statement::AlterTable(statement) => match &mut statement.change {
            TableChange::Properties(properties) => check_properties(guard, properties),
            TableChange::Add { columns: added, .. } => {
                guard.require(Flag::AlterTable)?;
                check_vectors(guard, "Column", columns(added))
            }
            TableChange::Drop { .. } | TableChange::Rename { .. } => guard.require(Flag::AlterTable),
            _ => Ok(()),
        },
        Statement::CreateType(statement) => check_vectors(guard, "Field", fields(&statement.fields)),
        Statement::AlterType(statement) => match &statement.change {
            TypeChange::AddField { field, ty, .. } => {
                check_vectors(guard, "Field", std::iter::once((field.as_str(), ty)))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_new_table(guard: &mut Guard, table: Option<&Table>) -> Result<(), CqlError> {
    check_table(guard, table)?;
    check_time_to_live(guard, table)
}

/// Checks the number of tables of the schema with the new table.
fn check_table_count(guard: &mut Guard, schema: &Schema, new: &ast::QualifiedName) -> Result<(), CqlError> {
    let tables = users_keyspaces(schema).flat_map(tables_of);
    guard.check(ThresholdKind::Tables, new.name.as_str(), count(tables.count()))
}

fn columns(definitions: &[ast::ColumnDefinition]) -> impl Iterator<Item = (&str, &TypeName)> {
    definitions
        .iter()
        .map(|column| (column.name.as_str(), &column.ty))
}

fn fields(definitions: &[(ast::Ident, TypeName)]) -> impl Iterator<Item = (&str, &TypeName)> {
    definitions.iter().map(|(name, ty)| (name.as_str(), ty))
}

fn check_properties(guard: &mut Guard, properties: &mut Properties) -> Result<(), CqlError> {
    let names: Vec<&str> = properties.0.iter().map(|(name, _)| name.as_str()).collect();
    let ignored = guard.check_values(ValueKind::TableProperties, &names)?;
    properties.0.retain(|(name, _)| !ignored.contains(name));
    Ok(())
}

fn check_vectors<'t>(
    guard: &mut Guard,
    noun: &str,
    mut typed: impl Iterator<Item = (&'t str, &'t TypeName)>,
) -> Result<(), CqlError> {
    typed.try_for_each(|(name, ty)| check_vector(guard, &format!("{noun} {name}"), ty))
}

fn check_vector(guard: &mut Guard, what: &str, ty: &TypeName) -> Result<(), CqlError> {
    match ty {
        TypeName::Vector { element, dimension } => {
            guard.require_named(Flag::VectorType, what)?;
            guard.check(ThresholdKind::VectorDimensions, what, i64::from(*dimension))?;
            check_vector(guard, what, element)
        }
        TypeName::List(element) | TypeName::Set(element) | TypeName::Frozen(element) => {
            check_vector(guard, what, element)
        }
        TypeName::Map(key, value) => {
            check_vector(guard, what, key)?;
            check_vector(guard, what, value)
        }
        TypeName::Tuple(parts) => parts.iter().try_for_each(|part| check_vector(guard, what, part)),
        TypeName::Native(_) | TypeName::UserType(_) | TypeName::Custom(_) => Ok(()),
    }
}

/// Checks the schema after a statement.
///
/// # Errors
/// A guardrail refuses the statement.
pub(crate) fn check_outcome(
    guard: &mut Guard,
    statement: &Statement,
    keyspace: Option<&str>,
    schema: &Schema,
) -> Result<(), CqlError> {
    let keyspace_of = |name: &ast::QualifiedName| {
        let named = name.keyspace.as_ref().map(ast::Ident::as_str);
        schema.keyspace(named.or(keyspace)?)
    };
    let table = |name: &ast::QualifiedName| keyspace_of(name)?.tables.get(name.name.as_str());
    match statement {
        Statement::CreateKeyspace(ast::CreateKeyspace { name, .. })
        | Statement::CopyKeyspace(ast::CopyKeyspace { name, .. }) => {
            let name = name.as_str();
            guard.check(
                ThresholdKind::Keyspaces,
                name,
                count(users_keyspaces(schema).count()),
            )?;
            check_replication(guard, schema.keyspace(name).map(AsRef::as_ref))
        }
        Statement::AlterKeyspace(statement) => {
            let keyspace = schema.keyspace(statement.name.as_str());
            check_replication(guard, keyspace.map(AsRef::as_ref))
        }
        Statement::CreateTable(statement) => {
            check_table_count(guard, schema, &statement.table)?;
            check_new_table(guard, table(&statement.table).map(AsRef::as_ref))
        }
        Statement::CreateTableLike(statement) => {
            check_table_count(guard, schema, &statement.table)?;
            let table = table(&statement.table).map(AsRef::as_ref);
            if table.is_some_and(|table| table.compact.is_some()) {
                guard.require(Flag::CompactTables)?;
            }
            check_new_table(guard, table)
        }
        Statement::CopyTable(statement) => check_table_count(guard, schema, &statement.table),
        Statement::AlterTable(statement) => {
            let table = table(&statement.table).map(AsRef::as_ref);
            check_table(guard, table)?;
            match statement.change {
                TableChange::Properties(_) => check_time_to_live(guard, table),
                _ => Ok(()),
            }
        }
        Statement::CreateIndex(statement) => {
            let Some(table) = table(&statement.table) else {
                return Ok(());
            };
            let what = match &statement.name {
                Some(name) => format!("{name} on table {}", table.name),
                None => format!("on table {}", table.name),
            };
            let kind = ThresholdKind::SecondaryIndexesPerTable;
            guard.check(kind, &what, count(table.indexes.len()))
        }
        Statement::CreateView(statement) => {
            let Some(base) = table(&statement.base) else {
                return Ok(());
            };
            let what = format!("{} on table {}", statement.view.name, base.name);
            let kind = ThresholdKind::MaterializedViewsPerTable;
            guard.check(kind, &what, count(base.views.len()))
        }
        Statement::CreateType(ast::CreateType { name, .. })
        | Statement::AlterType(ast::AlterType { name, .. }) => {
            let ty = keyspace_of(name).and_then(|keyspace| keyspace.types.get(name.name.as_str()));
            let fields = ty.map_or(0, |ty| ty.fields.len());
            guard.check(ThresholdKind::FieldsPerUdt, name.name.as_str(), count(fields))
        }
        _ => Ok(()),
    }
}

fn users_keyspaces(schema: &Schema) -> impl Iterator<Item = &Keyspace> {
    schema
        .keyspaces
        .values()
        .map(AsRef::as_ref)
        .filter(|keyspace| !keyspace.is_virtual && !is_system_name(&keyspace.name))
}

fn tables_of(keyspace: &Keyspace) -> impl Iterator<Item = &Table> {
    keyspace
        .tables
        .values()
        .map(AsRef::as_ref)
        .filter(|table| !table.is_view())
}

fn check_replication(guard: &mut Guard, keyspace: Option<&Keyspace>) -> Result<(), CqlError> {
    let Some(keyspace) = keyspace else {
        return Ok(());
    };
    let replication = &keyspace.replication;
    if replication.class == "SimpleStrategy" {
        guard.require(Flag::SimpleStrategy)?;
    }
    // Each data center has its own factor. The factor `3/1` means three copies, one of which is transient.
    let factors = replication.options.values();
    for factor in factors.filter_map(|factor| factor.split('/').next()?.parse::<i64>().ok()) {
        guard.check(ThresholdKind::MinimumReplicationFactor, &keyspace.name, factor)?;
        guard.check(ThresholdKind::MaximumReplicationFactor, &keyspace.name, factor)?;
    }
    Ok(())
}

fn check_table(guard: &mut Guard, table: Option<&Table>) -> Result<(), CqlError> {
    let Some(table) = table else {
        return Ok(());
    };
    guard.check(
        ThresholdKind::ColumnsPerTable,
        &table.name,
        count(table.columns.len()),
    )?;
    match table.options.is_compressed() {
        true => Ok(()),
        false => guard.require(Flag::UncompressedTables),
    }
}

/// Checks that a table that is compacted by time windows has a TTL, because its rows are meant to expire.
fn check_time_to_live(guard: &mut Guard, table: Option<&Table>) -> Result<(), CqlError> {
    match table {
        Some(table)
            if table.options.default_time_to_live_s == 0 && table.options.is_compacted_by_windows() =>
        {
            guard.require(Flag::ZeroTtlOnTwcs)
        }
        _ => Ok(()),
    }
}
