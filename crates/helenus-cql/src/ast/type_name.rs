//! Types as written, user types not yet looked up (Cassandra's `CQL3Type.Raw`).

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
    /// The dimension as written: it may be zero or negative.
    Vector {
        element: Box<TypeName>,
        dimension: i32,
    },
    /// `frozen<...>`. Never holds a native type, which the parser refuses.
    Frozen(Box<TypeName>),
    UserType(QualifiedName),
    /// A Java class in a string, for example `'org.apache.cassandra.db.marshal.LexicalUUIDType'`.
    Custom(String),
}

impl fmt::Display for TypeName {
    /// Returns the type as Cassandra shows a raw type in its messages.
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
