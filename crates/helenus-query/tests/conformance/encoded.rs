//! Serialization of bound values from text, in the format of `tests/conformance/codec.py`.

use bytes::{BufMut, Bytes};
use helenus_cql::types::NativeType;
use helenus_query::request::BoundValue;
use num_bigint::BigInt;
use uuid::Uuid;

use crate::text::{split_top, unhex};
use crate::types::Type;

/// Encodes `null`, `unset`, `raw(0x…)`, or a value of the given type.
pub fn encode(ty: &Type, text: &str) -> BoundValue {
    let text = text.trim();
    match text {
        "null" => BoundValue::Null,
        "unset" => BoundValue::Unset,
        _ => BoundValue::Set(Bytes::from(value(ty, text))),
    }
}

/// Encodes a value that names its type, as in `int 5`.
pub fn typed(text: &str) -> BoundValue {
    match text.split_once(' ') {
        Some((ty, value)) => encode(&Type::parse(ty), value),
        None if matches!(text, "null" | "unset") => encode(&Type::Native(NativeType::Int), text),
        None => encode(&Type::parse(text), ""),
    }
}

fn value(ty: &Type, text: &str) -> Vec<u8> {
    let text = text.trim();
    if let Some(raw) = text.strip_prefix("raw(") {
        let digits = raw.strip_suffix(')').unwrap_or(raw);
        return unhex(digits.strip_prefix("0x").unwrap_or(digits));
    }
    match ty {
        Type::Native(native) => scalar(*native, text),
        Type::Custom(_) => scalar(NativeType::Blob, text),
        Type::List(element) | Type::Set(element) => {
            let items = inner(text);
            let mut out = counted(items.len());
            items
                .iter()
                .for_each(|item| out.extend(sized(element, Some(item))));
            out
        }
        Type::Map(key, value) => {
            let items = inner(text);
            let mut out = counted(items.len());
            for item in &items {
                let pair = split_top(item, ':');
                out.extend(sized(key, pair.first()));
                out.extend(sized(value, pair.get(1)));
            }
            out
        }
        Type::Tuple(types) => {
            let items = inner(text);
            let values = types.iter().zip(&items);
            values.flat_map(|(ty, item)| sized(ty, Some(item))).collect()
        }
        Type::User { fields, .. } => user_type(fields, text),
        Type::Vector(element, _) => vector(element, text),
    }
}

/// Returns the comma-separated parts between brackets.
fn inner(text: &str) -> Vec<String> {
    let mut chars = text.chars();
    chars.next();
    chars.next_back();
    split_top(chars.as_str(), ',')
}

fn counted(count: usize) -> Vec<u8> {
    (count as i32).to_be_bytes().to_vec()
}

fn sized(ty: &Type, text: Option<&String>) -> Vec<u8> {
    let text = text.map_or("null", |text| text.trim());
    if text == "null" {
        return (-1i32).to_be_bytes().to_vec();
    }
    let value = value(ty, text);
    let mut out = counted(value.len());
    out.extend(value);
    out
}

fn user_type(fields: &[(String, Type)], text: &str) -> Vec<u8> {
    let given: Vec<Vec<String>> = inner(text).iter().map(|item| split_top(item, ':')).collect();
    let of = |name: &str| given.iter().rev().find(|pair| pair[0] == name);
    fields
        .iter()
        .flat_map(|(name, ty)| sized(ty, of(name).and_then(|pair| pair.get(1))))
        .collect()
}

fn vector(element: &Type, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for item in inner(text) {
        let value = value(element, &item);
        if element.vector_len().is_none() {
            put_vint(&mut out, value.len() as u64);
        }
        out.extend(value);
    }
    out
}

fn unquoted(text: &str) -> String {
    match text.strip_prefix('\'') {
        Some(rest) => rest.strip_suffix('\'').unwrap_or(rest).replace("''", "'"),
        None => text.to_owned(),
    }
}

fn parse<T: std::str::FromStr>(text: &str) -> T {
    let parsed = text.trim().parse();
    parsed.unwrap_or_else(|_| panic!("not a value: {text}"))
}

