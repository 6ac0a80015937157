//! LIST ROLES, LIST USERS, LIST SUPERUSERS, LIST PERMISSIONS, and LIST of service levels.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::{
    ListPermissions, ListRoles, ListedRoles, Permission, ServiceLevelStatement, Statement,
};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::pack_map;

use super::{RoleContext, grant, service_level_lists};
use crate::response::{ColumnSpec, Response, Rows};
use crate::schema::roles::{PermissionSet, Resource, Role, Roles};

/// Returns the answer to a LIST statement. `None` for other statements.
///
/// # Errors
/// The user may not see the list.
pub(crate) fn list(ctx: &RoleContext<'_>, statement: &Statement) -> Option<Result<Response, CqlError>> {
    match statement {
        Statement::ListRoles(statement) => Some(roles(ctx, statement)),
        Statement::ListPermissions(statement) => Some(permissions(ctx, statement)),
        Statement::ServiceLevel(ServiceLevelStatement::List(listed)) => {
            Some(service_level_lists::list(ctx, listed))
        }
        _ => None,
    }
}

/// Returns a role and the roles that it is a member of. With `recursive` this includes indirect memberships.
fn roles_of<'a>(access: &'a Roles, name: &str, recursive: bool) -> Vec<&'a Arc<Role>> {
    if recursive {
        return access.all_of(name);
    }
    let Some(role) = access.role(name) else {
        return Vec::new();
    };
    let above = role.member_of.iter().filter_map(|name| access.role(name));
    std::iter::once(role).chain(above).collect()
}

/// Lists the superusers, for roles that may see all roles.
fn superusers(ctx: &RoleContext<'_>) -> Result<Response, CqlError> {
    let user = ctx.named_user()?;
    let access = &ctx.schema.access;
    let permissions = access.permissions(user, &Resource::AllRoles);
    if ctx.control.authorizes && !permissions.contains(Permission::Describe) {
        return Err(CqlError::Unauthorized(
            "You are not authorized to view superuser details".to_owned(),
        ));
    }
    let names = access.roles.keys().filter(|name| access.is_superuser(name));
    let rows = names.map(|name| vec![Bytes::from(name.clone())]);
    Ok(table("superusers", [("role", CqlType::TEXT)], rows))
}

fn roles(ctx: &RoleContext<'_>, statement: &ListRoles) -> Result<Response, CqlError> {
    if statement.listed == ListedRoles::Superusers {
        return superusers(ctx);
    }
    let user = ctx.named_user()?;
    let access = &ctx.schema.access;
    let sees_all = !ctx.control.authorizes
        || access
            .permissions(user, &Resource::AllRoles)
            .contains(Permission::Describe);
    let mut found = match &statement.of_role {
        None if sees_all => access.roles.values().collect(),
        None => roles_of(access, user, statement.recursive),
        Some(of) => {
            if !sees_all && !access.all_of(user).iter().any(|role| role.name == *of) {
                return Err(CqlError::Unauthorized(format!(
                    "You are not authorized to view roles granted to {of} "
                )));
            }
            roles_of(access, of, statement.recursive)
        }
    };
    if found.is_empty() {
        return Ok(Response::Void);
    }
    found.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(match statement.listed {
        ListedRoles::Users => users_table(access, &found),
        ListedRoles::Roles | ListedRoles::Superusers => roles_table(&found),
    })
}

fn boolean(value: bool) -> Bytes {
    Bytes::copy_from_slice(&[u8::from(value)])
}

/// Returns the data centers that a role may use, which are always all of them.
fn all_data_centers() -> Bytes {
    Bytes::from_static(b"ALL")
}

fn users_table(access: &Roles, roles: &[&Arc<Role>]) -> Response {
    let row = |role: &&Arc<Role>| {
        vec![
            Bytes::from(role.name.clone()),
            boolean(access.is_superuser(&role.name)),
            all_data_centers(),
        ]
    };
    let users = roles.iter().filter(|role| role.can_login);
    table(
        "users",
        [
            ("name", CqlType::TEXT),
            ("super", CqlType::BOOLEAN),
            ("datacenters", CqlType::TEXT),
        ],
        users.map(row),
    )
}

