//! The proleptic Gregorian calendar, for years far beyond those of the usual libraries: a `date` reaches
//! 5.8 million years each way.

pub const MILLIS_PER_DAY: i64 = 86_400_000;
pub const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Days since 1970-01-01 of a date; the month is 1 to 12, and the day may be any number.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 {
        month_shifted + 3
    } else {
        month_shifted - 9
    };
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

/// A year as Java's ISO formatters print it: four digits at least, a sign in front of more than four.
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

/// `yyyy-MM-dd` of days since 1970-01-01.
pub fn date_text(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{}-{month:02}-{day:02}", year_text(year))
}

/// A time in milliseconds since 1970 moved by months; the day is clamped to the month's last
/// (`Calendar.add(MONTH, …)`).
pub fn add_months(millis: i64, months: i64) -> i64 {
    let days = millis.div_euclid(MILLIS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let total = year * 12 + (month - 1) + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let moved = days_from_civil(year, month, day.min(days_in_month(year, month)));
    moved
        .wrapping_mul(MILLIS_PER_DAY)
        .wrapping_add(millis.rem_euclid(MILLIS_PER_DAY))
}
