//! GRANT and REVOKE of permissions, and what is granted to those who make things.

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
/// Cassandra's for names without a keyspace and for types that are not there.
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

/// Returns a function by the names of its types.
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

/// What is wrong with a statement that grants or revokes, and what it is about.
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

/// On system keyspaces only what reads them is granted, and what changes their replication.
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
    /// Returns a role's permissions on a thing changed.
    #[must_use]
    fn with_permissions(&self, role: &Role, on: &Resource, permissions: PermissionSet) -> Roles {
        let mut role = role.clone();
        match permissions.is_empty() {
            true => role.permissions.remove(on),
            false => role.permissions.insert(on.clone(), permissions),
        };
        self.with_role(role)
    }

    /// Everything that can be granted on a thing, granted to a role.
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

/// GRANT of permissions.
pub(crate) fn grant(ctx: &RoleContext<'_>, statement: &PermissionsStatement) -> GrantResult {
    change(ctx, statement, Operation::Grant)
}

/// REVOKE of permissions.
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
    let asked: PermissionSet = statement.permissions.iter().collect();
    let before = role.permissions.get(&on).copied().unwrap_or_default();
    let missing = asked.without(before);
    let (after, in_vain, complaint) = match operation {
        Operation::Grant => (before.with(asked), asked.without(missing), "already granted"),
        Operation::Revoke => (before.without(asked), missing, "not granted"),
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

/// What a statement has made, which its user may do everything with (Cassandra's `createdResources`).
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

/// Returns the roles without permissions on what is gone after a change, or is another thing under its name.
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
