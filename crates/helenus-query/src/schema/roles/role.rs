//! Roles.

use std::collections::{BTreeMap, BTreeSet};

use helenus_cql::ast::Statement;

use super::{PermissionSet, Resource};

/// A role: somebody who may log in, or a group of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    pub name: String,
    pub can_login: bool,
    pub is_superuser: bool,
    /// A hash of its password, as bcrypt writes it.
    pub salted_hash: Option<String>,
    pub member_of: BTreeSet<String>,
    pub permissions: BTreeMap<Resource, PermissionSet>,
    /// The name of the level that is attached to it.
    pub service_level: Option<String>,
}

/// Returns true for a statement about roles, users, permissions, identities and service levels.
pub(crate) fn is_about_roles(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateRole(_)
            | Statement::AlterRole(_)
            | Statement::DropRole(_)
            | Statement::GrantRole(_)
            | Statement::RevokeRole(_)
            | Statement::GrantPermissions(_)
            | Statement::RevokePermissions(_)
            | Statement::ListRoles(_)
            | Statement::ListPermissions(_)
            | Statement::AddIdentity(_)
            | Statement::DropIdentity(_)
            | Statement::ServiceLevel(_)
    )
}
