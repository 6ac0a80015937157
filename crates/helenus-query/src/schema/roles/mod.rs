//! Roles and their permissions.

pub(crate) mod permission_set;
pub(crate) mod resource;
pub(crate) mod role;
pub(crate) mod service_level;

pub use permission_set::PermissionSet;
pub use resource::{FunctionResource, Resource};
pub use role::Role;
pub(crate) use role::is_about_roles;
pub use service_level::{EffectiveLevel, ServiceLevel};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All roles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    pub roles: BTreeMap<String, Arc<Role>>,
    /// The role of each certificate identity.
    pub identities: BTreeMap<String, String>,
    pub service_levels: BTreeMap<String, ServiceLevel>,
}

impl Roles {
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.identities.is_empty() && self.service_levels.is_empty()
    }

    pub fn role(&self, name: &str) -> Option<&Arc<Role>> {
        self.roles.get(name)
    }

    /// Returns a role and all roles that it is directly or indirectly a member of. Empty if there is no such role.
    pub fn all_of(&self, name: &str) -> Vec<&Arc<Role>> {
        let mut found: Vec<&Arc<Role>> = Vec::new();
        let mut seen = BTreeSet::from([name]);
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            let Some(role) = self.role(name) else { continue };
            found.push(role);
            let above = role.member_of.iter().map(String::as_str);
            next.extend(above.filter(|name| seen.insert(name)));
        }
        found
    }

    /// Returns true if the role, or one that it is a member of, is a superuser.
    pub fn is_superuser(&self, name: &str) -> bool {
        self.all_of(name).iter().any(|role| role.is_superuser)
    }

    /// Returns the permissions of a role on a resource, including those of roles that it is a member of. Permissions on the resource's
    /// parents are not included.
    pub fn permissions(&self, name: &str, on: &Resource) -> PermissionSet {
        together(&self.all_of(name), on)
    }

    /// Returns true if a role has a permission on a resource or on one of its parents.
    pub fn may(&self, name: &str, permission: helenus_cql::ast::Permission, on: &Resource) -> bool {
        let (roles, is_system) = (self.all_of(name), on.is_system_data());
        on.chain()
            .filter(|resource| !(is_system && *resource == Resource::AllKeyspaces))
            .any(|resource| together(&roles, &resource).contains(permission))
    }

    /// Returns a copy in which the role is added, or replaces that of the same name.
    #[must_use]
    pub(crate) fn with_role(&self, role: Role) -> Roles {
        let mut access = self.clone();
        access.roles.insert(role.name.clone(), Arc::new(role));
        access
    }

    /// Returns a copy in which the roles are replaced for which `change` returns a new one.
    #[must_use]
    pub(crate) fn with_each(&self, change: impl Fn(&Role) -> Option<Role>) -> Roles {
        let mut access = self.clone();
        for role in access.roles.values_mut() {
            if let Some(changed) = change(role) {
                *role = Arc::new(changed);
            }
        }
        access
    }
}

/// Returns the permissions on a resource that the roles have together.
pub(crate) fn together(roles: &[&Arc<Role>], on: &Resource) -> PermissionSet {
    if roles.iter().any(|role| role.is_superuser) {
        return on.applicable();
    }
    let granted = roles.iter().filter_map(|role| role.permissions.get(on));
    granted.fold(PermissionSet::default(), |all, some| all.with(*some))
}
