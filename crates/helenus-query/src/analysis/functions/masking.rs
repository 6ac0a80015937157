//! Functions that hide data (Cassandra's `MaskingFcts`).

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{CqlValue, Decimal, Duration, pack_list, pack_tuple, pack_vector, uuid};
use md5::Digest;

use super::NativeFunction;

const PADDING: u16 = b'*' as u16;

/// Maximum length in bytes of the value that stands for the values of a type. Nested vectors and tuples could make it far longer.
const MASKED_LEN_MAX: usize = 16 << 20;

/// Returns `mask_null`.
pub fn null(ty: &CqlType) -> NativeFunction {
    NativeFunction::new("mask_null", [ty.clone()], ty.clone(), |_, _| Ok(None))
}

/// Returns `mask_default`, whose result is a fixed value of the type.
pub fn default(ty: &CqlType) -> NativeFunction {
    let masked = masked_value(ty, MASKED_LEN_MAX).ok_or_else(|| {
        CqlError::invalid(format!(
            "mask_default of {ty} would be longer than the {MASKED_LEN_MAX} bytes that are allowed: use mask_null"
        ))
    });
    NativeFunction::new("mask_default", [ty.clone()], ty.clone(), move |_, _| {
        masked.clone().map(Some)
    })
}

/// Returns `mask_replace`, whose result is the second argument.
pub fn replace(ty: &CqlType) -> NativeFunction {
    NativeFunction::new("mask_replace", [ty.clone(), ty.clone()], ty.clone(), |args, _| {
        Ok(args.get(1).cloned().flatten())
    })
}

/// Returns the value that stands for every value of a type (`AbstractType.getMaskedValue`). `None` if it is longer than `len_max`.
fn masked_value(ty: &CqlType, len_max: usize) -> Option<Bytes> {
    let masked = match ty {
        CqlType::Native(native) => masked_scalar(*native).encode(ty),
        CqlType::Custom(_) => Bytes::new(),
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => pack_list::<Bytes>([]),
        CqlType::Tuple(elements) => masked_fields(elements.iter(), len_max)?,
        CqlType::Udt { definition, .. } => {
            masked_fields(definition.fields.iter().map(|field| &field.ty), len_max)?
        }
        CqlType::Vector { element, dimension } => {
            let count = *dimension as usize;
            let len_min = count.saturating_mul(element.fixed_len().unwrap_or(1));
            if len_min > len_max {
                return None;
            }
            let masked = masked_value(element, len_max / count)?;
            pack_vector(element, std::iter::repeat_n(masked, count))
        }
    };
    (masked.len() <= len_max).then_some(masked)
}

fn masked_fields<'t>(types: impl Iterator<Item = &'t CqlType>, len_max: usize) -> Option<Bytes> {
    let mut left = len_max;
    let mut fields = Vec::new();
    for ty in types {
        let masked = masked_value(ty, left)?;
        left -= masked.len();
        fields.push(Some(masked));
    }
    Some(pack_tuple(fields))
}

fn masked_scalar(native: NativeType) -> CqlValue {
    match native {
        NativeType::Ascii | NativeType::Text => CqlValue::Text("****".to_owned()),
        NativeType::Bigint | NativeType::Counter => CqlValue::Bigint(0),
        NativeType::Blob | NativeType::Empty => CqlValue::Blob(Bytes::new()),
        NativeType::Boolean => CqlValue::Boolean(false),
        NativeType::Date => CqlValue::Date(1 << 31),
        NativeType::Decimal => CqlValue::Decimal(Decimal::new(0, 0)),
        NativeType::Double => CqlValue::Double(0.0),
        NativeType::Duration => CqlValue::Duration(Duration::default()),
        NativeType::Float => CqlValue::Float(0.0),
        NativeType::Inet => CqlValue::Inet(std::net::IpAddr::from([0, 0, 0, 0])),
        NativeType::Int => CqlValue::Int(0),
        NativeType::Smallint => CqlValue::Smallint(0),
        NativeType::Time => CqlValue::Time(0),
        NativeType::Timestamp => CqlValue::Timestamp(0),
        NativeType::Timeuuid => CqlValue::Timeuuid(uuid::min_at_millis(0)),
        NativeType::Tinyint => CqlValue::Tinyint(0),
        NativeType::Uuid => CqlValue::Uuid(0),
        NativeType::Varint => CqlValue::Varint(0.into()),
    }
}

