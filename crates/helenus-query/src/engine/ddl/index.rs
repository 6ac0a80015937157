//! CREATE and DROP INDEX, and the hidden tables behind indexes.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use uuid::Uuid;

use super::{Applied, Change, DdlContext, Effect, unchanged};
use crate::index::definition::{check_options, default_name, index_kind, target, target_option};
use crate::index::entries::hidden_table;
use crate::index::kinds::{self, Registered};
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::names::is_valid_name;
use crate::schema::{DerivedTable, Index, IndexTarget, Table};

/// Maximum length of an index name, in characters.
const INDEX_NAME_LEN_MAX: usize = 222;

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateIndex) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.table)?;
    ctx.modifiable(keyspace_name)?;
    check_options(statement)?;
    let keyspace = ctx.keyspace_to_change(keyspace_name)?;
    let table = keyspace
        .tables
        .get(statement.table.name.as_str())
        .ok_or_else(|| CqlError::invalid(format!("Table '{}' doesn't exist", statement.table.name)))?;
    let explicit_name = statement.name.as_ref().map(|name| name.0.clone());
    if let Some(name) = &explicit_name
        && keyspace.index(name).is_some()
    {
        return match statement.if_not_exists {
            true => is_there(statement),
            false => Err(CqlError::invalid(format!("Index '{name}' already exists"))),
        };
    }
    if table.is_counter {
        return Err(CqlError::invalid(
            "Secondary indexes on counter tables aren't supported",
        ));
    }
    if table.is_view() {
        return Err(CqlError::invalid(
            "Secondary indexes on materialized views aren't supported",
        ));
    }
    if table.is_cdc_log() {
        return Err(CqlError::invalid(
            "Secondary indexes on CDC log tables aren't supported",
        ));
    }
    let target = target(table, statement)?;
    let name = explicit_name.unwrap_or_else(|| default_name(keyspace, table, &target.column));
    let (kind, mut options) = index_kind(statement)?;
    options.insert("target".to_owned(), target_option(&target));
    if let Some(twin) = table
        .indexes
        .iter()
        .find(|index| index.kind == kind.schema_kind && index.options == options)
    {
        return match statement.if_not_exists {
            true => is_there(statement),
            false => Err(CqlError::invalid(format!(
                "Index {name} is a duplicate of existing index {}",
                twin.name
            ))),
        };
    }
    if !is_valid_name(&name, INDEX_NAME_LEN_MAX) {
        return Err(
            CqlError::Config(format!("Illegal index name {name}")).warned(kinds::warnings(table, usize::MAX))
        );
    }
    kind.rules.check(table, &target, &options)?;
    add(ctx, table, name, kind, options, target)
}

/// Returns the answer to IF NOT EXISTS for an existing index. The kind's warning is given all the same.
fn is_there(statement: &ast::CreateIndex) -> Applied {
    let kind = statement.using.as_deref().and_then(kinds::named);
    let warning = kind.and_then(|kind| kind.creation_warning);
    Ok(Effect::Unchanged(
        warning.map(str::to_owned).into_iter().collect(),
    ))
}

fn add(
    ctx: &DdlContext<'_>,
    table: &Table,
    name: String,
    kind: &'static Registered,
    options: BTreeMap<String, String>,
    target: IndexTarget,
) -> Applied {
    let mut schema = ctx.schema.clone();
    let hidden = hidden_table(table, &name, &target, schema.take_table_number(), Uuid::new_v4())?;
    let index = Index {
        name,
        kind: kind.schema_kind,
        options,
        is_on_text: target.is_on_text(table),
        target,
        order: None,
        has_posting_lists: false,
        table: Arc::new(hidden),
        is_complete: false,
        has_old_entries: false,
    };
    let order = kinds::value_order(&index, table);
    let has_posting_lists = kinds::has_posting_lists(&index, table);
    let index = Arc::new(Index {
        order,
        has_posting_lists,
        ..index
    });
    let mut builder = table.to_builder();
    builder.indexes.push(index.clone());
    let changed = Arc::new(builder.build());
    let schema = schema.with_table(Table::clone(&changed));
    let target = SchemaTarget::Table(table.name.clone());
    let change = Change::new(schema, ChangeKind::Updated, &table.keyspace, target);
    let mut warnings = kinds::warnings(&changed, usize::MAX);
    warnings.extend(kind.creation_warning.map(str::to_owned));
    Ok(Effect::Changed(Change {
        warnings,
        to_build: Some(DerivedTable::Index(index).of(&changed)),
        ..change
    }))
}

pub fn drop(ctx: &DdlContext<'_>, statement: &ast::DropIndex) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.name)?;
    let name = statement.name.name.as_str();
    let found = ctx
        .schema
        .keyspace(keyspace_name)
        .and_then(|keyspace| keyspace.index(name));
    let Some((table, _)) = found else {
        return match statement.if_exists {
            true => unchanged(),
            false => Err(CqlError::invalid(format!(
                "Index '{keyspace_name}.{name}' doesn't exist'"
            ))),
        };
    };
    let mut builder = table.to_builder();
    builder.indexes.retain(|index| index.name != name);
    let target = SchemaTarget::Table(table.name.clone());
    let schema = ctx.schema.with_table(builder.build());
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Updated,
        keyspace_name,
        target,
    )))
}
