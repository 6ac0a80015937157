//! Arithmetic with points in time: `plus`, `with`, `truncatedTo`, `until`.

use helenus_cql::value::civil::days_in_month;

use super::civil::{
    self, Local, NANOS_PER_DAY, NANOS_PER_SECOND, add_months, check_field, checked_day, day_of, day_of_year,
    days_in_year, too_large,
};
use super::temporal::Temporal;
use super::unit::Unit;
use crate::error::Failure;

fn unsupported(unit: Unit) -> Failure {
    Failure::thrown(
        "java.time.temporal.UnsupportedTemporalTypeException",
        format!("Unsupported unit: {}", unit.shown()),
    )
}

/// Returns the time so many nanoseconds later, in seconds and nanoseconds.
fn later(seconds: i64, nano: i64, nanos: i128) -> Result<(i64, i64), Failure> {
    let all = i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nano) + nanos;
    let per_second = i128::from(NANOS_PER_SECOND);
    let seconds = i64::try_from(all.div_euclid(per_second)).map_err(|_| too_large())?;
    checked_day(i128::from(seconds) / 86_400)?;
    Ok((seconds, all.rem_euclid(per_second) as i64))
}

fn local_later(local: Local, nanos: i128) -> Result<Local, Failure> {
    let per_day = i128::from(NANOS_PER_DAY);
    let all = i128::from(local.nano) + nanos;
    let day = checked_day(i128::from(local.day) + all.div_euclid(per_day))?;
    Ok(Local {
        day,
        nano: all.rem_euclid(per_day) as i64,
    })
}

/// Returns the day so many units later. The unit is a day or longer.
fn day_later(day: i64, amount: i64, unit: Unit) -> Result<i64, Failure> {
    if let Some(months) = unit.months() {
        let months = amount.checked_mul(months).ok_or_else(too_large)?;
        let (year, ..) = Local { day, nano: 0 }.date();
        civil::check_year(year.saturating_add(months / 12))?;
        return Ok(add_months(day, months));
    }
    let days = if unit == Unit::Weeks { 7 } else { 1 };
    checked_day(i128::from(day) + i128::from(amount) * days)
}

impl Temporal {
    /// Returns the point in time so many units later.
    ///
    /// # Errors
    /// The point in time does not have the unit, or the result is out of range.
    pub fn plus(&self, amount: i64, unit: Unit) -> Result<Temporal, Failure> {
        let nanos = unit.nanos().map(|nanos| i128::from(nanos) * i128::from(amount));
        Ok(match (self, nanos) {
            (Temporal::Date(_), Some(_)) if unit.is_of_time() => return Err(unsupported(unit)),
            (Temporal::Date(day), _) => Temporal::Date(day_later(*day, amount, unit)?),
            (Temporal::Time(nano), Some(nanos)) if unit.is_of_time() => {
                Temporal::Time((i128::from(*nano) + nanos).rem_euclid(i128::from(NANOS_PER_DAY)) as i64)
            }
            (Temporal::Instant(seconds, nano), Some(nanos)) if unit <= Unit::Days => {
                let (seconds, nano) = later(*seconds, *nano, nanos)?;
                Temporal::Instant(seconds, nano)
            }
            (Temporal::DateTime(local), Some(nanos)) if unit.is_of_time() => {
                Temporal::DateTime(local_later(*local, nanos)?)
            }
            (Temporal::DateTime(local), _) => Temporal::DateTime(Local {
                day: day_later(local.day, amount, unit)?,
                ..*local
            }),
            (Temporal::Zoned(seconds, nano, zone), Some(nanos)) if unit.is_of_time() => {
                let (seconds, nano) = later(*seconds, *nano, nanos)?;
                Temporal::Zoned(seconds, nano, zone.clone())
            }
            (Temporal::Zoned(..), _) => {
                let local = self.local().ok_or_else(|| unsupported(unit))?;
                let day = day_later(local.day, amount, unit)?;
                self.with_local(Local { day, ..local })
            }
            (Temporal::Duration(seconds, nano), Some(nanos)) => {
                let all = i128::from(*seconds) * i128::from(NANOS_PER_SECOND) + i128::from(*nano) + nanos;
                i64::try_from(all / i128::from(NANOS_PER_SECOND)).map_err(|_| too_large())?;
                Temporal::duration(all)
            }
            (Temporal::Period { years, months, days }, _) => {
                let (mut years, mut months, mut days) = (*years, *months, *days);
                let part = match unit {
                    Unit::Years => &mut years,
                    Unit::Months => &mut months,
                    _ => &mut days,
                };
                *part += amount;
                Temporal::Period { years, months, days }
            }
            (Temporal::DayOfWeek(number), _) => {
                Temporal::DayOfWeek((number - 1 + amount % 7).rem_euclid(7) + 1)
            }
            (Temporal::Month(number), _) => Temporal::Month((number - 1 + amount % 12).rem_euclid(12) + 1),
            _ => return Err(unsupported(unit)),
        })
    }

