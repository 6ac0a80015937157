//! Values as the native protocol encodes them, used together with their [`CqlType`].
//!
//! The bytes that drivers send are stored and returned unchanged. The engine therefore passes serialized bytes around, as Cassandra does
//! with `ByteBuffer`. The functions here check, compare, split, build, parse and print them. Messages are those of Cassandra's
//! `MarshalException`s.

pub mod assign;
pub mod civil;
pub mod compare;
pub mod custom;
pub mod date;
pub mod decimal;
pub mod decoded;
pub mod duration;
mod in_order;
pub mod inet;
pub mod java;
pub mod json;
pub mod json_reader;
pub mod literal;
pub mod pack;
pub mod text;
pub mod time;
pub mod timestamp;
mod trailing_nulls;
pub mod uuid;
pub mod validate;
pub mod vint;
mod zone;

/// Maximum decimal digits of a number given as text, and maximum digits that an operation adds to a number to change its scale. Only
/// malicious clients exceed it.
pub const DIGITS_MAX: u32 = 100_000;

#[cfg(test)]
mod value_tests;

pub use assign::{Assignment, is_compatible_with, is_value_compatible_with, test_assignment};
pub use compare::compare;
pub use decimal::Decimal;
pub use decoded::CqlValue;
pub use duration::Duration;
pub use in_order::{as_bound, in_order};
pub use json::{from_json, to_json};
pub use json_reader::{JsonError, read as parse_json};
pub use literal::parse_literal;
pub use pack::{
    pack_list, pack_map, pack_set, pack_tuple, pack_vector, read_elements, read_map, read_nullable_elements,
    read_tuple, read_vector,
};
pub use text::{from_string, get_string, hex, to_cql_literal};
pub use trailing_nulls::{may_have_trailing_nulls, without_trailing_nulls};
pub use validate::{read_bound_list, validate, validate_bound};

use crate::types::{CqlType, CustomType, NativeType};

/// Returns true if an empty value may be an element of a vector of that type.
pub fn may_be_empty_in_vector(element: &CqlType) -> bool {
    element.fixed_len().is_none() && !is_empty_meaningless(element)
}

/// Returns true if an empty value of the type means no value (Cassandra's `AbstractType.isEmptyValueMeaningless`).
pub fn is_empty_meaningless(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(native) => !matches!(
            native,
            NativeType::Ascii
                | NativeType::Text
                | NativeType::Blob
                | NativeType::Date
                | NativeType::Time
                | NativeType::Smallint
                | NativeType::Tinyint
                | NativeType::Duration
        ),
        CqlType::Custom(custom) => **custom == CustomType::LexicalUuid,
        _ => false,
    }
}

/// Returns true if the bytes hold no value of the type (Cassandra's `TypeSerializer.isNull` on bytes that are not null). Empty bytes hold
/// no value, except for types with an empty value.
pub fn is_null(ty: &CqlType, bytes: &[u8]) -> bool {
    bytes.is_empty()
        && matches!(
            ty,
            CqlType::Native(native)
                if !matches!(native, NativeType::Ascii | NativeType::Text | NativeType::Blob)
        )
}

/// Returns the bytes as an array. `None` if the slice does not have exactly that length.
pub(crate) fn exactly<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}
