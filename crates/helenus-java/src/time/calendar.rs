//! `java.util.Calendar` and `GregorianCalendar`. Fields are set one by one, and the other fields are computed on the next read.
//!
//! As in Java, a time before 1582-10-15 is in the Julian calendar.

use std::cell::RefCell;

use helenus_cql::value::civil::{civil_from_days, days_from_civil, days_in_month};

use super::civil::{DAYS, add_months, month_after, week_of_month, week_of_year, weekday};
use super::zone::Zone;
use crate::error::Failure;

pub(crate) const MILLIS_PER_DAY: i64 = 86_400_000;
const FIELDS: usize = 17;

/// Names of the fields, in the order of their numbers.
const NAMES: [&str; FIELDS] = [
    "ERA",
    "YEAR",
    "MONTH",
    "WEEK_OF_YEAR",
    "WEEK_OF_MONTH",
    "DAY_OF_MONTH",
    "DAY_OF_YEAR",
    "DAY_OF_WEEK",
    "DAY_OF_WEEK_IN_MONTH",
    "AM_PM",
    "HOUR",
    "HOUR_OF_DAY",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "ZONE_OFFSET",
    "DST_OFFSET",
];

pub(super) const ERA: usize = 0;
pub(super) const YEAR: usize = 1;
pub(super) const MONTH: usize = 2;
const WEEK_OF_YEAR: usize = 3;
const WEEK_OF_MONTH: usize = 4;
pub(super) const DAY_OF_MONTH: usize = 5;
pub(super) const DAY_OF_YEAR: usize = 6;
pub(super) const DAY_OF_WEEK: usize = 7;
const DAY_OF_WEEK_IN_MONTH: usize = 8;
pub(super) const AM_PM: usize = 9;
pub(super) const HOUR: usize = 10;
pub(super) const HOUR_OF_DAY: usize = 11;
pub(super) const MINUTE: usize = 12;
pub(super) const SECOND: usize = 13;
pub(super) const MILLISECOND: usize = 14;
const ZONE_OFFSET: usize = 15;
const DST_OFFSET: usize = 16;

/// Returns the constant of that name.
pub(crate) fn constant(name: &str) -> Option<i32> {
    if name == "DATE" {
        return Some(DAY_OF_MONTH as i32);
    }
    let place = |names: &[&str]| names.iter().position(|constant| *constant == name);
    let number = place(&NAMES)
        .or_else(|| place(&["AM", "PM"]))
        .or_else(|| {
            place(
                &super::civil::MONTHS
                    .map(str::to_uppercase)
                    .each_ref()
                    .map(String::as_str),
            )
        })
        .or_else(|| {
            place(&DAYS.map(str::to_uppercase).each_ref().map(String::as_str)).map(|day| (day + 1) % 7 + 1)
        })?;
    i32::try_from(number).ok()
}

/// The first day of the Gregorian calendar, and March 1st of the Julian year 0, in days since 1970-01-01.
const GREGORIAN_FROM: i64 = -141_427;
const JULIAN_EPOCH: i64 = -719_470;

/// Returns year, month and day. Days before 1582-10-15 are in the Julian calendar.
pub(crate) fn date_of(day: i64) -> (i64, i64, i64) {
    if day >= GREGORIAN_FROM {
        return civil_from_days(day);
    }
    let shifted = day - JULIAN_EPOCH;
    let of_cycle = shifted.rem_euclid(1_461);
    let year_of_cycle = (of_cycle - of_cycle / 1_460) / 365;
    let of_year = of_cycle - 365 * year_of_cycle;
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = 4 * shifted.div_euclid(1_461) + year_of_cycle + i64::from(month <= 2);
    (year, month, day)
}

/// Returns the day of a date, in days since 1970-01-01. `month` must be 1 to 12, and `day` may be any number.
pub(crate) fn day_of_date(year: i64, month: i64, day: i64) -> i64 {
    let gregorian = days_from_civil(year, month, day);
    if gregorian >= GREGORIAN_FROM {
        return gregorian;
    }
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * shifted_year + shifted_year.div_euclid(4) + of_year + JULIAN_EPOCH
}

