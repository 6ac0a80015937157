//! Numbers of every CQL type, converted as by Java's `Number`.

use bytes::Bytes;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{CqlValue, Decimal};
use num_bigint::BigInt;

use num_traits::ToPrimitive;

/// The numeric types, in the order in which Cassandra declares their functions.
pub const NUMERIC: [NativeType; 9] = [
    NativeType::Tinyint,
    NativeType::Smallint,
    NativeType::Int,
    NativeType::Bigint,
    NativeType::Float,
    NativeType::Double,
    NativeType::Decimal,
    NativeType::Varint,
    NativeType::Counter,
];

/// A number. Counters are of the variant `Long`.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Varint(BigInt),
    Decimal(Decimal),
}

/// Returns the lowest 64 bits, as `BigInteger.longValue` does.
fn low_bits(value: &BigInt) -> i64 {
    let mask = BigInt::from(u64::MAX);
    (value & mask).to_u64().unwrap_or(0) as i64
}

impl Number {
    /// Decodes an argument. `None` for null and for empty bytes.
    pub fn decode(ty: &CqlType, bytes: Option<&Bytes>) -> Option<Number> {
        let bytes = bytes.filter(|bytes| !bytes.is_empty())?;
        Some(match CqlValue::decode(ty, bytes).ok()? {
            CqlValue::Tinyint(value) => Number::Byte(value),
            CqlValue::Smallint(value) => Number::Short(value),
            CqlValue::Int(value) => Number::Int(value),
            CqlValue::Bigint(value) | CqlValue::Counter(value) => Number::Long(value),
            CqlValue::Float(value) => Number::Float(value),
            CqlValue::Double(value) => Number::Double(value),
            CqlValue::Varint(value) => Number::Varint(value),
            CqlValue::Decimal(value) => Number::Decimal(value),
            _ => return None,
        })
    }

    pub fn to_long(&self) -> i64 {
        match self {
            Number::Byte(value) => i64::from(*value),
            Number::Short(value) => i64::from(*value),
            Number::Int(value) => i64::from(*value),
            Number::Long(value) => *value,
            Number::Float(value) => *value as i64,
            Number::Double(value) => *value as i64,
            Number::Varint(value) => low_bits(value),
            // A decimal whose scale is too large to convert has only zeros in its lowest bits.
            Number::Decimal(value) => value.to_big_int().map_or(0, |value| low_bits(&value)),
        }
    }

    pub fn to_int(&self) -> i32 {
        match self {
            Number::Float(value) => *value as i32,
            Number::Double(value) => *value as i32,
            other => other.to_long() as i32,
        }
    }

    pub fn to_short(&self) -> i16 {
        self.to_int() as i16
    }

    pub fn to_byte(&self) -> i8 {
        self.to_int() as i8
    }

    pub fn to_double(&self) -> f64 {
        match self {
            Number::Float(value) => f64::from(*value),
            Number::Double(value) => *value,
            Number::Varint(value) => value.to_f64().unwrap_or(f64::NAN),
            Number::Decimal(value) => value.to_double(),
            other => other.to_long() as f64,
        }
    }

    pub fn to_float(&self) -> f32 {
        match self {
            Number::Float(value) => *value,
            Number::Double(value) => *value as f32,
            Number::Varint(value) => value.to_f32().unwrap_or(f32::NAN),
            Number::Decimal(value) => value.to_float(),
            other => other.to_long() as f32,
        }
    }

    /// Converts the number as `IntegerType.toBigInteger` does. A number that is no varint is first converted to a long.
    pub fn to_varint(&self) -> BigInt {
        match self {
            Number::Varint(value) => value.clone(),
            other => BigInt::from(other.to_long()),
        }
    }

    /// Converts the number as `DecimalType.toBigDecimal` does. A number that is neither decimal nor varint is first converted to a double.
    ///
    /// # Errors
    /// Java's message for NaN and infinities.
    pub fn to_decimal(&self) -> Result<Decimal, String> {
        match self {
            Number::Decimal(value) => Ok(value.clone()),
            Number::Varint(value) => Ok(Decimal::new(value.clone(), 0)),
            other => {
                let value = other.to_double();
                if value.is_nan() {
                    return Err("A NaN cannot be converted into a decimal".to_owned());
                }
                Decimal::from_double(value)
                    .ok_or_else(|| "An infinite number cannot be converted into a decimal".to_owned())
            }
        }
    }

    /// Serializes the number as its own type.
    pub fn encode(&self) -> Bytes {
        match self {
            Number::Byte(value) => Bytes::copy_from_slice(&value.to_be_bytes()),
            Number::Short(value) => Bytes::copy_from_slice(&value.to_be_bytes()),
            Number::Int(value) => Bytes::copy_from_slice(&value.to_be_bytes()),
            Number::Long(value) => Bytes::copy_from_slice(&value.to_be_bytes()),
            Number::Float(value) => Bytes::copy_from_slice(&value.to_be_bytes()),
            Number::Double(value) => Bytes::copy_from_slice(&value.to_be_bytes()),
            Number::Varint(value) => value.to_signed_bytes_be().into(),
            Number::Decimal(value) => value.to_bytes(),
        }
    }
}

/// Returns true for float, double and decimal.
pub fn is_floating_point(native: NativeType) -> bool {
    matches!(
        native,
        NativeType::Float | NativeType::Double | NativeType::Decimal
    )
}

/// Returns the size in bytes of the numbers of a type. `None` if the size is unbounded.
pub fn size(native: NativeType) -> Option<u8> {
    match native {
        NativeType::Tinyint => Some(1),
        NativeType::Smallint => Some(2),
        NativeType::Int | NativeType::Float => Some(4),
        NativeType::Bigint | NativeType::Double | NativeType::Counter => Some(8),
        _ => None,
    }
}
