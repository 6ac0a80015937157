//! Static methods, constants and constructors of the classes of dates and times.

use std::rc::Rc;

use super::date::millis_of;
use super::methods::{long, nano_of_day, temporal, zone};
use crate::error::Failure;
use crate::time::calendar::{self, Calendar};
use crate::time::civil::{
    DAYS, Local, MONTHS, NANOS_PER_DAY, NANOS_PER_SECOND, check_field, checked_day, day_of, days_in_year,
};
use crate::time::date_format::DateFormat;
use crate::time::pattern::Formatter;
use crate::time::reader;
use crate::time::shift::period_between;
use crate::time::temporal::Temporal;
use crate::time::unit::{TIME_UNITS, Unit};
use crate::time::zone::{Zone, ZoneClass};
use crate::value::{LookupResult, Value};

fn now() -> (i64, i64) {
    let now = jiff::Timestamp::now();
    let nanos = now.as_nanosecond();
    let per_second = i128::from(NANOS_PER_SECOND);
    // The resolution is a microsecond, as that of Java's clock on Linux.
    let nano = nanos.rem_euclid(per_second) as i64 / 1000 * 1000;
    (nanos.div_euclid(per_second) as i64, nano)
}

fn now_millis() -> i64 {
    let (seconds, nano) = now();
    seconds * 1000 + nano / 1_000_000
}

fn text(value: &Value) -> Result<String, Failure> {
    match value {
        Value::Null => Err(Failure::null_pointer()),
        value => crate::text::of(value),
    }
}

/// Returns the month that a number or a constant denotes.
fn month(value: &Value) -> Result<i64, Failure> {
    match value {
        Value::Temporal(month) => match month.as_ref() {
            Temporal::Month(number) => Ok(*number),
            other => Err(Failure::class_cast(other.class(), "java.time.Month")),
        },
        value => long(value),
    }
}

