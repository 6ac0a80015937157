//! Checks of serialized values, with the messages of Cassandra's `TypeSerializer.validate`.

use super::decimal::NUMBER_BYTES_MAX;
use super::pack::{Reader, Truncated, each_element, kind_name};
use super::{custom, is_empty_meaningless, text, vint};
use crate::types::{CqlType, NativeType, UserType};

/// Checks that the bytes are a value of the type.
///
/// Most scalar types accept empty bytes too. Tinyint, smallint, date, time, duration, collections and vectors do not.
///
/// # Errors
/// The message of Cassandra's `MarshalException`, such as `Expected 4 or 0 byte int (3)`.
pub fn validate(ty: &CqlType, bytes: &[u8]) -> Result<(), String> {
    match ty {
        CqlType::Native(native) => validate_native(*native, bytes),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            each_element(ty, bytes, |one| validate(element, one))
        }
        CqlType::Map { key, value, .. } => {
            let mut of = [key, value].into_iter().cycle();
            each_element(ty, bytes, |one| of.next().map_or(Ok(()), |ty| validate(ty, one)))
        }
        CqlType::Tuple(elements) => validate_tuple(elements, bytes),
        CqlType::Udt { definition, .. } => validate_udt(definition, bytes),
        CqlType::Vector { element, dimension } => validate_vector(ty, element, *dimension, bytes),
        CqlType::Custom(custom) => custom::validate(custom, bytes),
    }
}

/// Checks a value that is bound as a whole, as [`validate`] does. Cassandra deserializes a bound collection, so its size must not be
/// negative. Empty elements of a list count as null, unless their type has an empty value. A frozen list may contain nulls, other lists may
/// not.
///
/// # Errors
/// As [`validate`], and `The data cannot be deserialized as a list`.
pub fn validate_bound(ty: &CqlType, bytes: &[u8]) -> Result<(), String> {
    match ty {
        CqlType::List {
            element,
            frozen: true,
        } => read_bound_list(element, bytes).map(drop),
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. }
            if Reader::new(bytes).int().is_some_and(i32::is_negative) =>
        {
            Err(format!("The data cannot be deserialized as a {}", kind_name(ty)))
        }
        CqlType::List { element, .. } => each_element(ty, bytes, |one| match one {
            [] if is_empty_meaningless(element) => Err("Null value read when not allowed".to_owned()),
            one => validate(element, one),
        }),
        _ => validate(ty, bytes),
    }
}

/// Returns the elements of a list that is bound for IN, which may be null (`ListSerializer.deserialize`).
///
/// # Errors
/// `The data cannot be deserialized as a list`, `Not enough bytes to read a list`, the error of an element, `Unexpected extraneous bytes
/// after list value`
pub fn read_bound_list<'a>(element: &CqlType, bytes: &'a [u8]) -> Result<Vec<Option<&'a [u8]>>, String> {
    let short = || "Not enough bytes to read a list".to_owned();
    let mut reader = Reader::new(bytes);
    let count = reader.int().ok_or_else(short)?;
    if count < 0 {
        return Err("The data cannot be deserialized as a list".to_owned());
    }
    let mut elements = Vec::new();
    for _ in 0..count {
        let value = reader.value().map_err(|Truncated| short())?;
        if let Some(value) = value {
            validate(element, value)?;
        }
        elements.push(value);
    }
    if reader.rest.is_empty() {
        Ok(elements)
    } else {
        Err("Unexpected extraneous bytes after list value".to_owned())
    }
}

