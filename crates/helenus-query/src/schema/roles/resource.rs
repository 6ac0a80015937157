//! Resources of permissions (Cassandra's `IResource` and its classes).

use std::fmt;

use helenus_cql::ast::applicable;
use helenus_cql::types::CqlType;
use helenus_cql::types::class_name::class_name;

use super::PermissionSet;
use crate::schema::Schema;
use crate::schema::names::is_system_name;

/// A resource, or all resources of a kind. `Display` shows it as messages do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    AllKeyspaces,
    Keyspace(String),
    /// All tables of a keyspace.
    AllTables(String),
    Table {
        keyspace: String,
        table: String,
    },
    AllRoles,
    Role(String),
    AllFunctions,
    AllFunctionsIn(String),
    Function(FunctionResource),
    AllMBeans,
    /// An object name, or a pattern of names.
    MBean(String),
}

/// A user-defined function or aggregate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionResource {
    pub keyspace: String,
    pub name: String,
    /// Java classes of the argument types, by which Cassandra stores a function's resource.
    pub classes: Vec<String>,
    /// Names of the argument types in CQL.
    pub types: Vec<String>,
}

impl Resource {
    pub fn table(keyspace: &str, table: &str) -> Resource {
        Resource::Table {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
        }
    }

    pub fn function<'a>(
        keyspace: &str,
        name: &str,
        types: impl IntoIterator<Item = &'a CqlType>,
    ) -> Resource {
        let types: Vec<&CqlType> = types.into_iter().collect();
        Resource::Function(FunctionResource {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            classes: types.iter().map(|ty| class_name(ty)).collect(),
            types: types.iter().map(|ty| ty.to_string()).collect(),
        })
    }

    /// Returns the name in `system_auth.role_permissions`.
    pub fn name(&self) -> String {
        match self {
            Resource::AllKeyspaces => "data".to_owned(),
            Resource::Keyspace(keyspace) => format!("data/{keyspace}"),
            Resource::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Resource::Table { keyspace, table } => format!("data/{keyspace}/{table}"),
            Resource::AllRoles => "roles".to_owned(),
            Resource::Role(role) => format!("roles/{role}"),
            Resource::AllFunctions => "functions".to_owned(),
            Resource::AllFunctionsIn(keyspace) => format!("functions/{keyspace}"),
            Resource::Function(function) => format!(
                "functions/{}/{}[{}]",
                function.keyspace,
                function.name,
                function.classes.join("^")
            ),
            Resource::AllMBeans => "mbean".to_owned(),
            Resource::MBean(name) => format!("mbean/{name}"),
        }
    }

    /// Returns the resource that contains this one. A permission on it applies to this one too. `None` for the topmost resources.
    pub fn parent(&self) -> Option<Resource> {
        match self {
            Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions | Resource::AllMBeans => {
                None
            }
            Resource::Keyspace(_) => Some(Resource::AllKeyspaces),
            Resource::AllTables(keyspace) => Some(Resource::Keyspace(keyspace.clone())),
            Resource::Table { keyspace, .. } => Some(Resource::AllTables(keyspace.clone())),
            Resource::Role(_) => Some(Resource::AllRoles),
            Resource::AllFunctionsIn(_) => Some(Resource::AllFunctions),
            Resource::Function(function) => Some(Resource::AllFunctionsIn(function.keyspace.clone())),
            Resource::MBean(_) => Some(Resource::AllMBeans),
        }
    }

    /// Returns the resource and all that contain it, the nearest first.
    pub fn chain(&self) -> impl Iterator<Item = Resource> {
        std::iter::successors(Some(self.clone()), Resource::parent)
    }

    /// Returns true for the server's own functions, which every role may call.
    pub fn is_built_in(&self) -> bool {
        match self {
            Resource::AllFunctionsIn(keyspace) | Resource::Function(FunctionResource { keyspace, .. }) => {
                keyspace == "system"
            }
            _ => false,
        }
    }

    /// Returns true for a keyspace of the server and its tables. Permissions on all keyspaces do not apply to them.
    pub fn is_system_data(&self) -> bool {
        match self {
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::Table { keyspace, .. } => is_system_name(keyspace),
            _ => false,
        }
    }

    /// Returns the permissions that can be granted on the resource.
    pub fn applicable(&self) -> PermissionSet {
        let permissions = match self {
            Resource::AllKeyspaces | Resource::Keyspace(_) | Resource::AllTables(_) => applicable::KEYSPACE,
            Resource::Table { .. } => applicable::TABLE,
            Resource::AllRoles => applicable::ALL_ROLES,
            Resource::Role(_) => applicable::ROLE,
            Resource::AllFunctions | Resource::AllFunctionsIn(_) => applicable::FUNCTIONS,
            Resource::Function(_) => applicable::FUNCTION,
            Resource::AllMBeans | Resource::MBean(_) => applicable::MBEAN,
        };
        permissions.iter().collect()
    }

    /// Returns true if both schemas have the same object under this name, and not one that was created after the other was dropped.
    pub fn is_same(&self, before: &Schema, after: &Schema) -> bool {
        let is_same_keyspace = |name: &str| {
            let id = before.keyspace(name).map(|keyspace| keyspace.id);
            id.is_some_and(|id| after.is_same_keyspace(name, id))
        };
        match self {
            Resource::AllKeyspaces
            | Resource::AllRoles
            | Resource::Role(_)
            | Resource::AllFunctions
            | Resource::AllMBeans
            | Resource::MBean(_) => true,
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::AllFunctionsIn(keyspace) => is_same_keyspace(keyspace),
            Resource::Function(function) => is_same_keyspace(&function.keyspace) && function.exists(before),
            Resource::Table { keyspace, table } => {
                let tables = before.table(keyspace, table).zip(after.table(keyspace, table));
                tables.is_some_and(|(before, after)| before.is_same_as(after))
            }
        }
    }

    pub fn exists(&self, schema: &Schema) -> bool {
        match self {
            Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions | Resource::AllMBeans => {
                true
            }
            // Helenus has no JMX.
            Resource::MBean(_) => false,
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::AllFunctionsIn(keyspace) => schema.keyspace(keyspace).is_some(),
            Resource::Table { keyspace, table } => schema.table(keyspace, table).is_some(),
            Resource::Role(role) => schema.access.role(role).is_some(),
            Resource::Function(function) => function.exists(schema),
        }
    }
}