/// Calls a static method. `None` if the class has no such method.
pub(crate) fn call(class: &str, method: &str, arguments: &[Value]) -> LookupResult {
    let some = |temporal: Temporal| Ok(Some(Value::temporal(temporal)));
    match (class, method, arguments) {
        (_, "parse", [value]) if is_point(class) => {
            some(reader::parse(&Formatter::of_class(class), &text(value)?, class)?)
        }
        (_, "parse", [value, by]) if is_point(class) => match temporal(by)? {
            Temporal::Formatter(formatter) => some(reader::parse(formatter, &text(value)?, class)?),
            other => Err(Failure::class_cast(
                other.class(),
                "java.time.format.DateTimeFormatter",
            )),
        },
        (_, "now", of) if is_point(class) => {
            let (seconds, nano) = now();
            let zone = of.first().map_or(Ok(Zone::utc()), zone)?;
            some(of_instant(class, seconds, nano, zone))
        }
        (_, "ofInstant", [of, in_zone]) => {
            let instant = temporal(of)?.instant().ok_or_else(Failure::null_pointer)?;
            some(of_instant(class, instant.0, instant.1, zone(in_zone)?))
        }
        ("time.LocalDate" | "LocalTime" | "LocalDateTime" | "ZonedDateTime", ..) => {
            local(class, method, arguments)
        }
        ("Instant", "ofEpochMilli", [millis]) => {
            let millis = long(millis)?;
            some(Temporal::Instant(
                millis.div_euclid(1000),
                millis.rem_euclid(1000) * 1_000_000,
            ))
        }
        ("Instant", "ofEpochSecond", [seconds]) => some(Temporal::Instant(long(seconds)?, 0)),
        ("Instant", "ofEpochSecond", [seconds, nano]) => {
            some(Temporal::Instant(long(seconds)?, 0).plus(long(nano)?, Unit::Nanos)?)
        }
        ("time.Duration", ..) => duration(method, arguments),
        ("Period", "between", [from, to]) => match (temporal(from)?, temporal(to)?) {
            (Temporal::Date(from), Temporal::Date(to)) => some(period_between(*from, *to)),
            _ => Ok(None),
        },
        ("Period", "of", [years, months, days]) => some(Temporal::Period {
            years: long(years)?,
            months: long(months)?,
            days: long(days)?,
        }),
        ("Period", _, [amount]) => {
            let amount = long(amount)?;
            let (years, months, days) = match method {
                "ofYears" => (amount, 0, 0),
                "ofMonths" => (0, amount, 0),
                "ofWeeks" => (0, 0, amount * 7),
                "ofDays" => (0, 0, amount),
                _ => return Ok(None),
            };
            some(Temporal::Period { years, months, days })
        }
        ("ZoneId", "systemDefault", []) => some(Temporal::Zone(Zone::utc())),
        ("ZoneId", "of", [id]) => some(Temporal::Zone(Zone::of(&text(id)?)?)),
        ("ZoneOffset", "of", [id]) => {
            let id = text(id)?;
            match Zone::of(&id)? {
                zone if zone.class == ZoneClass::ZoneOffset => some(Temporal::Zone(zone)),
                _ => Err(Failure::thrown(
                    "java.time.DateTimeException",
                    format!("Invalid ID for ZoneOffset, invalid format: {id}"),
                )),
            }
        }
        ("ZoneOffset", "ofHours" | "ofHoursMinutes" | "ofTotalSeconds", parts) => {
            let mut seconds = 0;
            let units = if method == "ofTotalSeconds" {
                [1, 1]
            } else {
                [3600, 60]
            };
            for (part, unit) in parts.iter().zip(units) {
                seconds += long(part)? * unit;
            }
            match i32::try_from(seconds) {
                Ok(seconds) if seconds.abs() <= 18 * 3600 => some(Temporal::Zone(Zone::offset(seconds))),
                _ => Err(Failure::thrown(
                    "java.time.DateTimeException",
                    "Zone offset not in valid range: -18:00 to +18:00",
                )),
            }
        }
        ("TimeZone", "getTimeZone", [Value::String(id)]) => some(Temporal::Zone(Zone::of_time_zone(id))),
        ("TimeZone", "getTimeZone", [id]) => some(Temporal::Zone(zone(id)?.as_class(ZoneClass::TimeZone))),
        ("TimeZone", "getDefault", []) => some(Temporal::Zone(Zone::of_time_zone("UTC"))),
        ("Locale", "getDefault", []) => some(Temporal::Locale),
        ("DateTimeFormatter", "ofPattern", [pattern, ..]) => {
            some(Temporal::Formatter(Formatter::of_pattern(&text(pattern)?)?))
        }
        ("DayOfWeek" | "Month", "of", [number]) => {
            let number = long(number)?;
            let (most, name) = if class == "Month" {
                (12, "MonthOfYear")
            } else {
                (7, "DayOfWeek")
            };
            if !(1..=most).contains(&number) {
                return Err(Failure::thrown(
                    "java.time.DateTimeException",
                    format!("Invalid value for {name}: {number}"),
                ));
            }
            some(if class == "Month" {
                Temporal::Month(number)
            } else {
                Temporal::DayOfWeek(number)
            })
        }
        ("DayOfWeek" | "Month" | "ChronoUnit" | "TimeUnit", "valueOf", [name]) => {
            let name = text(name)?;
            match field(class, &name) {
                Some(value) => Ok(Some(value)),
                None => Err(Failure::thrown(
                    "java.lang.IllegalArgumentException",
                    format!("No enum constant {}.{name}", crate::classes::whole_name(class)),
                )),
            }
        }
        ("Date", "from", [instant]) => match temporal(instant)? {
            Temporal::Instant(seconds, nano) => Ok(Some(Value::date(millis_of(*seconds, *nano)?))),
            other => Err(Failure::class_cast(other.class(), "java.time.Instant")),
        },
        ("Calendar" | "GregorianCalendar", "getInstance", of) => {
            let mut zones = of.iter().filter_map(|argument| zone(argument).ok());
            let zone = zones.next_back().unwrap_or_else(|| Zone::of_time_zone("UTC"));
            Ok(Some(Value::Calendar(Rc::new(Calendar::new(zone, now_millis())))))
        }
        _ => Ok(None),
    }
}

