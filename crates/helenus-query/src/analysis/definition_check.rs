//! Cassandra's checks when it prepares a statement that changes the schema. They find out whether the statement or the keyspace in use
//! names its object, and whether the change is possible.

use helenus_cql::ast::{self, CreateView, FunctionName, QualifiedName, Statement};
use helenus_cql::error::CqlError;

use crate::request::no_keyspace;

/// Checks a statement that changes the schema.
///
/// # Errors
/// Cassandra's, for names without a keyspace, and for tables and views that can't be.
pub(crate) fn check(
    statement: &Statement,
    keyspace: Option<&str>,
    has_markers: bool,
) -> Result<(), CqlError> {
    if keyspace.is_none() && is_unqualified(statement) {
        return Err(no_keyspace());
    }
    match statement {
        Statement::CreateTable(table) => partition_key(table).map(drop),
        Statement::CreateView(view) => check_view(view, keyspace, has_markers),
        _ => Ok(()),
    }
}

fn is_unqualified(statement: &Statement) -> bool {
    let is_bare = |name: &QualifiedName| name.keyspace.is_none();
    let is_bare_function = |name: &FunctionName| name.keyspace.is_none();
    match statement {
        Statement::CreateTable(statement) => is_bare(&statement.table),
        Statement::CreateTableLike(statement) => is_bare(&statement.table) || is_bare(&statement.source),
        Statement::CopyTable(statement) => is_bare(&statement.table) || is_bare(&statement.origin),
        Statement::AlterTable(statement) => is_bare(&statement.table),
        Statement::DropTable(statement) => is_bare(&statement.table),
        Statement::CreateType(statement) => is_bare(&statement.name),
        Statement::AlterType(statement) => is_bare(&statement.name),
        Statement::DropType(statement) => is_bare(&statement.name),
        Statement::CreateIndex(statement) => is_bare(&statement.table),
        Statement::DropIndex(statement) => is_bare(&statement.name),
        Statement::CreateView(statement) => is_bare(&statement.view),
        Statement::AlterView(statement) => is_bare(&statement.view),
        Statement::DropView(statement) => is_bare(&statement.view),
        Statement::CreateFunction(statement) => is_bare_function(&statement.name),
        Statement::CreateAggregate(statement) => is_bare_function(&statement.name),
        Statement::DropFunction(statement) | Statement::DropAggregate(statement) => {
            is_bare_function(&statement.name)
        }
        Statement::CreateTrigger(statement) => is_bare(&statement.table),
        Statement::DropTrigger(statement) => is_bare(&statement.table),
        _ => false,
    }
}

fn check_view(statement: &CreateView, keyspace: Option<&str>, has_markers: bool) -> Result<(), CqlError> {
    let of_view = statement.view.keyspace.as_ref().map(|name| name.as_str());
    let of_view = of_view.or(keyspace);
    let of_base = statement.base.keyspace.as_ref().map(|name| name.as_str());
    if of_base.is_some() && of_base != of_view {
        return Err(CqlError::invalid(
            "Cannot create a materialized view on a table in a different keyspace",
        ));
    }
    match has_markers {
        true => Err(CqlError::invalid(
            "Bind variables are not allowed in CREATE MATERIALIZED VIEW statements",
        )),
        false => Ok(()),
    }
}

/// Returns the columns of the partition key, as declared.
pub(crate) fn partition_key(statement: &ast::CreateTable) -> Result<&[ast::Ident], CqlError> {
    statement.partition_key.as_deref().ok_or_else(|| {
        CqlError::invalid(format!(
            "No PRIMARY KEY specifed for table '{}' (exactly one required)",
            statement.table
        ))
    })
}
