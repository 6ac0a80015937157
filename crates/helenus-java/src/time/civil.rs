//! Days, times of day, weeks, and the names of months and days.

use helenus_cql::value::civil::{civil_from_days, days_from_civil, days_in_month};

use crate::error::Failure;

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;
pub(crate) const SECONDS_PER_DAY: i64 = 86_400;
pub(crate) const NANOS_PER_DAY: i64 = SECONDS_PER_DAY * NANOS_PER_SECOND;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The days of the week, from Monday.
pub(crate) const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Maximum absolute value of a year in `java.time`.
const YEAR_MAX: i64 = 999_999_999;

/// A day and a time of day, without a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Local {
    /// Days since 1970-01-01.
    pub day: i64,
    /// Nanoseconds of the day.
    pub nano: i64,
}

impl Local {
    /// Returns the local time of so many seconds and nanoseconds since 1970-01-01.
    pub fn of_seconds(seconds: i64, nano: i64) -> Local {
        Local {
            day: seconds.div_euclid(SECONDS_PER_DAY),
            nano: seconds.rem_euclid(SECONDS_PER_DAY) * NANOS_PER_SECOND + nano,
        }
    }

    /// Returns seconds since 1970-01-01.
    pub fn seconds(self) -> i64 {
        self.day * SECONDS_PER_DAY + self.nano.div_euclid(NANOS_PER_SECOND)
    }

    /// Returns the nanoseconds of the second.
    pub fn nano_of_second(self) -> i64 {
        self.nano.rem_euclid(NANOS_PER_SECOND)
    }

    pub fn second_of_day(self) -> i64 {
        self.nano / NANOS_PER_SECOND
    }

    pub fn hour(self) -> i64 {
        self.second_of_day() / 3600
    }

    pub fn minute(self) -> i64 {
        self.second_of_day() / 60 % 60
    }

    pub fn second(self) -> i64 {
        self.second_of_day() % 60
    }

    /// Returns year, month and day of the month.
    pub fn date(self) -> (i64, i64, i64) {
        civil_from_days(self.day)
    }
}

/// Returns the day of the week: 1 is Monday.
pub(crate) fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7) + 1
}

pub(crate) fn day_of_year(day: i64) -> i64 {
    let (year, ..) = civil_from_days(day);
    day - days_from_civil(year, 1, 1) + 1
}

pub(crate) fn days_in_year(year: i64) -> i64 {
    days_from_civil(year + 1, 1, 1) - days_from_civil(year, 1, 1)
}

/// Returns year and week as the United States count them. A week begins on Sunday, and the first week contains January 1st.
pub(crate) fn week_of_year(day: i64) -> (i64, i64) {
    let (year, ..) = civil_from_days(day);
    let first_week = |year| {
        let first = days_from_civil(year, 1, 1);
        first - weekday(first) % 7
    };
    match day >= first_week(year + 1) {
        true => (year + 1, 1),
        false => (year, (day - first_week(year)) / 7 + 1),
    }
}

/// Returns the week of the month as the United States count it.
pub(crate) fn week_of_month(day: i64) -> i64 {
    let (.., day_of_month) = civil_from_days(day);
    let first = day - (day_of_month - 1);
    (day_of_month - 1 + weekday(first) % 7) / 7 + 1
}

/// Returns the year and the month (from 1) so many months later.
pub(crate) fn month_after(year: i64, month: i64, months: i64) -> (i64, i64) {
    let all = year * 12 + (month - 1) + months;
    (all.div_euclid(12), all.rem_euclid(12) + 1)
}

/// Returns the day so many months later. If that month is shorter, returns the month's last day.
pub(crate) fn add_months(day: i64, months: i64) -> i64 {
    let (year, month, of_month) = civil_from_days(day);
    let (year, month) = month_after(year, month, months);
    days_from_civil(year, month, of_month.min(days_in_month(year, month)))
}

pub(crate) fn out_of_range(field: &str, valid: &str, value: i64) -> Failure {
    Failure::thrown(
        "java.time.DateTimeException",
        format!("Invalid value for {field} (valid values {valid}): {value}"),
    )
}

/// Checks the value of a field.
///
/// # Errors
/// The value is out of the field's range.
pub(crate) fn check_field(field: &str, value: i64, least: i64, most: i64) -> Result<(), Failure> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(out_of_range(field, &format!("{least} - {most}"), value)),
    }
}

/// Returns the day of a date, in days since 1970-01-01.
///
/// # Errors
/// There is no such date.
pub(crate) fn day_of(year: i64, month: i64, day: i64) -> Result<i64, Failure> {
    check_year(year)?;
    check_field("MonthOfYear", month, 1, 12)?;
    if !(1..=31).contains(&day) {
        return Err(out_of_range("DayOfMonth", "1 - 28/31", day));
    }
    if day > days_in_month(year, month) {
        let message = match (month, day) {
            (2, 29) => format!("Invalid date 'February 29' as '{year}' is not a leap year"),
            _ => {
                let name = MONTHS.get(month as usize - 1).unwrap_or(&"").to_uppercase();
                format!("Invalid date '{name} {day}'")
            }
        };
        return Err(Failure::thrown("java.time.DateTimeException", message));
    }
    Ok(days_from_civil(year, month, day))
}

/// Checks a year.
///
/// # Errors
/// The year is out of the range of `java.time`.
pub(crate) fn check_year(year: i64) -> Result<(), Failure> {
    match year.abs() <= YEAR_MAX {
        true => Ok(()),
        false => Err(out_of_range("Year", &format!("-{YEAR_MAX} - {YEAR_MAX}"), year)),
    }
}

/// Returns the day, if its year is in the range of `java.time`.
///
/// # Errors
/// The day is out of range.
pub(crate) fn checked_day(day: i128) -> Result<i64, Failure> {
    const DAYS_MAX: i128 = 365_243_000_000;
    let day = i64::try_from(day)
        .ok()
        .filter(|day| i128::from(day.abs()) < DAYS_MAX);
    let day = day.ok_or_else(too_large)?;
    check_year(civil_from_days(day).0)?;
    Ok(day)
}

pub(crate) fn too_large() -> Failure {
    Failure::thrown("java.lang.ArithmeticException", "long overflow")
}
