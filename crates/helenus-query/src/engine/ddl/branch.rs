//! CREATE KEYSPACE and CREATE TABLE AS COPY OF, which make branches. A branch begins with the rows that other tables have at a consistent
//! cut, and shares their files. Making a branch only changes the schema; no row is read or written.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::PinnedTablet;
use uuid::Uuid;

use super::keyspace::{check_new, options};
use super::renumber::{branched, numbers_of};
use super::snapshots::{bring_functions, bring_types, put_in};
use super::table::{already_exists, check_name};
use super::{Change, DdlContext};
use crate::analysis::history_masks::with_current_masks;
use crate::analysis::restrictions::view_filter::link_views;
use crate::engine::access::as_of::authorize_copy;
use crate::index::definition::default_name;
use crate::index::entries::hidden_table;
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::documents::rename::renamed;
use crate::schema::names::is_system_name;
use crate::schema::{Index, Keyspace, Schema, Snapshot, Table, TableBuilder, View};

/// A statement that makes a branch.
#[derive(Clone, Copy)]
pub(crate) enum Copy<'a> {
    Keyspace(&'a ast::CopyKeyspace),
    Table(&'a ast::CopyTable),
}

/// The origin of a branch.
pub(crate) struct Source {
    /// The keyspace with the tables to copy, as of the cut.
    pub keyspace: Keyspace,
    /// Pinned tablets with the tables' rows. `None` if they have to be pinned first.
    pub pinned: Option<Arc<[PinnedTablet]>>,
}

/// The change of the schema that makes a branch.
pub(crate) struct Branch {
    pub change: Change,
    /// The numbers of tables and indexes in the origin, each with its number in the branch.
    pub numbers: Vec<(TableId, TableId)>,
}

impl<'a> Copy<'a> {
    /// Returns the statement if it makes a branch, and `None` otherwise.
    pub fn of(statement: &'a ast::Statement) -> Option<Copy<'a>> {
        match statement {
            ast::Statement::CopyKeyspace(statement) => Some(Copy::Keyspace(statement)),
            ast::Statement::CopyTable(statement) => Some(Copy::Table(statement)),
            _ => None,
        }
    }

    fn as_of(self) -> Option<&'a ast::AsOf> {
        match self {
            Copy::Keyspace(statement) => statement.as_of.as_ref(),
            Copy::Table(statement) => statement.as_of.as_ref(),
        }
    }

    /// Returns the time to copy, as the statement's literal. `None` if the statement names no time.
    pub fn time(self) -> Option<&'a str> {
        match self.as_of()? {
            ast::AsOf::Time(literal) => Some(literal),
            ast::AsOf::Snapshot(_) => None,
        }
    }

    /// Returns the keyspace to copy, or the keyspace of the table to copy.
    ///
    /// # Errors
    /// The statement names no keyspace, or one of the server's.
    pub fn origin<'c>(self, ctx: &'c DdlContext<'_>) -> Result<&'c str, CqlError>
    where
        'a: 'c,
    {
        let name = match self {
            Copy::Keyspace(statement) => statement.origin.as_str(),
            Copy::Table(statement) => ctx.keyspace_of(&statement.origin)?,
        };
        let is_computed = ctx
            .schema
            .keyspace(name)
            .is_some_and(|keyspace| keyspace.is_virtual);
        match is_system_name(name) || is_computed {
            true => Err(CqlError::invalid(format!(
                "Keyspace {name} is one of the server, which can't be copied"
            ))),
            false => Ok(name),
        }
    }

    /// Returns false if the name is in use and the statement has IF NOT EXISTS.
    ///
    /// # Errors
    /// The name is in use or invalid.
    pub fn is_to_be_made(self, ctx: &DdlContext<'_>) -> Result<bool, CqlError> {
        let (is_taken, may_be) = match self {
            Copy::Keyspace(statement) => (check_new(ctx, &statement.name), statement.if_not_exists),
            Copy::Table(statement) => (check_new_table(ctx, statement), statement.if_not_exists),
        };
        match is_taken {
            Err(CqlError::AlreadyExists { .. }) if may_be => Ok(false),
            checked => checked.map(|()| true),
        }
    }

    /// Returns the source of the copy. It is taken from `earlier`, a keyspace as of the statement's time, or else from the present schema or a
    /// snapshot.
    ///
    /// # Errors
    /// The source does not exist, or is a keyspace of the server's.
    pub fn source(self, ctx: &DdlContext<'_>, earlier: Option<Keyspace>) -> Result<Source, CqlError> {
        let Source { keyspace, pinned } = match earlier {
            Some(keyspace) => Source {
                keyspace,
                pinned: None,
            },
            None => keyspace_as_of(ctx.schema, self.origin(ctx)?, self.as_of())?,
        };
        let keyspace = match self {
            Copy::Keyspace(statement) => {
                options(ctx, &mut keyspace.clone(), &statement.properties)?;
                keyspace
            }
            Copy::Table(statement) => {
                let table = table_as_of(&keyspace, statement)?;
                keyspace.narrowed_to(vec![table])
            }
        };
        Ok(Source { keyspace, pinned })
    }

    /// Returns the source with today's masks added, if the client may copy it.
    ///
    /// # Errors
    /// Cassandra's error for missing permissions.
    pub fn permitted(self, ctx: &DdlContext<'_>, source: &Keyspace) -> Result<Arc<Keyspace>, CqlError> {
        let masked = with_current_masks(ctx.schema, &Arc::new(source.clone()), None);
        let is_whole = matches!(self, Copy::Keyspace(_));
        authorize_copy(&ctx.roles(), &masked, is_whole)?;
        Ok(masked)
    }

    /// Returns the schema with the branch, whose rows are in the pinned tablets.
    ///
    /// # Errors
    /// See [`Copy::source`]. The branch may also conflict with the present content of the keyspace.
    pub fn make(
        self,
        ctx: &DdlContext<'_>,
        source: &Keyspace,
        pinned: &Arc<[PinnedTablet]>,
    ) -> Result<Branch, CqlError> {
        match self {
            Copy::Keyspace(statement) => keyspace(ctx, statement, source, pinned),
            Copy::Table(statement) => table(ctx, statement, source, pinned),
        }
    }
}

