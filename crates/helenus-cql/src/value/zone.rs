//! Named time zones in timestamps, as Java's formatters read them: regions of the IANA database, and the usual abbreviations of regions.
//! The date, not the name, decides if daylight saving time applies.

use jiff::civil::DateTime;
use jiff::tz::{self, TimeZone};

/// Abbreviations and their regions in Java. If several countries use an abbreviation, Java chooses the region.
const ABBREVIATIONS: [(&str, &str); 70] = [
    ("ACDT", "Australia/Adelaide"),
    ("ADT", "America/Halifax"),
    ("AEDT", "Australia/Sydney"),
    ("AEST", "Australia/Sydney"),
    ("AKDT", "America/Anchorage"),
    ("AKST", "America/Anchorage"),
    ("ART", "America/Argentina/Buenos_Aires"),
    ("AST", "America/Halifax"),
    ("AWST", "Australia/Perth"),
    ("BDT", "Asia/Dhaka"),
    ("BRT", "America/Sao_Paulo"),
    ("BST", "Pacific/Bougainville"),
    ("CAT", "Africa/Maputo"),
    ("CDT", "America/Chicago"),
    ("CEST", "Europe/Paris"),
    ("CET", "Europe/Paris"),
    ("CLT", "America/Santiago"),
    ("COT", "America/Bogota"),
    ("CST", "America/Chicago"),
    ("CT", "America/Chicago"),
    ("ChST", "Pacific/Guam"),
    ("EAT", "Africa/Nairobi"),
    ("EDT", "America/New_York"),
    ("EEST", "Europe/Athens"),
    ("EET", "Europe/Athens"),
    ("EST", "America/New_York"),
    ("ET", "America/New_York"),
    ("GFT", "America/Cayenne"),
    ("GST", "Atlantic/South_Georgia"),
    ("HKST", "Asia/Hong_Kong"),
    ("HKT", "Asia/Hong_Kong"),
    ("HST", "Pacific/Honolulu"),
    ("ICT", "Asia/Bangkok"),
    ("IDT", "Asia/Kolkata"),
    ("IRST", "Asia/Tehran"),
    ("IST", "Atlantic/Reykjavik"),
    ("JST", "Asia/Tokyo"),
    ("KDT", "Asia/Seoul"),
    ("KST", "Asia/Seoul"),
    ("MDT", "America/Denver"),
    ("MSD", "Europe/Moscow"),
    ("MSK", "Europe/Moscow"),
    ("MST", "America/Denver"),
    ("MT", "America/Denver"),
    ("MYT", "Asia/Kuala_Lumpur"),
    ("NDT", "America/St_Johns"),
    ("NPT", "Asia/Kathmandu"),
    ("NST", "America/St_Johns"),
    ("NZDT", "Pacific/Auckland"),
    ("NZST", "Pacific/Auckland"),
    ("PDT", "America/Los_Angeles"),
    ("PET", "America/Lima"),
    ("PKT", "Asia/Karachi"),
    ("PST", "America/Los_Angeles"),
    ("PT", "America/Los_Angeles"),
    ("SAST", "Africa/Johannesburg"),
    ("SGT", "Asia/Singapore"),
    ("SST", "Pacific/Pago_Pago"),
    ("TRT", "Europe/Istanbul"),
    ("UYT", "America/Montevideo"),
    ("UZT", "Asia/Tashkent"),
    ("VET", "America/Caracas"),
    ("WAST", "Africa/Lagos"),
    ("WAT", "Africa/Lagos"),
    ("WEST", "Europe/Lisbon"),
    ("WET", "Europe/Lisbon"),
    ("WIB", "Asia/Jakarta"),
    ("WIT", "Asia/Jayapura"),
    ("WITA", "Asia/Makassar"),
    ("ACST", "America/Rio_Branco"),
];

/// Returns the zone of that name, which must match exactly.
fn zone(name: &str) -> Option<TimeZone> {
    let abbreviation = ABBREVIATIONS.iter().find(|(short, _)| *short == name);
    let region = abbreviation.map_or(name, |(_, region)| region);
    // Regions such as `Etc/GMT+1` are fixed offsets with the opposite sign. They are refused, as in Java.
    let is_fixed = region.starts_with("Etc/") && region.contains(['+', '-']);
    tz::db()
        .get(region)
        .ok()
        .filter(|zone| zone.iana_name() == Some(region) && !is_fixed)
}

/// Returns the zone's offset at a local time, in milliseconds east of UTC. The local time is in milliseconds since 1970 as if it were UTC.
/// A skipped local time has the offset before the change. A repeated one is taken as the earlier time. `None` if there is no such zone.
pub fn offset_millis(name: &str, local_millis: i64) -> Option<i64> {
    let zone = zone(name)?;
    let seconds = local_millis.div_euclid(1_000);
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    let local = epoch.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()?;
    let instant = zone.to_ambiguous_timestamp(local).compatible().ok()?;
    Some((seconds - instant.as_second()) * 1_000)
}
