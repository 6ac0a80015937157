//! CREATE TABLE LIKE, which makes an empty table with the definition of another one (Cassandra 6's `CopyTableStatement`).

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use uuid::Uuid;

use super::renumber::renumbered;
use super::table::{already_exists, check_name, refuse_counter_ttl};
use super::{Applied, Change, DdlContext, Effect, unchanged};
use crate::index::entries::hidden_table;
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::documents::rename::renamed;
use crate::schema::table_options::{self, TableOptions};
use crate::schema::{Index, Keyspace, Table, TableBuilder};

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateTableLike) -> Applied {
    let (source_name, target_name) = (
        ctx.keyspace_of(&statement.source)?,
        ctx.keyspace_of(&statement.table)?,
    );
    ctx.modifiable(target_name)?;
    table_options::check_form(&statement.properties)?;
    let source_keyspace = keyspace(ctx, "Source", source_name)?;
    let source = source_of(source_keyspace, statement.source.name.as_str())?;
    let target_keyspace = keyspace(ctx, "Target", target_name)?;
    let name = statement.table.name.as_str();
    if target_keyspace.tables.contains_key(name) {
        return match statement.if_not_exists {
            true => unchanged(),
            false => Err(already_exists(target_name, name)),
        };
    }
    check_name(target_name, name)?;
    if source_name != target_name {
        check_types(source_keyspace, target_keyspace, source)?;
    }
    let narrowed = source_keyspace.narrowed_to(vec![source.clone()]);
    check_functions(&narrowed, target_keyspace)?;
    let moved = renamed(&narrowed, target_name, hidden_table)
        .map_err(|error| CqlError::Server(format!("the schema of the new table is not valid: {error}")))?;
    let Some(table) = moved.tables.get(source.name.as_str()) else {
        return Err(CqlError::Server(format!("table {} is missing", source.name)));
    };
    let mut builder = table.to_builder();
    builder.name = name.to_owned();
    builder.id = Uuid::new_v4();
    builder.incarnation = None;
    builder.views.clear();
    // Dropped columns of the source have no cells here.
    builder.dropped_columns.clear();
    builder.options = options(table, &statement.properties)?;
    builder.indexes.clear();
    if statement.copies_indexes {
        for index in &table.indexes {
            let name = index_name(target_keyspace, &builder, table, index);
            let index = Index {
                name,
                ..Index::clone(index)
            };
            builder.indexes.push(Arc::new(index));
        }
    }
    let mut schema = ctx.schema.clone();
    let table = renumbered(&mut schema, &builder.build(), true)?;
    let schema = schema.with_table(table);
    let target = SchemaTarget::Table(name.to_owned());
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Created,
        target_name,
        target,
    )))
}

fn keyspace<'a>(ctx: &'a DdlContext<'_>, role: &str, name: &str) -> Result<&'a Keyspace, CqlError> {
    let found = ctx.schema.keyspace(name).filter(|keyspace| !keyspace.is_virtual);
    let found = found.ok_or_else(|| CqlError::invalid(format!("{role} Keyspace '{name}' doesn't exist")))?;
    Ok(found)
}

fn source_of<'a>(keyspace: &'a Keyspace, name: &str) -> Result<&'a Arc<Table>, CqlError> {
    let of = &keyspace.name;
    let Some(table) = keyspace.tables.get(name) else {
        return Err(CqlError::invalid(format!(
            "Source Table '{of}.{name}' doesn't exist"
        )));
    };
    if table.is_view() {
        return Err(CqlError::invalid(format!(
            "Cannot use CREATE TABLE LIKE on a materialized view '{of}.{name}'."
        )));
    }
    if table.is_cdc_log() {
        return Err(CqlError::invalid(format!(
            "Cannot use CREATE TABLE LIKE on a CDC log table '{of}.{name}'."
        )));
    }
    Ok(table)
}

/// Refuses user types that the keyspace of the new table does not have, or has with other fields.
fn check_types(source: &Keyspace, target: &Keyspace, table: &Table) -> Result<(), CqlError> {
    let is_used = |name: &str| {
        let mut columns = table.columns.iter();
        columns.any(|column| column.ty.references_udt(&source.name, name))
    };
    let mut missing = Vec::new();
    for (name, ty) in source.types.iter().filter(|(name, _)| is_used(name)) {
        let fields = |of: &helenus_cql::types::UserType| -> Vec<(String, String)> {
            let fields = of.fields.iter();
            fields
                .map(|field| (field.name.clone(), field.ty.to_string()))
                .collect()
        };
        match target.types.get(name) {
            None => missing.push(name.as_str()),
            Some(there) if fields(there) != fields(ty) => {
                return Err(CqlError::invalid(format!(
                    "Target keyspace '{}' has same UDT name '{name}' as source keyspace '{}' but with different structure.",
                    target.name, source.name
                )));
            }
            Some(_) => {}
        }
    }
    missing.sort_unstable();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "UDTs {} do not exist in target keyspace '{}'.",
            missing.join(", "),
            target.name
        ))),
    }
}

/// Refuses masks by functions that the keyspace of the new table does not have.
fn check_functions(source: &Keyspace, target: &Keyspace) -> Result<(), CqlError> {
    let mut masks = source.functions.keys();
    match masks.find(|signature| !target.functions.contains_key(*signature)) {
        None => Ok(()),
        Some(signature) => Err(CqlError::invalid(format!(
            "Function {signature}, which masks a column, does not exist in target keyspace '{}'.",
            target.name
        ))),
    }
}

/// Returns the options of the source, with those of the statement in their place.
fn options(source: &Table, given: &ast::Properties) -> Result<TableOptions, CqlError> {
    // Unknown options are refused when the given ones are checked alone.
    table_options::apply(given, TableOptions::default())?;
    let changed = table_options::read(given, source.options.clone())?;
    if given.get("id").is_some() {
        return Err(CqlError::Config("Cannot alter table id.".to_owned()));
    }
    refuse_counter_ttl(source.is_counter, &changed)?;
    Ok(changed)
}

/// Returns the name of a copied index. A name that the server had chosen gets the name of the new table in it, and others stay. A name in
/// use gets a number.
fn index_name(target: &Keyspace, new: &TableBuilder, source: &Table, index: &Index) -> String {
    let chosen = |table: &str| format!("{table}_{}_idx", index.target.column);
    let base = match index.name.starts_with(&chosen(&source.name)) {
        true => chosen(&new.name),
        false => index.name.clone(),
    };
    let is_free = |name: &String| {
        let mut own = new.indexes.iter();
        target.index(name).is_none() && !own.any(|other| other.name == *name)
    };
    let numbered = (1..).map(|number| format!("{base}_{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    names.find(is_free).unwrap_or(base)
}