#[derive(Debug)]
pub(crate) struct Calendar(RefCell<State>);

#[derive(Clone, Debug)]
struct State {
    zone: Zone,
    is_lenient: bool,
    /// Milliseconds since 1970-01-01 UTC. `None` if fields were set since the last computation.
    millis: Option<i64>,
    values: [i64; FIELDS],
    /// Order in which the fields were set. 0 for unset fields, 1 for computed ones, and greater for fields set later.
    stamps: [u32; FIELDS],
    next_stamp: u32,
}

const WORKED_OUT: u32 = 1;

fn illegal(message: String) -> Failure {
    Failure::thrown("java.lang.IllegalArgumentException", message)
}

fn field_of(number: i32) -> Result<usize, Failure> {
    usize::try_from(number)
        .ok()
        .filter(|field| *field < FIELDS)
        .ok_or_else(|| {
            Failure::thrown(
                "java.lang.ArrayIndexOutOfBoundsException",
                format!("Index {number} out of bounds for length {FIELDS}"),
            )
        })
}

impl Calendar {
    pub fn new(zone: Zone, millis: i64) -> Calendar {
        let mut state = State {
            zone,
            is_lenient: true,
            millis: Some(millis),
            values: [0; FIELDS],
            stamps: [0; FIELDS],
            next_stamp: WORKED_OUT + 1,
        };
        state.work_out_fields(millis);
        Calendar(RefCell::new(state))
    }

    /// Returns a copy, as `clone` does.
    pub fn copy(&self) -> Calendar {
        Calendar(RefCell::new(self.0.borrow().clone()))
    }

    pub fn zone(&self) -> Zone {
        self.0.borrow().zone.clone()
    }

    pub fn set_zone(&self, zone: Zone) {
        let mut state = self.0.borrow_mut();
        state.zone = zone;
        if let Some(millis) = state.millis {
            state.work_out_fields(millis);
        }
    }

    pub fn set_lenient(&self, is_lenient: bool) {
        self.0.borrow_mut().is_lenient = is_lenient;
    }

    pub fn is_lenient(&self) -> bool {
        self.0.borrow().is_lenient
    }

    /// Returns the time, in milliseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// The calendar is not lenient, and a field has an invalid value.
    pub fn millis(&self) -> Result<i64, Failure> {
        self.0.borrow_mut().time()
    }

    pub fn set_millis(&self, millis: i64) {
        let mut state = self.0.borrow_mut();
        state.millis = Some(millis);
        state.work_out_fields(millis);
    }

    /// Returns the value of a field.
    ///
    /// # Errors
    /// There is no such field, or as [`millis`](Self::millis).
    pub fn get(&self, field: i32) -> Result<i32, Failure> {
        let field = field_of(field)?;
        let mut state = self.0.borrow_mut();
        state.time()?;
        Ok(state.values[field] as i32)
    }

    /// Sets a field.
    ///
    /// # Errors
    /// There is no such field.
    pub fn set(&self, field: i32, value: i32) -> Result<(), Failure> {
        let field = field_of(field)?;
        let mut state = self.0.borrow_mut();
        let stamp = state.next_stamp;
        state.values[field] = i64::from(value);
        state.stamps[field] = stamp;
        state.next_stamp = stamp.saturating_add(1);
        state.millis = None;
        Ok(())
    }

    /// Clears a field. `None` clears all of them.
    ///
    /// # Errors
    /// There is no such field.
    pub fn clear(&self, field: Option<i32>) -> Result<(), Failure> {
        let mut state = self.0.borrow_mut();
        match field {
            Some(field) => {
                let field = field_of(field)?;
                (state.values[field], state.stamps[field]) = (0, 0);
            }
            None => (state.values, state.stamps) = ([0; FIELDS], [0; FIELDS]),
        }
        state.millis = None;
        Ok(())
    }