fn check_new_table(ctx: &DdlContext<'_>, statement: &ast::CopyTable) -> Result<(), CqlError> {
    let keyspace = ctx.keyspace_of(&statement.table)?;
    let name = statement.table.name.as_str();
    check_name(keyspace, name)?;
    match ctx.keyspace_to_change(keyspace)?.tables.contains_key(name) {
        true => Err(already_exists(keyspace, name)),
        false => Ok(()),
    }
}

/// Returns a keyspace of the present schema, or of a snapshot.
fn keyspace_as_of(schema: &Schema, name: &str, as_of: Option<&ast::AsOf>) -> Result<Source, CqlError> {
    let Some(ast::AsOf::Snapshot(tag)) = as_of else {
        return Ok(Source {
            keyspace: Keyspace::clone(schema.require_keyspace(name)?),
            pinned: None,
        });
    };
    let Snapshot { keyspace, pinned, .. } = schema.require_snapshot(tag, name)?.as_ref();
    Ok(Source {
        keyspace: Keyspace::clone(keyspace),
        pinned: pinned.clone(),
    })
}

fn table_as_of(keyspace: &Keyspace, statement: &ast::CopyTable) -> Result<Arc<Table>, CqlError> {
    let name = statement.origin.name.as_str();
    let Some(table) = keyspace.tables.get(name) else {
        return Err(CqlError::invalid(match &statement.as_of {
            None => format!("table {name} does not exist"),
            Some(ast::AsOf::Snapshot(tag)) => {
                format!("Snapshot {tag} has no table {name} of keyspace {}", keyspace.name)
            }
            Some(ast::AsOf::Time(literal)) => {
                format!("table {}.{name} did not exist at {literal}", keyspace.name)
            }
        }));
    };
    match &table.view {
        Some(view) => Err(CqlError::invalid(format!(
            "{name} is a materialized view: copy its base table, {}, or its keyspace",
            view.base_table
        ))),
        None => Ok(table.clone()),
    }
}

fn damaged(error: String) -> CqlError {
    CqlError::Server(format!("the schema of the copy is not valid: {error}"))
}

