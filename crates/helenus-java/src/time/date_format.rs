//! `java.text.SimpleDateFormat`.

use std::cell::{Cell, RefCell};

use super::calendar::{
    AM_PM, Calendar, DAY_OF_MONTH, DAY_OF_WEEK, DAY_OF_YEAR, ERA, HOUR, HOUR_OF_DAY, MILLISECOND, MINUTE,
    MONTH, SECOND, YEAR, date_of,
};
use super::civil::{DAYS, Local, MONTHS, NANOS_PER_SECOND, week_of_month, week_of_year, weekday};
use super::pattern::{Item, items, name_at, short};
use super::zone::{Zone, offset_text, parse_offset};
use crate::error::Failure;

const LETTERS: &str = "GyYMLwWDdFEuaHkKhmsSzZX";

#[derive(Debug)]
pub(crate) struct DateFormat {
    pattern: RefCell<String>,
    items: RefCell<Vec<Item>>,
    pub zone: RefCell<Zone>,
    pub is_lenient: Cell<bool>,
}

fn items_of(pattern: &str) -> Result<Vec<Item>, Failure> {
    let fault = |char: char| {
        let message = match char {
            '\'' => "Unterminated quote".to_owned(),
            letter => format!("Illegal pattern character '{letter}'"),
        };
        Failure::thrown("java.lang.IllegalArgumentException", message)
    };
    items(pattern, LETTERS, fault)
}

impl DateFormat {
    /// Creates a format from a pattern.
    ///
    /// # Errors
    /// The pattern has a letter without a meaning.
    pub fn new(pattern: &str) -> Result<DateFormat, Failure> {
        Ok(DateFormat {
            items: RefCell::new(items_of(pattern)?),
            pattern: RefCell::new(pattern.to_owned()),
            zone: RefCell::new(Zone::of_time_zone("UTC")),
            is_lenient: Cell::new(true),
        })
    }

    pub fn pattern(&self) -> String {
        self.pattern.borrow().clone()
    }

    /// Replaces the pattern.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn apply(&self, pattern: &str) -> Result<(), Failure> {
        *self.items.borrow_mut() = items_of(pattern)?;
        *self.pattern.borrow_mut() = pattern.to_owned();
        Ok(())
    }

    /// Returns the text of a time.
    ///
    /// # Errors
    /// The pattern has the full name of a time zone.
    pub fn format(&self, millis: i64) -> Result<String, Failure> {
        let zone = self.zone.borrow();
        let mut out = String::new();
        for item in self.items.borrow().iter() {
            match item {
                Item::Literal(text) => out.push_str(text),
                Item::Field(letter, count) => out.push_str(&field(millis, &zone, *letter, *count)?),
            }
        }
        Ok(out)
    }

    /// Parses a time. As in Java, text behind the time is ignored.
    ///
    /// # Errors
    /// `ParseException`
    pub fn parse(&self, text: &str) -> Result<i64, Failure> {
        let calendar = Calendar::new(self.zone.borrow().clone(), 0);
        calendar.clear(None)?;
        calendar.set_lenient(self.is_lenient.get());
        let mut reader = Reader {
            text,
            at: 0,
            calendar: &calendar,
            zone_offset: None,
        };
        let failed = || {
            Failure::thrown(
                "java.text.ParseException",
                format!("Unparseable date: \"{text}\""),
            )
        };
        let items = self.items.borrow();
        for (place, item) in items.iter().enumerate() {
            let read = match item {
                Item::Literal(literal) => reader.literal(literal),
                Item::Field(letter, count) => {
                    let next = items.get(place + 1);
                    let is_followed =
                        matches!(next, Some(Item::Field(letter, count)) if is_numeric(*letter, *count));
                    reader.field(*letter, *count, is_followed)
                }
            };
            if read.is_none() {
                return Err(failed());
            }
        }
        let offset = reader.zone_offset;
        if let Some(offset) = offset {
            calendar.set_zone(Zone::offset(offset));
        }
        calendar.millis().map_err(|_| failed())
    }
}

fn is_numeric(letter: char, count: usize) -> bool {
    match letter {
        'M' | 'L' => count < 3,
        _ => !"GEazZX".contains(letter),
    }
}

