//! `duration`: months, days and nanoseconds with the same sign (Cassandra's `Duration`).

use std::fmt;

use bytes::Bytes;

use super::civil::{self, MILLIS_PER_DAY, NANOS_PER_DAY};
use super::vint;

const NANOS_PER_HOUR: i64 = 3_600_000_000_000;
const NANOS_PER_MINUTE: i64 = 60_000_000_000;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// A duration. The three parts are all positive or zero, or all negative or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    pub months: i32,
    pub days: i32,
    pub nanoseconds: i64,
}

/// A unit of a duration's text: its name, its place in the required order, and the part of the duration that it adds to.
#[derive(Clone, Copy, PartialEq)]
struct Unit {
    name: &'static str,
    position: u8,
    part: Part,
    factor: i64,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Months,
    Days,
    Nanoseconds,
}

const fn unit(name: &'static str, position: u8, part: Part, factor: i64) -> Unit {
    Unit {
        name,
        position,
        part,
        factor,
    }
}

const YEARS: Unit = unit("years", 1, Part::Months, 12);
const MONTHS: Unit = unit("months", 2, Part::Months, 1);
const WEEKS: Unit = unit("weeks", 3, Part::Days, 7);
const DAYS: Unit = unit("days", 4, Part::Days, 1);
const HOURS: Unit = unit("hours", 5, Part::Nanoseconds, NANOS_PER_HOUR);
const MINUTES: Unit = unit("minutes", 6, Part::Nanoseconds, NANOS_PER_MINUTE);
const SECONDS: Unit = unit("seconds", 7, Part::Nanoseconds, NANOS_PER_SECOND);
const MILLIS: Unit = unit("milliseconds", 8, Part::Nanoseconds, NANOS_PER_MILLI);
const MICROS: Unit = unit("microseconds", 9, Part::Nanoseconds, NANOS_PER_MICRO);
const NANOS: Unit = unit("nanoseconds", 10, Part::Nanoseconds, 1);

/// The sum of a text's parts so far. Adding a part checks the order and the ranges.
#[derive(Default)]
struct Builder {
    months: i64,
    days: i64,
    nanoseconds: i64,
    last: Option<Unit>,
}

impl Builder {
    fn add(&mut self, digits: &str, unit: Unit) -> Result<(), String> {
        let number: i64 = digits
            .parse()
            .map_err(|_| format!("For input string: \"{digits}\""))?;
        match self.last {
            Some(last) if last.position == unit.position => {
                return Err(format!(
                    "Invalid duration. The {} are specified multiple times",
                    unit.name
                ));
            }
            Some(last) if last.position > unit.position => {
                return Err(format!(
                    "Invalid duration. The {} should be after {}",
                    last.name, unit.name
                ));
            }
            _ => self.last = Some(unit),
        }
        let (total, max, name) = match unit.part {
            Part::Months => (&mut self.months, i64::from(i32::MAX), "months"),
            Part::Days => (&mut self.days, i64::from(i32::MAX), "days"),
            Part::Nanoseconds => (&mut self.nanoseconds, i64::MAX, "nanoseconds"),
        };
        if number > (max - *total) / unit.factor {
            let limit = i32::MAX;
            return Err(format!(
                "Invalid duration. The total number of {name} must be less or equal to {limit}"
            ));
        }
        *total += number * unit.factor;
        Ok(())
    }

    fn build(self, negative: bool) -> Duration {
        let sign = if negative { -1 } else { 1 };
        Duration {
            months: (sign * self.months) as i32,
            days: (sign * self.days) as i32,
            nanoseconds: sign * self.nanoseconds,
        }
    }
}

