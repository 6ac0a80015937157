//! GRANT and REVOKE of permissions, and the permissions that roles get on what they create.

use helenus_cql::ast::{self, Permission, PermissionsStatement, Statement};
use helenus_cql::error::CqlError;

use super::RoleContext;
use crate::analysis::types::resolve_type;
use crate::request::no_keyspace;
use crate::schema::Schema;
use crate::schema::names::{is_system_name, is_virtual_keyspace};
use crate::schema::roles::{PermissionSet, Resource, Role, Roles};

/// Returns the resource that a statement names.
///
/// # Errors
/// Cassandra's errors for names without a keyspace and for unknown types.
pub(crate) fn resource(ctx: &RoleContext<'_>, named: &ast::Resource) -> Result<Resource, CqlError> {
    let owned = |name: &ast::Ident| name.as_str().to_owned();
    Ok(match named {
        ast::Resource::AllKeyspaces => Resource::AllKeyspaces,
        ast::Resource::Keyspace(keyspace) => Resource::Keyspace(owned(keyspace)),
        ast::Resource::AllTables(keyspace) => Resource::AllTables(owned(keyspace)),
        ast::Resource::Table(name) => {
            let keyspace = name.keyspace.as_ref().map(ast::Ident::as_str).or(ctx.keyspace);
            Resource::table(keyspace.ok_or_else(no_keyspace)?, name.name.as_str())
        }
        ast::Resource::AllRoles => Resource::AllRoles,
        ast::Resource::Role(role) => Resource::Role(role.clone()),
        ast::Resource::AllFunctions => Resource::AllFunctions,
        ast::Resource::AllFunctionsIn(keyspace) => Resource::AllFunctionsIn(owned(keyspace)),
        ast::Resource::Function { name, arg_types } => {
            let keyspace = name.keyspace.as_ref().ok_or_else(|| {
                CqlError::invalid("In this context function name must be explictly qualified by a keyspace")
            })?;
            function(ctx.schema, keyspace.as_str(), name.name.as_str(), arg_types)?
        }
        ast::Resource::AllMBeans => Resource::AllMBeans,
        ast::Resource::MBean(name) => Resource::MBean(name.clone()),
    })
}

/// Returns the resource of a function with arguments of these types.
pub(crate) fn function<'a>(
    schema: &Schema,
    keyspace: &str,
    name: &str,
    arg_types: impl IntoIterator<Item = &'a ast::TypeName>,
) -> Result<Resource, CqlError> {
    let types = arg_types.into_iter().map(|ty| resolve_type(schema, keyspace, ty));
    let types = types.collect::<Result<Vec<_>, CqlError>>()?;
    Ok(Resource::function(keyspace, name, &types))
}

/// Checks a statement that grants or revokes permissions. Returns the resource that the statement names.
pub(crate) fn validate(
    ctx: &RoleContext<'_>,
    statement: &PermissionsStatement,
) -> Result<Resource, CqlError> {
    ctx.named_user()?;
    ctx.existing(&statement.role, format!("Role {}", statement.role))?;
    let resource = resource(ctx, &statement.resource)?;
    if resource.is_built_in() {
        return Err(CqlError::invalid(
            "Altering permissions on builtin functions is not supported",
        ));
    }
    match resource.exists(ctx.schema) {
        true => Ok(resource),
        false => Err(CqlError::invalid(format!("Resource {resource} doesn't exist"))),
    }
}