    /// Adds an amount to a field.
    ///
    /// # Errors
    /// There is no such field, or as [`millis`](Self::millis).
    pub fn add(&self, field: i32, amount: i32) -> Result<(), Failure> {
        let field = field_of(field)?;
        let amount = i64::from(amount);
        let mut state = self.0.borrow_mut();
        let millis = state.time()?;
        let day_millis = match field {
            YEAR | MONTH => {
                let months = if field == YEAR { amount * 12 } else { amount };
                let local = millis + state.offset(millis);
                let day = later_month(local.div_euclid(MILLIS_PER_DAY), months);
                state.at_local(day * MILLIS_PER_DAY + local.rem_euclid(MILLIS_PER_DAY))
            }
            WEEK_OF_YEAR | WEEK_OF_MONTH | DAY_OF_MONTH | DAY_OF_YEAR | DAY_OF_WEEK
            | DAY_OF_WEEK_IN_MONTH | AM_PM => {
                let unit = match field {
                    DAY_OF_MONTH | DAY_OF_YEAR | DAY_OF_WEEK => MILLIS_PER_DAY,
                    AM_PM => MILLIS_PER_DAY / 2,
                    _ => 7 * MILLIS_PER_DAY,
                };
                let local = millis + state.offset(millis);
                state.at_local(local + amount * unit)
            }
            HOUR | HOUR_OF_DAY => millis + amount * 3_600_000,
            MINUTE => millis + amount * 60_000,
            SECOND => millis + amount * 1_000,
            MILLISECOND => millis + amount,
            ERA => millis,
            _ => {
                return Err(Failure::Thrown {
                    class: "java.lang.IllegalArgumentException".to_owned(),
                    message: None,
                });
            }
        };
        state.millis = Some(day_millis);
        state.work_out_fields(day_millis);
        Ok(())
    }

    /// Implements `getActualMaximum`.
    ///
    /// # Errors
    /// There is no such field, or as [`millis`](Self::millis).
    pub fn actual_maximum(&self, field: i32) -> Result<i32, Failure> {
        let field = field_of(field)?;
        let mut state = self.0.borrow_mut();
        state.time()?;
        let (year, month) = (state.values[YEAR], state.values[MONTH] + 1);
        let last = days_in_month(year, month);
        let most = match field {
            ERA | AM_PM => 1,
            MONTH => 11,
            DAY_OF_MONTH => last,
            DAY_OF_YEAR => super::civil::days_in_year(year),
            DAY_OF_WEEK => 7,
            DAY_OF_WEEK_IN_MONTH => {
                let place = (state.values[DAY_OF_MONTH] - 1) % 7;
                (last - 1 - place) / 7 + 1
            }
            WEEK_OF_MONTH => week_of_month(day_of_date(year, month, last)),
            WEEK_OF_YEAR => {
                let last = day_of_date(year, 12, 31);
                match week_of_year(last).0 == year {
                    true => week_of_year(last).1,
                    false => week_of_year(last - 7).1,
                }
            }
            HOUR => 11,
            HOUR_OF_DAY => 23,
            MINUTE | SECOND => 59,
            MILLISECOND => 999,
            YEAR => 292_278_993,
            ZONE_OFFSET => 14 * 3_600_000,
            _ => 7_200_000,
        };
        Ok(most as i32)
    }
}

/// Returns the day so many months later, in the Julian or the Gregorian calendar.
fn later_month(day: i64, months: i64) -> i64 {
    if day >= GREGORIAN_FROM + 366 {
        let later = add_months(day, months);
        if later >= GREGORIAN_FROM {
            return later;
        }
    }
    let (year, month, of_month) = date_of(day);
    let (year, month) = month_after(year, month, months);
    let last = if month == 2 && year % 4 == 0 {
        29
    } else {
        days_in_month(year, month)
    };
    day_of_date(year, month, of_month.min(last))
}

