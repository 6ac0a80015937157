//! Values as partition keys whose tokens follow the order of the values. Ranges of values are therefore ranges of keys, which are
//! distributed over tablets.
//!
//! The key bytes are those of [`super::component`], but text-like types are unescaped, since a key escapes them anyway. The token is
//! computed from the key bytes, and grows with the value. Numbers are placed by their magnitude: each power of two (or ten) has the same
//! share of the ring. If most values are small, they therefore still spread over much of the ring. Where values share a token, the bytes
//! order them.

use bytes::Bytes;
use helenus_cql::types::{CqlType, NativeType};

use super::component::{MaskedReader, VALUE, encode_component, is_byte_ordered};
use super::decimal;
use crate::error::KeyError;

/// The least token that a partition can have. Murmur3 never returns `i64::MIN`, and scans treat it as no bound.
const TOKEN_MIN: i64 = i64::MIN + 1;
/// Bits of a `time`, the nanoseconds of a day.
const TIME_BITS: u32 = 47;
/// Bits of a magnitude's exponent: for 64-bit numbers, for `varint`, and for `decimal`.
const INTEGER_EXPONENT_BITS: u32 = 6;
const VARINT_EXPONENT_BITS: u32 = 10;
const DECIMAL_EXPONENT_BITS: u32 = 9;
/// Number of a decimal's digits that determine its token.
const DECIMAL_DIGITS: usize = 16;

/// Returns true if [`ordered_value`] supports the type.
pub fn has_value_order(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(native) => !matches!(
            native,
            NativeType::Empty | NativeType::Duration | NativeType::Counter
        ),
        _ => false,
    }
}

/// Returns a serialized value as a partition key. The bytes sort as `AbstractType.compare` sorts the values, and equal values (and only
/// those) have equal bytes.
///
/// # Errors
/// If it is not a value of the type, or the type has no order.
pub fn ordered_value(ty: &CqlType, value: &[u8]) -> Result<Bytes, KeyError> {
    if !has_value_order(ty) {
        return Err(KeyError::UnsupportedType { ty: ty.to_string() });
    }
    if is_byte_ordered(ty) {
        return Ok(Bytes::copy_from_slice(value));
    }
    let mut out = Vec::with_capacity(value.len() + 2);
    encode_component(ty, value, &mut out)?;
    Ok(out.into())
}

/// Returns the token of a result of [`ordered_value`]. For a text-like type, a prefix of the result is enough. A greater value never has a
/// lesser token.
pub fn ordered_token(ty: &CqlType, ordered: &[u8]) -> i64 {
    let token = match (ty, ordered) {
        (ty, ordered) if is_byte_ordered(ty) => signed(head(ordered)),
        (CqlType::Native(native), [VALUE, body @ ..]) => scalar_token(*native, body),
        _ => TOKEN_MIN,
    };
    token.max(TOKEN_MIN)
}

fn scalar_token(native: NativeType, body: &[u8]) -> i64 {
    match native {
        NativeType::Tinyint
        | NativeType::Smallint
        | NativeType::Int
        | NativeType::Bigint
        | NativeType::Timestamp
        | NativeType::Date => integer_token(signed(head(body)) >> (64 - 8 * body.len().clamp(1, 8))),
        NativeType::Time => signed(head(body).min((1 << TIME_BITS) - 1) << (64 - TIME_BITS)),
        // The shift removes the version, which is in front and is 1 for all timeuuids.
        NativeType::Timeuuid => signed(head(body) << 4),
        NativeType::Varint => varint_token(body),
        NativeType::Decimal => decimal_token(body),
        _ => signed(head(body)),
    }
}

/// Returns the first eight bytes as a number, padded with zeros.
fn head(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    head.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(head)
}

/// Maps an unsigned position to a signed token, keeping the order.
fn signed(place: u64) -> i64 {
    (place ^ (1 << 63)) as i64
}

/// Returns the token of a number that is not negative: its exponent, then the highest bits of `fraction` that still fit. `fraction` begins
/// at its highest bit.
fn magnitude(exponent: u64, exponent_bits: u32, fraction: u64) -> i64 {
    ((exponent << (63 - exponent_bits)) | (fraction >> (exponent_bits + 1))) as i64
}

/// Returns the number of significant bits, and the bits that follow the highest one, left-aligned.
fn bits_and_fraction(number: u64) -> (u64, u64) {
    match number.leading_zeros() {
        64 => (0, 0),
        zeros => (u64::from(64 - zeros), (number << zeros) << 1),
    }
}

fn integer_token(number: i64) -> i64 {
    let (bits, fraction) = bits_and_fraction((number ^ (number >> 63)) as u64);
    magnitude(bits, INTEGER_EXPONENT_BITS, fraction) ^ (number >> 63)
}

/// Returns the token of a varint. `body` is the length and the two's complement bytes of [`super::scalar::encode_varint`].
fn varint_token(body: &[u8]) -> i64 {
    let is_negative = body.first().is_some_and(|&first| first < 0x80);
    let sign = if is_negative { 0xff } else { 0 };
    let header_len = match body.first() {
        Some(0x00 | 0xff) => 5,
        _ => 1,
    };
    let digits = body.get(header_len..).unwrap_or_default();
    let zeros = digits.iter().take_while(|&&byte| byte == sign).count();
    let digits = digits.get(zeros..).unwrap_or_default();
    // A fraction of 64 bits needs at most nine bytes, since the first byte has at least one significant bit.
    let mut first = [0u8; 16];
    first
        .iter_mut()
        .zip(digits)
        .for_each(|(to, from)| *to = *from ^ sign);
    let first = u128::from_be_bytes(first);
    let exponent_max = (1u64 << VARINT_EXPONENT_BITS) - 1;
    let bits = (8 * digits.len() as u64).saturating_sub(u64::from(first.leading_zeros()));
    let token = match first.leading_zeros() {
        128 => 0,
        _ if bits > exponent_max => i64::MAX,
        zeros => magnitude(bits, VARINT_EXPONENT_BITS, (((first << zeros) << 1) >> 64) as u64),
    };
    if is_negative { !token } else { token }
}

/// Returns the token of a decimal. `body` is the output of [`super::decimal::encode`].
fn decimal_token(body: &[u8]) -> i64 {
    let half = 1i64 << (DECIMAL_EXPONENT_BITS - 1);
    let Ok((is_negative, exponent, digits)) =
        decimal::leading_digits(&mut MaskedReader::new(body), DECIMAL_DIGITS)
    else {
        return 0;
    };
    let token = match exponent {
        exponent if exponent < -half => 0,
        exponent if exponent >= half => i64::MAX,
        // `digits` is less than 2^54, so it fits below the exponent.
        exponent => ((exponent + half) << (63 - DECIMAL_EXPONENT_BITS)) | digits as i64,
    };
    if is_negative { !token } else { token }
}