    /// Returns the point in time that is later by a duration or a period, or earlier if `sign` is -1.
    ///
    /// # Errors
    /// As [`plus`](Self::plus).
    pub fn plus_amount(&self, amount: &Temporal, sign: i64) -> Result<Temporal, Failure> {
        match amount {
            Temporal::Duration(seconds, nano) => {
                let later = self.plus(sign * seconds, Unit::Seconds)?;
                match nano {
                    0 => Ok(later),
                    _ => later.plus(sign * nano, Unit::Nanos),
                }
            }
            Temporal::Period { years, months, days } => {
                let mut later = self.clone();
                if years * 12 + months != 0 {
                    later = later.plus(sign * (years * 12 + months), Unit::Months)?;
                }
                if *days != 0 {
                    later = later.plus(sign * days, Unit::Days)?;
                }
                Ok(later)
            }
            _ => Err(Failure::class_cast(
                amount.class(),
                "java.time.temporal.TemporalAmount",
            )),
        }
    }

    /// Returns a value of the same class with another day and time.
    pub fn with_local(&self, local: Local) -> Temporal {
        match self {
            Temporal::Instant(..) => Temporal::Instant(local.seconds(), local.nano_of_second()),
            Temporal::Date(_) => Temporal::Date(local.day),
            Temporal::Time(_) => Temporal::Time(local.nano),
            Temporal::DateTime(_) => Temporal::DateTime(local),
            Temporal::Zoned(_, _, zone) => Temporal::zoned(local, zone.clone()),
            other => other.clone(),
        }
    }

