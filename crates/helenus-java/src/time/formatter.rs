//! `DateTimeFormatter.format`

use super::civil::{
    DAYS, Local, MONTHS, NANOS_PER_SECOND, day_of_year, week_of_month, week_of_year, weekday,
};
use super::pattern::{Form, Formatter, Iso, Item, short};
use super::temporal::{Temporal, date_time_text, instant_text, time_text};
use super::zone::{offset_id, offset_text};
use crate::error::Failure;

fn unsupported(field: &str) -> Failure {
    Failure::thrown(
        "java.time.temporal.UnsupportedTemporalTypeException",
        format!("Unsupported field: {field}"),
    )
}

/// Returns the text of a value.
///
/// # Errors
/// The value lacks a field of the format.
pub(crate) fn format(formatter: &Formatter, value: &Temporal) -> Result<String, Failure> {
    let in_zone;
    let value = match (value.instant(), &formatter.zone) {
        (Some((seconds, nano)), Some(zone)) => {
            in_zone = Temporal::Zoned(seconds, nano, zone.clone());
            &in_zone
        }
        _ => value,
    };
    match &formatter.form {
        Form::Iso(iso) => iso_text(*iso, value),
        Form::Pattern(items, _) => {
            let mut out = String::new();
            for item in items.iter() {
                match item {
                    Item::Literal(text) => out.push_str(text),
                    Item::Field(letter, count) => out.push_str(&field(value, *letter, *count)?),
                }
            }
            Ok(out)
        }
    }
}

fn iso_text(iso: Iso, value: &Temporal) -> Result<String, Failure> {
    let lacks_date = matches!(value, Temporal::Time(_) | Temporal::Instant(..));
    let lacks_time = matches!(value, Temporal::Date(_) | Temporal::Instant(..));
    let local = value.local().ok_or_else(|| unsupported("Year"))?;
    let offset = || offset_of(value).ok_or_else(|| unsupported("OffsetSeconds"));
    match iso {
        Iso::Instant => {
            let (seconds, nano) = value.instant().ok_or_else(|| unsupported("InstantSeconds"))?;
            Ok(instant_text(seconds, nano))
        }
        Iso::LocalTime if lacks_time => Err(unsupported("HourOfDay")),
        Iso::LocalTime => Ok(time_text(local.nano, true)),
        _ if lacks_date => Err(unsupported("Year")),
        Iso::LocalDate => Ok(helenus_cql::value::civil::date_text(local.day)),
        Iso::BasicDate => Ok(helenus_cql::value::civil::date_text(local.day).replace('-', "")),
        _ if lacks_time => Err(unsupported("HourOfDay")),
        Iso::LocalDateTime => Ok(with_seconds(local)),
        Iso::OffsetDateTime => Ok(format!("{}{}", with_seconds(local), offset_id(offset()?))),
    }
}

/// Returns the text of `ISO_LOCAL_DATE_TIME`, always with seconds.
fn with_seconds(local: Local) -> String {
    let text = date_time_text(local);
    match local.nano % (60 * NANOS_PER_SECOND) {
        0 => format!("{text}:00"),
        _ => text,
    }
}

fn offset_of(value: &Temporal) -> Option<i32> {
    match value {
        Temporal::Zoned(second, _, zone) => Some(zone.offset_at(*second)),
        _ => None,
    }
}

