//! Roles, users and permissions.

use super::{FunctionName, Ident, QualifiedName, TypeName};

/// A permission, in Cassandra's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    Create,
    Alter,
    Drop,
    Select,
    Modify,
    Authorize,
    Describe,
    Execute,
    Unmask,
    SelectMasked,
}

impl Permission {
    pub const ALL: [Permission; 10] = [
        Permission::Create,
        Permission::Alter,
        Permission::Drop,
        Permission::Select,
        Permission::Modify,
        Permission::Authorize,
        Permission::Describe,
        Permission::Execute,
        Permission::Unmask,
        Permission::SelectMasked,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Permission::Create => "CREATE",
            Permission::Alter => "ALTER",
            Permission::Drop => "DROP",
            Permission::Select => "SELECT",
            Permission::Modify => "MODIFY",
            Permission::Authorize => "AUTHORIZE",
            Permission::Describe => "DESCRIBE",
            Permission::Execute => "EXECUTE",
            Permission::Unmask => "UNMASK",
            Permission::SelectMasked => "SELECT_MASKED",
        }
    }
}

/// The permissions that can be granted on a resource, by its kind.
pub mod applicable {
    use super::Permission::{self, *};

    /// Permissions on keyspaces, and on all tables of one.
    pub const KEYSPACE: &[Permission] = &[
        Create,
        Alter,
        Drop,
        Select,
        Modify,
        Authorize,
        Unmask,
        SelectMasked,
    ];
    pub const TABLE: &[Permission] = &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked];
    pub const ALL_ROLES: &[Permission] = &[Create, Alter, Drop, Authorize, Describe];
    pub const ROLE: &[Permission] = &[Alter, Drop, Authorize, Describe];
    /// Permissions on all functions, or on all of a keyspace.
    pub const FUNCTIONS: &[Permission] = &[Create, Alter, Drop, Authorize, Execute];
    pub const FUNCTION: &[Permission] = &[Alter, Drop, Authorize, Execute];
    pub const MBEAN: &[Permission] = &[Select, Modify, Authorize, Describe, Execute];
}

/// The resource on which permissions are granted.
#[derive(Clone, Debug, PartialEq)]
pub enum Resource {
    AllKeyspaces,
    Keyspace(Ident),
    Table(QualifiedName),
    /// `ALL TABLES IN KEYSPACE ks`
    AllTables(Ident),
    AllRoles,
    Role(String),
    AllFunctions,
    AllFunctionsIn(Ident),
    Function {
        name: FunctionName,
        arg_types: Vec<TypeName>,
    },
    AllMBeans,
    /// The object name or pattern, as written.
    MBean(String),
}

/// GRANT and REVOKE of permissions. The permissions are limited to those of the resource's kind.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionsStatement {
    pub permissions: Vec<Permission>,
    pub resource: Resource,
    pub role: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListPermissions {
    pub permissions: Vec<Permission>,
    pub resource: Option<Resource>,
    pub of_role: Option<String>,
    pub recursive: bool,
}

/// GRANT and REVOKE of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRole {
    pub role: String,
    /// The role that gets or loses the granted role.
    pub grantee: String,
}

/// The options of CREATE and ALTER ROLE and USER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleOptions {
    pub password: Option<String>,
    pub hashed_password: Option<String>,
    /// True for GENERATED PASSWORD: the server chooses the password and returns it.
    pub generated_password: bool,
    pub superuser: Option<bool>,
    pub login: Option<bool>,
    pub options: Option<Vec<(String, String)>>,
    /// ACCESS TO DATACENTERS; `Some(All)` for ACCESS TO ALL DATACENTERS.
    pub datacenters: Option<Access>,
    /// ACCESS FROM CIDRS; `Some(All)` for ACCESS FROM ALL CIDRS.
    pub cidrs: Option<Access>,
}

/// All, or the named ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    All,
    Named(Vec<String>),
}

/// CREATE ROLE, and CREATE USER as a role that may log in. Defaults are filled in, so superuser and login are set.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRole {
    /// The name. Empty if the server chooses it.
    pub name: String,
    /// True for CREATE GENERATED ROLE: the server chooses the name and returns it.
    pub is_name_generated: bool,
    pub if_not_exists: bool,
    pub options: RoleOptions,
}

/// ALTER ROLE and ALTER USER.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterRole {
    pub name: String,
    pub if_exists: bool,
    pub options: RoleOptions,
}

/// DROP ROLE and DROP USER.
#[derive(Clone, Debug, PartialEq)]
pub struct DropRole {
    pub name: String,
    pub if_exists: bool,
}

/// The roles that a statement lists, and their columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedRoles {
    Roles,
    /// The roles that may log in, with the columns of older versions.
    Users,
    /// The names of superusers, also of those that are superusers by a membership.
    Superusers,
}

/// LIST ROLES, LIST USERS, and LIST SUPERUSERS.
#[derive(Clone, Debug, PartialEq)]
pub struct ListRoles {
    pub listed: ListedRoles,
    pub of_role: Option<String>,
    pub recursive: bool,
}

/// `ADD IDENTITY 'id' TO ROLE 'role'`
#[derive(Clone, Debug, PartialEq)]
pub struct AddIdentity {
    pub identity: String,
    pub role: String,
    pub if_not_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropIdentity {
    pub identity: String,
    pub if_exists: bool,
}
