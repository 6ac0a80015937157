//! Resolution of types as written: user types are looked up. Statements were checked by the cluster that wrote them, so nothing else is.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::ast::{QualifiedName, TypeName};
use helenus_cql::types::class_name::parse_class_name;
use helenus_cql::types::{CqlType, UserType};

/// User types by keyspace and name.
#[derive(Clone, Debug, Default)]
pub struct UserTypes(BTreeMap<(String, String), Arc<UserType>>);

impl UserTypes {
    /// Adds a type, or replaces that of the same name.
    pub fn insert(&mut self, definition: UserType) {
        let key = (definition.keyspace.clone(), definition.name.clone());
        self.0.insert(key, Arc::new(definition));
    }

    pub fn get(&self, keyspace: &str, name: &str) -> Option<&Arc<UserType>> {
        self.0.get(&(keyspace.to_owned(), name.to_owned()))
    }
}

/// Returns the type that a name stands for.
///
/// # Errors
/// In words, if a user type or a class is unknown.
pub fn resolve_type(types: &UserTypes, keyspace: &str, name: &TypeName) -> Result<CqlType, String> {
    let inner = |name: &TypeName| resolve_type(types, keyspace, name);
    Ok(match name {
        TypeName::Native(native) => CqlType::Native(*native),
        TypeName::Frozen(of) => inner(of)?.freeze(),
        TypeName::List(element) => CqlType::list(inner(element)?, false),
        TypeName::Set(element) => CqlType::set(inner(element)?, false),
        TypeName::Map(key, value) => CqlType::map(inner(key)?, inner(value)?, false),
        TypeName::Tuple(elements) => {
            let elements = elements.iter().map(|element| Ok(inner(element)?.freeze()));
            CqlType::tuple(elements.collect::<Result<Vec<_>, String>>()?)
        }
        TypeName::Vector { element, dimension } => {
            let dimension = u32::try_from(*dimension)
                .map_err(|_| format!("the vector has {dimension} dimensions; at least 1 is expected"))?;
            CqlType::vector(inner(element)?, dimension)
        }
        TypeName::UserType(name) => CqlType::Udt {
            definition: user_type(types, keyspace, name)?,
            frozen: false,
        },
        TypeName::Custom(class) => parse_class_name(class)
            .ok_or_else(|| format!("the class '{class}' is unknown; use a CQL type"))?,
    })
}

fn user_type(types: &UserTypes, keyspace: &str, name: &QualifiedName) -> Result<Arc<UserType>, String> {
    let keyspace = name.keyspace.as_ref().map_or(keyspace, |of| of.as_str());
    let found = types.get(keyspace, name.name.as_str());
    found.cloned().ok_or_else(|| {
        format!("the user type {keyspace}.{name} is unknown; add its CREATE TYPE to the schema.cql")
    })
}
