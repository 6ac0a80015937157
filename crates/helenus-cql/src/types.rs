//! CQL types, as they are in a schema and in result metadata.
//!
//! A type is cheap to clone, because inner types are shared. The types whose storage depends on `frozen` (list, set, map, user type) have a
//! flag for it. Tuples and vectors are always frozen, as in Cassandra (`org.apache.cassandra.db.marshal.*`).

pub mod class_name;

use std::fmt;
use std::sync::Arc;

use self::class_name::class_name;
use crate::identifier::quote_identifier;

/// A scalar type. The discriminants are the option ids of the native protocol (spec v5, section 4.2.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum NativeType {
    /// The type with a single value, of no bytes. Cassandra gives it to the value column of a compact table that was declared without one.
    /// The protocol sends it as a custom type.
    Empty = 0x0000,
    Ascii = 0x0001,
    Bigint = 0x0002,
    Blob = 0x0003,
    Boolean = 0x0004,
    Counter = 0x0005,
    Decimal = 0x0006,
    Double = 0x0007,
    Float = 0x0008,
    Int = 0x0009,
    Timestamp = 0x000B,
    Uuid = 0x000C,
    Text = 0x000D,
    Varint = 0x000E,
    Timeuuid = 0x000F,
    Inet = 0x0010,
    Date = 0x0011,
    Time = 0x0012,
    Smallint = 0x0013,
    Tinyint = 0x0014,
    Duration = 0x0015,
}

impl NativeType {
    /// All scalar types that can be declared, in the order of the option ids.
    pub const ALL: [NativeType; 20] = [
        NativeType::Ascii,
        NativeType::Bigint,
        NativeType::Blob,
        NativeType::Boolean,
        NativeType::Counter,
        NativeType::Decimal,
        NativeType::Double,
        NativeType::Float,
        NativeType::Int,
        NativeType::Timestamp,
        NativeType::Uuid,
        NativeType::Text,
        NativeType::Varint,
        NativeType::Timeuuid,
        NativeType::Inet,
        NativeType::Date,
        NativeType::Time,
        NativeType::Smallint,
        NativeType::Tinyint,
        NativeType::Duration,
    ];

    /// Returns the type's name in CQL.
    pub fn name(self) -> &'static str {
        match self {
            NativeType::Empty => "empty",
            NativeType::Ascii => "ascii",
            NativeType::Bigint => "bigint",
            NativeType::Blob => "blob",
            NativeType::Boolean => "boolean",
            NativeType::Counter => "counter",
            NativeType::Decimal => "decimal",
            NativeType::Double => "double",
            NativeType::Float => "float",
            NativeType::Int => "int",
            NativeType::Timestamp => "timestamp",
            NativeType::Uuid => "uuid",
            NativeType::Text => "text",
            NativeType::Varint => "varint",
            NativeType::Timeuuid => "timeuuid",
            NativeType::Inet => "inet",
            NativeType::Date => "date",
            NativeType::Time => "time",
            NativeType::Smallint => "smallint",
            NativeType::Tinyint => "tinyint",
            NativeType::Duration => "duration",
        }
    }

    /// Returns the type of that name, ignoring case. `varchar` is a name of `text`. `None` if there is no such type.
    pub fn from_name(name: &str) -> Option<NativeType> {
        if name.eq_ignore_ascii_case("varchar") {
            return Some(NativeType::Text);
        }
        Self::ALL
            .into_iter()
            .find(|native| native.name().eq_ignore_ascii_case(name))
    }

    /// Returns the length in bytes of every non-empty value. `None` if the length varies.
    ///
    /// `date` and `time` have a fixed length here. [`CqlType::fixed_len`] determines which types have a length prefix inside vectors.
    pub fn fixed_len(self) -> Option<usize> {
        match self {
            NativeType::Boolean | NativeType::Tinyint => Some(1),
            NativeType::Smallint => Some(2),
            NativeType::Int | NativeType::Float | NativeType::Date => Some(4),
            NativeType::Bigint
            | NativeType::Counter
            | NativeType::Double
            | NativeType::Timestamp
            | NativeType::Time => Some(8),
            NativeType::Uuid | NativeType::Timeuuid => Some(16),
            NativeType::Empty
            | NativeType::Ascii
            | NativeType::Blob
            | NativeType::Decimal
            | NativeType::Duration
            | NativeType::Inet
            | NativeType::Text
            | NativeType::Varint => None,
        }
    }
}