fn is_point(class: &str) -> bool {
    matches!(
        class,
        "time.LocalDate" | "LocalTime" | "LocalDateTime" | "ZonedDateTime" | "Instant"
    )
}

fn of_instant(class: &str, seconds: i64, nano: i64, zone: Zone) -> Temporal {
    let zoned = Temporal::Zoned(seconds, nano, zone);
    let local = zoned.local().unwrap_or(Local { day: 0, nano: 0 });
    match class {
        "time.LocalDate" => Temporal::Date(local.day),
        "LocalTime" => Temporal::Time(local.nano),
        "LocalDateTime" => Temporal::DateTime(local),
        "Instant" => Temporal::Instant(seconds, nano),
        _ => zoned,
    }
}

/// Calls a static method that creates a date or a time from its parts.
fn local(class: &str, method: &str, arguments: &[Value]) -> LookupResult {
    let some = |temporal: Temporal| Ok(Some(Value::temporal(temporal)));
    match (class, method, arguments) {
        ("time.LocalDate", "of", [year, of_month, day]) => {
            some(Temporal::Date(day_of(long(year)?, month(of_month)?, long(day)?)?))
        }
        ("time.LocalDate", "ofEpochDay", [day]) => some(Temporal::Date(checked_day(i128::from(long(day)?))?)),
        ("time.LocalDate", "ofYearDay", [year, day]) => {
            let first = day_of(long(year)?, 1, 1)?;
            check_field("DayOfYear", long(day)?, 1, days_in_year(long(year)?).max(365))?;
            some(Temporal::Date(first + long(day)? - 1))
        }
        ("LocalTime", "ofSecondOfDay", [second]) => {
            let second = long(second)?;
            check_field("SecondOfDay", second, 0, 86_399)?;
            some(Temporal::Time(second * NANOS_PER_SECOND))
        }
        ("LocalTime", "ofNanoOfDay", [nano]) => {
            check_field("NanoOfDay", long(nano)?, 0, NANOS_PER_DAY - 1)?;
            some(Temporal::Time(long(nano)?))
        }
        ("LocalTime", "of", parts) => some(Temporal::Time(nano_of_day(parts)?)),
        ("LocalDateTime", "of", [day, time]) => {
            let part = |value| temporal(value).map(|part| part.local().unwrap_or(Local { day: 0, nano: 0 }));
            some(Temporal::DateTime(Local {
                day: part(day)?.day,
                nano: part(time)?.nano,
            }))
        }
        ("LocalDateTime", "of", [year, of_month, day, time @ ..]) => some(Temporal::DateTime(Local {
            day: day_of(long(year)?, month(of_month)?, long(day)?)?,
            nano: nano_of_day(time)?,
        })),
        ("LocalDateTime", "ofEpochSecond", [second, nano, offset]) => {
            let second = long(second)? + i64::from(zone(offset)?.offset_at(0));
            some(Temporal::DateTime(Local::of_seconds(second, long(nano)?)))
        }
        ("ZonedDateTime", "of", [date_time, in_zone]) => {
            let local = temporal(date_time)?.local().ok_or_else(Failure::null_pointer)?;
            some(Temporal::zoned(local, zone(in_zone)?))
        }
        ("ZonedDateTime", "of", [year, of_month, day, time @ .., in_zone]) => {
            let local = Local {
                day: day_of(long(year)?, month(of_month)?, long(day)?)?,
                nano: nano_of_day(time)?,
            };
            some(Temporal::zoned(local, zone(in_zone)?))
        }
        _ => Ok(None),
    }
}

