//! Authorization of statements (`authorize` of Cassandra's statements, and its `ClientState`).

use std::sync::Arc;

use helenus_cql::ast::{self, Permission, RoleOptions, Statement};
use helenus_cql::error::CqlError;

use super::ensure::{RequiredPermission, check, ensure};
use super::{RoleContext, as_of, grant, service_level};
use crate::analysis::modification::ModificationPlan;
use crate::analysis::plan::AsOfRead;
use crate::analysis::select::SelectPlan;
use crate::analysis::transaction::{RowRead, TransactionPlan};
use crate::analysis::{Plan, Planned};
use crate::schema::roles::Resource;
use crate::schema::{Keyspace, Schema, Table};

/// Refuses a statement that its user may not run. A permission is remembered in the plan, which is replaced when the schema changes.
///
/// # Errors
/// Cassandra's error.
pub(crate) fn authorize(
    ctx: &RoleContext<'_>,
    user: Option<&crate::request::User>,
    planned: &Planned,
) -> Result<(), CqlError> {
    if let Plan::Direct(plan) = &planned.plan
        && crate::schema::roles::is_about_roles(&plan.statement)
    {
        return may_manage(ctx, &plan.statement);
    }
    let Some(user) = user else {
        return Err(CqlError::Unauthorized("You have not logged in".to_owned()));
    };
    match &planned.plan {
        Plan::Select(plan) => {
            let as_of = planned.as_of.as_ref();
            match as_of {
                None => ensure(
                    ctx,
                    Permission::Select,
                    &needed_of_reading(ctx.schema, plan.table()),
                )?,
                Some(read) => as_of::authorize_read(ctx, read)?,
            }
            may_restrict(ctx, plan, as_of)?;
        }
        Plan::Modification(plan) => check(ctx, needs_of_modification(ctx.schema, plan))?,
        Plan::InsertRows(plan) => check(ctx, needs_of_writing(ctx.schema, plan.table(), false))?,
        Plan::Batch(plan) => {
            for one in plan.modifications() {
                check(ctx, needs_of_modification(ctx.schema, one))?;
            }
        }
        Plan::Transaction(plan) => may_transact(ctx, plan)?,
        Plan::Direct(plan) => {
            needs_superuser(ctx, &plan.statement)?;
            check(ctx, needs_of_changing(ctx, &plan.statement)?)?;
        }
    }
    let executing = |function: &Resource| {
        let on = as_of::on_function(ctx.schema, planned.as_of.as_ref(), function);
        (Permission::Execute, on)
    };
    check(ctx, planned.executed.iter().map(executing).collect())?;
    planned.allow(user);
    Ok(())
}

/// Refuses a transaction to users without the permissions for each of its statements. Writes that add to stored values also need SELECT.
/// Rows of LET are used unmasked, so the permission UNMASK is needed for masked columns.
fn may_transact(ctx: &RoleContext<'_>, plan: &TransactionPlan) -> Result<(), CqlError> {
    for select in plan.selects() {
        ensure(
            ctx,
            Permission::Select,
            &needed_of_reading(ctx.schema, select.table()),
        )?;
        may_restrict(ctx, select, None)?;
    }
    for read in &plan.reads {
        may_refer(ctx, read)?;
    }
    for one in plan.modifications() {
        let reads = one
            .operations
            .iter()
            .any(|operation| operation.action.requires_read());
        check(ctx, needs_of_writing(ctx.schema, one.table(), reads))?;
    }
    Ok(())
}

/// Refuses references to masked columns to users without the permission UNMASK.
fn may_refer(ctx: &RoleContext<'_>, read: &RowRead) -> Result<(), CqlError> {
    let table = read.select.table();
    let columns = read.columns.iter().filter_map(|place| table.columns.get(*place));
    let masked: Vec<&str> = columns
        .filter(|column| column.mask.is_some())
        .map(|column| column.name.as_str())
        .collect();
    let user = ctx.user.unwrap_or_default();
    let on = Resource::table(&table.keyspace, &table.name);
    if masked.is_empty() || ctx.schema.access.may(user, Permission::Unmask, &on) {
        return Ok(());
    }
    Err(CqlError::Unauthorized(format!(
        "User {user} has no UNMASK permission on table {}.{}, cannot refer to masked columns [{}] in a transaction",
        table.keyspace,
        table.name,
        masked.join(", ")
    )))
}

fn on_table(permission: Permission, table: &Table) -> RequiredPermission {
    (permission, Resource::table(&table.keyspace, &table.name))
}