impl FunctionResource {
    fn exists(&self, schema: &Schema) -> bool {
        let is_this = |name: &str, types: &mut dyn Iterator<Item = &CqlType>| {
            name == self.name && types.map(ToString::to_string).eq(self.types.iter().cloned())
        };
        schema.keyspace(&self.keyspace).is_some_and(|keyspace| {
            let mut functions = keyspace.functions.values();
            let mut aggregates = keyspace.aggregates.values();
            functions.any(|of| is_this(&of.name, &mut of.arg_types()))
                || aggregates.any(|of| is_this(&of.name, &mut of.arg_types.iter()))
        })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::AllKeyspaces => write!(f, "<all keyspaces>"),
            Resource::Keyspace(keyspace) => write!(f, "<keyspace {keyspace}>"),
            Resource::AllTables(keyspace) => write!(f, "<all tables in {keyspace}>"),
            Resource::Table { keyspace, table } => write!(f, "<table {keyspace}.{table}>"),
            Resource::AllRoles => write!(f, "<all roles>"),
            Resource::Role(role) => write!(f, "<role {role}>"),
            Resource::AllFunctions => write!(f, "<all functions>"),
            Resource::AllFunctionsIn(keyspace) => write!(f, "<all functions in {keyspace}>"),
            Resource::Function(function) => write!(
                f,
                "<function {}.{}({})>",
                function.keyspace,
                function.name,
                function.types.join(", ")
            ),
            Resource::AllMBeans => write!(f, "<all mbeans>"),
            Resource::MBean(name) => write!(f, "<mbean {name}>"),
        }
    }
}