impl Duration {
    pub fn new(months: i32, days: i32, nanoseconds: i64) -> Duration {
        Duration {
            months,
            days,
            nanoseconds,
        }
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Duration> {
        let (months, first) = vint::read_signed(bytes)?;
        let (days, second) = vint::read_signed(bytes.get(first..)?)?;
        let (nanoseconds, _) = vint::read_signed(bytes.get(first + second..)?)?;
        Some(Duration {
            months: i32::try_from(months).ok()?,
            days: i32::try_from(days).ok()?,
            nanoseconds,
        })
    }

    pub fn to_bytes(self) -> Bytes {
        let mut out = Vec::new();
        vint::write_signed(&mut out, i64::from(self.months));
        vint::write_signed(&mut out, i64::from(self.days));
        vint::write_signed(&mut out, self.nanoseconds);
        out.into()
    }

    /// Parses `1y2mo3w4d5h6m7s8ms9us10ns`, ISO 8601 `P1Y2M3DT4H5M6S`, `P5W`, or the alternative `P0001-02-03T04:05:06`. A leading `-` makes
    /// the duration negative.
    ///
    /// # Errors
    /// `Unable to convert '…' to a duration`, and Cassandra's messages on order, repetition and range.
    pub fn parse(text: &str) -> Result<Duration, String> {
        let negative = text.starts_with('-');
        let source = text.strip_prefix('-').unwrap_or(text);
        let mut builder = Builder::default();
        let parsed = if !source.starts_with('P') {
            parse_standard(source, &mut builder)
        } else if source.ends_with('W') {
            parse_weeks(source, &mut builder)
        } else if source.contains('-') {
            parse_alternative(source, &mut builder)
        } else {
            parse_iso(source, &mut builder)
        };
        match parsed {
            Some(Ok(())) => Ok(builder.build(negative)),
            Some(Err(message)) => Err(message),
            None => Err(format!("Unable to convert '{source}' to a duration")),
        }
    }

    pub fn is_negative(self) -> bool {
        self.nanoseconds < 0 || self.days < 0 || self.months < 0
    }

    pub fn has_day_precision(self) -> bool {
        self.nanoseconds == 0
    }

    pub fn has_millisecond_precision(self) -> bool {
        self.nanoseconds % NANOS_PER_MILLI == 0
    }

    /// Returns the time later than `millis` by this duration, in milliseconds since 1970.
    pub fn add_to(self, millis: i64) -> i64 {
        shift(
            millis,
            i64::from(self.months),
            i64::from(self.days),
            self.nanoseconds,
        )
    }

    /// Returns the time earlier than `millis` by this duration, in milliseconds since 1970.
    pub fn subtract_from(self, millis: i64) -> i64 {
        let (months, days) = (-i64::from(self.months), -i64::from(self.days));
        shift(millis, months, days, self.nanoseconds.wrapping_neg())
    }

    /// Returns the start of the interval that contains a time. Intervals have this length and are counted from `start`. All times are in
    /// milliseconds since 1970.
    ///
    /// # Errors
    /// If the duration is negative, or the start is after the time.
    pub fn floor_timestamp(self, millis: i64, start: i64) -> Result<i64, String> {
        if start > millis {
            return Err("The floor function starting time is greater than the provided time".to_owned());
        }
        self.refuse_negative()?;
        let step = i64::from(self.days) * MILLIS_PER_DAY + self.nanoseconds / NANOS_PER_MILLI;
        if self.months == 0 {
            return Ok(if step == 0 {
                millis
            } else {
                millis - (millis - start) % step
            });
        }
        let month_of = |time: i64| {
            let (year, month, _) = civil::civil_from_days(time.div_euclid(MILLIS_PER_DAY));
            year * 12 + month
        };
        let months = i64::from(self.months);
        let mut multiplier = (month_of(millis) - month_of(start)) / months;
        let mut moved = civil::add_months(start, multiplier * months);
        if step == 0 {
            return Ok(moved);
        }
        let mut floor = moved + multiplier * step;
        while floor > millis {
            multiplier -= 1;
            moved = civil::add_months(moved, -months);
            floor = moved + multiplier * step;
        }
        Ok(start.max(floor))
    }

    /// Rounds a time of day in nanoseconds, as [`Duration::floor_timestamp`].
    ///
    /// # Errors
    /// If the duration is negative or longer than a day.
    pub fn floor_time(self, nanos: i64) -> Result<i64, String> {
        self.refuse_negative()?;
        if self.months != 0 || self.days != 0 || self.nanoseconds > NANOS_PER_DAY {
            return Err(
                "For time values, the floor can only be computed for durations smaller that a day".to_owned(),
            );
        }
        Ok(if self.nanoseconds == 0 {
            nanos
        } else {
            nanos - nanos % self.nanoseconds
        })
    }

    fn refuse_negative(self) -> Result<(), String> {
        if self.is_negative() {
            return Err("Negative durations are not supported by the floor function".to_owned());
        }
        Ok(())
    }
}

fn shift(millis: i64, months: i64, days: i64, nanoseconds: i64) -> i64 {
    if months == 0 {
        return millis
            .wrapping_add(days.wrapping_mul(MILLIS_PER_DAY))
            .wrapping_add(nanoseconds / NANOS_PER_MILLI);
    }
    // With months, Cassandra uses a Calendar, whose fields are ints.
    let clock = i64::from((nanoseconds / NANOS_PER_MILLI) as i32);
    civil::calendar_add_months(millis, months)
        .wrapping_add(days.wrapping_mul(MILLIS_PER_DAY))
        .wrapping_add(clock)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The result of parsing one form of a duration. `None` if the text does not have this form.
type Parsed = Option<Result<(), String>>;

fn parse_standard(source: &str, builder: &mut Builder) -> Parsed {
    let mut rest = source;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (digits, tail) = split_digits(rest);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (symbol, after) = tail.split_at(end);
        let unit = standard_unit(symbol)?;
        if digits.is_empty() {
            return None;
        }
        if let Err(message) = builder.add(digits, unit) {
            return Some(Err(message));
        }
        rest = after;
    }
    Some(Ok(()))
}

fn standard_unit(symbol: &str) -> Option<Unit> {
    Some(match symbol.to_lowercase().as_str() {
        "y" => YEARS,
        "mo" => MONTHS,
        "w" => WEEKS,
        "d" => DAYS,
        "h" => HOURS,
        "m" => MINUTES,
        "s" => SECONDS,
        "ms" => MILLIS,
        "us" | "µs" => MICROS,
        "ns" => NANOS,
        _ => return None,
    })
}

fn parse_weeks(source: &str, builder: &mut Builder) -> Parsed {
    let digits = source.strip_prefix('P')?.strip_suffix('W')?;
    let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| builder.add(digits, WEEKS))
}

