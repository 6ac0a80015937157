//! `uuid` and `timeuuid`: their text, and the time in version 1 (Cassandra's `TimeUUID`).

/// 100-nanosecond ticks between 1582-10-15 and 1970-01-01.
const EPOCH_TICKS: i64 = 122_192_928_000_000_000;
const MIN_CLOCK_SEQUENCE_AND_NODE: u64 = 0x8080_8080_8080_8080;
const MAX_CLOCK_SEQUENCE_AND_NODE: u64 = 0x7F7F_7F7F_7F7F_7F7F;

/// Returns the text `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
pub fn to_text(uuid: u128) -> String {
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        uuid >> 96,
        (uuid >> 80) & 0xFFFF,
        (uuid >> 64) & 0xFFFF,
        (uuid >> 48) & 0xFFFF,
        uuid & 0xFFFF_FFFF_FFFF
    )
}

/// Parses the canonical form, in either case.
pub fn parse(text: &str) -> Option<u128> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return None;
    }
    let digits = groups.concat();
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u128::from_str_radix(&digits, 16).ok()
    } else {
        None
    }
}

pub fn version(uuid: u128) -> u8 {
    ((uuid >> 76) & 0xF) as u8
}

/// Returns the timestamp of a version 1 uuid, in 100-nanosecond ticks since 1582-10-15. Bits of the version other than that of version 1
/// are part of the timestamp.
pub fn ticks(uuid: u128) -> i64 {
    let msb = (uuid >> 64) as u64;
    (((msb & 0xEFFF) << 48) | ((msb & 0xFFFF_0000) << 16) | (msb >> 32)) as i64
}

/// Returns the time of a version 1 uuid in microseconds since 1970.
pub fn unix_micros(uuid: u128) -> i64 {
    ticks(uuid) / 10 - EPOCH_TICKS / 10
}

/// Returns the time of a version 1 uuid in milliseconds since 1970, rounded towards zero as Java's `TimeUnit` does.
pub fn unix_millis(uuid: u128) -> i64 {
    unix_micros(uuid) / 1_000
}

/// Returns the version 1 uuid of so many ticks since 1582-10-15, with the given lower 64 bits. The sign of earlier times is in the version,
/// as in Cassandra.
pub fn from_ticks(ticks: i64, lsb: u64) -> u128 {
    let ticks = ticks as u64;
    let msb = 0x1000 | (ticks >> 48) | ((ticks & 0xFFFF_0000_0000) >> 16) | (ticks << 32);
    (u128::from(msb) << 64) | u128::from(lsb)
}

/// Returns the ticks since 1582-10-15 of a time in milliseconds since 1970.
pub fn ticks_at_millis(millis: i64) -> i64 {
    millis.wrapping_mul(10_000).wrapping_add(EPOCH_TICKS)
}

/// Returns the ticks since 1582-10-15 of a time in microseconds since 1970.
pub fn ticks_at_micros(micros: i64) -> i64 {
    micros.wrapping_mul(10).wrapping_add(EPOCH_TICKS)
}

/// Returns the least `timeuuid` of a millisecond since 1970 (the CQL function `min_timeuuid`).
pub fn min_at_millis(millis: i64) -> u128 {
    from_ticks(ticks_at_millis(millis), MIN_CLOCK_SEQUENCE_AND_NODE)
}

/// Returns the greatest `timeuuid` of a millisecond since 1970 (the CQL function `max_timeuuid`).
pub fn max_at_millis(millis: i64) -> u128 {
    from_ticks(
        ticks_at_millis(millis.wrapping_add(1)).wrapping_sub(1),
        MAX_CLOCK_SEQUENCE_AND_NODE,
    )
}
