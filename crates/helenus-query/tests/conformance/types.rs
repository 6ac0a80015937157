//! CQL types as the protocol names them, to and from text.

use std::fmt;

use helenus_cql::types::class_name::class_name;
use helenus_cql::types::{CqlType, NativeType};

use crate::text::split_top;

/// A type as a client sees it: no type is frozen, and a type without a protocol option of its own is shown by its class.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Native(NativeType),
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Tuple(Vec<Type>),
    User {
        name: String,
        fields: Vec<(String, Type)>,
    },
    Vector(Box<Type>, usize),
    Custom(String),
}

impl Type {
    /// Returns the type that is reported to a client. A vector is a class with its parameters, in which user types are classes too.
    pub fn reported(ty: &CqlType, is_in_vector: bool) -> Type {
        let inner = |ty: &CqlType| Box::new(Type::reported(ty, is_in_vector));
        match ty {
            CqlType::Native(NativeType::Empty) | CqlType::Custom(_) => Type::Custom(bare_class(ty)),
            CqlType::Native(native) => Type::Native(*native),
            CqlType::List { element, .. } => Type::List(inner(element)),
            CqlType::Set { element, .. } => Type::Set(inner(element)),
            CqlType::Map { key, value, .. } => Type::Map(inner(key), inner(value)),
            CqlType::Tuple(types) => Type::Tuple(types.iter().map(|ty| *inner(ty)).collect()),
            CqlType::Udt { .. } if is_in_vector => Type::Custom(bare_class(ty)),
            CqlType::Udt { definition, .. } => Type::User {
                name: format!("{}.{}", definition.keyspace, definition.name),
                fields: definition
                    .fields
                    .iter()
                    .map(|field| (field.name.clone(), *inner(&field.ty)))
                    .collect(),
            },
            CqlType::Vector { element, dimension } => {
                Type::Vector(Box::new(Type::reported(element, true)), *dimension as usize)
            }
        }
    }

    /// Parses a type, for values that are sent without preparing.
    pub fn parse(text: &str) -> Type {
        let text = text.trim();
        let (name, inner) = match text.split_once('<') {
            Some((name, inner)) => (name, inner.strip_suffix('>').unwrap_or(inner)),
            None => (text, ""),
        };
        let parts = split_top(inner, ',');
        let part = |index: usize| Box::new(Type::parse(&parts[index]));
        match name {
            "list" => Type::List(part(0)),
            "set" => Type::Set(part(0)),
            "map" => Type::Map(part(0), part(1)),
            "tuple" => Type::Tuple(parts.iter().map(|part| Type::parse(part)).collect()),
            "vector" => Type::Vector(part(0), parts[1].parse().expect("a dimension")),
            name => Type::Native(NativeType::from_name(name).unwrap_or_else(|| panic!("no type: {name}"))),
        }
    }

    /// Returns the bytes of each element in a vector. `None` if the element is stored with its length.
    pub fn vector_len(&self) -> Option<usize> {
        match self {
            Type::Native(NativeType::Boolean) => Some(1),
            Type::Native(NativeType::Int | NativeType::Float) => Some(4),
            Type::Native(NativeType::Bigint | NativeType::Double | NativeType::Timestamp) => Some(8),
            Type::Native(NativeType::Uuid | NativeType::Timeuuid) => Some(16),
            Type::Vector(element, dimension) => element.vector_len().map(|len| len * dimension),
            _ => None,
        }
    }
}

/// Returns the class without its frozen marker.
fn bare_class(ty: &CqlType) -> String {
    let name = class_name(ty);
    let frozen = name
        .strip_prefix("org.apache.cassandra.db.marshal.FrozenType(")
        .and_then(|rest| rest.strip_suffix(')'));
    frozen.unwrap_or(&name).to_owned()
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Type::Native(native) => f.write_str(native.name()),
            Type::List(element) => write!(f, "list<{element}>"),
            Type::Set(element) => write!(f, "set<{element}>"),
            Type::Map(key, value) => write!(f, "map<{key}, {value}>"),
            Type::Tuple(types) if types.is_empty() => f.write_str("tuple"),
            Type::Tuple(types) => write!(f, "tuple<{}>", list(types)),
            Type::User { name, fields } => {
                let fields: Vec<String> = fields.iter().map(|(field, ty)| format!("{field} {ty}")).collect();
                write!(f, "{name}({})", fields.join(", "))
            }
            Type::Vector(element, dimension) => write!(f, "vector<{element}, {dimension}>"),
            Type::Custom(class) => write!(f, "'{class}'"),
        }
    }
}