/// Returns the resource on which a read needs permission. For a view this is its base table.
fn needed_of_reading(schema: &Schema, table: &Arc<Table>) -> Resource {
    let view = table.view.as_ref();
    let base = view.and_then(|view| schema.table(&table.keyspace, &view.base_table));
    let table = base.unwrap_or(table);
    Resource::table(&table.keyspace, &table.name)
}

/// Refuses WHERE and ORDER BY on masked columns to users with neither the permission UNMASK nor SELECT_MASKED.
fn may_restrict(ctx: &RoleContext<'_>, plan: &SelectPlan, as_of: Option<&AsOfRead>) -> Result<(), CqlError> {
    let table = plan.table();
    if !table.is_masked() {
        return Ok(());
    }
    let user = ctx.user.unwrap_or_default();
    let on = as_of::on_table(ctx.schema, as_of, table);
    let may = |permission| ctx.schema.access.may(user, permission, &on);
    if may(Permission::Unmask) || may(Permission::SelectMasked) {
        return Ok(());
    }
    let mut restricted = plan.restrictions.columns();
    // The position of a row in an order reveals something about its value.
    let ordered = plan.by_value.as_ref().map(|ordering| ordering.column);
    restricted.extend(ordered.filter(|place| !restricted.contains(place)));
    let restricted = restricted.iter().filter_map(|place| table.columns.get(*place));
    let masked = restricted.filter(|column| column.mask.is_some());
    let mut names: Vec<&str> = masked.map(|column| column.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    names.sort_unstable();
    Err(CqlError::Unauthorized(format!(
        "User {user} has no UNMASK nor SELECT_MASKED permission on table {}.{}, cannot query masked columns [{}]",
        table.keyspace,
        table.name,
        names.join(", ")
    )))
}

fn needs_of_modification(schema: &Schema, plan: &ModificationPlan) -> Vec<RequiredPermission> {
    needs_of_writing(schema, plan.table(), plan.is_conditional())
}

/// Returns the permissions that a write needs. Conditions and the maintenance of views also need SELECT.
fn needs_of_writing(schema: &Schema, table: &Table, is_conditional: bool) -> Vec<RequiredPermission> {
    let mut needs = vec![on_table(Permission::Modify, table)];
    if is_conditional {
        needs.push(on_table(Permission::Select, table));
    }
    let mut views = crate::schema::views_of(schema, table).peekable();
    if views.peek().is_some() {
        needs.push(on_table(Permission::Select, table));
    }
    needs.extend(views.map(|view| on_table(Permission::Modify, view)));
    needs
}

fn needs_superuser(ctx: &RoleContext<'_>, statement: &Statement) -> Result<(), CqlError> {
    let message = match statement {
        Statement::CreateTrigger(_) => "Only superusers are allowed to perform CREATE TRIGGER queries",
        Statement::DropTrigger(_) => "Only superusers are allowed to perfrom DROP TRIGGER queries",
        _ => return Ok(()),
    };
    match is_superuser(ctx) {
        true => Ok(()),
        false => Err(CqlError::Unauthorized(message.to_owned())),
    }
}

fn is_superuser(ctx: &RoleContext<'_>) -> bool {
    ctx.user.is_some_and(|user| ctx.schema.access.is_superuser(user))
}

/// Returns the permissions that TRUNCATE or a statement that changes the schema needs.
fn needs_of_changing(
    ctx: &RoleContext<'_>,
    statement: &Statement,
) -> Result<Vec<RequiredPermission>, CqlError> {
    let schema = ctx.schema;
    let keyspace_of = |name: Option<&ast::Ident>| {
        let keyspace = name.map(ast::Ident::as_str).or(ctx.keyspace);
        keyspace.unwrap_or_default().to_owned()
    };
    let on = |permission, name: &ast::QualifiedName| {
        let keyspace = keyspace_of(name.keyspace.as_ref());
        vec![(permission, Resource::table(&keyspace, name.name.as_str()))]
    };
    let on_all_tables = |permission, name: &ast::QualifiedName| {
        vec![(
            permission,
            Resource::AllTables(keyspace_of(name.keyspace.as_ref())),
        )]
    };
    let on_keyspace =
        |permission, name: &ast::Ident| vec![(permission, Resource::Keyspace(name.as_str().to_owned()))];
    Ok(match statement {
        Statement::CreateKeyspace(_) => vec![(Permission::Create, Resource::AllKeyspaces)],
        // The origin may be another table than the present one of that name. Once it is known, `as_of::authorize_copy` decides.
        Statement::CopyKeyspace(statement) => vec![
            (Permission::Create, Resource::AllKeyspaces),
            (
                Permission::Select,
                Resource::AllTables(statement.origin.as_str().to_owned()),
            ),
        ],
        Statement::CreateTableLike(statement) => {
            let mut needs = on(Permission::Select, &statement.source);
            needs.extend(on_all_tables(Permission::Create, &statement.table));
            needs
        }
        Statement::CopyTable(statement) => {
            let mut needs = on_all_tables(Permission::Create, &statement.table);
            needs.extend(on(Permission::Select, &statement.origin));
            needs
        }
        Statement::AlterKeyspace(statement) => on_keyspace(Permission::Alter, &statement.name),
        Statement::DropKeyspace(statement) => on_keyspace(Permission::Drop, &statement.name),
        Statement::CreateTable(statement) => on_all_tables(Permission::Create, &statement.table),
        Statement::AlterTable(statement) => on(Permission::Alter, &statement.table),
        Statement::DropTable(statement) => on(Permission::Drop, &statement.table),
        Statement::CreateIndex(statement) => on(Permission::Alter, &statement.table),
        Statement::DropIndex(statement) => {
            let keyspace = keyspace_of(statement.name.keyspace.as_ref());
            let indexed = schema.keyspace(&keyspace).and_then(|keyspace| {
                let has = |table: &&Arc<Table>| {
                    let mut indexes = table.indexes.iter();
                    indexes.any(|index| index.name == statement.name.name.as_str())
                };
                keyspace.tables.values().find(has)
            });
            indexed
                .map(|table| on_table(Permission::Alter, table))
                .into_iter()
                .collect()
        }
        Statement::CreateType(statement) => on_all_tables(Permission::Create, &statement.name),
        Statement::AlterType(statement) => on_all_tables(Permission::Alter, &statement.name),
        Statement::DropType(statement) => on_all_tables(Permission::Drop, &statement.name),
        Statement::CreateView(statement) => on(Permission::Alter, &statement.base),
        Statement::AlterView(ast::AlterView { view: name, .. })
        | Statement::DropView(ast::DropView { view: name, .. }) => {
            let keyspace = keyspace_of(name.keyspace.as_ref());
            let view = schema.table(&keyspace, name.name.as_str());
            let base = view.and_then(|table| table.view.as_ref());
            base.map(|view| (Permission::Alter, Resource::table(&keyspace, &view.base_table)))
                .into_iter()
                .collect()
        }
        Statement::CreateFunction(statement) => {
            let keyspace = keyspace_of(statement.name.keyspace.as_ref());
            vec![making(
                schema,
                &keyspace,
                &statement.name,
                statement.args.iter().map(|(_, ty)| ty),
                statement.or_replace,
            )?]
        }
        Statement::CreateAggregate(statement) => {
            let keyspace = keyspace_of(statement.name.keyspace.as_ref());
            let made = making(
                schema,
                &keyspace,
                &statement.name,
                &statement.arg_types,
                statement.or_replace,
            )?;
            let mut needs = vec![made];
            let state = [&statement.state_type];
            let types = state.into_iter().chain(&statement.arg_types);
            let next = grant::function(schema, &keyspace, statement.state_function.as_str(), types)?;
            needs.push((Permission::Execute, next));
            if let Some(last) = &statement.final_function {
                let last = grant::function(schema, &keyspace, last.as_str(), state)?;
                needs.push((Permission::Execute, last));
            }
            needs
        }
        Statement::DropFunction(statement) | Statement::DropAggregate(statement) => {
            let keyspace = keyspace_of(statement.name.keyspace.as_ref());
            match schema.keyspace(&keyspace) {
                Some(keyspace) => dropping(schema, keyspace, statement)?,
                None => Vec::new(),
            }
        }
        Statement::Truncate(name) => on(Permission::Modify, name),
        _ => Vec::new(),
    })
}

/// Returns the permission for creating or replacing a function or an aggregate.
fn making<'a>(
    schema: &Schema,
    keyspace: &str,
    name: &ast::FunctionName,
    types: impl IntoIterator<Item = &'a ast::TypeName>,
    or_replace: bool,
) -> Result<RequiredPermission, CqlError> {
    let made = grant::function(schema, keyspace, name.name.as_str(), types)?;
    Ok(match or_replace && made.exists(schema) {
        true => (Permission::Alter, made),
        false => (Permission::Create, Resource::AllFunctionsIn(keyspace.to_owned())),
    })
}

