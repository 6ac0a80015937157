//! Immutable values of `java.time`.

use std::cmp::Ordering;
use std::fmt::Write;

use helenus_cql::value::civil::date_text;

use super::civil::{DAYS, Local, MONTHS, NANOS_PER_SECOND, SECONDS_PER_DAY};
use super::pattern::Formatter;
use super::unit::{TIME_UNITS, Unit};
use super::zone::{Zone, ZoneClass, offset_id};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Temporal {
    /// Seconds since 1970-01-01 UTC, and nanoseconds of the second.
    Instant(i64, i64),
    /// Days since 1970-01-01.
    Date(i64),
    /// Nanoseconds of the day.
    Time(i64),
    DateTime(Local),
    /// A `ZonedDateTime`: seconds since 1970-01-01 UTC, nanoseconds of the second, and the zone.
    Zoned(i64, i64, Zone),
    /// Seconds, which may be negative, and nanoseconds, which are never negative.
    Duration(i64, i64),
    Period {
        years: i64,
        months: i64,
        days: i64,
    },
    Zone(Zone),
    Unit(Unit),
    /// Index in [`TIME_UNITS`].
    TimeUnit(usize),
    /// 1 is Monday.
    DayOfWeek(i64),
    Month(i64),
    Formatter(Formatter),
    /// A locale. All of them use the texts of the United States.
    Locale,
}

impl Temporal {
    /// Returns the short name of the value's class, as [`crate::classes`] defines it.
    pub fn class(&self) -> &'static str {
        match self {
            Temporal::Instant(..) => "Instant",
            Temporal::Date(_) => "time.LocalDate",
            Temporal::Time(_) => "LocalTime",
            Temporal::DateTime(_) => "LocalDateTime",
            Temporal::Zoned(..) => "ZonedDateTime",
            Temporal::Duration(..) => "time.Duration",
            Temporal::Period { .. } => "Period",
            Temporal::Zone(zone) => match zone.class {
                ZoneClass::ZoneId => "ZoneId",
                ZoneClass::ZoneOffset => "ZoneOffset",
                ZoneClass::TimeZone => "TimeZone",
            },
            Temporal::Unit(_) => "ChronoUnit",
            Temporal::TimeUnit(_) => "TimeUnit",
            Temporal::DayOfWeek(_) => "DayOfWeek",
            Temporal::Month(_) => "Month",
            Temporal::Formatter(_) => "DateTimeFormatter",
            Temporal::Locale => "Locale",
        }
    }

    /// Returns day and time of day. Values without a day have day 0, those without a time have midnight. `None` if the value is not a point
    /// in time.
    pub fn local(&self) -> Option<Local> {
        Some(match self {
            Temporal::Instant(seconds, nano) => Local::of_seconds(*seconds, *nano),
            Temporal::Date(day) => Local { day: *day, nano: 0 },
            Temporal::Time(nano) => Local { day: 0, nano: *nano },
            Temporal::DateTime(local) => *local,
            Temporal::Zoned(second, nano, zone) => {
                Local::of_seconds(second + i64::from(zone.offset_at(*second)), *nano)
            }
            _ => return None,
        })
    }

    /// Returns seconds and nanoseconds since 1970-01-01 UTC. `None` for values without a zone.
    pub fn instant(&self) -> Option<(i64, i64)> {
        match self {
            Temporal::Instant(seconds, nano) | Temporal::Zoned(seconds, nano, _) => Some((*seconds, *nano)),
            _ => None,
        }
    }

    /// Returns the `ZonedDateTime` of a local time in a zone.
    pub fn zoned(local: Local, zone: Zone) -> Temporal {
        let second = local.seconds() - i64::from(zone.offset_of_local(local.seconds()));
        Temporal::Zoned(second, local.nano_of_second(), zone)
    }

    /// Returns the duration of so many nanoseconds.
    pub fn duration(nanos: i128) -> Temporal {
        let second = i128::from(NANOS_PER_SECOND);
        Temporal::Duration(nanos.div_euclid(second) as i64, nanos.rem_euclid(second) as i64)
    }

    /// Compares two values as `compareTo` does. `None` if the two can't be compared.
    pub fn compare(&self, other: &Temporal) -> Option<Ordering> {
        Some(match (self, other) {
            (Temporal::Duration(a, b), Temporal::Duration(c, d)) => (a, b).cmp(&(c, d)),
            (Temporal::Unit(a), Temporal::Unit(b)) => a.cmp(b),
            (Temporal::TimeUnit(a), Temporal::TimeUnit(b)) => a.cmp(b),
            (Temporal::DayOfWeek(a), Temporal::DayOfWeek(b)) => a.cmp(b),
            (Temporal::Month(a), Temporal::Month(b)) => a.cmp(b),
            _ => match (self.instant(), other.instant()) {
                (Some(a), Some(b)) => a.cmp(&b),
                (None, None) => self.local()?.cmp(&other.local()?),
                _ => return None,
            },
        })
    }

    /// Returns the number that `compareTo` returns. For dates, it is the difference of the first parts that differ. For constants, it is
    /// the difference of their numbers.
    pub fn difference(&self, other: &Temporal) -> Option<i64> {
        if let (Some((_, a)), Some((_, b))) = (self.constant(), other.constant()) {
            return Some(a - b);
        }
        if let (Temporal::Date(_) | Temporal::DateTime(_), Some(a), Some(b)) =
            (self, self.local(), other.local())
        {
            let (a_date, b_date) = (a.date(), b.date());
            let parts = [a_date.0 - b_date.0, a_date.1 - b_date.1, a_date.2 - b_date.2];
            let differs = parts.into_iter().find(|difference| *difference != 0);
            return Some(differs.unwrap_or(a.nano.cmp(&b.nano) as i64));
        }
        self.compare(other).map(|order| order as i64)
    }

    /// Returns the name and the number of an enum's constant. `None` for values of other classes.
    pub fn constant(&self) -> Option<(String, i64)> {
        let at = |names: &[&str], number: i64| {
            let name = usize::try_from(number - 1).ok().and_then(|at| names.get(at));
            Some((name.unwrap_or(&"").to_uppercase(), number - 1))
        };
        match self {
            Temporal::Unit(unit) => Some((unit.constant_name().to_owned(), i64::from(unit.ordinal()))),
            Temporal::TimeUnit(unit) => {
                let name = TIME_UNITS.get(*unit).map_or("", |(name, ..)| *name);
                Some((name.to_owned(), *unit as i64))
            }
            Temporal::DayOfWeek(number) => at(&DAYS, *number),
            Temporal::Month(number) => at(&MONTHS, *number),
            _ => None,
        }
    }

    /// Returns the value's `toString`.
    pub fn shown(&self) -> String {
        match self {
            Temporal::Instant(seconds, nano) => instant_text(*seconds, *nano),
            Temporal::Date(day) => date_text(*day),
            Temporal::Time(nano) => time_text(*nano, false),
            Temporal::DateTime(local) => date_time_text(*local),
            Temporal::Zoned(second, nano, zone) => {
                let offset = zone.offset_at(*second);
                let local = Local::of_seconds(second + i64::from(offset), *nano);
                let text = format!("{}{}", date_time_text(local), offset_id(offset));
                match zone.class {
                    ZoneClass::ZoneOffset => text,
                    _ => format!("{text}[{}]", zone.id),
                }
            }
            Temporal::Duration(seconds, nano) => duration_text(*seconds, *nano),
            Temporal::Period { years, months, days } => {
                let part = |number: &i64, letter| match number {
                    0 => String::new(),
                    _ => format!("{number}{letter}"),
                };
                let parts = [part(years, 'Y'), part(months, 'M'), part(days, 'D')].concat();
                format!("P{}", if parts.is_empty() { "0D" } else { &parts })
            }
            Temporal::Zone(zone) => zone.id.to_string(),
            Temporal::Unit(unit) => unit.shown().to_owned(),
            Temporal::Formatter(formatter) => formatter.shown(),
            Temporal::Locale => "en_US".to_owned(),
            Temporal::TimeUnit(_) | Temporal::DayOfWeek(_) | Temporal::Month(_) => {
                self.constant().map(|(name, _)| name).unwrap_or_default()
            }
        }
    }
}