/// A user type, as defined when the enclosing type was resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserType {
    pub keyspace: String,
    pub name: String,
    pub fields: Vec<UserTypeField>,
}

/// A field of a user type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserTypeField {
    pub name: String,
    pub ty: CqlType,
}

impl UserType {
    /// Returns the index of the field with that name. `None` if there is no such field.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

/// A CQL type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlType {
    Native(NativeType),
    List {
        element: Arc<CqlType>,
        frozen: bool,
    },
    Set {
        element: Arc<CqlType>,
        frozen: bool,
    },
    Map {
        key: Arc<CqlType>,
        value: Arc<CqlType>,
        frozen: bool,
    },
    Tuple(Arc<[CqlType]>),
    Udt {
        definition: Arc<UserType>,
        frozen: bool,
    },
    Vector {
        element: Arc<CqlType>,
        /// The dimension, from 1 to 2,147,483,647 as in Cassandra. It must not determine how much memory is allocated, since the bytes may
        /// be fewer.
        dimension: u32,
    },
    /// A type written as the name of its class, in quotes.
    Custom(Arc<CustomType>),
}

/// A type of Cassandra without a name in CQL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CustomType {
    /// A UUID that sorts as two signed numbers.
    LexicalUuid,
    /// Components of these types. A value may have fewer components.
    Composite(Vec<CqlType>),
    /// Components that each name their type, by one of these aliases or by the name of a class.
    DynamicComposite(Vec<(char, CqlType)>),
}

/// Abbreviations for the scalar types, so that code reads `CqlType::INT`.
#[rustfmt::skip]
impl CqlType {
    pub const ASCII: CqlType = CqlType::Native(NativeType::Ascii);
    pub const BIGINT: CqlType = CqlType::Native(NativeType::Bigint);
    pub const BLOB: CqlType = CqlType::Native(NativeType::Blob);
    pub const BOOLEAN: CqlType = CqlType::Native(NativeType::Boolean);
    pub const COUNTER: CqlType = CqlType::Native(NativeType::Counter);
    pub const DATE: CqlType = CqlType::Native(NativeType::Date);
    pub const DECIMAL: CqlType = CqlType::Native(NativeType::Decimal);
    pub const DOUBLE: CqlType = CqlType::Native(NativeType::Double);
    pub const DURATION: CqlType = CqlType::Native(NativeType::Duration);
    pub const EMPTY: CqlType = CqlType::Native(NativeType::Empty);
    pub const FLOAT: CqlType = CqlType::Native(NativeType::Float);
    pub const INET: CqlType = CqlType::Native(NativeType::Inet);
    pub const INT: CqlType = CqlType::Native(NativeType::Int);
    pub const SMALLINT: CqlType = CqlType::Native(NativeType::Smallint);
    pub const TEXT: CqlType = CqlType::Native(NativeType::Text);
    pub const TIME: CqlType = CqlType::Native(NativeType::Time);
    pub const TIMESTAMP: CqlType = CqlType::Native(NativeType::Timestamp);
    pub const TIMEUUID: CqlType = CqlType::Native(NativeType::Timeuuid);
    pub const TINYINT: CqlType = CqlType::Native(NativeType::Tinyint);
    pub const UUID: CqlType = CqlType::Native(NativeType::Uuid);
    pub const VARINT: CqlType = CqlType::Native(NativeType::Varint);
}

impl CqlType {
    /// Returns the type with changed element types, for a collection, a tuple or a vector. User types are returned unchanged, since their
    /// definitions are shared.
    pub fn map_elements(&self, change: &impl Fn(&CqlType) -> CqlType) -> CqlType {
        let changed = |ty: &CqlType| Arc::new(change(ty));
        match self {
            CqlType::Native(_) | CqlType::Udt { .. } | CqlType::Custom(_) => self.clone(),
            CqlType::List { element, frozen } => CqlType::List {
                element: changed(element),
                frozen: *frozen,
            },
            CqlType::Set { element, frozen } => CqlType::Set {
                element: changed(element),
                frozen: *frozen,
            },
            CqlType::Map { key, value, frozen } => CqlType::Map {
                key: changed(key),
                value: changed(value),
                frozen: *frozen,
            },
            CqlType::Tuple(elements) => CqlType::tuple(elements.iter().map(change).collect::<Vec<_>>()),
            CqlType::Vector { element, dimension } => CqlType::Vector {
                element: changed(element),
                dimension: *dimension,
            },
        }
    }

