//! `DateTimeFormatter.parse`

use helenus_cql::value::civil::{date_text, days_from_civil, days_in_month};

use super::civil::{self, DAYS, Local, MONTHS, NANOS_PER_SECOND, weekday};
use super::pattern::{Form, Formatter, Iso, Item, name_at};
use super::temporal::Temporal;
use super::zone::{Zone, parse_offset};
use crate::error::Failure;

/// The fields that were parsed. `None` for fields that the text does not have.
#[derive(Debug, Default)]
struct Parsed {
    /// True if a day that the month lacks is refused.
    is_strict: bool,
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    /// Hour of the half day, 0 to 11.
    hour_of_half: Option<i64>,
    is_afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    nano: Option<i64>,
    weekday: Option<i64>,
    offset: Option<i32>,
    zone: Option<Zone>,
}

/// Parses a value of a class.
///
/// # Errors
/// The text does not match the format, or is not a valid value.
pub(crate) fn parse(formatter: &Formatter, text: &str, class: &str) -> Result<Temporal, Failure> {
    let mut parsed = Parsed {
        is_strict: matches!(formatter.form, Form::Iso(_)),
        ..Parsed::default()
    };
    let failed = |at: usize, rest: bool| {
        let what = if rest {
            format!("unparsed text found at index {at}")
        } else {
            format!("at index {at}")
        };
        let message = match rest {
            true => format!("Text '{text}' could not be parsed, {what}"),
            false => format!("Text '{text}' could not be parsed {what}"),
        };
        Failure::thrown("java.time.format.DateTimeParseException", message)
    };
    let mut reader = Reader { text, at: 0 };
    let read = match &formatter.form {
        Form::Pattern(items, _) => reader.pattern(items, &mut parsed),
        Form::Iso(iso) => reader.iso(*iso, &mut parsed),
    };
    read.ok_or_else(|| failed(reader.at, false))?;
    if reader.at < text.len() {
        return Err(failed(reader.at, true));
    }
    if parsed.zone.is_none() {
        parsed.zone.clone_from(&formatter.zone);
    }
    parsed.resolve(class).map_err(|why| {
        let message = format!("Text '{text}' could not be parsed: {why}");
        Failure::thrown("java.time.format.DateTimeParseException", message)
    })
}

