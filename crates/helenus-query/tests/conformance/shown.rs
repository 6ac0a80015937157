//! Text of serialized values, in the format of `tests/conformance/codec.py`.

use helenus_cql::types::NativeType;
use num_bigint::BigInt;
use uuid::Uuid;

use crate::text::{hex, quote};
use crate::types::Type;

/// Returns the text of a serialized value. A value that the type does not allow is shown as marked hexadecimal digits.
pub fn show(ty: &Type, value: Option<&[u8]>) -> String {
    match value {
        None => "null".to_owned(),
        Some(bytes) => strict(ty, bytes).unwrap_or_else(|| format!("0x{}!{ty}", hex(bytes))),
    }
}

fn strict(ty: &Type, bytes: &[u8]) -> Option<String> {
    match ty {
        Type::Native(NativeType::Text | NativeType::Ascii) => std::str::from_utf8(bytes).ok().map(quote),
        Type::Native(NativeType::Blob) | Type::Custom(_) => Some(format!("0x{}", hex(bytes))),
        _ if bytes.is_empty() => Some("<empty>".to_owned()),
        Type::Native(native) => scalar(*native, bytes),
        Type::List(element) => collection(bytes, &[element]).map(|items| format!("[{items}]")),
        Type::Set(element) => collection(bytes, &[element]).map(|items| format!("{{{items}}}")),
        Type::Map(key, value) => collection(bytes, &[key, value]).map(|items| format!("{{{items}}}")),
        Type::Tuple(types) => {
            let fields = types.iter().map(|ty| (None, ty));
            parts(bytes, fields).map(|items| format!("({items})"))
        }
        Type::User { fields, .. } => {
            let fields = fields.iter().map(|(name, ty)| (Some(name.as_str()), ty));
            parts(bytes, fields).map(|items| format!("{{{items}}}"))
        }
        Type::Vector(element, dimension) => vector(bytes, element, *dimension),
    }
}

fn scalar(native: NativeType, bytes: &[u8]) -> Option<String> {
    Some(match native {
        NativeType::Bigint | NativeType::Counter | NativeType::Timestamp | NativeType::Time => {
            i64::from_be_bytes(bytes.try_into().ok()?).to_string()
        }
        NativeType::Int => i32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        NativeType::Smallint => i16::from_be_bytes(bytes.try_into().ok()?).to_string(),
        NativeType::Tinyint => i8::from_be_bytes(bytes.try_into().ok()?).to_string(),
        NativeType::Boolean => (<[u8; 1]>::try_from(bytes).ok()?[0] != 0).to_string(),
        NativeType::Date => {
            let day = u32::from_be_bytes(bytes.try_into().ok()?);
            format!("day {}", i64::from(day) - (1 << 31))
        }
        NativeType::Double => {
            let value = f64::from_be_bytes(bytes.try_into().ok()?);
            number(&format!("{value:e}"), value)
        }
        NativeType::Float => {
            let value = f32::from_be_bytes(bytes.try_into().ok()?);
            number(&format!("{value:e}"), f64::from(value))
        }
        NativeType::Varint => BigInt::from_signed_bytes_be(bytes).to_string(),
        NativeType::Decimal => decimal(bytes)?,
        NativeType::Uuid | NativeType::Timeuuid => {
            Uuid::from_bytes(bytes.try_into().ok()?).hyphenated().to_string()
        }
        NativeType::Inet => address(bytes)?,
        NativeType::Duration => {
            let (months, rest) = signed_vint(bytes)?;
            let (days, rest) = signed_vint(rest)?;
            let (nanos, _) = signed_vint(rest)?;
            format!("{months}mo{days}d{nanos}ns")
        }
        NativeType::Empty | NativeType::Text | NativeType::Ascii | NativeType::Blob => return None,
    })
}