/// Returns a field of a value as text.
fn field(value: &Temporal, letter: char, count: usize) -> Result<String, Failure> {
    let has_date = matches!(
        value,
        Temporal::Date(_) | Temporal::DateTime(_) | Temporal::Zoned(..)
    );
    let has_time = matches!(
        value,
        Temporal::Time(_) | Temporal::DateTime(_) | Temporal::Zoned(..)
    );
    let needs_date = "GuyDMLdQqYwWE".contains(letter);
    let needs_time = "aKkHhmsSAnN".contains(letter);
    if needs_date && !has_date || needs_time && !has_time {
        return Err(unsupported(field_name(letter)));
    }
    let local = value.local().unwrap_or(Local { day: 0, nano: 0 });
    let padded = |number: i64| format!("{number:0count$}");
    let (year, month, day) = local.date();
    let of_era = if year > 0 { year } else { 1 - year };
    let name = |names: &[&str], number: i64| {
        let name = usize::try_from(number - 1)
            .ok()
            .and_then(|at| names.get(at))
            .unwrap_or(&"");
        if count == 4 {
            (*name).to_owned()
        } else {
            short(name, 3).to_owned()
        }
    };
    let year_text = |year: i64| match count {
        2 => format!("{:02}", year.rem_euclid(100)),
        4.. if year < 0 => format!("-{:0count$}", -year),
        4.. if year >= 10i64.saturating_pow(count as u32) => format!("+{year}"),
        _ if year < 0 => format!("-{:0count$}", -year),
        _ => padded(year),
    };
    Ok(match letter {
        'G' if count == 4 => if year > 0 { "Anno Domini" } else { "Before Christ" }.to_owned(),
        'G' => if year > 0 { "AD" } else { "BC" }.to_owned(),
        'u' => year_text(year),
        'y' => year_text(of_era),
        'Y' => year_text(week_of_year(local.day).0),
        'w' => padded(week_of_year(local.day).1),
        'W' => padded(week_of_month(local.day)),
        'D' => padded(day_of_year(local.day)),
        'M' | 'L' if count < 3 => padded(month),
        'M' | 'L' => name(&MONTHS, month),
        'Q' | 'q' => match ((month + 2) / 3, count) {
            (quarter, 1 | 2) => padded(quarter),
            (quarter, 3) => format!("Q{quarter}"),
            (quarter, _) => {
                let place = ["1st", "2nd", "3rd", "4th"]
                    .get(quarter as usize - 1)
                    .unwrap_or(&"");
                format!("{place} quarter")
            }
        },
        'd' => padded(day),
        'E' => name(&DAYS, weekday(local.day)),
        'a' => if local.hour() < 12 { "AM" } else { "PM" }.to_owned(),
        'H' => padded(local.hour()),
        'k' => padded((local.hour() + 23) % 24 + 1),
        'K' => padded(local.hour() % 12),
        'h' => padded((local.hour() + 11) % 12 + 1),
        'm' => padded(local.minute()),
        's' => padded(local.second()),
        'S' => short(&format!("{:09}", local.nano_of_second()), count).to_owned(),
        'n' => padded(local.nano_of_second()),
        'N' => padded(local.nano),
        'A' => padded(local.nano / 1_000_000),
        _ => zone_field(value, letter, count)?,
    })
}

fn zone_field(value: &Temporal, letter: char, count: usize) -> Result<String, Failure> {
    let Temporal::Zoned(second, _, zone) = value else {
        return Err(match letter {
            'V' | 'z' => Failure::thrown(
                "java.time.DateTimeException",
                format!("Unable to extract ZoneId from temporal {}", value.shown()),
            ),
            _ => unsupported("OffsetSeconds"),
        });
    };
    let offset = zone.offset_at(*second);
    Ok(match (letter, count) {
        ('V', _) => zone.id.to_string(),
        ('z', 1..=3) => zone.short_name(*second),
        ('z', _) => {
            return Err(Failure::thrown(
                "java.lang.UnsupportedOperationException",
                "whole names of time zones are not supported in functions",
            ));
        }
        ('X', _) if offset == 0 => "Z".to_owned(),
        ('X' | 'x', 1) if offset % 3600 == 0 => short(&offset_text(offset, ""), 3).to_owned(),
        ('X' | 'x', 1 | 2) | ('Z', _) => short(&offset_text(offset, ""), 5).to_owned(),
        _ => short(&offset_text(offset, ":"), 6).to_owned(),
    })
}

fn field_name(letter: char) -> &'static str {
    match letter {
        'G' => "Era",
        'u' => "Year",
        'y' => "YearOfEra",
        'D' => "DayOfYear",
        'M' | 'L' => "MonthOfYear",
        'd' => "DayOfMonth",
        'Q' | 'q' => "QuarterOfYear",
        'E' => "DayOfWeek",
        'a' => "AmPmOfDay",
        'H' => "HourOfDay",
        'k' => "ClockHourOfDay",
        'K' => "HourOfAmPm",
        'h' => "ClockHourOfAmPm",
        'm' => "MinuteOfHour",
        's' => "SecondOfMinute",
        'S' | 'n' => "NanoOfSecond",
        'N' => "NanoOfDay",
        'A' => "MilliOfDay",
        _ => "WeekBasedYear[WeekFields[SUNDAY,1]]",
    }
}
