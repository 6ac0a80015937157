//! Functions of time (Cassandra's `TimeFcts`) and `uuid()`.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::civil::NANOS_PER_DAY;
use helenus_cql::value::{CqlValue, Duration, date, uuid};

use super::NativeFunction;
use crate::analysis::EvalContext;

/// Returns the time of a value of a temporal type, in milliseconds since 1970.
pub fn millis_of(ty: &CqlType, bytes: &[u8]) -> Option<i64> {
    // The value is not decoded as a `timeuuid`, because those of times out of range have another version.
    if *ty == CqlType::TIMEUUID {
        return Some(uuid::unix_millis(u128::from_be_bytes(bytes.try_into().ok()?)));
    }
    match CqlValue::decode(ty, bytes).ok()? {
        CqlValue::Timestamp(millis) => Some(millis),
        CqlValue::Date(day) => Some(date::to_millis(day)),
        _ => None,
    }
}

fn encode_long(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn encode_date(millis: i64) -> Bytes {
    Bytes::copy_from_slice(&date::from_millis(millis).to_be_bytes())
}

fn encode_uuid(value: u128) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Clock sequence and node of the `timeuuid`s of this process. They are random, with the multicast bit that marks an address as no real
/// network address.
static CLOCK_SEQUENCE_AND_NODE: LazyLock<u64> = LazyLock::new(|| {
    let random: u64 = rand::random();
    (random & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0100_0000_0000
});

static LAST_TICKS: AtomicI64 = AtomicI64::new(0);

/// Returns a new `timeuuid` of the current time, greater than every earlier one of this process.
pub fn next_timeuuid(now_us: i64) -> u128 {
    let now_ticks = uuid::ticks_at_millis(0).saturating_add(now_us.saturating_mul(10));
    let bump = |last: i64| Some(now_ticks.max(last.saturating_add(1)));
    let last = match LAST_TICKS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, bump) {
        Ok(last) | Err(last) => last,
    };
    uuid::from_ticks(now_ticks.max(last.saturating_add(1)), *CLOCK_SEQUENCE_AND_NODE)
}

/// Returns a new random uuid (version 4).
pub fn random_uuid() -> u128 {
    let random: u128 = rand::random();
    (random & !(0xF << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62)
}

/// Returns the functions of time and `uuid`, under their current and old names.
pub fn functions() -> Vec<NativeFunction> {
    let mut functions = vec![now("now", CqlType::TIMEUUID)];
    for (name, ty) in [
        ("current_timeuuid", CqlType::TIMEUUID),
        ("current_timestamp", CqlType::TIMESTAMP),
        ("current_date", CqlType::DATE),
        ("current_time", CqlType::TIME),
    ] {
        let function = now(name, ty);
        functions.push(function.alias(&name.replace('_', "")));
        functions.push(function);
    }
    functions.push(
        NativeFunction::new("uuid", [], CqlType::UUID, |_, _| {
            Ok(Some(encode_uuid(random_uuid())))
        })
        .impure(),
    );
    let (date, timestamp, timeuuid) = (CqlType::DATE, CqlType::TIMESTAMP, CqlType::TIMEUUID);
    let conversions = [
        to("min_timeuuid", &timestamp, &timeuuid, |millis| {
            encode_uuid(uuid::min_at_millis(millis))
        }),
        to("max_timeuuid", &timestamp, &timeuuid, |millis| {
            encode_uuid(uuid::max_at_millis(millis))
        }),
        to("to_date", &timeuuid, &date, encode_date),
        to("to_timestamp", &timeuuid, &timestamp, encode_long),
        to("to_unix_timestamp", &timeuuid, &CqlType::BIGINT, encode_long),
        to("to_unix_timestamp", &timestamp, &CqlType::BIGINT, encode_long),
        to("to_date", &timestamp, &date, encode_date),
        to("to_unix_timestamp", &date, &CqlType::BIGINT, encode_long),
        to("to_timestamp", &date, &timestamp, encode_long),
    ];
    for function in conversions {
        functions.push(function.alias(&function.short_name().replace('_', "")));
        functions.push(function);
    }
    functions.extend([
        floor(&timestamp, &timestamp, false),
        floor(&timestamp, &timestamp, true),
        floor(&timeuuid, &timestamp, false),
        floor(&timeuuid, &timestamp, true),
        floor(&date, &date, false),
        floor(&date, &date, true),
        floor_time(),
    ]);
    functions
}

fn now(name: &str, ty: CqlType) -> NativeFunction {
    let result = ty.clone();
    let body = move |ctx: &EvalContext<'_>| {
        let now_us = ctx.clock.now_us();
        match &ty {
            CqlType::Native(NativeType::Timestamp) => encode_long(now_us.div_euclid(1_000)),
            CqlType::Native(NativeType::Date) => encode_date(now_us.div_euclid(1_000)),
            CqlType::Native(NativeType::Time) => {
                encode_long(now_us.saturating_mul(1_000).rem_euclid(NANOS_PER_DAY))
            }
            _ => encode_uuid(next_timeuuid(now_us)),
        }
    };
    NativeFunction::new(name, [], result, move |_, ctx| Ok(Some(body(ctx)))).impure()
}

fn to(name: &str, from: &CqlType, to: &CqlType, convert: fn(i64) -> Bytes) -> NativeFunction {
    let arg = from.clone();
    NativeFunction::strict(name, [from.clone()], to.clone(), move |args, _| {
        Ok(args.first().and_then(|value| millis_of(&arg, value)).map(convert))
    })
}

/// Returns `floor(time, duration[, start])`.
fn floor(from: &CqlType, to: &CqlType, has_start: bool) -> NativeFunction {
    let mut types = vec![from.clone(), CqlType::DURATION];
    if has_start {
        types.push(to.clone());
    }
    let (arg, result) = (from.clone(), to.clone());
    NativeFunction::strict("floor", types, to.clone(), move |args, _| {
        let read = || {
            let millis = millis_of(&arg, args.first()?)?;
            let duration = Duration::from_bytes(args.get(1)?)?;
            let start = args.get(2).map_or(Some(0), |start| millis_of(&result, start))?;
            Some((millis, duration, start))
        };
        let Some((millis, duration, start)) = read() else {
            return Ok(None);
        };
        let is_date = result == CqlType::DATE;
        check_precision(is_date, duration)?;
        let floor = duration
            .floor_timestamp(millis, start)
            .map_err(CqlError::Invalid)?;
        Ok(Some(if is_date {
            encode_date(floor)
        } else {
            encode_long(floor)
        }))
    })
}

fn check_precision(is_date: bool, duration: Duration) -> Result<(), CqlError> {
    if is_date && !duration.has_day_precision() {
        return Err(CqlError::invalid(format!(
            "The floor on date values cannot be computed for the {duration} duration as precision is below 1 day"
        )));
    }
    if !is_date && !duration.has_millisecond_precision() {
        return Err(CqlError::invalid(format!(
            "The floor cannot be computed for the {duration} duration as precision is below 1 millisecond"
        )));
    }
    Ok(())
}

fn floor_time() -> NativeFunction {
    let types = [CqlType::TIME, CqlType::DURATION];
    NativeFunction::strict("floor", types, CqlType::TIME, |args, _| {
        let [time, duration] = args else { return Ok(None) };
        let (Ok(CqlValue::Time(nanos)), Some(duration)) = (
            CqlValue::decode(&CqlType::TIME, time),
            Duration::from_bytes(duration),
        ) else {
            return Ok(None);
        };
        let floor = duration.floor_time(nanos).map_err(CqlError::Invalid)?;
        Ok(Some(encode_long(floor)))
    })
}
