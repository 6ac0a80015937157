//! Units of time: `ChronoUnit` and `TimeUnit`.

use super::civil::{NANOS_PER_DAY, NANOS_PER_SECOND};

/// A `ChronoUnit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Nanos,
    Micros,
    Millis,
    Seconds,
    Minutes,
    Hours,
    HalfDays,
    Days,
    Weeks,
    Months,
    Years,
    Decades,
    Centuries,
}

const UNITS: [(Unit, &str, &str); 13] = [
    (Unit::Nanos, "NANOS", "Nanos"),
    (Unit::Micros, "MICROS", "Micros"),
    (Unit::Millis, "MILLIS", "Millis"),
    (Unit::Seconds, "SECONDS", "Seconds"),
    (Unit::Minutes, "MINUTES", "Minutes"),
    (Unit::Hours, "HOURS", "Hours"),
    (Unit::HalfDays, "HALF_DAYS", "HalfDays"),
    (Unit::Days, "DAYS", "Days"),
    (Unit::Weeks, "WEEKS", "Weeks"),
    (Unit::Months, "MONTHS", "Months"),
    (Unit::Years, "YEARS", "Years"),
    (Unit::Decades, "DECADES", "Decades"),
    (Unit::Centuries, "CENTURIES", "Centuries"),
];

impl Unit {
    /// Returns the constant of that name.
    pub fn constant(name: &str) -> Option<Unit> {
        UNITS
            .iter()
            .find(|(_, constant, _)| *constant == name)
            .map(|(unit, ..)| *unit)
    }

    /// Returns the unit with the name that methods such as `plusDays` contain.
    pub fn named(name: &str) -> Option<Unit> {
        UNITS
            .iter()
            .find(|(.., shown)| *shown == name)
            .map(|(unit, ..)| *unit)
    }

    fn entry(self) -> (&'static str, &'static str) {
        let found = UNITS.iter().find(|(unit, ..)| *unit == self);
        found.map_or(("", ""), |(_, constant, shown)| (constant, shown))
    }

    /// Implements `name`.
    pub fn constant_name(self) -> &'static str {
        self.entry().0
    }

    /// Implements `toString`.
    pub fn shown(self) -> &'static str {
        self.entry().1
    }

    pub fn ordinal(self) -> i32 {
        self as i32
    }

    /// Returns the unit's nanoseconds. `None` for units longer than a week, which are counted in months.
    pub fn nanos(self) -> Option<i64> {
        Some(match self {
            Unit::Nanos => 1,
            Unit::Micros => 1_000,
            Unit::Millis => 1_000_000,
            Unit::Seconds => NANOS_PER_SECOND,
            Unit::Minutes => 60 * NANOS_PER_SECOND,
            Unit::Hours => 3600 * NANOS_PER_SECOND,
            Unit::HalfDays => NANOS_PER_DAY / 2,
            Unit::Days => NANOS_PER_DAY,
            Unit::Weeks => 7 * NANOS_PER_DAY,
            Unit::Months | Unit::Years | Unit::Decades | Unit::Centuries => return None,
        })
    }

    /// Returns the unit's months. `None` for shorter units.
    pub fn months(self) -> Option<i64> {
        Some(match self {
            Unit::Months => 1,
            Unit::Years => 12,
            Unit::Decades => 120,
            Unit::Centuries => 1200,
            _ => return None,
        })
    }

    /// Returns true for units shorter than a day.
    pub fn is_of_time(self) -> bool {
        self < Unit::Days
    }
}

/// The constants of `TimeUnit`, in their order: name, conversion method, and nanoseconds.
pub(crate) const TIME_UNITS: [(&str, &str, i64); 7] = [
    ("NANOSECONDS", "toNanos", 1),
    ("MICROSECONDS", "toMicros", 1_000),
    ("MILLISECONDS", "toMillis", 1_000_000),
    ("SECONDS", "toSeconds", NANOS_PER_SECOND),
    ("MINUTES", "toMinutes", 60 * NANOS_PER_SECOND),
    ("HOURS", "toHours", 3600 * NANOS_PER_SECOND),
    ("DAYS", "toDays", NANOS_PER_DAY),
];

/// Converts an amount from units of `from` nanoseconds to units of `to`. The result is rounded towards zero and limited to the range of
/// `long`.
pub(crate) fn converted(amount: i64, from: i64, to: i64) -> i64 {
    let all = i128::from(amount) * i128::from(from) / i128::from(to);
    i64::try_from(all).unwrap_or(match all < 0 {
        true => i64::MIN,
        false => i64::MAX,
    })
}