    pub fn list(element: CqlType, frozen: bool) -> CqlType {
        CqlType::List {
            element: Arc::new(element),
            frozen,
        }
    }

    pub fn set(element: CqlType, frozen: bool) -> CqlType {
        CqlType::Set {
            element: Arc::new(element),
            frozen,
        }
    }

    pub fn map(key: CqlType, value: CqlType, frozen: bool) -> CqlType {
        CqlType::Map {
            key: Arc::new(key),
            value: Arc::new(value),
            frozen,
        }
    }

    pub fn tuple(elements: impl Into<Arc<[CqlType]>>) -> CqlType {
        CqlType::Tuple(elements.into())
    }

    pub fn vector(element: CqlType, dimension: u32) -> CqlType {
        CqlType::Vector {
            element: Arc::new(element),
            dimension,
        }
    }

    /// Returns true for a list, set, map or user type that is not frozen. Such a value is stored with a cell for each element.
    pub fn is_multicell(&self) -> bool {
        match self {
            CqlType::List { frozen, .. }
            | CqlType::Set { frozen, .. }
            | CqlType::Map { frozen, .. }
            | CqlType::Udt { frozen, .. } => !frozen,
            CqlType::Native(_) | CqlType::Tuple(_) | CqlType::Vector { .. } | CqlType::Custom(_) => false,
        }
    }

    /// Returns true for list, set and map, frozen or not.
    pub fn is_collection(&self) -> bool {
        matches!(
            self,
            CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. }
        )
    }

    pub fn is_counter(&self) -> bool {
        *self == CqlType::COUNTER
    }

    /// Returns true if Cassandra finds a duration, which has no order, in the type (`AbstractType.referencesDuration`). It does not look
    /// into vectors, sets and the keys of maps. These may be parts of keys, and are ordered by their bytes.
    pub fn references_duration(&self) -> bool {
        match self {
            CqlType::Native(native) => *native == NativeType::Duration,
            CqlType::List { element, .. } | CqlType::Map { value: element, .. } => {
                element.references_duration()
            }
            CqlType::Tuple(elements) => elements.iter().any(CqlType::references_duration),
            CqlType::Udt { definition, .. } => definition
                .fields
                .iter()
                .any(|field| field.ty.references_duration()),
            CqlType::Set { .. } | CqlType::Vector { .. } | CqlType::Custom(_) => false,
        }
    }

    /// Returns the type frozen, including all inner types (Cassandra's `AbstractType.freeze`).
    pub fn freeze(&self) -> CqlType {
        match self {
            CqlType::List { element, .. } => CqlType::list(element.freeze(), true),
            CqlType::Set { element, .. } => CqlType::set(element.freeze(), true),
            CqlType::Map { key, value, .. } => CqlType::map(key.freeze(), value.freeze(), true),
            CqlType::Udt { definition, .. } => CqlType::Udt {
                definition: definition.clone(),
                frozen: true,
            },
            other => other.clone(),
        }
    }

    /// Returns the length in bytes of every value, if the type fixes it (Cassandra's `AbstractType.valueLengthIfFixed`). `None` otherwise.
    /// A vector of elements with a fixed length also has a fixed length. As in Cassandra, `tinyint`, `smallint`, `date` and `time` have a
    /// variable length here, so that their vectors prefix each element with its length.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            CqlType::Native(
                NativeType::Tinyint
                | NativeType::Smallint
                | NativeType::Date
                | NativeType::Time
                | NativeType::Counter,
            ) => None,
            CqlType::Native(native) => native.fixed_len(),
            CqlType::Vector { element, dimension } => {
                let saturated = |len: usize| len.saturating_mul(*dimension as usize);
                element.fixed_len().map(saturated)
            }
            CqlType::Custom(custom) if **custom == CustomType::LexicalUuid => Some(16),
            _ => None,
        }
    }

    /// Returns true if the type is or contains a dynamic composite, which has no order in keys here.
    pub fn holds_dynamic_composite(&self) -> bool {
        match self {
            CqlType::Native(_) => false,
            CqlType::Custom(custom) => matches!(**custom, CustomType::DynamicComposite(_)),
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => element.holds_dynamic_composite(),
            CqlType::Map { key, value, .. } => {
                key.holds_dynamic_composite() || value.holds_dynamic_composite()
            }
            CqlType::Tuple(elements) => elements.iter().any(CqlType::holds_dynamic_composite),
            CqlType::Udt { definition, .. } => definition
                .fields
                .iter()
                .any(|field| field.ty.holds_dynamic_composite()),
        }
    }

    /// Returns true if the type is, or contains, a vector of more than 65,535 dimensions.
    pub fn holds_wide_vector(&self) -> bool {
        self.any(&|ty: &CqlType| match ty {
            CqlType::Vector { dimension, .. } => *dimension > u32::from(u16::MAX),
            _ => false,
        })
    }

    /// Returns the number of types in this type with its user types expanded, as the metadata of PREPARE and of rows contain it. Counting
    /// stops above `limit`, because nested user types can expand to more types than can be counted.
    pub fn expanded_count(&self, limit: usize) -> usize {
        fn count(ty: &CqlType, left: &mut usize) {
            let Some(rest) = left.checked_sub(1) else { return };
            *left = rest;
            match ty {
                CqlType::Native(_) => {}
                CqlType::List { element, .. }
                | CqlType::Set { element, .. }
                | CqlType::Vector { element, .. } => count(element, left),
                CqlType::Map { key, value, .. } => {
                    count(key, left);
                    count(value, left);
                }
                CqlType::Tuple(elements) => count_all(elements.iter(), left),
                CqlType::Udt { definition, .. } => {
                    count_all(definition.fields.iter().map(|field| &field.ty), left);
                }
                CqlType::Custom(custom) => match custom.as_ref() {
                    CustomType::LexicalUuid => {}
                    CustomType::Composite(parts) => count_all(parts.iter(), left),
                    CustomType::DynamicComposite(parts) => {
                        count_all(parts.iter().map(|(_, part)| part), left);
                    }
                },
            }
        }
        fn count_all<'t>(types: impl Iterator<Item = &'t CqlType>, left: &mut usize) {
            for ty in types {
                if *left == 0 {
                    return;
                }
                count(ty, left);
            }
        }
        let mut left = limit.saturating_add(1);
        count(self, &mut left);
        limit.saturating_add(1) - left
    }

    /// Returns true if the type is, or contains, the named user type.
    pub fn references_udt(&self, keyspace: &str, name: &str) -> bool {
        self.any(&|ty: &CqlType| match ty {
            CqlType::Udt { definition, .. } => definition.keyspace == keyspace && definition.name == name,
            _ => false,
        })
    }

    /// Returns true if `is` holds for the type, or for a type that it contains at any depth. Components of custom types are not visited.
    pub fn any(&self, is: &impl Fn(&CqlType) -> bool) -> bool {
        is(self)
            || match self {
                CqlType::Native(_) | CqlType::Custom(_) => false,
                CqlType::List { element, .. }
                | CqlType::Set { element, .. }
                | CqlType::Vector { element, .. } => element.any(is),
                CqlType::Map { key, value, .. } => key.any(is) || value.any(is),
                CqlType::Tuple(elements) => elements.iter().any(|element| element.any(is)),
                CqlType::Udt { definition, .. } => definition.fields.iter().any(|field| field.ty.any(is)),
            }
    }
}