/// Returns the permissions for dropping each function and aggregate that the statement may mean.
fn dropping(
    schema: &Schema,
    keyspace: &Keyspace,
    statement: &ast::DropFunction,
) -> Result<Vec<RequiredPermission>, CqlError> {
    let name = statement.name.name.as_str();
    let functions = keyspace.functions.values();
    let functions = functions.filter(|of| of.name == name);
    let aggregates = keyspace.aggregates.values().filter(|of| of.name == name);
    let mut found: Vec<Resource> = functions
        .map(|of| Resource::function(&keyspace.name, name, of.arg_types()))
        .chain(aggregates.map(|of| Resource::function(&keyspace.name, name, &of.arg_types)))
        .collect();
    if let Some(types) = &statement.arg_types {
        let meant = grant::function(schema, &keyspace.name, name, types)?;
        found.retain(|resource| *resource == meant);
    }
    Ok(found.into_iter().map(|of| (Permission::Drop, of)).collect())
}

/// Refuses a role without the permission for a statement about roles (Cassandra's `AuthenticationStatement.checkPermission`).
fn sufficient(ctx: &RoleContext<'_>, permission: Permission, on: &Resource) -> Result<(), CqlError> {
    let user = ctx.user.unwrap_or("anonymous");
    match !ctx.control.authorizes || ctx.schema.access.may(user, permission, on) {
        true => Ok(()),
        false => Err(CqlError::Unauthorized(format!(
            "User {user} does not have sufficient privileges to perform the requested operation"
        ))),
    }
}

