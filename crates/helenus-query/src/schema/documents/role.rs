//! Documents for roles.

use std::collections::{BTreeMap, BTreeSet};

use helenus_cql::ast::Permission;
use serde::{Deserialize, Serialize};

use crate::schema::roles::{FunctionResource, PermissionSet, Resource, Role};

#[derive(Serialize, Deserialize)]
pub(crate) struct RoleDoc {
    name: String,
    can_login: bool,
    is_superuser: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salted_hash: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    member_of: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    permissions: Vec<GrantDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service_level: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct GrantDoc {
    on: ResourceDoc,
    permissions: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResourceDoc {
    AllKeyspaces,
    Keyspace(String),
    AllTables(String),
    Table(String, String),
    AllRoles,
    Role(String),
    AllFunctions,
    AllFunctionsIn(String),
    Function {
        keyspace: String,
        name: String,
        classes: Vec<String>,
        types: Vec<String>,
    },
    AllMbeans,
    Mbean(String),
}

impl From<&Resource> for ResourceDoc {
    fn from(resource: &Resource) -> ResourceDoc {
        match resource.clone() {
            Resource::AllKeyspaces => ResourceDoc::AllKeyspaces,
            Resource::Keyspace(keyspace) => ResourceDoc::Keyspace(keyspace),
            Resource::AllTables(keyspace) => ResourceDoc::AllTables(keyspace),
            Resource::Table { keyspace, table } => ResourceDoc::Table(keyspace, table),
            Resource::AllRoles => ResourceDoc::AllRoles,
            Resource::Role(role) => ResourceDoc::Role(role),
            Resource::AllFunctions => ResourceDoc::AllFunctions,
            Resource::AllFunctionsIn(keyspace) => ResourceDoc::AllFunctionsIn(keyspace),
            Resource::Function(FunctionResource {
                keyspace,
                name,
                classes,
                types,
            }) => ResourceDoc::Function {
                keyspace,
                name,
                classes,
                types,
            },
            Resource::AllMBeans => ResourceDoc::AllMbeans,
            Resource::MBean(name) => ResourceDoc::Mbean(name),
        }
    }
}

impl From<ResourceDoc> for Resource {
    fn from(resource: ResourceDoc) -> Resource {
        match resource {
            ResourceDoc::AllKeyspaces => Resource::AllKeyspaces,
            ResourceDoc::Keyspace(keyspace) => Resource::Keyspace(keyspace),
            ResourceDoc::AllTables(keyspace) => Resource::AllTables(keyspace),
            ResourceDoc::Table(keyspace, table) => Resource::Table { keyspace, table },
            ResourceDoc::AllRoles => Resource::AllRoles,
            ResourceDoc::Role(role) => Resource::Role(role),
            ResourceDoc::AllFunctions => Resource::AllFunctions,
            ResourceDoc::AllFunctionsIn(keyspace) => Resource::AllFunctionsIn(keyspace),
            ResourceDoc::Function {
                keyspace,
                name,
                classes,
                types,
            } => Resource::Function(FunctionResource {
                keyspace,
                name,
                classes,
                types,
            }),
            ResourceDoc::AllMbeans => Resource::AllMBeans,
            ResourceDoc::Mbean(name) => Resource::MBean(name),
        }
    }
}

impl From<&Role> for RoleDoc {
    fn from(role: &Role) -> RoleDoc {
        let grant = |(on, permissions): (&Resource, &PermissionSet)| GrantDoc {
            on: on.into(),
            permissions: permissions.iter().map(|one| one.name().to_owned()).collect(),
        };
        RoleDoc {
            name: role.name.clone(),
            can_login: role.can_login,
            is_superuser: role.is_superuser,
            salted_hash: role.salted_hash.clone(),
            member_of: role.member_of.clone(),
            permissions: role.permissions.iter().map(grant).collect(),
            service_level: role.service_level.clone(),
        }
    }
}

impl TryFrom<RoleDoc> for Role {
    type Error = String;

    fn try_from(role: RoleDoc) -> Result<Role, String> {
        let mut permissions = BTreeMap::new();
        for grant in role.permissions {
            let granted = grant.permissions.iter().map(|name| permission(name));
            let granted = granted.collect::<Result<PermissionSet, String>>()?;
            permissions.insert(Resource::from(grant.on), granted);
        }
        Ok(Role {
            name: role.name,
            can_login: role.can_login,
            is_superuser: role.is_superuser,
            salted_hash: role.salted_hash,
            member_of: role.member_of,
            permissions,
            service_level: role.service_level,
        })
    }
}

fn permission(name: &str) -> Result<Permission, String> {
    let mut all = Permission::ALL.into_iter();
    all.find(|permission| permission.name() == name)
        .ok_or_else(|| format!("there is no permission {name}"))
}