impl fmt::Display for CqlType {
    /// Writes the type as CQL does, for example `frozen<map<text, int>>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CqlType::Native(native) => f.write_str(native.name()),
            CqlType::List { element, frozen } => frozen_wrap(f, *frozen, format_args!("list<{element}>")),
            CqlType::Set { element, frozen } => frozen_wrap(f, *frozen, format_args!("set<{element}>")),
            CqlType::Map { key, value, frozen } => {
                frozen_wrap(f, *frozen, format_args!("map<{key}, {value}>"))
            }
            CqlType::Tuple(elements) => {
                f.write_str("frozen<tuple<")?;
                for (position, element) in elements.iter().enumerate() {
                    if position > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{element}")?;
                }
                f.write_str(">>")
            }
            CqlType::Udt { definition, frozen } => {
                frozen_wrap(f, *frozen, format_args!("{}", quote_identifier(&definition.name)))
            }
            CqlType::Vector { element, dimension } => write!(f, "vector<{element}, {dimension}>"),
            CqlType::Custom(_) => write!(f, "'{}'", class_name(self)),
        }
    }
}

fn frozen_wrap(f: &mut fmt::Formatter<'_>, frozen: bool, inner: fmt::Arguments<'_>) -> fmt::Result {
    if frozen {
        write!(f, "frozen<{inner}>")
    } else {
        f.write_fmt(inner)
    }
}