/// Refuses to grant permissions on stored system keyspaces, except for reading them and for changing their replication.
pub(crate) fn check_system(resource: &Resource, permissions: &[Permission]) -> Result<(), CqlError> {
    let (Resource::Keyspace(keyspace) | Resource::AllTables(keyspace) | Resource::Table { keyspace, .. }) =
        resource
    else {
        return Ok(());
    };
    let is_allowed = |permission: &Permission| {
        matches!(
            permission,
            Permission::Select | Permission::Describe | Permission::Alter
        )
    };
    let is_stored_system = is_system_name(keyspace) && !is_virtual_keyspace(keyspace);
    match is_stored_system && !permissions.iter().all(is_allowed) {
        true => Err(CqlError::Unauthorized(
            "Granting permissions on system keyspaces is strictly limited, this operation is not permitted"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

impl Roles {
    /// Returns the roles with one role's permissions on a resource replaced.
    #[must_use]
    fn with_permissions(&self, role: &Role, on: &Resource, permissions: PermissionSet) -> Roles {
        let mut role = role.clone();
        match permissions.is_empty() {
            true => role.permissions.remove(on),
            false => role.permissions.insert(on.clone(), permissions),
        };
        self.with_role(role)
    }

    /// Returns the roles after granting a role all permissions that a resource can have.
    #[must_use]
    pub(crate) fn granted(&self, role: &str, on: &Resource) -> Roles {
        match self.role(role) {
            Some(role) => self.with_permissions(role, on, on.applicable()),
            None => self.clone(),
        }
    }
}

type GrantResult = Result<(Option<Roles>, Vec<String>), CqlError>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Grant,
    Revoke,
}

/// Returns the roles after a GRANT of permissions, with warnings.
pub(crate) fn grant(ctx: &RoleContext<'_>, statement: &PermissionsStatement) -> GrantResult {
    change(ctx, statement, Operation::Grant)
}

/// Returns the roles after a REVOKE of permissions, with warnings.
pub(crate) fn revoke(ctx: &RoleContext<'_>, statement: &PermissionsStatement) -> GrantResult {
    change(ctx, statement, Operation::Revoke)
}

fn change(ctx: &RoleContext<'_>, statement: &PermissionsStatement, operation: Operation) -> GrantResult {
    if !ctx.control.authorizes {
        let operation = match operation {
            Operation::Grant => "GRANT",
            Operation::Revoke => "REVOKE",
        };
        return Err(CqlError::invalid(format!(
            "{operation} operation is not supported by AllowAllAuthorizer"
        )));
    }
    let role = ctx.existing(&statement.role, format!("Role {}", statement.role))?;
    let on = resource(ctx, &statement.resource)?;
    let requested: PermissionSet = statement.permissions.iter().collect();
    let before = role.permissions.get(&on).copied().unwrap_or_default();
    let missing = requested.without(before);
    let (after, in_vain, complaint) = match operation {
        Operation::Grant => (
            before.with(requested),
            requested.without(missing),
            "already granted",
        ),
        Operation::Revoke => (before.without(requested), missing, "not granted"),
    };
    let mut warnings = Vec::new();
    if !in_vain.is_empty() {
        let names: Vec<&str> = in_vain.iter().map(Permission::name).collect();
        let names = names.join(", ");
        warnings.push(format!("Role '{}' was {complaint} {names} on {on}", role.name));
    }
    let access = ctx.schema.access.with_permissions(role, &on, after);
    Ok((Some(access), warnings))
}

/// Returns the resources that a statement has created. Its user gets all permissions on them (Cassandra's `createdResources`).
pub(crate) fn created(
    before: &Schema,
    after: &Schema,
    used: Option<&str>,
    statement: &Statement,
) -> Vec<Resource> {
    let in_keyspace = |keyspace: Option<&ast::Ident>| {
        let keyspace = keyspace.map(ast::Ident::as_str).or(used);
        keyspace.unwrap_or_default().to_owned()
    };
    let new = |resource: Resource| match resource.exists(before) {
        true => Vec::new(),
        false => vec![resource],
    };
    // The log of a table's changes belongs to the role that makes the table capture them.
    let new_log = |keyspace: &str, base: &str| {
        let log = after.table(keyspace, base).and_then(|base| after.cdc_log(base));
        log.map_or_else(Vec::new, |log| new(Resource::table(keyspace, &log.name)))
    };
    let function = |name: &ast::FunctionName, types: &mut dyn Iterator<Item = &ast::TypeName>| {
        let keyspace = in_keyspace(name.keyspace.as_ref());
        let found = function(after, &keyspace, name.name.as_str(), types);
        found.map_or_else(|_| Vec::new(), new)
    };
    match statement {
        Statement::CreateKeyspace(ast::CreateKeyspace { name, .. })
        | Statement::CopyKeyspace(ast::CopyKeyspace { name, .. }) => {
            let keyspace = name.as_str().to_owned();
            vec![
                Resource::Keyspace(keyspace.clone()),
                Resource::AllFunctionsIn(keyspace),
            ]
        }
        Statement::CreateTable(statement) => {
            let keyspace = in_keyspace(statement.table.keyspace.as_ref());
            let mut tables = vec![Resource::table(&keyspace, statement.table.name.as_str())];
            tables.extend(new_log(&keyspace, statement.table.name.as_str()));
            tables
        }
        Statement::AlterTable(statement) => {
            let keyspace = in_keyspace(statement.table.keyspace.as_ref());
            new_log(&keyspace, statement.table.name.as_str())
        }
        Statement::CreateTableLike(statement) => {
            let keyspace = in_keyspace(statement.table.keyspace.as_ref());
            vec![Resource::table(&keyspace, statement.table.name.as_str())]
        }
        Statement::CopyTable(statement) => {
            let keyspace = in_keyspace(statement.table.keyspace.as_ref());
            vec![Resource::table(&keyspace, statement.table.name.as_str())]
        }
        Statement::CreateFunction(statement) => {
            function(&statement.name, &mut statement.args.iter().map(|(_, ty)| ty))
        }
        Statement::CreateAggregate(statement) => function(&statement.name, &mut statement.arg_types.iter()),
        _ => Vec::new(),
    }
}

/// Returns the roles after a change of the schema. Permissions are removed if their resource no longer exists, or if another one now has
/// its name.
pub(crate) fn kept(before: &Schema, after: &Schema) -> Roles {
    after.access.with_each(|role| {
        let is_left = |on: &Resource| on.exists(after) && on.is_same(before, after);
        let is_changed = !role.permissions.keys().all(is_left);
        is_changed.then(|| {
            let mut role = role.clone();
            role.permissions.retain(|on, _| is_left(on));
            role
        })
    })
}
