//! Permissions on tables of an earlier time. Permissions belong to a table, not to its name. Today's permissions on a newer table of the
//! same name do not apply to the former table.

use helenus_cql::ast::Permission;
use helenus_cql::error::CqlError;
use uuid::Uuid;

use super::RoleContext;
use super::ensure::ensure;
use crate::analysis::plan::AsOfRead;
use crate::schema::roles::Resource;
use crate::schema::{Keyspace, Schema, Table};

/// Returns the resource whose present permissions apply to a table, present or former. If another table has its name now, this is its
/// keyspace. If another keyspace has the keyspace's name now, it is all keyspaces.
pub(crate) fn on_table(today: &Schema, as_of: Option<&AsOfRead>, table: &Table) -> Resource {
    match as_of {
        None => Resource::table(&table.keyspace, &table.name),
        Some(as_of) => on_table_of(today, as_of.keyspace_id, table),
    }
}

fn on_table_of(today: &Schema, keyspace_id: Option<Uuid>, earlier: &Table) -> Resource {
    let table = today.table(&earlier.keyspace, &earlier.name);
    match table.is_some_and(|table| table.is_same_as(earlier)) {
        true => Resource::table(&earlier.keyspace, &earlier.name),
        false => on_all_tables(today, &earlier.keyspace, keyspace_id),
    }
}

fn on_all_tables(today: &Schema, keyspace: &str, id: Option<Uuid>) -> Resource {
    match today.is_same_keyspace(keyspace, id) {
        true => Resource::AllTables(keyspace.to_owned()),
        false => Resource::AllKeyspaces,
    }
}

/// Returns the resource whose present permissions apply to a function that a statement calls.
pub(crate) fn on_function(today: &Schema, as_of: Option<&AsOfRead>, function: &Resource) -> Resource {
    match as_of {
        Some(as_of) if !today.is_same_keyspace(&as_of.base.keyspace, as_of.keyspace_id) => {
            Resource::AllFunctions
        }
        _ => function.clone(),
    }
}

/// Refuses to copy tables that the client may not read, or whose masks hide something from it. `source` has the tables to copy, with the
/// masks of today.
///
/// # Errors
/// Cassandra's error for a missing permission.
pub(crate) fn authorize_copy(
    ctx: &RoleContext<'_>,
    source: &Keyspace,
    is_whole: bool,
) -> Result<(), CqlError> {
    if !ctx.control.authorizes {
        return Ok(());
    }
    let ensure_both = |on: &Resource, by_name: &Resource, is_masked: bool| {
        ensure_as_of(ctx, Permission::Select, on, by_name)?;
        match is_masked {
            true => ensure_as_of(ctx, Permission::Unmask, on, by_name),
            false => Ok(()),
        }
    };
    let mut tables = source.tables.values();
    match is_whole {
        true => {
            let on = on_all_tables(ctx.schema, &source.name, source.id);
            let by_name = Resource::AllTables(source.name.clone());
            ensure_both(&on, &by_name, tables.any(|table| table.is_masked()))
        }
        false => tables.try_for_each(|table| {
            let on = on_table_of(ctx.schema, source.id, table);
            let by_name = Resource::table(&table.keyspace, &table.name);
            ensure_both(&on, &by_name, table.is_masked())
        }),
    }
}

/// Refuses to read a former table without SELECT on it.
///
/// # Errors
/// Cassandra's error for a missing permission.
pub(crate) fn authorize_read(ctx: &RoleContext<'_>, read: &AsOfRead) -> Result<(), CqlError> {
    let on = on_table_of(ctx.schema, read.keyspace_id, &read.base);
    let by_name = Resource::table(&read.base.keyspace, &read.base.name);
    ensure_as_of(ctx, Permission::Select, &on, &by_name)
}

/// Refuses a client without a permission. The message explains why a permission on the named resource is not enough.
fn ensure_as_of(
    ctx: &RoleContext<'_>,
    permission: Permission,
    on: &Resource,
    by_name: &Resource,
) -> Result<(), CqlError> {
    match ensure(ctx, permission, on) {
        Err(CqlError::Unauthorized(message)) if on != by_name => Err(CqlError::Unauthorized(format!(
            "{message}; today's permissions on {by_name} do not apply to a former object of that name"
        ))),
        ensured => ensured,
    }
}