fn keyspace(
    ctx: &DdlContext<'_>,
    statement: &ast::CopyKeyspace,
    source: &Keyspace,
    pinned: &Arc<[PinnedTablet]>,
) -> Result<Branch, CqlError> {
    check_new(ctx, &statement.name)?;
    let name = statement.name.as_str();
    let mut keyspace = renamed(source, name, hidden_table).map_err(damaged)?;
    keyspace.id = Some(Uuid::new_v4());
    let warnings = options(ctx, &mut keyspace, &statement.properties)?;
    let mut schema = ctx.schema.clone();
    let mut numbers = Vec::new();
    let mut ids: BTreeMap<Uuid, Uuid> = BTreeMap::new();
    let mut tables = Vec::new();
    for table in keyspace.tables.values() {
        let copy = branched(&mut schema, table, pinned, |_| {}, |_, index| index.name.clone())?;
        ids.insert(table.id, copy.id);
        numbers.extend(numbers_of(table, &copy));
        tables.push(copy);
    }
    let mut views = Vec::new();
    for table in tables {
        let table = match &table.view {
            None => Arc::new(table),
            Some(view) => {
                let base_table_id = ids.get(&view.base_table_id).copied();
                let view = View {
                    base_table_id: base_table_id.unwrap_or(view.base_table_id),
                    ..View::clone(view)
                };
                let mut builder = table.to_builder();
                builder.view = Some(Arc::new(view));
                let table = Arc::new(builder.build());
                views.push(table.clone());
                table
            }
        };
        keyspace.tables.insert(table.name.clone(), table);
    }
    let mut schema = schema.with_keyspace(keyspace);
    link_views(&mut schema, views)?;
    let change = Change::new(schema, ChangeKind::Created, name, SchemaTarget::Keyspace);
    Ok(Branch {
        change: Change { warnings, ..change },
        numbers,
    })
}

fn table(
    ctx: &DdlContext<'_>,
    statement: &ast::CopyTable,
    source: &Keyspace,
    pinned: &Arc<[PinnedTablet]>,
) -> Result<Branch, CqlError> {
    check_new_table(ctx, statement)?;
    let target = ctx.keyspace_of(&statement.table)?;
    let name = statement.table.name.as_str();
    let mut keyspace = Keyspace::clone(ctx.keyspace_to_change(target)?);
    let renamed = renamed(source, target, hidden_table).map_err(damaged)?;
    let origin = renamed
        .tables
        .get(statement.origin.name.as_str())
        .ok_or_else(|| damaged(format!("table {} is missing", statement.origin.name)))?;
    bring_types(&mut keyspace, &renamed, std::slice::from_ref(origin)).map_err(CqlError::invalid)?;
    bring_functions(&mut keyspace, &renamed);
    let mut schema = ctx.schema.clone();
    let rename = |builder: &mut TableBuilder| {
        builder.name = name.to_owned();
        builder.cdc_log_of = None;
    };
    let index_name = |builder: &TableBuilder, index: &Index| free_index_name(&keyspace, builder, index);
    let copy = branched(&mut schema, origin, pinned, rename, index_name)?;
    let numbers = numbers_of(origin, &copy);
    put_in(&mut keyspace, &copy).map_err(CqlError::invalid)?;
    let schema = schema.with_keyspace(keyspace);
    let table = SchemaTarget::Table(name.to_owned());
    Ok(Branch {
        change: Change::new(schema, ChangeKind::Created, target, table),
        numbers,
    })
}

/// Returns the name of an index, or another name if the keyspace already has one of that name.
fn free_index_name(keyspace: &Keyspace, table: &TableBuilder, index: &Index) -> String {
    let is_free = |name: &str| {
        let mut own = table.indexes.iter();
        keyspace.index(name).is_none() && !own.any(|other| other.name == name)
    };
    if is_free(&index.name) {
        return index.name.clone();
    }
    let default = default_name(keyspace, &table.clone().build(), &index.target.column);
    let numbered = (1..).map(|number| format!("{default}_{number}"));
    let mut names = std::iter::once(default.clone()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or(default)
}

#[cfg(test)]
#[path = "branch_tests.rs"]
mod tests;
