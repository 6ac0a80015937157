//! Decimals as ordered bytes: sign, exponent, then decimal digits, so that `1.0` and `1.00` are the same bytes
//! (`BigDecimal.compareTo` calls them equal).

use num_bigint::{BigInt, Sign};

use super::component::MaskedReader;
use super::scalar::{decode_varint, encode_varint};
use crate::error::KeyError;

const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;

/// Maximum number of zeros at the end of a whole number that is decoded without an exponent (`100` rather than `1E+2`).
const ZEROS_MAX: i64 = 64;

/// Appends the ordered bytes of a serialized decimal. Returns true if the value is in canonical form, and `None` if it isn't a decimal.
pub(crate) fn encode(value: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let (scale, unscaled) = value.split_first_chunk::<4>()?;
    if unscaled.is_empty() {
        return None;
    }
    let scale = i64::from(i32::from_be_bytes(*scale));
    let (sign, digits) = digits_of(unscaled);
    if sign == Sign::NoSign {
        out.push(ZERO);
        return Some(scale == 0 && unscaled == [0]);
    }
    let exponent = digits.len() as i64 - scale;
    let significant = digits.len() - digits.iter().rev().take_while(|&&digit| digit == 0).count();
    let digits = digits.get(..significant)?;
    if significant as i64 - exponent < i64::from(i32::MIN) {
        return None;
    }
    out.push(if sign == Sign::Minus { NEGATIVE } else { POSITIVE });
    let start = out.len();
    encode_varint(&exponent.to_be_bytes(), out);
    for pair in digits.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        out.push(pair.first()? * 10 + low + 1);
    }
    out.push(0);
    if sign == Sign::Minus {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
    Some(canonical(sign, digits, exponent)? == value)
}

/// Returns the sign and the decimal digits, most significant first, of a two's complement number.
fn digits_of(unscaled: &[u8]) -> (Sign, Vec<u8>) {
    if unscaled.len() <= 8 {
        let negative = unscaled.first().is_some_and(|&byte| byte >= 0x80);
        let start = if negative { -1i64 } else { 0 };
        let number = unscaled
            .iter()
            .fold(start, |number, &byte| (number << 8) | i64::from(byte));
        return small_digits(number);
    }
    let (sign, mut digits) = BigInt::from_signed_bytes_be(unscaled).to_radix_le(10);
    digits.reverse();
    (sign, digits)
}

fn small_digits(number: i64) -> (Sign, Vec<u8>) {
    let sign = match number {
        0 => Sign::NoSign,
        1.. => Sign::Plus,
        _ => Sign::Minus,
    };
    let mut rest = number.unsigned_abs();
    let mut digits = Vec::with_capacity(20);
    while rest > 0 {
        digits.push((rest % 10) as u8);
        rest /= 10;
    }
    digits.reverse();
    (sign, digits)
}

/// Returns the serialized form that a key decodes to. Fractions have no zeros at their end, and only large whole numbers have an exponent.
fn canonical(sign: Sign, digits: &[u8], exponent: i64) -> Option<Vec<u8>> {
    let mut scale = digits.len() as i64 - exponent;
    let mut digits = digits.to_vec();
    if (-ZEROS_MAX..0).contains(&scale) {
        digits.resize(digits.len() + scale.unsigned_abs() as usize, 0);
        scale = 0;
    }
    let mut value = i32::try_from(scale).ok()?.to_be_bytes().to_vec();
    if digits.len() <= 18 {
        let number = digits
            .iter()
            .fold(0i64, |number, &digit| number * 10 + i64::from(digit));
        let number = if sign == Sign::Minus { -number } else { number };
        value.extend_from_slice(super::scalar::minimal(&number.to_be_bytes()));
    } else {
        value.extend_from_slice(&BigInt::from_radix_be(sign, &digits, 10)?.to_signed_bytes_be());
    }
    Some(value)
}

/// Appends the canonical serialized form.
pub(crate) fn decode(reader: &mut MaskedReader<'_>, out: &mut Vec<u8>) -> Result<(), KeyError> {
    let sign = match reader.byte()? {
        NEGATIVE => Sign::Minus,
        ZERO => {
            out.extend_from_slice(&[0, 0, 0, 0, 0]);
            return Ok(());
        }
        POSITIVE => Sign::Plus,
        _ => return Err(KeyError::Corrupt("unknown sign of a decimal")),
    };
    if sign == Sign::Minus {
        reader.toggle();
    }
    let exponent = decode_exponent(reader);
    let digits = decode_digits(reader);
    if sign == Sign::Minus {
        reader.toggle();
    }
    let value = canonical(sign, &digits?, exponent?).ok_or(KeyError::Corrupt("decimal out of range"))?;
    out.extend_from_slice(&value);
    Ok(())
}

/// Reads the beginning of a decimal that [`encode`] wrote. Returns true if it is negative, its exponent (`0.d1d2… × 10^exponent`), and its
/// first `count` digits as a number. `count` must be even.
pub(crate) fn leading_digits(
    reader: &mut MaskedReader<'_>,
    count: usize,
) -> Result<(bool, i64, u64), KeyError> {
    let is_negative = match reader.byte()? {
        NEGATIVE => true,
        ZERO => return Ok((false, i64::MIN, 0)),
        _ => false,
    };
    if is_negative {
        reader.toggle();
    }
    let exponent = decode_exponent(reader)?;
    let mut number = 0u64;
    let mut is_done = false;
    for _ in 0..count / 2 {
        let pair = if is_done { 0 } else { reader.byte()? };
        is_done |= pair == 0;
        number = number
            .wrapping_mul(100)
            .wrapping_add(u64::from(pair.saturating_sub(1)));
    }
    Ok((is_negative, exponent, number))
}

fn decode_exponent(reader: &mut MaskedReader<'_>) -> Result<i64, KeyError> {
    let mut bytes = Vec::with_capacity(8);
    decode_varint(reader, &mut bytes)?;
    if bytes.len() > 8 {
        return Err(KeyError::Corrupt("exponent of a decimal out of range"));
    }
    let start = if bytes.first().is_some_and(|&byte| byte >= 0x80) {
        -1i64
    } else {
        0
    };
    Ok(bytes
        .iter()
        .fold(start, |number, &byte| (number << 8) | i64::from(byte)))
}

fn decode_digits(reader: &mut MaskedReader<'_>) -> Result<Vec<u8>, KeyError> {
    let mut digits = Vec::new();
    loop {
        match reader.byte()? {
            0 => break,
            pair @ 1..=100 => digits.extend_from_slice(&[(pair - 1) / 10, (pair - 1) % 10]),
            _ => return Err(KeyError::Corrupt("unknown digits of a decimal")),
        }
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    Ok(digits)
}