impl State {
    /// Returns the zone's offset in milliseconds east of UTC.
    fn offset(&self, millis: i64) -> i64 {
        i64::from(self.zone.offset_at(millis.div_euclid(1000))) * 1000
    }

    /// Converts a local time to UTC, in milliseconds.
    fn at_local(&self, local: i64) -> i64 {
        local - i64::from(self.zone.offset_of_local(local.div_euclid(1000))) * 1000
    }

    fn work_out_fields(&mut self, millis: i64) {
        let offset = self.offset(millis);
        let raw = i64::from(self.zone.raw_offset()) * 1000;
        let local = millis.saturating_add(offset);
        let (day, rest) = (local.div_euclid(MILLIS_PER_DAY), local.rem_euclid(MILLIS_PER_DAY));
        let (year, month, of_month) = date_of(day);
        let hour = rest / 3_600_000;
        self.values = [
            i64::from(year > 0),
            if year > 0 { year } else { 1 - year },
            month - 1,
            week_of_year(day).1,
            (of_month - 1 + weekday(day - of_month + 1) % 7) / 7 + 1,
            of_month,
            day - day_of_date(year, 1, 1) + 1,
            weekday(day) % 7 + 1,
            (of_month - 1) / 7 + 1,
            hour / 12,
            hour % 12,
            hour,
            rest / 60_000 % 60,
            rest / 1_000 % 60,
            rest % 1_000,
            raw,
            offset - raw,
        ];
        self.stamps = [WORKED_OUT; FIELDS];
        self.next_stamp = WORKED_OUT + 1;
    }

    /// Returns the time that the fields denote, in milliseconds since 1970-01-01 UTC.
    fn time(&mut self) -> Result<i64, Failure> {
        if let Some(millis) = self.millis {
            return Ok(millis);
        }
        if !self.is_lenient {
            self.check()?;
        }
        let day = self.day();
        let local = day.wrapping_mul(MILLIS_PER_DAY).wrapping_add(self.time_of_day());
        let is_set = |field: usize| self.stamps[field] > WORKED_OUT;
        let millis = match is_set(ZONE_OFFSET) || is_set(DST_OFFSET) {
            true => local - self.values[ZONE_OFFSET] - self.values[DST_OFFSET],
            false => self.at_local(local),
        };
        let wanted = (self.values, self.stamps);
        self.millis = Some(millis);
        self.work_out_fields(millis);
        if !self.is_lenient {
            let differs =
                |field: &usize| wanted.1[*field] > WORKED_OUT && wanted.0[*field] != self.values[*field];
            if let Some(field) = (0..FIELDS).find(differs) {
                self.millis = None;
                (self.values, self.stamps) = wanted;
                return Err(illegal(NAMES[field].to_owned()));
            }
        }
        Ok(millis)
    }

    /// Fails if a field has a value that is never valid.
    fn check(&self) -> Result<(), Failure> {
        let most = [1, 292_278_994, 11, 53, 6, 31, 366, 7, 6, 1, 11, 23, 59, 59, 999];
        for (field, most) in most.into_iter().enumerate() {
            let least = if matches!(
                field,
                YEAR | WEEK_OF_YEAR | DAY_OF_MONTH | DAY_OF_YEAR | DAY_OF_WEEK
            ) {
                1
            } else {
                0
            };
            let is_out = !(least..=most).contains(&self.values[field]);
            if self.stamps[field] > WORKED_OUT && is_out {
                return Err(illegal(NAMES[field].to_owned()));
            }
        }
        Ok(())
    }

    /// Returns the latest stamp of several fields. 0 if one of the fields is not set.
    fn together(&self, fields: &[usize]) -> u32 {
        let stamps = || fields.iter().map(|field| self.stamps[*field]);
        match stamps().any(|stamp| stamp == 0) {
            true => 0,
            false => stamps().max().unwrap_or(0),
        }
    }