    /// Returns a copy with another value of a field, as `withDayOfMonth` and similar methods do. `None` if there is no such field.
    ///
    /// # Errors
    /// The value is out of the field's range.
    pub fn with(&self, field: &str, value: i64) -> Result<Option<Temporal>, Failure> {
        let Some(local) = self.local() else {
            return Ok(None);
        };
        let (year, month, day) = local.date();
        let clamped = |year, month, day: i64| day_of(year, month, day.min(days_in_month(year, month)));
        let time = |unit: i64, current: i64| Local {
            nano: local.nano + (value - current) * unit * NANOS_PER_SECOND,
            ..local
        };
        let on = |day| Local { day, ..local };
        let changed = match field {
            "Year" => {
                civil::check_year(value)?;
                on(clamped(value, month, day)?)
            }
            "Month" => {
                check_field("MonthOfYear", value, 1, 12)?;
                on(clamped(year, value, day)?)
            }
            "DayOfMonth" => on(day_of(year, month, value)?),
            "DayOfYear" => {
                if !(1..=days_in_year(year)).contains(&value) {
                    return match value {
                        366 => Err(Failure::thrown(
                            "java.time.DateTimeException",
                            format!("Invalid date 'DayOfYear 366' as '{year}' is not a leap year"),
                        )),
                        _ => Err(civil::out_of_range("DayOfYear", "1 - 365/366", value)),
                    };
                }
                on(local.day - day_of_year(local.day) + value)
            }
            "Hour" => {
                check_field("HourOfDay", value, 0, 23)?;
                time(3600, local.hour())
            }
            "Minute" => {
                check_field("MinuteOfHour", value, 0, 59)?;
                time(60, local.minute())
            }
            "Second" => {
                check_field("SecondOfMinute", value, 0, 59)?;
                time(1, local.second())
            }
            "Nano" => {
                check_field("NanoOfSecond", value, 0, NANOS_PER_SECOND - 1)?;
                Local {
                    nano: local.nano - local.nano_of_second() + value,
                    ..local
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(self.with_local(changed)))
    }

    /// Implements `truncatedTo`.
    ///
    /// # Errors
    /// The unit is longer than a day.
    pub fn truncated(&self, unit: Unit) -> Result<Temporal, Failure> {
        let nanos = unit.nanos().filter(|_| unit <= Unit::Days).ok_or_else(|| {
            Failure::thrown(
                "java.time.temporal.UnsupportedTemporalTypeException",
                "Unit is too large to be used for truncation",
            )
        })?;
        let Some(local) = self.local() else {
            return Ok(self.clone());
        };
        Ok(self.with_local(Local {
            nano: local.nano - local.nano % nanos,
            ..local
        }))
    }

    /// Returns the whole units from one point in time to another.
    ///
    /// # Errors
    /// One of them does not have the unit, or they are of different classes.
    pub fn until(&self, end: &Temporal, unit: Unit) -> Result<i64, Failure> {
        if let (Some(from), Some(to)) = (self.instant(), end.instant())
            && let Some(nanos) = unit.nanos()
            && (unit.is_of_time() || matches!(self, Temporal::Instant(..)) && unit == Unit::Days)
        {
            return whole(from, to, nanos);
        }
        let end = match (self, end) {
            (Temporal::Zoned(_, _, zone), Temporal::Zoned(seconds, nano, _)) => {
                Temporal::Zoned(*seconds, *nano, zone.clone())
            }
            (Temporal::Date(_), other) => Temporal::Date(day_part(other)?),
            (Temporal::Time(_), other) if !matches!(other, Temporal::Date(_) | Temporal::Instant(..)) => {
                Temporal::Time(other.local().map_or(0, |local| local.nano))
            }
            (Temporal::DateTime(_), Temporal::Zoned(..)) => {
                Temporal::DateTime(end.local().unwrap_or(Local { day: 0, nano: 0 }))
            }
            _ => end.clone(),
        };
        let (Some(from), Some(to)) = (self.local(), end.local()) else {
            return Err(unsupported(unit));
        };
        if self.class() != end.class() {
            return Err(no_conversion(&end, self.class()));
        }
        let has_unit = match self {
            Temporal::Date(_) => !unit.is_of_time(),
            Temporal::Time(_) => unit.is_of_time(),
            Temporal::Instant(..) => unit <= Unit::Days,
            _ => true,
        };
        if !has_unit {
            return Err(unsupported(unit));
        }
        match unit.nanos() {
            Some(nanos) => whole(
                (from.seconds(), from.nano_of_second()),
                (to.seconds(), to.nano_of_second()),
                nanos,
            ),
            None => Ok(months_between(from, to) / unit.months().unwrap_or(1)),
        }
    }
}

/// Returns the day of a value that has one.
fn day_part(temporal: &Temporal) -> Result<i64, Failure> {
    match temporal {
        Temporal::Date(_) | Temporal::DateTime(_) | Temporal::Zoned(..) => {
            Ok(temporal.local().map_or(0, |local| local.day))
        }
        other => Err(no_conversion(other, "time.LocalDate")),
    }
}

fn no_conversion(from: &Temporal, class: &str) -> Failure {
    let simple = class.rsplit('.').next().unwrap_or(class);
    Failure::thrown(
        "java.time.DateTimeException",
        format!(
            "Unable to obtain {simple} from TemporalAccessor: {} of type {}",
            from.shown(),
            crate::classes::whole_name(from.class())
        ),
    )
}

/// Returns the whole units between two times. A unit has `nanos` nanoseconds.
fn whole(from: (i64, i64), to: (i64, i64), nanos: i64) -> Result<i64, Failure> {
    let all =
        |(seconds, nano): (i64, i64)| i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nano);
    i64::try_from((all(to) - all(from)) / i128::from(nanos)).map_err(|_| too_large())
}

/// Returns the whole months between two times.
pub(crate) fn months_between(from: Local, to: Local) -> i64 {
    let place = |local: Local| {
        let (year, month, day) = local.date();
        (year * 12 + month, (day, local.nano))
    };
    let ((from_month, from_rest), (to_month, to_rest)) = (place(from), place(to));
    let months = to_month - from_month;
    match months {
        1.. if to_rest < from_rest => months - 1,
        ..=-1 if to_rest > from_rest => months + 1,
        _ => months,
    }
}

/// Implements `Period.between`.
pub(crate) fn period_between(from: i64, to: i64) -> Temporal {
    let place = |day| {
        let (year, month, of_month) = Local { day, nano: 0 }.date();
        (year * 12 + month, of_month, days_in_month(year, month))
    };
    let ((from_month, from_day, _), (to_month, to_day, to_len)) = (place(from), place(to));
    let (mut months, mut days) = (to_month - from_month, to_day - from_day);
    if months > 0 && days < 0 {
        months -= 1;
        days = to - add_months(from, months);
    } else if months < 0 && days > 0 {
        months += 1;
        days -= to_len;
    }
    Temporal::Period {
        years: months / 12,
        months: months % 12,
        days,
    }
}
