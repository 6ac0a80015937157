//! Types of columns, from the names of Cassandra's classes (`db.marshal.TypeParser`).

use helenus_cql::types::class_name::parse_class_name;
use helenus_cql::types::{CqlType, NativeType};

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";
/// The partition keys in the table of a secondary index, in the order of their tokens (`PartitionerDefinedOrder`; in 3.11 also
/// `LocalByPartionerType`).
const KEYS_BY_TOKEN: [&str; 2] = ["PartitionerDefinedOrder(", "LocalByPartionerType("];

/// The type of a key or of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// Name of the class, as the file has it.
    pub class: String,
    pub ty: CqlType,
    /// True if the clustering order is descending. The bytes of values are the same.
    pub is_reversed: bool,
}

impl ColumnType {
    /// Parses the name of a class. `None` if the class is unknown, or the name is empty.
    pub fn parse(class: &str) -> Option<ColumnType> {
        let name = class.trim();
        if name.is_empty() {
            return None;
        }
        let short = name.strip_prefix(PACKAGE).unwrap_or(name);
        let ty = match KEYS_BY_TOKEN.iter().any(|start| short.starts_with(start)) {
            true => CqlType::Native(NativeType::Blob),
            false => parse_class_name(name)?,
        };
        Some(ColumnType {
            class: class.to_owned(),
            ty,
            is_reversed: short.starts_with("ReversedType("),
        })
    }

    /// Returns the type of a part of a key, which is frozen whatever its class says. Cassandra 3 leaves out `FrozenType` around user types.
    #[must_use]
    pub fn frozen(self) -> ColumnType {
        ColumnType {
            ty: self.ty.freeze(),
            ..self
        }
    }

    /// Returns the length of all values that aren't empty. `None` if they vary, and have their length before them
    /// (`AbstractType.valueLengthIfFixed`).
    pub fn value_len(&self) -> Option<usize> {
        self.ty.fixed_len()
    }

    /// Returns true if the column has many cells, each with a path (`AbstractType.isMultiCell`).
    pub fn is_complex(&self) -> bool {
        self.ty.is_multicell()
    }
}

#[cfg(test)]
#[path = "column_type_tests.rs"]
mod tests;
