//! Constants of the CQL grammar, and the types of the values that they may denote (Cassandra's `Constants.Literal`).

use std::fmt;

use bytes::Bytes;
use num_traits::ToPrimitive;

use super::{Assignment, Decimal, java, text, uuid, validate};
use crate::ast::LiteralKind;
use crate::types::{CqlType, NativeType};

impl fmt::Display for LiteralKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LiteralKind::String => "STRING",
            LiteralKind::Integer => "INTEGER",
            LiteralKind::Float => "FLOAT",
            LiteralKind::Uuid => "UUID",
            LiteralKind::Hex => "HEX",
            LiteralKind::Boolean => "BOOLEAN",
            LiteralKind::Duration => "DURATION",
        })
    }
}

impl LiteralKind {
    /// Returns the type of the constant if its context does not determine one.
    pub fn preferred_type(self, text: &str) -> CqlType {
        match self {
            LiteralKind::String if text.is_ascii() => CqlType::ASCII,
            LiteralKind::String => CqlType::TEXT,
            LiteralKind::Integer if text.parse::<i32>().is_ok() => CqlType::INT,
            LiteralKind::Integer if text.parse::<i64>().is_ok() => CqlType::BIGINT,
            LiteralKind::Integer => CqlType::VARINT,
            LiteralKind::Uuid if uuid::parse(text).is_some_and(|value| uuid::version(value) == 1) => {
                CqlType::TIMEUUID
            }
            LiteralKind::Uuid => CqlType::UUID,
            LiteralKind::Float if fits_double(text) => CqlType::DOUBLE,
            LiteralKind::Float => CqlType::DECIMAL,
            LiteralKind::Boolean => CqlType::BOOLEAN,
            // Cassandra prefers tinyint to blob for hexadecimal constants.
            LiteralKind::Hex => CqlType::TINYINT,
            LiteralKind::Duration => CqlType::DURATION,
        }
    }

    /// Returns the fit of the constant for a receiver of that type.
    pub fn test_assignment(self, text: &str, receiver: &CqlType) -> Assignment {
        let native = match receiver {
            CqlType::Native(native) => *native,
            // Values of these types can be parsed from a text by `from_string`.
            CqlType::Tuple(_) | CqlType::Custom(_) => return Assignment::WeaklyAssignable,
            _ => return Assignment::NotAssignable,
        };
        if *receiver == self.preferred_type(text) {
            Assignment::ExactMatch
        } else if self.can_become(native) {
            Assignment::WeaklyAssignable
        } else {
            Assignment::NotAssignable
        }
    }

    fn can_become(self, native: NativeType) -> bool {
        use NativeType as N;
        match self {
            LiteralKind::String => {
                matches!(
                    native,
                    N::Ascii | N::Text | N::Inet | N::Date | N::Time | N::Timestamp
                )
            }
            LiteralKind::Integer => matches!(
                native,
                N::Date
                    | N::Time
                    | N::Timestamp
                    | N::Bigint
                    | N::Counter
                    | N::Decimal
                    | N::Double
                    | N::Duration
                    | N::Float
                    | N::Int
                    | N::Smallint
                    | N::Tinyint
                    | N::Varint
            ),
            LiteralKind::Uuid => matches!(native, N::Uuid | N::Timeuuid),
            LiteralKind::Float => matches!(native, N::Decimal | N::Double | N::Float),
            LiteralKind::Boolean => native == N::Boolean,
            LiteralKind::Hex => native == N::Blob,
            LiteralKind::Duration => native == N::Duration,
        }
    }
}

/// Returns true if the shortest text of the nearest double is the same number.
fn fits_double(text: &str) -> bool {
    if matches!(text.strip_prefix('-').unwrap_or(text), "NaN" | "Infinity") {
        return true;
    }
    let Some(decimal) = Decimal::parse(text) else {
        return false;
    };
    Decimal::from_double(decimal.to_double()).is_some_and(|nearest| nearest.compare(&decimal).is_eq())
}

/// Returns the serialized value of a constant for a receiver of that name and type.
///
/// # Errors
/// `Invalid STRING constant (abc) for "v" of type int`, or an error of [`text::from_string`].
pub fn parse_literal(
    kind: LiteralKind,
    text: &str,
    receiver: &CqlType,
    receiver_name: &str,
) -> Result<Bytes, String> {
    if !kind.test_assignment(text, receiver).is_assignable() {
        return Err(format!(
            "Invalid {kind} constant ({text}) for \"{receiver_name}\" of type {receiver}"
        ));
    }
    if kind == LiteralKind::Hex {
        let bytes = text::parse_hex(text.get(2..).unwrap_or_default())?;
        if matches!(receiver, CqlType::Custom(_)) {
            validate(receiver, &bytes)?;
        }
        return Ok(bytes);
    }
    if receiver.is_counter() {
        return text::from_string(&CqlType::BIGINT, text);
    }
    text::from_string(receiver, text)
}

/// Returns the 32-bit value of an integer constant, such as that of LIMIT. `None` if it is out of range.
pub fn small_integer(text: &str) -> Option<i32> {
    java::parse_big_integer(text)?.to_i32()
}