/// Returns a float as Python writes it, from its shortest digits in Rust's scientific notation.
fn number(scientific: &str, value: f64) -> String {
    if !value.is_finite() {
        return scientific.replace("NaN", "nan");
    }
    let (mantissa, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let count = digits.len() as i32;
    if !(-4..16).contains(&exponent) {
        let point = if count > 1 { "." } else { "" };
        let sign_of_exponent = if exponent < 0 { '-' } else { '+' };
        let magnitude = exponent.abs();
        return format!(
            "{sign}{}{point}{}e{sign_of_exponent}{magnitude:02}",
            &digits[..1],
            &digits[1..]
        );
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    if exponent + 1 >= count {
        let zeros = "0".repeat((exponent + 1 - count) as usize);
        return format!("{sign}{digits}{zeros}.0");
    }
    let (whole, fraction) = digits.split_at((exponent + 1) as usize);
    format!("{sign}{whole}.{fraction}")
}

/// Maximum scale whose digits are written out. Beyond it, only the unscaled value and the exponent are shown.
const SCALE_MAX: i32 = 100_000;

/// Returns the text of a decimal, in scientific notation if plain digits would be many.
fn decimal(bytes: &[u8]) -> Option<String> {
    let (scale, unscaled) = bytes.split_at_checked(4)?;
    let scale = i32::from_be_bytes(scale.try_into().ok()?);
    let unscaled = BigInt::from_signed_bytes_be(unscaled).to_string();
    let exponent = -i64::from(scale);
    if scale.unsigned_abs() > SCALE_MAX as u32 {
        return Some(format!("{unscaled}E{exponent}"));
    }
    let (sign, digits) = match unscaled.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", unscaled.as_str()),
    };
    let count = digits.len() as i64;
    let adjusted = exponent + count - 1;
    if exponent > 0 || adjusted < -6 {
        let point = if count > 1 { "." } else { "" };
        return Some(format!(
            "{sign}{}{point}{}E{adjusted:+}",
            &digits[..1],
            &digits[1..]
        ));
    }
    let whole = count + exponent;
    Some(match usize::try_from(whole) {
        _ if exponent == 0 => format!("{sign}{digits}"),
        Ok(whole) if whole > 0 => format!("{sign}{}.{}", &digits[..whole], &digits[whole..]),
        _ => format!("{sign}0.{}{digits}", "0".repeat(whole.unsigned_abs() as usize)),
    })
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::Ipv4Addr::from(four).to_string());
    }
    let sixteen = <[u8; 16]>::try_from(bytes).ok()?;
    let address = std::net::Ipv6Addr::from(sixteen);
    let [.., high, low] = address.segments();
    Some(match address.to_ipv4_mapped() {
        Some(_) => format!("::ffff:{high:x}:{low:x}"),
        None => address.to_string(),
    })
}

/// Decodes an unsigned variable-length number. Returns it with the bytes after it.
pub fn vint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let extra = first.leading_ones() as usize;
    let (body, rest) = rest.split_at_checked(extra)?;
    let start = if extra < 8 {
        u64::from(first) & (0xFF >> extra)
    } else {
        0
    };
    let value = body
        .iter()
        .fold(start, |value, byte| value << 8 | u64::from(*byte));
    Some((value, rest))
}

fn signed_vint(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (value, rest) = vint(bytes)?;
    Some(((value >> 1) as i64 ^ -((value & 1) as i64), rest))
}

fn count(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (count, rest) = bytes.split_at_checked(4)?;
    Some((i32::from_be_bytes(count.try_into().ok()?), rest))
}

/// Returns the text of a value that has its length before it, with the bytes after it.
fn sized<'b>(ty: &Type, bytes: &'b [u8]) -> Option<(String, &'b [u8])> {
    let (len, rest) = count(bytes)?;
    match usize::try_from(len) {
        Err(_) => Some(("null".to_owned(), rest)),
        Ok(len) => {
            let (value, rest) = rest.split_at_checked(len)?;
            Some((show(ty, Some(value)), rest))
        }
    }
}

/// Returns the text of a collection's elements, or of its keys and values.
fn collection(bytes: &[u8], types: &[&Type]) -> Option<String> {
    let (length, mut rest) = count(bytes)?;
    let mut items = Vec::new();
    for _ in 0..length {
        let mut item = Vec::new();
        for ty in types {
            let (text, after) = sized(ty, rest)?;
            item.push(text);
            rest = after;
        }
        items.push(item.join(": "));
    }
    rest.is_empty().then(|| items.join(", "))
}

/// Returns the text of the values of a tuple or a user type. The last ones may be missing.
fn parts<'t>(bytes: &[u8], fields: impl Iterator<Item = (Option<&'t str>, &'t Type)>) -> Option<String> {
    let mut rest = bytes;
    let mut items = Vec::new();
    for (name, ty) in fields {
        let text = match rest {
            [] => "absent".to_owned(),
            _ => {
                let (text, after) = sized(ty, rest)?;
                rest = after;
                text
            }
        };
        items.push(name.map_or_else(|| text.clone(), |name| format!("{name}: {text}")));
    }
    rest.is_empty().then(|| items.join(", "))
}

fn vector(bytes: &[u8], element: &Type, dimension: usize) -> Option<String> {
    let mut rest = bytes;
    let mut items = Vec::new();
    for _ in 0..dimension {
        let len = match element.vector_len() {
            Some(len) => len,
            None => {
                let (len, after) = vint(rest)?;
                rest = after;
                usize::try_from(len).ok()?
            }
        };
        let (value, after) = rest.split_at_checked(len)?;
        items.push(show(element, Some(value)));
        rest = after;
    }
    rest.is_empty().then(|| format!("v[{}]", items.join(", ")))
}