/// Returns `mask_hash`, with or without a parameter for the name of an algorithm.
pub fn hash(ty: &CqlType, has_algorithm: bool) -> NativeFunction {
    let mut types = vec![ty.clone()];
    if has_algorithm {
        types.push(CqlType::TEXT);
    }
    NativeFunction::new("mask_hash", types, CqlType::BLOB, |args, _| {
        let Some(Some(value)) = args.first() else {
            return Ok(None);
        };
        let algorithm = args.get(1).and_then(Option::as_ref);
        let algorithm = algorithm.map_or("SHA-256".into(), |name| String::from_utf8_lossy(name));
        digest(&algorithm, value).map(Some)
    })
    .checking(|args| match args.get(1) {
        Some(Some(name)) => digest(&String::from_utf8_lossy(name), &[]).map(drop),
        _ => Ok(()),
    })
}

fn digest(algorithm: &str, value: &[u8]) -> Result<Bytes, CqlError> {
    let digest = match algorithm.to_ascii_uppercase().as_str() {
        "MD5" => md5::Md5::digest(value).to_vec(),
        "SHA" | "SHA1" | "SHA-1" => sha1::Sha1::digest(value).to_vec(),
        "SHA-224" => sha2::Sha224::digest(value).to_vec(),
        "SHA-256" => sha2::Sha256::digest(value).to_vec(),
        "SHA-384" => sha2::Sha384::digest(value).to_vec(),
        "SHA-512" => sha2::Sha512::digest(value).to_vec(),
        "SHA-512/224" => sha2::Sha512_224::digest(value).to_vec(),
        "SHA-512/256" => sha2::Sha512_256::digest(value).to_vec(),
        _ => {
            return Err(CqlError::invalid(format!(
                "Hash algorithm not found: {algorithm}"
            )));
        }
    };
    Ok(digest.into())
}

/// Returns `mask_inner` or `mask_outer`. The first hides all characters but some at the ends, the second hides those at the ends.
pub fn partial(name: &'static str, ty: &CqlType, has_padding: bool) -> NativeFunction {
    let mut types = vec![ty.clone(), CqlType::INT, CqlType::INT];
    if has_padding {
        types.push(CqlType::TEXT);
    }
    NativeFunction::new(name, types, ty.clone(), move |args, _| {
        let arg = |position: usize| args.get(position).and_then(Option::as_ref);
        let Some(value) = arg(0) else { return Ok(None) };
        let int = |position: usize| {
            let value = arg(position).and_then(|value| <[u8; 4]>::try_from(value.as_ref()).ok());
            i64::from(value.map_or(0, i32::from_be_bytes))
        };
        let padding = match arg(3) {
            Some(text) => padding(name, &String::from_utf8_lossy(text))?,
            None => PADDING,
        };
        let units: Vec<u16> = String::from_utf8_lossy(value).encode_utf16().collect();
        let (begin, end) = (int(1), units.len() as i64 - 1 - int(2));
        let masked = units.into_iter().enumerate().map(|(position, unit)| {
            let is_inner = (begin..=end).contains(&(position as i64));
            if is_inner == (name == "mask_inner") {
                padding
            } else {
                unit
            }
        });
        // An unpaired surrogate is written as a question mark.
        let masked: String = char::decode_utf16(masked)
            .map(|char| char.unwrap_or('?'))
            .collect();
        Ok(Some(Bytes::from(masked)))
    })
    .checking(move |args| match args.get(3) {
        Some(Some(text)) => padding(name, &String::from_utf8_lossy(text)).map(drop),
        _ => Ok(()),
    })
}

fn padding(name: &str, text: &str) -> Result<u16, CqlError> {
    let units: Vec<u16> = text.encode_utf16().collect();
    match units.as_slice() {
        [unit] => Ok(*unit),
        units => Err(CqlError::invalid(format!(
            "The padding argument for function system.{name} should be single-character, but '{text}' has {} characters.",
            units.len()
        ))),
    }
}

#[cfg(test)]
#[path = "masking_tests.rs"]
mod tests;
