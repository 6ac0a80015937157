//! The proleptic Gregorian calendar, and Java's calendar, which is Julian before 1582-10-15. They cover years far beyond those of the usual
//! libraries, since a `date` reaches 5.8 million years each way.

pub const MILLIS_PER_DAY: i64 = 86_400_000;
pub const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Returns the days since March 1st, in a year that begins on that day. The leap day is then the last day.
fn day_of_year(month: i64, day: i64) -> i64 {
    (153 * ((month + 9) % 12) + 2) / 5 + day - 1
}

/// Returns the month and the day of the month for days since March 1st.
fn month_and_day(day_of_year: i64) -> (i64, i64) {
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 {
        month_shifted + 3
    } else {
        month_shifted - 9
    };
    (month, day)
}

/// Returns the days since 1970-01-01 of a date. `month` must be 1 to 12, and `day` may be any number.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = day_of_year(month, day);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Returns year, month and day for days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let (month, day) = month_and_day(day_of_year);
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

pub fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns a year as Java's ISO formatters print it: at least four digits, with a sign before more than four.
pub fn year_text(year: i64) -> String {
    let sign = if year < 0 {
        "-"
    } else if year > 9_999 {
        "+"
    } else {
        ""
    };
    format!("{sign}{:04}", year.unsigned_abs())
}

/// Returns `yyyy-MM-dd` for days since 1970-01-01.
pub fn date_text(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{}-{month:02}-{day:02}", year_text(year))
}

/// The first day of the Gregorian calendar, 1582-10-15, in days since 1970-01-01.
const GREGORIAN_FROM: i64 = -141_427;

/// Days from 1970-01-01 to March 1st of the Julian year 0.
const JULIAN_EPOCH: i64 = -719_470;

fn days_from_julian(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let day_of_year = day_of_year(month, day);
    365 * shifted_year + shifted_year.div_euclid(4) + day_of_year + JULIAN_EPOCH
}

fn julian_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days - JULIAN_EPOCH;
    let era = shifted.div_euclid(1_461);
    let day_of_era = shifted.rem_euclid(1_461);
    let year_of_era = (day_of_era - day_of_era / 1_460) / 365;
    let day_of_year = day_of_era - 365 * year_of_era;
    let (month, day) = month_and_day(day_of_year);
    (4 * era + year_of_era + i64::from(month <= 2), month, day)
}

/// Returns the year and the month so many months later.
fn month_after(year: i64, month: i64, months: i64) -> (i64, i64) {
    let total = year * 12 + (month - 1) + months;
    (total.div_euclid(12), total.rem_euclid(12) + 1)
}

/// Returns `day` with the time of day of `millis`, in milliseconds since 1970.
fn at_time_of(millis: i64, day: i64) -> i64 {
    day.wrapping_mul(MILLIS_PER_DAY)
        .wrapping_add(millis.rem_euclid(MILLIS_PER_DAY))
}

/// Moves a time in milliseconds since 1970 by months in Java's calendar, which is Julian before 1582-10-15. The day is limited to the
/// month's last (`Calendar.add(MONTH, …)`).
pub fn calendar_add_months(millis: i64, months: i64) -> i64 {
    let days = millis.div_euclid(MILLIS_PER_DAY);
    let (year, month, day) = match days >= GREGORIAN_FROM {
        true => civil_from_days(days),
        false => julian_from_days(days),
    };
    let (year, month) = month_after(year, month, months);
    let last = match year {
        // In 1582, which had both calendars, Java does not limit the day to the month's last.
        1582 => 31,
        ..1582 if year % 4 == 0 && month == 2 => 29,
        _ => days_in_month(year, month),
    };
    let day = day.min(last);
    let gregorian = days_from_civil(year, month, day);
    let moved = match gregorian >= GREGORIAN_FROM {
        true => gregorian,
        false => days_from_julian(year, month, day),
    };
    at_time_of(millis, moved)
}

/// Moves a time in milliseconds since 1970 by months. The day is limited to the month's last (`LocalDate.plusMonths`).
pub fn add_months(millis: i64, months: i64) -> i64 {
    let days = millis.div_euclid(MILLIS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let (year, month) = month_after(year, month, months);
    let moved = days_from_civil(year, month, day.min(days_in_month(year, month)));
    at_time_of(millis, moved)
}