fn scalar(native: NativeType, text: &str) -> Vec<u8> {
    match native {
        NativeType::Bigint | NativeType::Counter | NativeType::Timestamp | NativeType::Time => {
            parse::<i64>(text).to_be_bytes().to_vec()
        }
        NativeType::Int => parse::<i32>(text).to_be_bytes().to_vec(),
        NativeType::Smallint => parse::<i16>(text).to_be_bytes().to_vec(),
        NativeType::Tinyint => parse::<i8>(text).to_be_bytes().to_vec(),
        NativeType::Text | NativeType::Ascii => unquoted(text).into_bytes(),
        NativeType::Blob | NativeType::Empty => unhex(text.strip_prefix("0x").unwrap_or(text)),
        NativeType::Boolean => vec![u8::from(text == "true")],
        NativeType::Date => date(text),
        NativeType::Double => parse::<f64>(text).to_be_bytes().to_vec(),
        NativeType::Float => (parse::<f64>(text) as f32).to_be_bytes().to_vec(),
        NativeType::Varint => varint(&parse(text)),
        NativeType::Decimal => decimal(text),
        NativeType::Uuid | NativeType::Timeuuid => parse::<Uuid>(text).as_bytes().to_vec(),
        NativeType::Inet => match parse(&unquoted(text)) {
            std::net::IpAddr::V4(address) => address.octets().to_vec(),
            std::net::IpAddr::V6(address) => address.octets().to_vec(),
        },
        NativeType::Duration => duration(text),
    }
}

/// Encodes a date that is given as days since 1970-01-01 or as a date in quotes.
fn date(text: &str) -> Vec<u8> {
    let days = match text.starts_with('\'') {
        true => days_of(&unquoted(text)),
        false => parse(text),
    };
    ((days + (1 << 31)) as u32).to_be_bytes().to_vec()
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
fn days_of(date: &str) -> i64 {
    let mut parts = date.split('-').map(parse::<i64>);
    let mut next = || parts.next().expect("year, month and day");
    let (year, month, day) = (next(), next(), next());
    // Years begin in March here, so that a leap day is the last day of a year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// Encodes a number in two's complement. The length has room for the sign, so some numbers have one byte more than they need.
fn varint(number: &BigInt) -> Vec<u8> {
    let len = ((number.magnitude().bits() as usize + 8) / 8).max(1);
    let bytes = number.to_signed_bytes_be();
    let sign = if number.sign() == num_bigint::Sign::Minus {
        0xFF
    } else {
        0
    };
    let mut out = vec![sign; len.saturating_sub(bytes.len())];
    out.extend(bytes);
    out
}

fn decimal(text: &str) -> Vec<u8> {
    let lower = text.to_ascii_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = fraction.len() as i64 - parse::<i64>(exponent.trim_start_matches('+'));
    let mut out = (scale as i32).to_be_bytes().to_vec();
    out.extend(varint(&parse(&format!("{whole}{fraction}"))));
    out
}

fn duration(text: &str) -> Vec<u8> {
    let (months, rest) = text.split_once("mo").expect("months");
    let (days, rest) = rest.split_once('d').expect("days");
    let nanos = rest.strip_suffix("ns").expect("nanoseconds");
    let mut out = Vec::new();
    for part in [months, days, nanos] {
        let number: i64 = parse(part);
        put_vint(&mut out, (number << 1 ^ number >> 63) as u64);
    }
    out
}

fn put_vint(out: &mut Vec<u8>, number: u64) {
    let bits = (64 - number.leading_zeros() as usize).max(1);
    let extra = ((bits - 1) / 7).min(8);
    if extra == 8 {
        out.put_u8(0xFF);
        out.put_u64(number);
        return;
    }
    let bytes = number.to_be_bytes();
    let start = out.len();
    out.extend_from_slice(&bytes[7 - extra..]);
    out[start] |= !(0xFFu32 >> extra) as u8;
}