fn validate_native(native: NativeType, bytes: &[u8]) -> Result<(), String> {
    let size = bytes.len();
    let or_empty = |len: usize| size == len || size == 0;
    let expect = |ok: bool, message: &str| {
        if ok {
            Ok(())
        } else {
            Err(format!("{message} ({size})"))
        }
    };
    match native {
        NativeType::Varint | NativeType::Decimal if size > NUMBER_BYTES_MAX => Err(format!(
            "A number of {size} bytes is longer than the {NUMBER_BYTES_MAX} bytes that are allowed"
        )),
        NativeType::Empty => expect(size == 0, "EmptyType only accept empty values"),
        NativeType::Ascii => match bytes.iter().find(|byte| !byte.is_ascii()) {
            Some(byte) => Err(format!("Invalid byte for ascii: {}", *byte as i8)),
            None => Ok(()),
        },
        NativeType::Text if is_utf8(bytes) => Ok(()),
        NativeType::Text => Err("String didn't validate.".to_owned()),
        NativeType::Blob | NativeType::Varint => Ok(()),
        NativeType::Boolean => expect(size <= 1, "Expected 1 or 0 byte value"),
        NativeType::Tinyint => expect(size == 1, "Expected 1 byte for a tinyint"),
        NativeType::Smallint => expect(size == 2, "Expected 2 bytes for a smallint"),
        NativeType::Int => expect(or_empty(4), "Expected 4 or 0 byte int"),
        NativeType::Bigint | NativeType::Counter => expect(or_empty(8), "Expected 8 or 0 byte long"),
        NativeType::Float => expect(or_empty(4), "Expected 4 or 0 byte value for a float"),
        NativeType::Double => expect(or_empty(8), "Expected 8 or 0 byte value for a double"),
        NativeType::Decimal => expect(size == 0 || size >= 4, "Expected 0 or at least 4 bytes"),
        NativeType::Timestamp => expect(or_empty(8), "Expected 8 or 0 byte long for date"),
        NativeType::Date => expect(size == 4, "Expected 4 byte long for date"),
        NativeType::Time => expect(size == 8, "Expected 8 byte long for time"),
        NativeType::Uuid => expect(or_empty(16), "UUID should be 16 or 0 bytes"),
        NativeType::Timeuuid => validate_timeuuid(bytes),
        NativeType::Inet if matches!(size, 0 | 4 | 16) => Ok(()),
        NativeType::Inet => Err(format!(
            "Expected 4 or 16 byte inetaddress; got {}",
            text::hex(bytes)
        )),
        NativeType::Duration => validate_duration(bytes),
    }
}

fn validate_timeuuid(bytes: &[u8]) -> Result<(), String> {
    let size = bytes.len();
    if size == 0 {
        return Ok(());
    }
    let (16, Some(first), Some(version)) = (size, bytes.first(), bytes.get(6)) else {
        return Err(format!("UUID should be 16 or 0 bytes ({size})"));
    };
    // As in Cassandra, the message shows the upper half of the first byte instead of the version.
    match version & 0xF0 {
        0x10 => Ok(()),
        _ => Err(format!("Invalid version for TimeUUID type: 0x{:x}", first >> 4)),
    }
}

fn validate_duration(bytes: &[u8]) -> Result<(), String> {
    let size = bytes.len();
    if size < 3 {
        return Err(format!("Expected at least 3 bytes for a duration ({size})"));
    }
    let mut rest = bytes;
    let mut parts = [0i64; 3];
    for part in &mut parts {
        let (value, taken) = vint::read_signed(rest).ok_or("Not enough bytes to read a duration")?;
        *part = value;
        rest = rest.get(taken..).unwrap_or_default();
    }
    let [months, days, nanoseconds] = parts;
    if i32::try_from(months).is_err() {
        return Err(format!(
            "The duration months must be a 32 bits integer but was: {months}"
        ));
    }
    if i32::try_from(days).is_err() {
        return Err(format!(
            "The duration days must be a 32 bits integer but was: {days}"
        ));
    }
    if parts.iter().any(|part| *part < 0) && parts.iter().any(|part| *part > 0) {
        return Err(format!(
            "The duration months, days and nanoseconds must be all of the same sign ({months}, {days}, {nanoseconds})"
        ));
    }
    Ok(())
}

fn validate_tuple(elements: &[CqlType], bytes: &[u8]) -> Result<(), String> {
    let mut reader = Reader::new(bytes);
    for (position, element) in elements.iter().enumerate() {
        if reader.rest.is_empty() {
            return Ok(());
        }
        let size = reader
            .int()
            .ok_or_else(|| format!("Not enough bytes to read size of {position}th component"))?;
        let Ok(size) = usize::try_from(size) else { continue };
        let field = reader
            .take(size)
            .ok_or_else(|| format!("Not enough bytes to read {position}th component"))?;
        validate(element, field)?;
    }
    if reader.rest.is_empty() {
        Ok(())
    } else {
        Err("Invalid remaining data after end of tuple value".to_owned())
    }
}