/// Refuses a statement about roles and permissions that the user may not run.
///
/// # Errors
/// Cassandra's error.
pub(crate) fn may_manage(ctx: &RoleContext<'_>, statement: &Statement) -> Result<(), CqlError> {
    let refused = |message: &str| Err(CqlError::Unauthorized(message.to_owned()));
    let role = |name: &String| Resource::Role(name.clone());
    let own = || Resource::Role(ctx.user.unwrap_or("anonymous").to_owned());
    match statement {
        Statement::CreateRole(statement) => {
            sufficient(ctx, Permission::Create, &Resource::AllRoles)?;
            match statement.options.superuser == Some(true) && !is_superuser(ctx) {
                true => refused("Only superusers can create a role with superuser status"),
                false => Ok(()),
            }
        }
        Statement::AlterRole(statement) => may_alter(ctx, statement),
        Statement::DropRole(statement) => {
            sufficient(ctx, Permission::Drop, &role(&statement.name))?;
            match ctx.schema.access.is_superuser(&statement.name) && !is_superuser(ctx) {
                true => refused("Only superusers can drop a role with superuser status"),
                false => Ok(()),
            }
        }
        Statement::GrantRole(statement) | Statement::RevokeRole(statement) => {
            sufficient(ctx, Permission::Authorize, &role(&statement.role))
        }
        Statement::GrantPermissions(statement) | Statement::RevokePermissions(statement) => {
            let on = grant::resource(ctx, &statement.resource)?;
            if !ctx.control.authorizes {
                return Ok(());
            }
            ensure(ctx, Permission::Authorize, &on)?;
            let mut permissions = statement.permissions.iter();
            permissions.try_for_each(|permission| ensure(ctx, *permission, &on))
        }
        Statement::AddIdentity(_) => sufficient(ctx, Permission::Create, &own()),
        Statement::DropIdentity(_) => sufficient(ctx, Permission::Drop, &own()),
        Statement::ServiceLevel(statement) => service_level::may_manage(ctx, statement),
        _ => Ok(()),
    }
}

fn may_alter(ctx: &RoleContext<'_>, statement: &ast::AlterRole) -> Result<(), CqlError> {
    let refused = |message: String| Err(CqlError::Unauthorized(message));
    let RoleOptions {
        password: _,
        hashed_password: _,
        generated_password: _,
        superuser,
        login,
        options,
        datacenters,
        cidrs,
    } = &statement.options;
    let is_super = is_superuser(ctx);
    let user = ctx.user.unwrap_or("anonymous");
    let mut own = ctx.schema.access.all_of(user).into_iter();
    if superuser.is_some() && own.any(|role| role.name == statement.name) {
        return refused(
            "You aren't allowed to alter your own superuser status or that of a role granted to you"
                .to_owned(),
        );
    }
    if is_super {
        return Ok(());
    }
    if superuser.is_some() {
        return refused("Only superusers are allowed to alter superuser status".to_owned());
    }
    if datacenters.is_some() {
        return refused("Only superusers are allowed to alter access to datacenters.".to_owned());
    }
    if cidrs.is_some() {
        return refused("Only superusers are allowed to alter access from CIDR groups.".to_owned());
    }
    if user != statement.name {
        return sufficient(ctx, Permission::Alter, &Resource::Role(statement.name.clone()));
    }
    // A role may change its own password.
    let refused_option = [("LOGIN", login.is_some()), ("OPTIONS", options.is_some())];
    match refused_option.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => refused(format!("You aren't allowed to alter {option}")),
        None => Ok(()),
    }
}