/// Parses `P0001-02-03T04:05:06`, in which each field has its full width.
fn parse_alternative(source: &str, builder: &mut Builder) -> Parsed {
    let mut rest = source;
    let fields = [
        ('P', 4, YEARS),
        ('-', 2, MONTHS),
        ('-', 2, DAYS),
        ('T', 2, HOURS),
        (':', 2, MINUTES),
        (':', 2, SECONDS),
    ];
    for (lead, width, unit) in fields {
        let (digits, tail) = split_digits(rest.strip_prefix(lead)?);
        if digits.len() != width {
            return None;
        }
        if let Err(message) = builder.add(digits, unit) {
            return Some(Err(message));
        }
        rest = tail;
    }
    rest.is_empty().then_some(Ok(()))
}

fn parse_iso(source: &str, builder: &mut Builder) -> Parsed {
    let body = source.strip_prefix('P')?;
    let (date, clock) = match body.split_once('T') {
        Some((date, clock)) => (date, clock),
        None => (body, ""),
    };
    let date_units = [('Y', YEARS), ('M', MONTHS), ('D', DAYS)];
    let clock_units = [('H', HOURS), ('M', MINUTES), ('S', SECONDS)];
    for (mut rest, units) in [(date, date_units), (clock, clock_units)] {
        for (symbol, unit) in units {
            let (digits, tail) = split_digits(rest);
            let Some(tail) = tail.strip_prefix(symbol).filter(|_| !digits.is_empty()) else {
                continue;
            };
            if let Err(message) = builder.add(digits, unit) {
                return Some(Err(message));
            }
            rest = tail;
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(Ok(()))
}

impl fmt::Display for Duration {
    /// Writes `1y2mo3d4h5m6s7ms8us9ns`, without parts that are zero. A duration of zero is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_str("-")?;
        }
        let months = u64::from(self.months.unsigned_abs());
        write_units(f, months, &[(12, "y"), (1, "mo")])?;
        write_units(f, u64::from(self.days.unsigned_abs()), &[(1, "d")])?;
        let clock = [
            (NANOS_PER_HOUR as u64, "h"),
            (NANOS_PER_MINUTE as u64, "m"),
            (NANOS_PER_SECOND as u64, "s"),
            (NANOS_PER_MILLI as u64, "ms"),
            (NANOS_PER_MICRO as u64, "us"),
            (1, "ns"),
        ];
        write_units(f, self.nanoseconds.unsigned_abs(), &clock)
    }
}

fn write_units(f: &mut fmt::Formatter<'_>, total: u64, units: &[(u64, &str)]) -> fmt::Result {
    let mut rest = total;
    for (size, symbol) in units {
        if rest >= *size {
            write!(f, "{}{symbol}", rest / size)?;
            rest %= size;
        }
    }
    Ok(())
}