fn validate_udt(definition: &UserType, bytes: &[u8]) -> Result<(), String> {
    let mut reader = Reader::new(bytes);
    for (position, field) in definition.fields.iter().enumerate() {
        if reader.rest.is_empty() {
            return Ok(());
        }
        let name = &field.name;
        let size = reader
            .int()
            .ok_or_else(|| format!("Not enough bytes to read size of {position}th field {name}"))?;
        let Ok(size) = usize::try_from(size) else { continue };
        let value = reader
            .take(size)
            .ok_or_else(|| format!("Not enough bytes to read {position}th field {name}"))?;
        validate(&field.ty, value)
            .map_err(|reason| format!("Failure validating the {position}th field {name}; {reason}"))?;
    }
    if reader.rest.is_empty() {
        Ok(())
    } else {
        Err("Invalid remaining data after end of UDT value".to_owned())
    }
}

fn validate_vector(ty: &CqlType, element: &CqlType, dimension: u32, bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() {
        return Err("Invalid empty vector value".to_owned());
    }
    let fixed_len = element.fixed_len();
    let short = || format!("Not enough bytes to read a {ty}");
    if fixed_len.is_some_and(|len| bytes.len() < len.saturating_mul(dimension as usize)) {
        return Err(short());
    }
    let mut reader = Reader::new(bytes);
    for _ in 0..dimension {
        validate(element, reader.vector_element(fixed_len).ok_or_else(short)?)?;
    }
    match reader.rest.len() {
        0 => Ok(()),
        extra => Err(format!("Unexpected {extra} extraneous bytes after {ty} value")),
    }
}

/// The state of the automaton that Cassandra's `UTF8Serializer` runs, named by the bytes that may follow. It accepts a few sequences that
/// strict UTF-8 does not (surrogates, an overlong nul), which drivers may have stored.
#[derive(Clone, Copy, PartialEq)]
enum Utf8State {
    Start,
    Two,
    OverlongNul,
    ThreeAfterE0,
    ThreeLast,
    ThreeMiddle,
    FourAfterF0,
    FourSecond,
}

fn is_utf8(bytes: &[u8]) -> bool {
    if bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() {
        return true;
    }
    let mut state = Utf8State::Start;
    for &byte in bytes {
        let Some(next) = utf8_step(state, byte) else {
            return false;
        };
        state = next;
    }
    state == Utf8State::Start
}

fn utf8_step(state: Utf8State, byte: u8) -> Option<Utf8State> {
    let continuation = byte & 0xC0 == 0x80;
    match state {
        Utf8State::Start => match byte {
            0..=0x7F => Some(Utf8State::Start),
            0xC0 => Some(Utf8State::OverlongNul),
            0xC1 => None,
            0xC2..=0xDF => Some(Utf8State::Two),
            0xE0 => Some(Utf8State::ThreeAfterE0),
            0xE1..=0xEF => Some(Utf8State::ThreeMiddle),
            0xF0 => Some(Utf8State::FourAfterF0),
            0xF1..=0xF7 => Some(Utf8State::FourSecond),
            _ => None,
        },
        Utf8State::Two | Utf8State::ThreeLast => continuation.then_some(Utf8State::Start),
        Utf8State::OverlongNul => (byte == 0x80).then_some(Utf8State::Start),
        Utf8State::ThreeAfterE0 => (byte & 0xE0 != 0x80).then_some(Utf8State::ThreeLast),
        Utf8State::ThreeMiddle => continuation.then_some(Utf8State::ThreeLast),
        Utf8State::FourAfterF0 => (byte & 0x30 != 0).then_some(Utf8State::ThreeMiddle),
        Utf8State::FourSecond => continuation.then_some(Utf8State::ThreeMiddle),
    }
}
