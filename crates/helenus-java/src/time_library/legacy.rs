//! Methods of `Calendar` and `SimpleDateFormat`.

use std::rc::Rc;

use crate::error::Failure;
use crate::time::calendar::Calendar;
use crate::time::date_format::DateFormat;
use crate::time::temporal::Temporal;
use crate::time::zone::{Zone, ZoneClass};
use crate::value::{LookupResult, Value};

/// Returns the zone that an argument denotes.
fn zone(value: &Value) -> Result<Zone, Failure> {
    match value {
        Value::Temporal(temporal) => match temporal.as_ref() {
            Temporal::Zone(zone) => Ok(zone.clone()),
            other => Err(Failure::class_cast(other.class(), "java.util.TimeZone")),
        },
        _ => Err(Failure::null_pointer()),
    }
}

fn zone_value(zone: &Zone) -> Value {
    Value::temporal(Temporal::Zone(zone.as_class(ZoneClass::TimeZone)))
}

/// Calls a method of a `Calendar`.
pub(crate) fn calendar(calendar: &Rc<Calendar>, method: &str, arguments: &[Value]) -> LookupResult {
    let done = |result: Result<(), Failure>| result.map(|()| Some(Value::Null));
    Ok(match (method, arguments) {
        ("getTimeInMillis", []) => Some(Value::Long(calendar.millis()?)),
        ("getTime", []) => Some(Value::date(calendar.millis()?)),
        ("setTimeInMillis", [millis]) => {
            calendar.set_millis(millis.as_long().unwrap_or_default());
            Some(Value::Null)
        }
        ("setTime", [Value::Date(millis)]) => {
            calendar.set_millis(*millis.borrow());
            Some(Value::Null)
        }
        ("setTime", _) => return Err(Failure::null_pointer()),
        ("get", [field]) => Some(Value::Int(calendar.get(field.to_int()?)?)),
        ("set", [field, value]) => done(calendar.set(field.to_int()?, value.to_int()?))?,
        ("set", parts @ [_, _, _, ..]) => {
            for (field, part) in [1, 2, 5, 11, 12, 13].into_iter().zip(parts) {
                calendar.set(field, part.to_int()?)?;
            }
            Some(Value::Null)
        }
        ("add", [field, amount]) => done(calendar.add(field.to_int()?, amount.to_int()?))?,
        ("clear", []) => done(calendar.clear(None))?,
        ("clear", [field]) => done(calendar.clear(Some(field.to_int()?)))?,
        ("getActualMaximum", [field]) => Some(Value::Int(calendar.actual_maximum(field.to_int()?)?)),
        ("getTimeZone", []) => Some(zone_value(&calendar.zone())),
        ("setTimeZone", [value]) => {
            calendar.set_zone(zone(value)?);
            Some(Value::Null)
        }
        ("setLenient", [Value::Boolean(is_lenient)]) => {
            calendar.set_lenient(*is_lenient);
            Some(Value::Null)
        }
        ("isLenient", []) => Some(Value::Boolean(calendar.is_lenient())),
        ("getFirstDayOfWeek" | "getMinimalDaysInFirstWeek", []) => Some(Value::Int(1)),
        ("before" | "after", [Value::Calendar(other)]) => {
            let order = calendar.millis()?.cmp(&other.millis()?);
            let wanted = if method == "before" {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            };
            Some(Value::Boolean(order == wanted))
        }
        ("before" | "after", [_]) => Some(Value::Boolean(false)),
        ("toInstant", []) => {
            let millis = calendar.millis()?;
            let instant = Temporal::Instant(millis.div_euclid(1000), millis.rem_euclid(1000) * 1_000_000);
            Some(Value::temporal(instant))
        }
        ("isLeapYear", [year]) => {
            let year = year.to_int()?;
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0 || year <= 1582);
            Some(Value::Boolean(is_leap))
        }
        ("clone", []) => Some(Value::Calendar(Rc::new(calendar.copy()))),
        _ => None,
    })
}

/// Calls a method of a `SimpleDateFormat`.
pub(crate) fn date_format(format: &DateFormat, method: &str, arguments: &[Value]) -> LookupResult {
    Ok(match (method, arguments) {
        ("format", [Value::Date(millis)]) => Some(Value::string(format.format(*millis.borrow())?)),
        ("format", [Value::Null]) => return Err(Failure::null_pointer()),
        ("format", [number]) => match number.as_long() {
            Some(millis) => Some(Value::string(format.format(millis)?)),
            None => {
                return Err(Failure::thrown(
                    "java.lang.IllegalArgumentException",
                    "Cannot format given Object as a Date",
                ));
            }
        },
        ("parse", [Value::String(text)]) => Some(Value::date(format.parse(text)?)),
        ("parse", [Value::Null]) => return Err(Failure::null_pointer()),
        ("setTimeZone", [value]) => {
            *format.zone.borrow_mut() = zone(value)?;
            Some(Value::Null)
        }
        ("getTimeZone", []) => Some(zone_value(&format.zone.borrow())),
        ("setLenient", [Value::Boolean(is_lenient)]) => {
            format.is_lenient.set(*is_lenient);
            Some(Value::Null)
        }
        ("isLenient", []) => Some(Value::Boolean(format.is_lenient.get())),
        ("toPattern", []) => Some(Value::string(format.pattern())),
        ("applyPattern", [Value::String(pattern)]) => {
            format.apply(pattern)?;
            Some(Value::Null)
        }
        _ => None,
    })
}