    /// Returns the day that the most recently set fields denote.
    fn day(&self) -> i64 {
        let value = |field: usize, unset: i64| match self.stamps[field] {
            0 => unset,
            _ => self.values[field],
        };
        let mut year = value(YEAR, 1970);
        if self.stamps[ERA] > 0 && self.values[ERA] == 0 {
            year = 1 - year;
        }
        let month = value(MONTH, 0);
        let weekday_wanted = value(DAY_OF_WEEK, 1);
        let stamps = &self.stamps;
        let of_month = stamps[DAY_OF_MONTH];
        let week_of_month_stamp = self.together(&[WEEK_OF_MONTH, DAY_OF_WEEK]);
        let in_month = self.together(&[DAY_OF_WEEK_IN_MONTH, DAY_OF_WEEK]);
        let of_year = stamps[DAY_OF_YEAR];
        let week_of_year_stamp = self.together(&[WEEK_OF_YEAR, DAY_OF_WEEK]);
        let candidates = [
            of_month,
            week_of_month_stamp,
            in_month,
            of_year,
            week_of_year_stamp,
        ];
        let mut best = 0;
        for (place, stamp) in candidates.iter().enumerate() {
            if *stamp > candidates[best] {
                best = place;
            }
        }
        // Weeks begin on Sunday, which is day 1.
        let (year_there, month_there) = month_after(year, 1, month);
        let first_of_month = || day_of_date(year_there, month_there, 1);
        let first_of_year = || day_of_date(year, 1, 1);
        let sunday_before = |day: i64| day - weekday(day) % 7;
        match best {
            1 if stamps[WEEK_OF_MONTH] >= stamps[WEEK_OF_YEAR] || candidates[1] > candidates[4] => {
                match candidates[1] == candidates[2] && stamps[WEEK_OF_MONTH] < stamps[DAY_OF_WEEK_IN_MONTH] {
                    true => nth_weekday(first_of_month(), value(DAY_OF_WEEK_IN_MONTH, 1), weekday_wanted),
                    false => {
                        sunday_before(first_of_month()) + (value(WEEK_OF_MONTH, 1) - 1) * 7 + weekday_wanted
                            - 1
                    }
                }
            }
            2 => nth_weekday(first_of_month(), value(DAY_OF_WEEK_IN_MONTH, 1), weekday_wanted),
            3 => first_of_year() + value(DAY_OF_YEAR, 1) - 1,
            1 | 4 => sunday_before(first_of_year()) + (value(WEEK_OF_YEAR, 1) - 1) * 7 + weekday_wanted - 1,
            _ => day_of_date(year_there, month_there, value(DAY_OF_MONTH, 1)),
        }
    }

    fn time_of_day(&self) -> i64 {
        let value = |field: usize| match self.stamps[field] {
            0 => 0,
            _ => self.values[field],
        };
        let of_half = match self.together(&[HOUR, AM_PM]) {
            0 if self.stamps[HOUR_OF_DAY] == 0 => self.stamps[HOUR].max(self.stamps[AM_PM]),
            stamp => stamp,
        };
        let hour = match of_half > self.stamps[HOUR_OF_DAY] {
            true => value(HOUR) + 12 * value(AM_PM),
            false => value(HOUR_OF_DAY),
        };
        ((hour * 60 + value(MINUTE)) * 60 + value(SECOND)) * 1000 + value(MILLISECOND)
    }
}

/// Returns the n-th day of the month that has a given weekday. A negative n counts from the month's end. `first` is the first day of the
/// month.
fn nth_weekday(first: i64, n: i64, wanted: i64) -> i64 {
    let first_there = first + (wanted - 1 - weekday(first) % 7).rem_euclid(7);
    match n < 0 {
        false => first_there + (n - 1) * 7,
        true => {
            let (year, month, _) = date_of(first);
            let last = first + days_in_month(year, month) - 1;
            last - (weekday(last) % 7 - (wanted - 1)).rem_euclid(7) + (n + 1) * 7
        }
    }
}
