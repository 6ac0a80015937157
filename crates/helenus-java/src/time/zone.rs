//! Time zones: `ZoneId`, `ZoneOffset` and `TimeZone`.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{self, TimeZone};

use crate::error::Failure;

/// The class of a zone object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneClass {
    ZoneId,
    ZoneOffset,
    TimeZone,
}

#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub id: Arc<str>,
    pub class: ZoneClass,
    rules: Rules,
}

#[derive(Clone, Debug)]
enum Rules {
    /// Seconds east of UTC.
    Fixed(i32),
    Region(TimeZone),
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.id == other.id && self.class == other.class
    }
}

/// The short names that Java still supports, and their regions.
const SHORT: [(&str, &str); 25] = [
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

fn region(name: &str) -> Option<Rules> {
    let zone = tz::db().get(name).ok()?;
    (zone.iana_name() == Some(name)).then_some(Rules::Region(zone))
}

/// Returns the id of an offset: `+01:00`, or `Z` for 0.
pub(crate) fn offset_id(seconds: i32) -> String {
    match seconds {
        0 => "Z".to_owned(),
        _ => offset_text(seconds, ":"),
    }
}

/// Returns the offset as hours and minutes, and seconds if they are not zero.
pub(crate) fn offset_text(seconds: i32, separator: &str) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    let text = format!("{sign}{hours:02}{separator}{minutes:02}");
    match seconds {
        0 => text,
        _ => format!("{text}{separator}{seconds:02}"),
    }
}

/// Parses `+1`, `+01`, `+01:30` or `+0130`, and returns the seconds. `None` if the text has none of these forms.
pub(crate) fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = match (digits.split_once(':'), digits.len()) {
        (Some((hours, minutes)), _) if minutes.len() == 2 => (hours, minutes),
        (Some(_), _) => return None,
        (None, 1 | 2) => (digits, "0"),
        (None, 4) => digits.split_at_checked(2)?,
        _ => return None,
    };
    let is_number =
        |text: &str| !text.is_empty() && text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

impl Zone {
    pub fn utc() -> Zone {
        Zone::fixed("UTC", 0, ZoneClass::ZoneId)
    }

    fn fixed(id: &str, seconds: i32, class: ZoneClass) -> Zone {
        Zone {
            id: id.into(),
            class,
            rules: Rules::Fixed(seconds),
        }
    }

    /// Returns a `ZoneOffset`.
    pub fn offset(seconds: i32) -> Zone {
        Zone::fixed(&offset_id(seconds), seconds, ZoneClass::ZoneOffset)
    }

    /// Returns this zone as an object of another class.
    pub fn as_class(&self, class: ZoneClass) -> Zone {
        Zone {
            class,
            ..self.clone()
        }
    }

    /// Implements `ZoneId.of`.
    ///
    /// # Errors
    /// There is no such zone.
    pub fn of(id: &str) -> Result<Zone, Failure> {
        if id == "Z" {
            return Ok(Zone::offset(0));
        }
        if let Some(seconds) = parse_offset(id) {
            return Ok(Zone::offset(seconds));
        }
        for prefix in ["UTC", "GMT", "UT"] {
            let Some(rest) = id.strip_prefix(prefix) else {
                continue;
            };
            if rest.is_empty() {
                return Ok(Zone::fixed(id, 0, ZoneClass::ZoneId));
            }
            if let Some(seconds) = parse_offset(rest) {
                let id = format!("{prefix}{}", offset_text(seconds, ":"));
                return Ok(Zone::fixed(&id, seconds, ZoneClass::ZoneId));
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "/._~+-".contains(c);
        if id.len() < 2 || !id.starts_with(|c: char| c.is_ascii_alphabetic()) || !id.chars().all(is_name) {
            let message = format!("Invalid ID for region-based ZoneId, invalid format: {id}");
            return Err(Failure::thrown("java.time.DateTimeException", message));
        }
        let rules = region(id).ok_or_else(|| {
            let message = format!("Unknown time-zone ID: {id}");
            Failure::thrown("java.time.zone.ZoneRulesException", message)
        })?;
        Ok(Zone {
            id: id.into(),
            class: ZoneClass::ZoneId,
            rules,
        })
    }

    /// Implements `TimeZone.getTimeZone`. The result is GMT if there is no such zone.
    pub fn of_time_zone(id: &str) -> Zone {
        let class = ZoneClass::TimeZone;
        let short = SHORT.iter().find(|(short, _)| *short == id);
        let name = short.map_or(id, |(_, region)| region);
        if let Some(rules) = region(name) {
            let id = id.into();
            return Zone { id, class, rules };
        }
        match id {
            "UTC" | "UCT" | "Zulu" => Zone::fixed(id, 0, class),
            _ => match id.strip_prefix("GMT").and_then(parse_offset) {
                Some(0) | None => Zone::fixed("GMT", 0, class),
                Some(seconds) => Zone::fixed(&format!("GMT{}", offset_text(seconds, ":")), seconds, class),
            },
        }
    }

    /// Returns the offset at a time, in seconds east of UTC.
    pub fn offset_at(&self, second: i64) -> i32 {
        match &self.rules {
            Rules::Fixed(seconds) => *seconds,
            Rules::Region(zone) => zone.to_offset(timestamp(second)).seconds(),
        }
    }

    /// Returns the offset at a local time, in seconds east of UTC. A skipped local time has the offset before the change. A repeated one is
    /// taken as the earlier time.
    pub fn offset_of_local(&self, local_second: i64) -> i32 {
        let zone = match &self.rules {
            Rules::Fixed(seconds) => return *seconds,
            Rules::Region(zone) => zone,
        };
        let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        let local = epoch.checked_add(jiff::SignedDuration::from_secs(local_second));
        let instant = local
            .ok()
            .and_then(|local| zone.to_ambiguous_timestamp(local).compatible().ok());
        match instant {
            Some(instant) => (local_second - instant.as_second()) as i32,
            None => self.offset_at(local_second),
        }
    }

    /// Returns the offset without daylight saving time, in seconds east of UTC.
    pub fn raw_offset(&self) -> i32 {
        match &self.rules {
            Rules::Fixed(seconds) => *seconds,
            Rules::Region(zone) => {
                // At one of two times half a year apart, there is no daylight saving time.
                let now = Timestamp::now();
                let half = now
                    .checked_add(jiff::SignedDuration::from_hours(24 * 182))
                    .unwrap_or(now);
                let infos = [now, half].map(|at| zone.to_offset_info(at));
                let standard = infos.iter().find(|info| !info.dst().is_dst());
                standard
                    .or(infos.first())
                    .map_or(0, |info| info.offset().seconds())
            }
        }
    }

    /// Returns the zone's short name at a time: `UTC`, `CET`.
    pub fn short_name(&self, second: i64) -> String {
        let shown = match &self.rules {
            Rules::Fixed(_) => return self.id.to_string(),
            Rules::Region(zone) => zone.to_offset_info(timestamp(second)).abbreviation().to_owned(),
        };
        match shown.starts_with(['+', '-']) {
            true => format!("GMT{}", offset_text(self.offset_at(second), ":")),
            false => shown,
        }
    }
}

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(match second < 0 {
        true => Timestamp::MIN,
        false => Timestamp::MAX,
    })
}
