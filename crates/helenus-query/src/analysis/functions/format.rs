//! `format_bytes` and `format_time` (Cassandra's `FormatFcts`): numbers with a unit, for people.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};

use super::NativeFunction;
use super::native::Args;
use super::number::Number;

/// The types of a number that is formatted. Text must hold a number.
pub(super) const FORMATTED: &[CqlType] = &[
    CqlType::INT,
    CqlType::TINYINT,
    CqlType::SMALLINT,
    CqlType::BIGINT,
    CqlType::VARINT,
    CqlType::ASCII,
    CqlType::TEXT,
];

/// A unit, and its size in the smallest unit of its kind.
type Unit = (&'static str, i128);

const BYTES: [Unit; 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

const TIMES: [Unit; 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Index of the unit of milliseconds in [`TIMES`].
const MILLISECONDS: usize = 2;

/// Returns `format_bytes` for arguments of these types: a number, the unit of the result, or the unit of the number and that of the result.
pub fn bytes(types: &[CqlType]) -> NativeFunction {
    let number = types.first().cloned().unwrap_or(CqlType::INT);
    NativeFunction::new("format_bytes", types, CqlType::TEXT, move |args, _| {
        let Some(value) = formatted(&number, args)? else {
            return Ok(None);
        };
        let [.., (_, kib), (_, mib), (_, gib)] = BYTES;
        let (from, to) = match units(args, byte_unit)? {
            (from, Some((to, _))) => (from.map_or(1, |((_, size), _)| size), to),
            (_, None) => {
                // The unit of a single argument is the largest one that is less than the number.
                let largest = [gib, mib, kib].into_iter().find(|size| value > *size);
                let unit = BYTES.into_iter().find(|(_, size)| Some(*size) == largest);
                (1, unit.unwrap_or(("B", 1)))
            }
        };
        Ok(Some(text(converted(value, from, to.1), to.0)))
    })
}

/// Returns `format_time` for arguments of these types: milliseconds, the unit of the result, or the unit of the number and that of the result.
pub fn time(types: &[CqlType]) -> NativeFunction {
    let number = types.first().cloned().unwrap_or(CqlType::INT);
    NativeFunction::new("format_time", types, CqlType::TEXT, move |args, _| {
        let Some(value) = formatted(&number, args)? else {
            return Ok(None);
        };
        let (_, milliseconds) = TIMES[MILLISECONDS];
        let (from, to, shown) = match units(args, time_unit)? {
            (from, Some((to, shown))) => (from.map_or(milliseconds, |((_, size), _)| size), to, shown),
            (_, None) => {
                let mut larger = TIMES.into_iter().skip(MILLISECONDS).rev();
                let unit = larger.find(|(_, size)| value * milliseconds >= *size);
                let unit = unit.unwrap_or(("ms", milliseconds));
                (milliseconds, unit, unit.0.to_owned())
            }
        };
        Ok(Some(text(converted(value, from, to.1), &shown)))
    })
}

/// Returns the number of a call. `None` if it is null.
fn formatted(ty: &CqlType, args: Args<'_>) -> Result<Option<i128>, CqlError> {
    let Some(Some(value)) = args.first() else {
        return Ok(None);
    };
    if args.iter().any(Option::is_none) {
        return Err(CqlError::invalid("none of the arguments may be null"));
    }
    let value = match ty {
        CqlType::Native(NativeType::Text | NativeType::Ascii) => {
            let text = String::from_utf8_lossy(value);
            text.parse::<i64>().map_err(|_| {
                CqlError::invalid(format!(
                    "unable to convert string '{text}' to a value of type long"
                ))
            })?
        }
        ty => match Number::decode(ty, Some(value)) {
            Some(number) => number.to_long(),
            None => return Ok(None),
        },
    };
    match value < 0 {
        true => Err(CqlError::invalid("value must be non-negative")),
        false => Ok(Some(i128::from(value))),
    }
}

/// A unit and its symbol as written.
type WrittenUnit = (Unit, String);

/// Returns the units of the number and of the result. `None` where a call does not name them.
fn units(
    args: Args<'_>,
    unit: fn(&str) -> Result<Unit, CqlError>,
) -> Result<(Option<WrittenUnit>, Option<WrittenUnit>), CqlError> {
    let mut written = args.iter().skip(1).flatten().map(|symbol| {
        let symbol = String::from_utf8_lossy(symbol).into_owned();
        Ok((unit(&symbol)?, symbol))
    });
    let first = written.next().transpose()?;
    let second = written.next().transpose()?;
    Ok(match second {
        Some(second) => (first, Some(second)),
        None => (None, first),
    })
}

fn byte_unit(symbol: &str) -> Result<Unit, CqlError> {
    let found = BYTES
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(symbol));
    found.ok_or_else(|| unsupported("data storage", symbol, &BYTES))
}

fn time_unit(symbol: &str) -> Result<Unit, CqlError> {
    let found = TIMES
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(symbol));
    found.ok_or_else(|| unsupported("time", symbol, &TIMES))
}

fn unsupported(kind: &str, symbol: &str, units: &[Unit]) -> CqlError {
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    CqlError::invalid(format!(
        "Unsupported {kind} unit: {symbol}. Supported units are: {}",
        names.join(", ")
    ))
}

/// Converts between units, and rounds down. A result beyond the greatest `bigint` is that number.
fn converted(value: i128, from: i128, to: i128) -> i128 {
    (value * from / to).min(i128::from(i64::MAX))
}

fn text(value: i128, unit: &str) -> Bytes {
    format!("{value} {unit}").into()
}
