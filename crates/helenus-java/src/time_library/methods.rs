//! Methods of values of `java.time`.

use std::cmp::Ordering;

use helenus_cql::value::civil::{civil_from_days, days_in_month, is_leap_year};

use super::date::millis_of;
use crate::error::Failure;
use crate::time::civil::{
    Local, NANOS_PER_DAY, NANOS_PER_SECOND, SECONDS_PER_DAY, check_field, day_of_year, days_in_year, weekday,
};
use crate::time::formatter;
use crate::time::pattern::Formatter;
use crate::time::shift::period_between;
use crate::time::temporal::{Temporal, start_of_day};
use crate::time::unit::{TIME_UNITS, Unit, converted};
use crate::time::zone::{Zone, ZoneClass};
use crate::value::{LookupResult, Value};

pub(super) fn temporal(value: &Value) -> Result<&Temporal, Failure> {
    match value {
        Value::Temporal(temporal) => Ok(temporal),
        Value::Null => Err(Failure::null_pointer()),
        other => Err(Failure::class_cast(
            &other.class_name(),
            "java.time.temporal.Temporal",
        )),
    }
}

pub(super) fn zone(value: &Value) -> Result<Zone, Failure> {
    match temporal(value)? {
        Temporal::Zone(zone) => Ok(zone.clone()),
        other => Err(Failure::class_cast(other.class(), "java.time.ZoneId")),
    }
}

fn unit(value: &Value) -> Result<Unit, Failure> {
    match temporal(value)? {
        Temporal::Unit(unit) => Ok(*unit),
        other => Err(Failure::class_cast(
            other.class(),
            "java.time.temporal.ChronoUnit",
        )),
    }
}

pub(super) fn long(value: &Value) -> Result<i64, Failure> {
    value.as_long().ok_or_else(Failure::null_pointer)
}

/// Returns the nanoseconds of the day for hour, minute, second and nanosecond.
///
/// # Errors
/// One of the parts is out of range.
pub(super) fn nano_of_day(parts: &[Value]) -> Result<i64, Failure> {
    let fields = [
        ("HourOfDay", 23, 3600 * NANOS_PER_SECOND),
        ("MinuteOfHour", 59, 60 * NANOS_PER_SECOND),
        ("SecondOfMinute", 59, NANOS_PER_SECOND),
        ("NanoOfSecond", NANOS_PER_SECOND - 1, 1),
    ];
    let mut nanos = 0;
    for ((name, most, unit), part) in fields.into_iter().zip(parts) {
        let part = long(part)?;
        check_field(name, part, 0, most)?;
        nanos += part * unit;
    }
    Ok(nanos)
}

/// Calls a method. `None` if the class has no such method.
pub(crate) fn call(object: &Temporal, method: &str, arguments: &[Value]) -> LookupResult {
    if let Some((name, ordinal)) = object.constant() {
        match (method, arguments) {
            ("name", []) => return Ok(Some(Value::string(name))),
            ("ordinal", []) => return Ok(Some(Value::Int(ordinal as i32))),
            _ => {}
        }
    }
    if let ("compareTo", [other]) = (method, arguments) {
        return Ok(object
            .difference(temporal(other)?)
            .map(|order| Value::Int(order as i32)));
    }
    if let (Some(order), [other]) = (order_of(method), arguments) {
        let order_there = object.compare(temporal(other)?);
        return Ok(order_there.map(|there| Value::Boolean(there == order)));
    }
    if let Some(shifted) = shifted(object, method, arguments)? {
        return Ok(Some(Value::temporal(shifted)));
    }
    let special = match object {
        Temporal::Duration(seconds, nano) => duration(*seconds, *nano, method, arguments)?,
        Temporal::Period { years, months, days } => period(*years, *months, *days, method),
        Temporal::Zone(zone) => zone_method(zone, method),
        Temporal::Unit(unit) => match (method, arguments) {
            ("between", [from, to]) => Some(Value::Long(temporal(from)?.until(temporal(to)?, *unit)?)),
            _ => None,
        },
        Temporal::TimeUnit(at) => time_unit(*at, method, arguments)?,
        Temporal::DayOfWeek(number) | Temporal::Month(number) if method == "getValue" => {
            Some(Value::Int(*number as i32))
        }
        Temporal::Formatter(formatter) => formatter_method(formatter, method, arguments)?,
        _ => None,
    };
    match special {
        Some(value) => Ok(Some(value)),
        None => point(object, method, arguments),
    }
}

fn order_of(method: &str) -> Option<Ordering> {
    Some(match method {
        "isBefore" => Ordering::Less,
        "isAfter" => Ordering::Greater,
        "isEqual" => Ordering::Equal,
        _ => return None,
    })
}

