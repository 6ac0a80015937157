//! The keyspace `system_auth`: the roles, their memberships and their permissions.

use std::sync::Arc;

use helenus_cql::ast::Permission;

use super::Row;
use super::row::{boolean, row, text, text_set};
use crate::engine::Engine;
use crate::schema::Table;

pub(crate) fn roles(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let roles = schema.access.roles.values();
    let shown = roles.map(|role| {
        row(
            table,
            [
                ("role", text(&role.name)),
                ("can_login", boolean(role.can_login)),
                ("is_superuser", boolean(role.is_superuser)),
                (
                    "member_of",
                    (!role.member_of.is_empty())
                        .then(|| text_set(&role.member_of))
                        .flatten(),
                ),
                ("salted_hash", role.salted_hash.as_ref().and_then(text)),
            ],
        )
    });
    shown.collect()
}

pub(crate) fn role_members(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let roles = schema.access.roles.values();
    let memberships = roles.flat_map(|role| role.member_of.iter().map(move |of| (of, &role.name)));
    memberships
        .map(|(of, member)| row(table, [("role", text(of)), ("member", text(member))]))
        .collect()
}

pub(crate) fn role_permissions(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let roles = schema.access.roles.values();
    let grants = roles.flat_map(|role| role.permissions.iter().map(move |grant| (role, grant)));
    let shown = grants.map(|(role, (on, permissions))| {
        row(
            table,
            [
                ("role", text(&role.name)),
                ("resource", text(on.name())),
                ("permissions", text_set(permissions.iter().map(Permission::name))),
            ],
        )
    });
    shown.collect()
}

/// Returns the rows of `resource_role_permissons_index`.
pub(crate) fn roles_by_resource(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let roles = schema.access.roles.values();
    let grants = roles.flat_map(|role| role.permissions.keys().map(move |on| (on, &role.name)));
    grants
        .map(|(on, role)| row(table, [("resource", text(on.name())), ("role", text(role))]))
        .collect()
}

pub(crate) fn identity_to_role(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let identities = schema.access.identities.iter();
    identities
        .map(|(identity, role)| row(table, [("identity", text(identity)), ("role", text(role))]))
        .collect()
}
