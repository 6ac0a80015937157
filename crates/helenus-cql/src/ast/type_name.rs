//! Types as written, with unresolved user types (Cassandra's `CQL3Type.Raw`).

use std::fmt;

use super::QualifiedName;
use crate::types::NativeType;
use crate::types::class_name::{class_name, parse_class_name};

/// A type as a statement writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeName {
    Native(NativeType),
    List(Box<TypeName>),
    Set(Box<TypeName>),
    Map(Box<TypeName>, Box<TypeName>),
    Tuple(Vec<TypeName>),
    /// A vector. The dimension is as written, so it may be zero or negative.
    Vector {
        element: Box<TypeName>,
        dimension: i32,
    },
    /// `frozen<...>`. The inner type is never native, since the parser refuses that.
    Frozen(Box<TypeName>),
    UserType(QualifiedName),
    /// A Java class in a string, such as `'org.apache.cassandra.db.marshal.LexicalUUIDType'`.
    Custom(String),
}

impl fmt::Display for TypeName {
    /// Writes the type as Cassandra's messages show a raw type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeName::Native(native) => f.write_str(native.name()),
            TypeName::List(element) => write!(f, "list<{element}>"),
            TypeName::Set(element) => write!(f, "set<{element}>"),
            TypeName::Map(key, value) => write!(f, "map<{key}, {value}>"),
            TypeName::Tuple(elements) => {
                f.write_str("tuple<")?;
                for (position, element) in elements.iter().enumerate() {
                    if position > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{element}")?;
                }
                f.write_str(">")
            }
            TypeName::Vector { element, dimension } => write!(f, "vector<{element}, {dimension}>"),
            TypeName::Frozen(inner) => write!(f, "frozen<{inner}>"),
            TypeName::UserType(name) => write!(f, "{name}"),
            TypeName::Custom(class) => match parse_class_name(class) {
                Some(ty) => write!(f, "'{}'", class_name(&ty)),
                None => write!(f, "'{class}'"),
            },
        }
    }
}
