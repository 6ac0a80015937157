//! Changes of roles by statements.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::engine::access;
use crate::engine::ddl::{ChangeResult, DdlContext};
use crate::schema::Schema;
use crate::schema::roles::Roles;

/// Returns the schema after a statement about roles. `None` if the statement changes nothing. The roles are checked again, since they may
/// have changed after the first check.
pub(crate) fn apply(
    ctx: &DdlContext<'_>,
    statement: &ast::Statement,
) -> Result<(Option<Schema>, ChangeResult), CqlError> {
    let (access, warnings) = access::apply(&ctx.roles(), statement)?;
    let done = ChangeResult {
        warnings,
        ..ChangeResult::default()
    };
    let changed = access.map(|access| {
        let mut schema = ctx.schema.clone();
        schema.access = Arc::new(access);
        schema
    });
    Ok((changed, done))
}

/// Returns the roles after a change of the schema. The role that creates an element gets all permissions on it. Permissions on dropped
/// elements are removed.
pub(crate) fn after(ctx: &DdlContext<'_>, after: &Schema, statement: &ast::Statement) -> Roles {
    let access = access::kept(ctx.schema, after);
    let Some(user) = ctx.user.filter(|_| ctx.control.authorizes) else {
        return access;
    };
    let made = access::created(ctx.schema, after, ctx.keyspace, statement);
    made.iter()
        .fold(access, |access, made| access.granted(user, made))
}
