//! Checks of a role's permissions on a resource.

use helenus_cql::ast::Permission;
use helenus_cql::error::CqlError;

use super::RoleContext;
use crate::engine::system::is_public;
use crate::schema::roles::Resource;

/// A permission that a statement needs.
pub(super) type RequiredPermission = (Permission, Resource);

/// Refuses a role without all of these permissions (Cassandra's `ClientState.ensurePermission`).
pub(super) fn check(ctx: &RoleContext<'_>, needs: Vec<RequiredPermission>) -> Result<(), CqlError> {
    needs
        .into_iter()
        .try_for_each(|(permission, on)| ensure(ctx, permission, &on))
}

pub(super) fn ensure(ctx: &RoleContext<'_>, permission: Permission, on: &Resource) -> Result<(), CqlError> {
    let user = ctx.user.unwrap_or_default();
    let is_given = is_readable(permission, on) || on.is_built_in();
    match is_given || ctx.schema.access.may(user, permission, on) {
        true => Ok(()),
        false => Err(CqlError::Unauthorized(format!(
            "User {user} has no {} permission on {on} or any of its parents",
            permission.name()
        ))),
    }
}

/// Returns true for reads of tables that every authenticated role may read.
fn is_readable(permission: Permission, on: &Resource) -> bool {
    let Resource::Table { keyspace, table } = on else {
        return false;
    };
    permission == Permission::Select && is_public(keyspace, table)
}
