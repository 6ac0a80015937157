//! Sets of permissions.

use helenus_cql::ast::Permission;

/// A set of permissions, in Cassandra's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet(u16);

impl PermissionSet {
    fn bit(permission: Permission) -> u16 {
        1 << permission as u16
    }

    pub fn contains(self, permission: Permission) -> bool {
        self.0 & Self::bit(permission) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn with(self, other: PermissionSet) -> PermissionSet {
        PermissionSet(self.0 | other.0)
    }

    /// Returns this set without the permissions of the other.
    #[must_use]
    pub fn without(self, other: PermissionSet) -> PermissionSet {
        PermissionSet(self.0 & !other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL
            .into_iter()
            .filter(move |permission| self.contains(*permission))
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> PermissionSet {
        let bits = permissions.into_iter().map(PermissionSet::bit);
        PermissionSet(bits.fold(0, |all, bit| all | bit))
    }
}

impl<'a> FromIterator<&'a Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = &'a Permission>>(permissions: I) -> PermissionSet {
        permissions.into_iter().copied().collect()
    }
}
