//! Methods of `java.util.Date`, in UTC.

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::Failure;
use crate::time::calendar::{Calendar, day_of_date};
use crate::time::civil::month_after;
use crate::time::temporal::Temporal;
use crate::time::zone::Zone;
use crate::value::{EvalResult, LookupResult, Value};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Returns the milliseconds of an instant.
///
/// # Errors
/// The milliseconds are too many for a `Date`.
pub(crate) fn millis_of(seconds: i64, nano: i64) -> Result<i64, Failure> {
    let millis = seconds
        .checked_mul(1000)
        .and_then(|millis| millis.checked_add(nano / 1_000_000));
    millis.ok_or_else(|| Failure::thrown("java.lang.ArithmeticException", "long overflow"))
}

/// Returns the time of year (since 1900), month (from 0), day, hour, minute and second, in milliseconds. Each part may be any number.
fn of_parts(parts: &[i64]) -> i64 {
    let part = |at: usize| parts.get(at).copied().unwrap_or(0);
    let (year, month) = month_after(part(0) + 1900, 1, part(1));
    let day = day_of_date(year, month, 1) + part(2) - 1;
    day * MILLIS_PER_DAY + ((part(3) * 60 + part(4)) * 60 + part(5)) * 1000
}

/// Implements `new Date(…)` with several numbers.
///
/// # Errors
/// One of them is not an `int`.
pub(crate) fn create(parts: &[Value]) -> EvalResult {
    let parts = parts.iter().map(|part| part.to_int().map(i64::from));
    Ok(Value::date(of_parts(&parts.collect::<Result<Vec<_>, _>>()?)))
}

fn parts_of(millis: i64) -> Result<Vec<i64>, Failure> {
    let calendar = Calendar::new(Zone::utc(), millis);
    let fields = [1, 2, 5, 11, 12, 13].map(|field| calendar.get(field).map(i64::from));
    let mut parts = fields.into_iter().collect::<Result<Vec<_>, _>>()?;
    if calendar.get(0)? == 0 {
        parts[0] = 1 - parts[0];
    }
    parts[0] -= 1900;
    Ok(parts)
}

/// Calls a method that returns or sets a part of a date. `None` if there is no such method.
pub(crate) fn call(millis: &Rc<RefCell<i64>>, method: &str, arguments: &[Value]) -> LookupResult {
    let now = *millis.borrow();
    let place = |name: &str| {
        let names = ["Year", "Month", "Date", "Hours", "Minutes", "Seconds"];
        names.iter().position(|known| *known == name)
    };
    if let (Some(at), []) = (method.strip_prefix("get").and_then(place), arguments) {
        return Ok(Some(Value::Int(parts_of(now)?[at] as i32)));
    }
    if let (Some(at), [value]) = (method.strip_prefix("set").and_then(place), arguments) {
        let mut parts = parts_of(now)?;
        parts[at] = i64::from(value.to_int()?);
        *millis.borrow_mut() = of_parts(&parts) + now.rem_euclid(1000);
        return Ok(Some(Value::Null));
    }
    Ok(match (method, arguments) {
        ("getDay", []) => {
            let day = crate::time::civil::weekday(now.div_euclid(MILLIS_PER_DAY)) % 7;
            Some(Value::Int(day as i32))
        }
        ("getTimezoneOffset", []) => Some(Value::Int(0)),
        ("toInstant", []) => {
            let instant = Temporal::Instant(now.div_euclid(1000), now.rem_euclid(1000) * 1_000_000);
            Some(Value::temporal(instant))
        }
        _ => None,
    })
}