/// Calls `plusDays`, `minus`, `withYear` and similar methods.
fn shifted(object: &Temporal, method: &str, arguments: &[Value]) -> Result<Option<Temporal>, Failure> {
    let (sign, what) = match (method.strip_prefix("plus"), method.strip_prefix("minus")) {
        (Some(what), _) => (1, what),
        (_, Some(what)) => (-1, what),
        (None, None) => {
            return match (method.strip_prefix("with"), arguments) {
                (Some(field), [value]) if value.as_long().is_some() => object.with(field, long(value)?),
                _ => Ok(None),
            };
        }
    };
    let negated = |amount: i64| amount.checked_mul(sign).ok_or_else(crate::time::civil::too_large);
    match (what, arguments) {
        ("", [amount]) if amount.as_long().is_none() => object.plus_amount(temporal(amount)?, sign).map(Some),
        ("", [amount]) => object.plus(negated(long(amount)?)?, Unit::Days).map(Some),
        ("", [amount, by]) => object.plus(negated(long(amount)?)?, unit(by)?).map(Some),
        (name, [amount]) => match Unit::named(name) {
            Some(unit) => object.plus(negated(long(amount)?)?, unit).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

fn duration(seconds: i64, nano: i64, method: &str, arguments: &[Value]) -> LookupResult {
    let nanos = i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nano);
    let whole = |per: i64| {
        let number = i64::try_from(nanos / i128::from(per)).map_err(|_| crate::time::civil::too_large())?;
        Ok::<_, Failure>(Some(Value::Long(number)))
    };
    // As in Java, these methods divide the seconds and ignore the nanoseconds.
    let floored = |per: i64| Some(Value::Long(seconds / per));
    Ok(match (method, arguments) {
        ("getSeconds" | "toSeconds", []) => Some(Value::Long(seconds)),
        ("getNano", []) => Some(Value::Int(nano as i32)),
        ("toNanos", []) => whole(1)?,
        ("toMillis", []) => whole(1_000_000)?,
        ("toMinutes", []) => floored(60),
        ("toHours", []) => floored(3600),
        ("toDays", []) => floored(SECONDS_PER_DAY),
        ("isNegative", []) => Some(Value::Boolean(seconds < 0)),
        ("isZero", []) => Some(Value::Boolean(nanos == 0)),
        ("abs", []) => Some(Value::temporal(Temporal::duration(nanos.abs()))),
        ("negated", []) => Some(Value::temporal(Temporal::duration(-nanos))),
        ("multipliedBy", [by]) => Some(Value::temporal(Temporal::duration(
            nanos
                .checked_mul(i128::from(long(by)?))
                .ok_or_else(crate::time::civil::too_large)?,
        ))),
        _ => None,
    })
}

fn period(years: i64, months: i64, days: i64, method: &str) -> Option<Value> {
    Some(match method {
        "getYears" => Value::Int(years as i32),
        "getMonths" => Value::Int(months as i32),
        "getDays" => Value::Int(days as i32),
        "toTotalMonths" => Value::Long(years * 12 + months),
        "isNegative" => Value::Boolean(years < 0 || months < 0 || days < 0),
        "isZero" => Value::Boolean(years == 0 && months == 0 && days == 0),
        _ => return None,
    })
}

fn zone_method(zone: &Zone, method: &str) -> Option<Value> {
    let second = jiff::Timestamp::now().as_second();
    Some(match method {
        "getId" | "getID" => Value::string(&zone.id),
        "getTotalSeconds" => Value::Int(zone.offset_at(second)),
        "getRawOffset" => Value::Int(zone.raw_offset() * 1000),
        "toZoneId" => Value::temporal(Temporal::Zone(zone.as_class(ZoneClass::ZoneId))),
        _ => return None,
    })
}

fn time_unit(at: usize, method: &str, arguments: &[Value]) -> LookupResult {
    let nanos = |at: usize| TIME_UNITS.get(at).map_or(1, |(.., nanos)| *nanos);
    Ok(match (method, arguments) {
        ("convert", [amount, from]) => match temporal(from)? {
            Temporal::TimeUnit(from) => Some(Value::Long(converted(long(amount)?, nanos(*from), nanos(at)))),
            other => {
                return Err(Failure::class_cast(
                    other.class(),
                    "java.util.concurrent.TimeUnit",
                ));
            }
        },
        (_, [amount]) => {
            let to = TIME_UNITS.iter().find(|(_, to, _)| *to == method);
            match to {
                Some((.., to)) => Some(Value::Long(converted(long(amount)?, nanos(at), *to))),
                None => None,
            }
        }
        _ => None,
    })
}

fn formatter_method(formatter: &Formatter, method: &str, arguments: &[Value]) -> LookupResult {
    Ok(match (method, arguments) {
        ("format", [value]) => Some(Value::string(formatter::format(formatter, temporal(value)?)?)),
        ("withZone", [value]) => {
            let formatter = formatter.with_zone(zone(value)?);
            Some(Value::temporal(Temporal::Formatter(formatter)))
        }
        ("withLocale", [_]) => Some(Value::temporal(Temporal::Formatter(formatter.clone()))),
        _ => None,
    })
}

/// Calls a method of a point in time.
fn point(object: &Temporal, method: &str, arguments: &[Value]) -> LookupResult {
    let Some(local) = object.local() else {
        return Ok(None);
    };
    if let ("format", [formatter]) = (method, arguments) {
        return match temporal(formatter)? {
            Temporal::Formatter(by) => Ok(Some(Value::string(formatter::format(by, object)?))),
            other => Err(Failure::class_cast(
                other.class(),
                "java.time.format.DateTimeFormatter",
            )),
        };
    }
    if let Some(value) = part(local, method) {
        return Ok(Some(value));
    }
    let some = |temporal: Temporal| Ok(Some(Value::temporal(temporal)));
    match (method, arguments) {
        ("truncatedTo", [by]) => some(object.truncated(unit(by)?)?),
        ("until", [end, by]) => Ok(Some(Value::Long(object.until(temporal(end)?, unit(by)?)?))),
        ("until", [end]) => match (object, temporal(end)?) {
            (Temporal::Date(from), Temporal::Date(to)) => some(period_between(*from, *to)),
            _ => Ok(None),
        },
        ("atStartOfDay", []) => some(Temporal::DateTime(Local { nano: 0, ..local })),
        ("atStartOfDay", [of]) => {
            let zone = zone(of)?;
            some(Temporal::Zoned(start_of_day(local.day, &zone), 0, zone))
        }
        ("atTime", [of]) if of.as_long().is_none() => {
            let nano = temporal(of)?.local().map_or(0, |time| time.nano);
            some(Temporal::DateTime(Local { nano, ..local }))
        }
        ("atTime", parts) => {
            let nano = nano_of_day(parts)?;
            some(Temporal::DateTime(Local { nano, ..local }))
        }
        ("atDate", [day]) => {
            let day = temporal(day)?.local().map_or(0, |date| date.day);
            some(Temporal::DateTime(Local { day, ..local }))
        }
        ("toLocalDate", []) => some(Temporal::Date(local.day)),
        ("toLocalTime", []) => some(Temporal::Time(local.nano)),
        ("toLocalDateTime", []) => some(Temporal::DateTime(local)),
        ("atZone" | "atOffset", [of]) => {
            let zone = zone(of)?;
            some(match object.instant() {
                Some((seconds, nano)) => Temporal::Zoned(seconds, nano, zone),
                None => Temporal::zoned(local, zone),
            })
        }
        _ => instant_method(object, local, method, arguments),
    }
}

/// Calls a method that needs an instant, or a zone that makes the local time an instant.
fn instant_method(object: &Temporal, local: Local, method: &str, arguments: &[Value]) -> LookupResult {
    let instant = match (object.instant(), arguments) {
        (Some(instant), _) => instant,
        (None, [of]) if matches!(method, "toInstant" | "toEpochSecond") => {
            let offset = zone(of)?.offset_of_local(local.seconds());
            (local.seconds() - i64::from(offset), local.nano_of_second())
        }
        (None, _) => return Ok(None),
    };
    let (seconds, nano) = instant;
    Ok(match (method, object) {
        ("toInstant", _) => Some(Value::temporal(Temporal::Instant(seconds, nano))),
        ("toEpochSecond" | "getEpochSecond", _) => Some(Value::Long(seconds)),
        ("toEpochMilli", _) => Some(Value::Long(millis_of(seconds, nano)?)),
        ("getZone", Temporal::Zoned(_, _, zone)) => Some(Value::temporal(Temporal::Zone(zone.clone()))),
        ("getOffset", Temporal::Zoned(_, _, zone)) => Some(Value::temporal(Temporal::Zone(Zone::offset(
            zone.offset_at(seconds),
        )))),
        ("withZoneSameInstant", _) => {
            let zone = zone(arguments.first().unwrap_or(&Value::Null))?;
            Some(Value::temporal(Temporal::Zoned(seconds, nano, zone)))
        }
        ("withZoneSameLocal", _) => {
            let zone = zone(arguments.first().unwrap_or(&Value::Null))?;
            Some(Value::temporal(Temporal::zoned(local, zone)))
        }
        _ => None,
    })
}

/// Returns a part of a day or a time. The signatures ensure that the class has the part.
fn part(local: Local, method: &str) -> Option<Value> {
    let (year, month, day) = civil_from_days(local.day);
    let int = |number: i64| Value::Int(number as i32);
    Some(match method {
        "getYear" => int(year),
        "getMonthValue" => int(month),
        "getMonth" => Value::temporal(Temporal::Month(month)),
        "getDayOfMonth" => int(day),
        "getDayOfYear" => int(day_of_year(local.day)),
        "getDayOfWeek" => Value::temporal(Temporal::DayOfWeek(weekday(local.day))),
        "lengthOfMonth" => int(days_in_month(year, month)),
        "lengthOfYear" => int(days_in_year(year)),
        "isLeapYear" => Value::Boolean(is_leap_year(year)),
        "toEpochDay" => Value::Long(local.day),
        "getHour" => int(local.hour()),
        "getMinute" => int(local.minute()),
        "getSecond" => int(local.second()),
        "getNano" => int(local.nano_of_second()),
        "toSecondOfDay" => int(local.second_of_day()),
        "toNanoOfDay" => Value::Long(local.nano % NANOS_PER_DAY),
        _ => return None,
    })
}