/// Returns three, six or nine digits behind a point. Empty for 0.
fn fraction(nano: i64) -> String {
    match nano {
        0 => String::new(),
        _ if nano % 1_000_000 == 0 => format!(".{:03}", nano / 1_000_000),
        _ if nano % 1_000 == 0 => format!(".{:06}", nano / 1_000),
        _ => format!(".{nano:09}"),
    }
}

/// Returns hours and minutes. Seconds are added if they are not zero, or if `has_seconds` is set.
pub(crate) fn time_text(nano_of_day: i64, has_seconds: bool) -> String {
    let local = Local {
        day: 0,
        nano: nano_of_day,
    };
    let mut text = format!("{:02}:{:02}", local.hour(), local.minute());
    let (second, nano) = (local.second(), local.nano_of_second());
    if has_seconds || second > 0 || nano > 0 {
        let _ = write!(text, ":{second:02}{}", fraction(nano));
    }
    text
}

pub(crate) fn date_time_text(local: Local) -> String {
    format!("{}T{}", date_text(local.day), time_text(local.nano, false))
}

pub(crate) fn instant_text(seconds: i64, nano: i64) -> String {
    let local = Local::of_seconds(seconds, nano);
    format!("{}T{}Z", date_text(local.day), time_text(local.nano, true))
}

fn duration_text(seconds: i64, nano: i64) -> String {
    if seconds == 0 && nano == 0 {
        return "PT0S".to_owned();
    }
    // Seconds are rounded towards zero, so that all parts have the same sign.
    let mut whole = seconds;
    if seconds < 0 && nano > 0 {
        whole += 1;
    }
    let (hours, minutes, rest) = (whole / 3600, whole % 3600 / 60, whole % 60);
    let mut text = "PT".to_owned();
    if hours != 0 {
        let _ = write!(text, "{hours}H");
    }
    if minutes != 0 {
        let _ = write!(text, "{minutes}M");
    }
    if rest == 0 && nano == 0 && text.len() > 2 {
        return text;
    }
    let is_negative = seconds < 0;
    if is_negative && nano > 0 && rest == 0 {
        text.push('-');
    }
    let _ = write!(text, "{rest}");
    if nano > 0 {
        let nano = if is_negative {
            NANOS_PER_SECOND - nano
        } else {
            nano
        };
        let digits = format!("{nano:09}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    text.push('S');
    text
}

/// Returns the time at which a day begins in a zone, in seconds since 1970-01-01 UTC.
pub(crate) fn start_of_day(day: i64, zone: &Zone) -> i64 {
    let local = day * SECONDS_PER_DAY;
    local - i64::from(zone.offset_of_local(local))
}