/// Reads a text from left to right. Methods return `None` if the text does not match.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn literal(&mut self, text: &str) -> Option<()> {
        self.rest().starts_with(text).then(|| self.at += text.len())
    }

    /// Reads a number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self
            .rest()
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if digits < least {
            return None;
        }
        let number = self.rest().get(..digits)?.parse().ok()?;
        self.at += digits;
        Some(number)
    }

    /// Reads a year of four digits, or of more digits behind a sign.
    fn year(&mut self) -> Option<i64> {
        let begin = self.at;
        let sign = match self.rest().bytes().next()? {
            b'-' => -1,
            b'+' => 1,
            _ => return self.number(4, 4),
        };
        self.at += 1;
        let number = self.number(4, 10);
        let digits = self.at - begin - 1;
        match number {
            Some(number) if sign < 0 && digits >= 4 && number != 0 => Some(-number),
            Some(number) if sign > 0 && digits > 4 => Some(number),
            _ => {
                self.at = begin;
                None
            }
        }
    }

    fn iso(&mut self, iso: Iso, parsed: &mut Parsed) -> Option<()> {
        if iso != Iso::LocalTime {
            parsed.year = Some(self.year()?);
            let separator = if iso == Iso::BasicDate { "" } else { "-" };
            self.literal(separator)?;
            parsed.month = Some(self.two_digits()?);
            self.literal(separator)?;
            parsed.day = Some(self.two_digits()?);
        }
        if matches!(iso, Iso::LocalDate | Iso::BasicDate) {
            return Some(());
        }
        if iso != Iso::LocalTime {
            let separator = self
                .rest()
                .get(..1)
                .filter(|sign| sign.eq_ignore_ascii_case("T"))?
                .len();
            self.at += separator;
        }
        parsed.hour = Some(self.two_digits()?);
        self.literal(":")?;
        parsed.minute = Some(self.two_digits()?);
        (parsed.second, parsed.nano) = (Some(0), Some(0));
        let needs_seconds = iso == Iso::Instant;
        if needs_seconds || self.rest().starts_with(':') {
            self.literal(":")?;
            parsed.second = Some(self.two_digits()?);
            if self.rest().starts_with('.') {
                self.at += 1;
                let digits = self.rest().bytes().take(9).take_while(u8::is_ascii_digit).count();
                let number = self.number(0, 9).unwrap_or(0);
                parsed.nano = Some(number * 10i64.pow(9 - digits as u32));
            }
        }
        if matches!(iso, Iso::Instant | Iso::OffsetDateTime) {
            parsed.offset = Some(self.offset()?);
            if iso == Iso::OffsetDateTime && self.rest().starts_with('[') {
                let end = self.rest().find(']')?;
                parsed.zone = Zone::of(self.rest().get(1..end)?).ok();
                parsed.zone.as_ref()?;
                self.at += end + 1;
            }
        }
        Some(())
    }

    fn two_digits(&mut self) -> Option<i64> {
        self.number(2, 2)
    }

    fn offset(&mut self) -> Option<i32> {
        let rest = self.rest();
        if rest.starts_with(['Z', 'z']) {
            self.at += 1;
            return Some(0);
        }
        let len = rest
            .bytes()
            .skip(1)
            .take_while(|byte| byte.is_ascii_digit() || *byte == b':')
            .count()
            + 1;
        let seconds = parse_offset(rest.get(..len)?)?;
        self.at += len;
        Some(seconds)
    }

    fn pattern(&mut self, items: &[Item], parsed: &mut Parsed) -> Option<()> {
        for (place, item) in items.iter().enumerate() {
            match item {
                Item::Literal(text) => self.literal(text)?,
                Item::Field(letter, count) => {
                    let next = items.get(place + 1..).unwrap_or_default();
                    self.field(*letter, *count, following_digits(next), parsed)?;
                }
            }
        }
        Some(())
    }

    fn field(&mut self, letter: char, count: usize, reserved: usize, parsed: &mut Parsed) -> Option<()> {
        let is_two = |letter| "dHhkKms".contains(letter);
        match letter {
            'u' | 'y' if count == 2 => parsed.year = Some(2000 + self.number(2, 2)?),
            'u' | 'y' if count == 4 && reserved == 0 => parsed.year = Some(self.year_at_least(4)?),
            'u' | 'y' => {
                parsed.year = Some(
                    self.number(
                        count,
                        (19 - reserved)
                            .max(count)
                            .min(if reserved > 0 { count } else { 19 }),
                    )?,
                )
            }
            'M' | 'L' if count >= 3 => {
                let (at, len) = name_at(self.rest(), &MONTHS, count == 3)?;
                self.at += len;
                parsed.month = Some(at as i64 + 1);
            }
            'E' => {
                let (at, len) = name_at(self.rest(), &DAYS, count < 4)?;
                self.at += len;
                parsed.weekday = Some(at as i64 + 1);
            }
            'a' => {
                let (at, len) = name_at(self.rest(), &["AM", "PM"], false)?;
                self.at += len;
                parsed.is_afternoon = Some(at == 1);
            }
            'S' => {
                let number = self.number(count, count)?;
                parsed.nano = Some(number * 10i64.pow(9 - count as u32));
            }
            'X' | 'x' | 'Z' => parsed.offset = Some(self.offset()?),
            'V' | 'z' => {
                let len = self
                    .rest()
                    .find(|c: char| !(c.is_ascii_alphanumeric() || "/_+-:".contains(c)));
                let id = self.rest().get(..len.unwrap_or(self.rest().len()))?.to_owned();
                parsed.zone = Some(Zone::of(&id).ok()?);
                self.at += id.len();
            }
            'M' | 'L' | 'D' | 'n' | 'N' | 'A' | 'd' | 'H' | 'h' | 'k' | 'K' | 'm' | 's' => {
                let most = match count {
                    1 if letter == 'D' => 3,
                    1 if is_two(letter) || "ML".contains(letter) => {
                        if reserved > 0 {
                            1
                        } else {
                            19
                        }
                    }
                    1 => 19,
                    count => count,
                };
                let number = self.number(count, most)?;
                parsed.set(letter, number);
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads a year of exactly `least` digits, or of four or more digits behind a sign.
    fn year_at_least(&mut self, least: usize) -> Option<i64> {
        match self.rest().starts_with(['+', '-']) {
            true => self.year(),
            false => self.number(least, least),
        }
    }
}

/// Returns the minimum number of digits of the numeric fields that follow directly.
fn following_digits(items: &[Item]) -> usize {
    let fields = items.iter().map_while(|item| match item {
        Item::Field(letter, count)
            if "uyMLdDHhkKmsSnNA".contains(*letter) && !("ML".contains(*letter) && *count > 2) =>
        {
            Some(*count)
        }
        _ => None,
    });
    fields.sum()
}

impl Parsed {
    fn set(&mut self, letter: char, number: i64) {
        match letter {
            'M' | 'L' => self.month = Some(number),
            'd' => self.day = Some(number),
            'D' => self.day_of_year = Some(number),
            'H' => self.hour = Some(number),
            'k' => self.hour = Some(if number == 24 { 0 } else { number }),
            'K' => self.hour_of_half = Some(number),
            'h' => self.hour_of_half = Some(if number == 12 { 0 } else { number }),
            'm' => self.minute = Some(number),
            's' => self.second = Some(number),
            'n' => self.nano = Some(number),
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        let check = |field: &str, value: Option<i64>, least, most| match value {
            Some(value) => civil::check_field(field, value, least, most).map_err(message_of),
            None => Ok(()),
        };
        check("MonthOfYear", self.month, 1, 12)?;
        if let Some(day) = self.day.filter(|day| !(1..=31).contains(day)) {
            return Err(message_of(civil::out_of_range("DayOfMonth", "1 - 28/31", day)));
        }
        check("HourOfDay", self.hour, 0, 23)?;
        check("HourOfAmPm", self.hour_of_half, 0, 11)?;
        check("MinuteOfHour", self.minute, 0, 59)?;
        check("SecondOfMinute", self.second, 0, 59)
    }

    /// Returns the parsed day. `None` if the text has no day.
    fn day(&self) -> Result<Option<i64>, String> {
        let Some(year) = self.year else { return Ok(None) };
        if let (Some(month), Some(day)) = (self.month, self.day) {
            // With a pattern, a day that the month lacks becomes the month's last day.
            let last = days_in_month(year, month);
            let day = if self.is_strict { day } else { day.min(last) };
            let day = civil::day_of(year, month, day).map_err(message_of)?;
            return Ok(Some(day));
        }
        Ok(self
            .day_of_year
            .map(|of_year| days_from_civil(year, 1, 1) + of_year - 1))
    }

    /// Returns the parsed time of day. `None` if the text has no time.
    fn time(&self) -> Option<i64> {
        let hour = match (self.hour, self.hour_of_half, self.is_afternoon) {
            (Some(hour), ..) => hour,
            (None, Some(hour), Some(is_afternoon)) => hour + if is_afternoon { 12 } else { 0 },
            _ => return None,
        };
        let seconds = hour * 3600 + self.minute.unwrap_or(0) * 60 + self.second.unwrap_or(0);
        Some(seconds * NANOS_PER_SECOND + self.nano.unwrap_or(0))
    }

    fn resolve(&self, class: &str) -> Result<Temporal, String> {
        self.check()?;
        let day = self.day()?;
        let simple = class.rsplit('.').next().unwrap_or(class);
        let lacking = || {
            let parsed = "{},ISO";
            format!(
                "Unable to obtain {simple} from TemporalAccessor: {parsed} of type java.time.format.Parsed"
            )
        };
        if let (Some(weekday_read), Some(day)) = (self.weekday, day)
            && weekday(day) != weekday_read
        {
            return Err(format!(
                "Conflict found: Field DayOfWeek {} differs from DayOfWeek {} derived from {}",
                weekday(day),
                weekday_read,
                date_text(day)
            ));
        }
        let time = self.time();
        let local = || {
            Ok(Local {
                day: day.ok_or_else(lacking)?,
                nano: time.ok_or_else(lacking)?,
            })
        };
        match class {
            "time.LocalDate" => day.map(Temporal::Date).ok_or_else(lacking),
            "LocalTime" => time.map(Temporal::Time).ok_or_else(lacking),
            "LocalDateTime" => local().map(Temporal::DateTime),
            _ => {
                let local: Local = local()?;
                let zone = match (&self.zone, self.offset) {
                    (Some(zone), _) => zone.clone(),
                    (None, Some(offset)) => Zone::offset(offset),
                    (None, None) => return Err(lacking()),
                };
                let second = match self.offset {
                    Some(offset) => local.seconds() - i64::from(offset),
                    None => local.seconds() - i64::from(zone.offset_of_local(local.seconds())),
                };
                Ok(match class {
                    "Instant" => Temporal::Instant(second, local.nano_of_second()),
                    _ => Temporal::Zoned(second, local.nano_of_second(), zone),
                })
            }
        }
    }
}

fn message_of(failure: Failure) -> String {
    match failure {
        Failure::Thrown { message, .. } => message.unwrap_or_default(),
        Failure::TimedOut => String::new(),
    }
}