fn roles_table(roles: &[&Arc<Role>]) -> Response {
    let no_options = || pack_map(&CqlType::TEXT, std::iter::empty::<(&[u8], &[u8])>());
    let row = |role: &&Arc<Role>| {
        vec![
            Bytes::from(role.name.clone()),
            boolean(role.is_superuser),
            boolean(role.can_login),
            no_options(),
            all_data_centers(),
        ]
    };
    table(
        "roles",
        [
            ("role", CqlType::TEXT),
            ("super", CqlType::BOOLEAN),
            ("login", CqlType::BOOLEAN),
            ("options", CqlType::map(CqlType::TEXT, CqlType::TEXT, false)),
            ("datacenters", CqlType::TEXT),
        ],
        roles.iter().map(row),
    )
}

/// Returns an answer with these columns and rows.
pub(super) fn table<const N: usize>(
    name: &str,
    columns: [(&str, CqlType); N],
    rows: impl Iterator<Item = Vec<Bytes>>,
) -> Response {
    let columns = columns.map(|(column, ty)| ColumnSpec::new("system_auth", name, column, ty));
    let rows: Vec<Vec<Bytes>> = rows.collect();
    Response::Rows(Rows::of_values(columns.to_vec(), &rows, None))
}

fn permissions(ctx: &RoleContext<'_>, statement: &ListPermissions) -> Result<Response, CqlError> {
    if !ctx.control.authorizes {
        return Err(CqlError::invalid(
            "LIST PERMISSIONS operation is not supported by AllowAllAuthorizer",
        ));
    }
    let user = ctx.named_user()?;
    let access = &ctx.schema.access;
    let of = statement.of_role.as_deref();
    let is_own = of.is_some_and(|of| access.all_of(user).iter().any(|role| role.name == of));
    let sees = |role: Resource| access.permissions(user, &role).contains(Permission::Describe);
    let sees_it = sees(Resource::AllRoles) || of.is_some_and(|of| sees(Resource::Role(of.to_owned())));
    if !is_own && !sees_it {
        return Err(CqlError::Unauthorized(format!(
            "You are not authorized to view {}'s permissions",
            of.unwrap_or("everyone")
        )));
    }
    let on: Option<Vec<Resource>> = match &statement.resource {
        None => None,
        Some(resource) => {
            let resource = grant::resource(ctx, resource)?;
            let count = if statement.recursive { usize::MAX } else { 1 };
            Some(resource.chain().take(count).collect())
        }
    };
    let roles = match of {
        Some(of) => access.all_of(of),
        None => access.roles.values().collect(),
    };
    let wanted: PermissionSet = statement.permissions.iter().collect();
    let mut found = Vec::new();
    for role in roles {
        let requested = |resource: &Resource| on.as_ref().is_none_or(|on| on.contains(resource));
        for (resource, granted) in role
            .permissions
            .iter()
            .filter(|(resource, _)| requested(resource))
        {
            let shown = granted.iter().filter(|permission| wanted.contains(*permission));
            found.extend(shown.map(|permission| (role.name.as_str(), resource, permission)));
        }
    }
    if found.is_empty() {
        return Ok(Response::Void);
    }
    found.sort_by_cached_key(|(role, resource, permission)| {
        ((*role).to_owned(), resource.name(), *permission)
    });
    let row = |(role, resource, permission): &(&str, &Resource, Permission)| {
        let role = Bytes::copy_from_slice(role.as_bytes());
        vec![
            role.clone(),
            role,
            Bytes::from(resource.to_string()),
            Bytes::from_static(permission.name().as_bytes()),
        ]
    };
    Ok(table(
        "permissions",
        [
            ("role", CqlType::TEXT),
            ("username", CqlType::TEXT),
            ("resource", CqlType::TEXT),
            ("permission", CqlType::TEXT),
        ],
        found.iter().map(row),
    ))
}
