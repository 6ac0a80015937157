//! Roles.

use std::collections::{BTreeMap, BTreeSet};

use helenus_cql::ast::Statement;

use super::{PermissionSet, Resource};

/// A role: a user who may log in, or a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    pub name: String,
    pub can_login: bool,
    pub is_superuser: bool,
    /// The bcrypt hash of the password. `None` if the role has no password.
    pub salted_hash: Option<String>,
    pub member_of: BTreeSet<String>,
    pub permissions: BTreeMap<Resource, PermissionSet>,
    /// The name of the attached service level. `None` if there is none.
    pub service_level: Option<String>,
}

/// Returns true for statements about roles, users, permissions, identities and service levels.
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
