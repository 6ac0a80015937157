//! `timestamp`: milliseconds since 1970-01-01 UTC (Cassandra's `TimestampSerializer`). Texts without a zone are in UTC.

use super::civil::{self, MILLIS_PER_DAY};
use super::zone;

/// Returns the time as CQL shows it: `2011-02-03T04:05:00.000Z`.
pub fn to_cql_text(millis: i64) -> String {
    format_with(millis, 'T')
}

/// Returns the time as JSON shows it: `2011-02-03 04:05:00.000Z`.
pub fn to_json_text(millis: i64) -> String {
    format_with(millis, ' ')
}

fn format_with(millis: i64, separator: char) -> String {
    let days = millis.div_euclid(MILLIS_PER_DAY);
    let (year, month, day) = civil::civil_from_days(days);
    // The `yyyy` in Java's pattern is the year of the era: the year 0, which is 1 BC, is shown as 0001.
    let year = civil::year_text(if year > 0 { year } else { 1 - year });
    let clock = millis.rem_euclid(MILLIS_PER_DAY);
    let (hours, minutes) = (clock / 3_600_000, clock / 60_000 % 60);
    let (seconds, fraction) = (clock / 1_000 % 60, clock % 1_000);
    format!("{year}-{month:02}-{day:02}{separator}{hours:02}:{minutes:02}:{seconds:02}.{fraction:03}Z")
}

/// Reads a timestamp: a number of milliseconds, `now`, or one of the date formats (`2011-02-03`,
/// `2011-02-03+0000`, `2011-02-03 04:05[:06[.fff]]`, with `T` for the blank, each with an optional zone).
///
/// # Errors
/// `Unable to parse a date/time from '…'`, `Unable to make long (for date) from: '…'`.
pub fn parse(text: &str, now_millis: impl FnOnce() -> i64) -> Result<i64, String> {
    if text.eq_ignore_ascii_case("now") {
        return Ok(now_millis());
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text
            .parse()
            .map_err(|_| format!("Unable to make long (for date) from: '{text}'"));
    }
    parse_date_time(text).ok_or_else(|| format!("Unable to parse a date/time from '{text}'"))
}

/// A cursor over ASCII text.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn digits(&mut self) -> &'a str {
        let end = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
    }

    fn number(&mut self) -> Option<i64> {
        self.digits().parse().ok()
    }

    fn eat(&mut self, expected: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }
}

fn parse_date_time(text: &str) -> Option<i64> {
    let mut scanner = Scanner { rest: text };
    let signed = scanner.eat('-').is_some();
    let plus = !signed && scanner.eat('+').is_some();
    let year_digits = scanner.digits();
    let year: i64 = year_digits.parse().ok()?;
    scanner.eat('-')?;
    let month_digits = scanner.digits();
    scanner.eat('-')?;
    let day_digits = scanner.digits();
    let (month, day): (i64, i64) = (month_digits.parse().ok()?, day_digits.parse().ok()?);
    let padded = year_digits.len() >= 4
        && (signed || plus == (year_digits.len() > 4))
        && month_digits.len() == 2
        && day_digits.len() == 2;
    let has_clock = scanner.rest.starts_with('T') || follows_clock(scanner.rest);
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day) && year <= 999_999_999;
    if !in_range || (has_clock && (signed || plus || year == 0)) || (!has_clock && !padded) {
        return None;
    }
    let year = if signed { -year } else { year };
    // Java's smart resolution turns a day past the end of a month into the month's last day.
    let day = day.min(civil::days_in_month(year, month));
    let clock = if has_clock { parse_clock(&mut scanner)? } else { 0 };
    let local_millis = civil::days_from_civil(year, month, day)
        .checked_mul(MILLIS_PER_DAY)?
        .checked_add(clock)?;
    let offset_millis = match has_clock {
        true => parse_zone(scanner.rest, local_millis)?,
        false => iso_date_zone(scanner.rest).or_else(|| {
            let is_of_era = year > 0;
            is_of_era.then(|| parse_zone(scanner.rest, local_millis))?
        })?,
    };
    local_millis.checked_sub(offset_millis)
}

/// Returns true if a blank and a time of day follow, rather than a blank and a zone.
fn follows_clock(rest: &str) -> bool {
    rest.strip_prefix(' ')
        .is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()))
}

fn parse_clock(scanner: &mut Scanner<'_>) -> Option<i64> {
    scanner.eat('T').or_else(|| scanner.eat(' '))?;
    let hours = scanner.number()?;
    scanner.eat(':')?;
    let minutes = scanner.number().filter(|minutes| *minutes < 60)?;
    let (mut seconds, mut millis) = (0, 0);
    if scanner.eat(':').is_some() {
        seconds = scanner.number().filter(|seconds| *seconds < 60)?;
        if scanner.eat('.').is_some() {
            let fraction = scanner.digits();
            if fraction.len() > 9 {
                return None;
            }
            millis = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        }
    }
    let end_of_day = hours == 24 && minutes == 0 && seconds == 0 && millis == 0;
    (hours < 24 || end_of_day).then_some(((hours * 60 + minutes) * 60 + seconds) * 1_000 + millis)
}

/// Returns the offset behind a date without a time of day, in ISO's format, which allows years before the first. `None` if the text has
/// another format.
fn iso_date_zone(zone: &str) -> Option<i64> {
    match zone {
        "" | "z" => Some(0),
        _ => parse_offset(zone, &[6, 9]),
    }
}

/// Returns the offset in the text behind a local time, in milliseconds east of UTC. `None` if the text is not a zone.
///
/// `Z`, `+hh`, `+hhmm` and `+hh:mm` may follow directly or after a blank. `+hh:mm:ss`, `UTC`, `GMT`, these with an offset in colons, and
/// names of zones may only follow a blank.
fn parse_zone(zone: &str, local_millis: i64) -> Option<i64> {
    if zone.is_empty() {
        return Some(0);
    }
    let Some(name) = zone.strip_prefix(' ') else {
        return parse_offset(zone, &[3, 5, 6]);
    };
    if let Some(offset) = parse_offset(name, &[3, 5, 6, 9]) {
        return Some(offset);
    }
    ["UTC", "GMT", "UT"]
        .iter()
        .find_map(|prefix| match name.strip_prefix(prefix)? {
            "" => Some(0),
            rest => parse_offset(rest, &[6, 9]).filter(|_| rest != "Z"),
        })
        .or_else(|| zone::offset_millis(name, local_millis))
}

/// Parses `Z`, or an offset from UTC with one of these lengths: `+hh`, `+hhmm`, `+hh:mm`, `+hh:mm:ss`. Returns milliseconds.
fn parse_offset(text: &str, lengths: &[usize]) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, body) = match text.split_at_checked(1)? {
        ("+", body) => (1, body),
        ("-", body) => (-1, body),
        _ => return None,
    };
    let parts: Vec<&str> = match body.split_at_checked(2) {
        Some((hours, minutes)) if body.len() == 4 => vec![hours, minutes],
        _ => body.split(':').collect(),
    };
    if !lengths.contains(&text.len()) || parts.len() > 3 {
        return None;
    }
    let mut seconds = 0i64;
    for (part, weight) in parts.into_iter().zip([3_600, 60, 1]) {
        let valid = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let value: i64 = valid.then(|| part.parse().ok()).flatten()?;
        if weight < 3_600 && value > 59 {
            return None;
        }
        seconds += value * weight;
    }
    (seconds <= 18 * 3_600).then_some(sign * seconds * 1_000)
}