fn duration(method: &str, arguments: &[Value]) -> LookupResult {
    let some = |temporal: Temporal| Ok(Some(Value::temporal(temporal)));
    match (method, arguments) {
        ("between", [from, to]) => {
            let (from, to) = (temporal(from)?, temporal(to)?);
            let nanos = from
                .until(to, Unit::Nanos)
                .or_else(|_| from.until(to, Unit::Seconds));
            some(Temporal::Duration(0, 0).plus(nanos?, Unit::Nanos)?)
        }
        (_, [amount]) => {
            let unit = method.strip_prefix("of").and_then(Unit::named);
            match unit.filter(|unit| *unit <= Unit::Days) {
                Some(unit) => some(Temporal::Duration(0, 0).plus(long(amount)?, unit)?),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Returns a constant. `None` if the class has no such constant.
pub(crate) fn field(class: &str, name: &str) -> Option<Value> {
    let place = |names: &[&str]| {
        let found = names.iter().position(|known| known.to_uppercase() == name);
        found.map(|at| at as i64 + 1)
    };
    Some(Value::temporal(match (class, name) {
        ("Calendar" | "GregorianCalendar", _) => return calendar::constant(name).map(Value::Int),
        ("ChronoUnit", _) => Temporal::Unit(Unit::constant(name)?),
        ("TimeUnit", _) => {
            Temporal::TimeUnit(TIME_UNITS.iter().position(|(constant, ..)| *constant == name)?)
        }
        ("DayOfWeek", _) => Temporal::DayOfWeek(place(&DAYS)?),
        ("Month", _) => Temporal::Month(place(&MONTHS)?),
        ("DateTimeFormatter", _) => Temporal::Formatter(Formatter::constant(name)?),
        ("ZoneOffset", "UTC") => Temporal::Zone(Zone::offset(0)),
        ("time.Duration", "ZERO") => Temporal::Duration(0, 0),
        ("Period", "ZERO") => Temporal::Period {
            years: 0,
            months: 0,
            days: 0,
        },
        ("Instant", "EPOCH") => Temporal::Instant(0, 0),
        ("LocalTime", "MIDNIGHT" | "MIN") => Temporal::Time(0),
        ("time.LocalDate", "EPOCH") => Temporal::Date(0),
        ("time.LocalDate", "MIN") => Temporal::Date(-365_243_219_162),
        ("time.LocalDate", "MAX") => Temporal::Date(365_241_780_471),
        ("LocalTime", "NOON") => Temporal::Time(NANOS_PER_DAY / 2),
        ("LocalTime", "MAX") => Temporal::Time(NANOS_PER_DAY - 1),
        ("Locale", "US" | "ENGLISH" | "ROOT") => Temporal::Locale,
        _ => return None,
    }))
}

/// Creates the object of a `new` expression. `None` if the class has no such constructor.
pub(crate) fn create(class: &str, arguments: &[Value]) -> LookupResult {
    Ok(match (class, arguments) {
        ("SimpleDateFormat", [Value::String(pattern), ..]) => {
            Some(Value::DateFormat(Rc::new(DateFormat::new(pattern)?)))
        }
        ("SimpleDateFormat", [Value::Null, ..]) => return Err(Failure::null_pointer()),
        ("GregorianCalendar", parts @ [_, _, _, ..]) => {
            let calendar = Calendar::new(Zone::of_time_zone("UTC"), 0);
            calendar.clear(None)?;
            for (field, part) in [1, 2, 5, 11, 12, 13].into_iter().zip(parts) {
                calendar.set(field, part.to_int()?)?;
            }
            Some(Value::Calendar(Rc::new(calendar)))
        }
        ("Date", parts @ [_, _, _, ..]) => Some(super::date::create(parts)?),
        ("GregorianCalendar", of) => call("Calendar", "getInstance", of)?,
        _ => None,
    })
}
