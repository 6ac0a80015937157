//! The keyspace `system_auth`: the roles, their memberships and their permissions.

use helenus_cql::ast::Permission;

use super::Row;
use super::row::{boolean, row, text, text_set};
use crate::schema::{Schema, Table};

pub(crate) fn rows(schema: &Schema, table: &Table) -> Vec<Row> {
    match table.name.as_str() {
        "roles" => roles(schema, table),
        "role_members" => role_members(schema, table),
        "role_permissions" => role_permissions(schema, table),
        "resource_role_permissons_index" => by_resource(schema, table),
        "identity_to_role" => identities(schema, table),
        _ => Vec::new(),
    }
}

fn roles(schema: &Schema, table: &Table) -> Vec<Row> {
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

fn role_members(schema: &Schema, table: &Table) -> Vec<Row> {
    let roles = schema.access.roles.values();
    let memberships = roles.flat_map(|role| role.member_of.iter().map(move |of| (of, &role.name)));
    memberships
        .map(|(of, member)| row(table, [("role", text(of)), ("member", text(member))]))
        .collect()
}

fn role_permissions(schema: &Schema, table: &Table) -> Vec<Row> {
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

fn by_resource(schema: &Schema, table: &Table) -> Vec<Row> {
    let roles = schema.access.roles.values();
    let grants = roles.flat_map(|role| role.permissions.keys().map(move |on| (on, &role.name)));
    grants
        .map(|(on, role)| row(table, [("resource", text(on.name())), ("role", text(role))]))
        .collect()
}

fn identities(schema: &Schema, table: &Table) -> Vec<Row> {
    let identities = schema.access.identities.iter();
    identities
        .map(|(identity, role)| row(table, [("identity", text(identity)), ("role", text(role))]))
        .collect()
}
