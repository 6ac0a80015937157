//! Values as partition keys whose tokens follow the order of the values: so ranges of values are ranges of keys, and tablets share them out.
//!
//! The key bytes are those of [`super::component`], but text-like types are their bytes as they are (a key escapes them anyway). The token is
//! computed from them, and grows with the value. Numbers are placed by their magnitude: each power of two (or ten) has the same share of the
//! ring, so that values of which most are small lie in no narrower part of it than necessary. Where values share a token, the bytes order them.

use bytes::Bytes;
use helenus_cql::types::{CqlType, NativeType};

use super::component::{MaskedReader, VALUE, encode_component, is_byte_ordered};
use super::decimal;
use crate::error::KeyError;

/// Murmur3 gives no partition the least token, and scans take it for no bound.
const TOKEN_MIN: i64 = i64::MIN + 1;
/// Bits of a `time`, the nanoseconds of a day.
const TIME_BITS: u32 = 47;
/// Bits of a magnitude's exponent: of numbers of 64 bits, of `varint`, of `decimal`.
const INTEGER_EXPONENT_BITS: u32 = 6;
const VARINT_EXPONENT_BITS: u32 = 10;
const DECIMAL_EXPONENT_BITS: u32 = 9;
/// Digits of a decimal that its token is made of.
const DECIMAL_DIGITS: usize = 16;

/// Returns true if values of the type have [`ordered_value`].
pub fn has_value_order(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(native) => !matches!(
            native,
            NativeType::Empty | NativeType::Duration | NativeType::Counter
        ),
        _ => false,
    }
}

/// Returns a serialized value as a partition key: the bytes order as `AbstractType.compare` does, and exactly the equal values have equal
/// bytes.
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

/// Returns the token of what [`ordered_value`] gave, or of the beginning of such bytes of a text-like type: of two values the greater one
/// has no lesser token.
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
        // All are of version 1, which is in front.
        NativeType::Timeuuid => signed(head(body) << 4),
        NativeType::Varint => varint_token(body),
        NativeType::Decimal => decimal_token(body),
        _ => signed(head(body)),
    }
}

/// Returns the first eight bytes as a number.
fn head(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    head.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(head)
}

/// Returns the same place among signed numbers.
fn signed(place: u64) -> i64 {
    (place ^ (1 << 63)) as i64
}

/// Returns the place of a number that is not negative: its exponent, then as many bits of `fraction`, which begins at the highest bit, as
/// there is room for.
fn magnitude(exponent: u64, exponent_bits: u32, fraction: u64) -> i64 {
    ((exponent << (63 - exponent_bits)) | (fraction >> (exponent_bits + 1))) as i64
}

/// Returns the number of bits of a number, and what follows its highest one, from the highest bit on.
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

/// `body` is the length and the two's complement bytes of [`super::scalar::encode_varint`].
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
    // Of nine bytes the first has at least one bit.
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

/// `body` is what [`super::decimal::encode`] writes.
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
        // Less than 2^54, which is the room there is.
        exponent => ((exponent + half) << (63 - DECIMAL_EXPONENT_BITS)) | digits as i64,
    };
    if is_negative { !token } else { token }
}