/// Returns a field of a time as text.
fn field(millis: i64, zone: &Zone, letter: char, count: usize) -> Result<String, Failure> {
    let second = millis.div_euclid(1000);
    let offset = zone.offset_at(second);
    let local = Local::of_seconds(
        second + i64::from(offset),
        millis.rem_euclid(1000) * (NANOS_PER_SECOND / 1000),
    );
    let (year, month, day) = date_of(local.day);
    let of_era = if year > 0 { year } else { 1 - year };
    let padded = |number: i64| format!("{number:0count$}");
    let year_text = |year: i64| match count {
        2 => format!("{:02}", year.rem_euclid(100)),
        _ => padded(year),
    };
    let name = |names: &[&str], number: i64| {
        let name = usize::try_from(number - 1)
            .ok()
            .and_then(|at| names.get(at))
            .unwrap_or(&"");
        if count >= 4 {
            (*name).to_owned()
        } else {
            short(name, 3).to_owned()
        }
    };
    Ok(match letter {
        'G' => if year > 0 { "AD" } else { "BC" }.to_owned(),
        'y' => year_text(of_era),
        'Y' => year_text(week_of_year(local.day).0),
        'M' | 'L' if count >= 3 => name(&MONTHS, month),
        'M' | 'L' => padded(month),
        'w' => padded(week_of_year(local.day).1),
        'W' => padded(week_of_month(local.day)),
        'D' => padded(local.day - super::calendar::day_of_date(year, 1, 1) + 1),
        'd' => padded(day),
        'F' => padded((day - 1) / 7 + 1),
        'E' => name(&DAYS, weekday(local.day)),
        'u' => padded(weekday(local.day)),
        'a' => if local.hour() < 12 { "AM" } else { "PM" }.to_owned(),
        'H' => padded(local.hour()),
        'k' => padded((local.hour() + 23) % 24 + 1),
        'K' => padded(local.hour() % 12),
        'h' => padded((local.hour() + 11) % 12 + 1),
        'm' => padded(local.minute()),
        's' => padded(local.second()),
        'S' => padded(millis.rem_euclid(1000)),
        'Z' => short(&offset_text(offset, ""), 5).to_owned(),
        'X' if offset == 0 => "Z".to_owned(),
        'X' if count == 1 => short(&offset_text(offset, ""), 3).to_owned(),
        'X' if count == 2 => short(&offset_text(offset, ""), 5).to_owned(),
        'X' => short(&offset_text(offset, ":"), 6).to_owned(),
        _ if count < 4 => zone.short_name(second),
        _ => {
            return Err(Failure::thrown(
                "java.lang.UnsupportedOperationException",
                "whole names of time zones are not supported in functions",
            ));
        }
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    calendar: &'t Calendar,
    zone_offset: Option<i32>,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn literal(&mut self, text: &str) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    fn set(&self, field: usize, value: i64) -> Option<()> {
        let (field, value) = (i32::try_from(field).ok()?, i32::try_from(value).ok()?);
        self.calendar.set(field, value).ok()
    }

    /// Reads a number, and returns the number and its digits' count. `digits_max` is the exact number of digits if another number follows
    /// directly. If it is `None`, all following digits are read.
    fn number(&mut self, digits_max: Option<usize>) -> Option<(i64, usize)> {
        let begin = self.at;
        if digits_max.is_none() && self.rest().starts_with('-') {
            self.at += 1;
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let digits = digits_max.map_or(digits, |most| digits.min(most));
        let end = self.at + digits;
        if digits == 0 || digits_max.is_some_and(|most| digits < most) {
            self.at = begin;
            return None;
        }
        let number = self.text.get(begin..end)?.parse().ok()?;
        self.at = end;
        Some((number, digits))
    }

    fn field(&mut self, letter: char, count: usize, is_followed: bool) -> Option<()> {
        let blanks = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        self.at += blanks;
        if !is_numeric(letter, count) {
            return self.named(letter);
        }
        let (number, digits) = self.number(is_followed.then_some(count))?;
        match letter {
            'y' => {
                let is_short = count <= 2 && digits == 2 && number >= 0;
                self.set(YEAR, if is_short { century(number) } else { number })
            }
            'M' | 'L' => self.set(MONTH, number - 1),
            'd' => self.set(DAY_OF_MONTH, number),
            'D' => self.set(DAY_OF_YEAR, number),
            'H' => self.set(HOUR_OF_DAY, number),
            'k' => self.set(HOUR_OF_DAY, if number == 24 { 0 } else { number }),
            'K' => self.set(HOUR, number),
            'h' => self.set(HOUR, if number == 12 { 0 } else { number }),
            'm' => self.set(MINUTE, number),
            's' => self.set(SECOND, number),
            'S' => self.set(MILLISECOND, number),
            'u' => self.set(DAY_OF_WEEK, number % 7 + 1),
            'w' => self.set(3, number),
            'W' => self.set(4, number),
            'F' => self.set(8, number),
            _ => None,
        }
    }

    fn named(&mut self, letter: char) -> Option<()> {
        let (field, names, first): (usize, &[&str], i64) = match letter {
            'M' | 'L' => (MONTH, &MONTHS, 0),
            'E' => (DAY_OF_WEEK, &DAYS, 2),
            'a' => (AM_PM, &["AM", "PM"], 0),
            'G' => (ERA, &["BC", "AD"], 0),
            _ => return self.zone(),
        };
        let found = name_at(self.rest(), names, false).or_else(|| name_at(self.rest(), names, true));
        let (at, len) = found?;
        self.at += len;
        let value = at as i64 + first;
        self.set(field, if letter == 'E' { (value - 1) % 7 + 1 } else { value })
    }

    fn zone(&mut self) -> Option<()> {
        let rest = self.rest();
        if rest.starts_with(['+', '-']) {
            let len = 1 + rest
                .bytes()
                .skip(1)
                .take_while(|byte| byte.is_ascii_digit() || *byte == b':')
                .count();
            self.zone_offset = Some(parse_offset(rest.get(..len)?)?);
            self.at += len;
            return Some(());
        }
        let len = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let name = rest.get(..len)?;
        let offset = match name {
            "Z" | "GMT" | "UTC" | "UT" => 0,
            _ => abbreviation(name)?,
        };
        let has_offset = name == "GMT" && rest[len..].starts_with(['+', '-']);
        self.at += len;
        if has_offset {
            return self.zone();
        }
        self.zone_offset = Some(offset);
        Some(())
    }
}

/// Returns the offset of an abbreviation, in seconds east of UTC. The time of the year does not matter.
fn abbreviation(name: &str) -> Option<i32> {
    let hours = match name {
        "EST" | "CDT" => -5,
        "EDT" => -4,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "CET" | "WEST" | "BST" => 1,
        "CEST" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "WET" => 0,
        "JST" | "KST" => 9,
        _ => return None,
    };
    Some(hours * 3600)
}

/// Returns the full year of a two-digit year. The result is at most 80 years before now and 20 years after.
fn century(year: i64) -> i64 {
    let now = jiff::Timestamp::now().as_second().div_euclid(86_400);
    let first = date_of(now).0 - 80;
    let candidate = first - first.rem_euclid(100) + year;
    if candidate < first {
        candidate + 100
    } else {
        candidate
    }
}
