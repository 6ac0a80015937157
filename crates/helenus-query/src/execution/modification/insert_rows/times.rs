//! Checks of timestamps, TTLs and deletion times.

use std::ops::RangeInclusive;

use helenus_row::{Deletion, Expiry};

use super::refusal::Refusal;
use crate::analysis::modification::attributes::{TTL_MAX_S, check_timestamp};

/// Times at which something may expire or be deleted: those that Cassandra's files can hold, until 2106.
const SECONDS: RangeInclusive<i64> = 0..=u32::MAX as i64;

/// Refuses `i64::MIN`, which stands for no timestamp.
pub(super) fn check_timestamp_us(timestamp_us: i64) -> Result<(), Refusal> {
    Ok(check_timestamp(timestamp_us)?)
}

/// Refuses a time of the server's clock that no node has written.
pub(super) fn check_deletion_s(local_deletion_s: i64) -> Result<(), Refusal> {
    check_seconds("deletion time", local_deletion_s)
}

pub(super) fn check_deletion(deletion: Deletion) -> Result<(), Refusal> {
    check_timestamp_us(deletion.timestamp_us)?;
    check_deletion_s(deletion.local_deletion_s)
}

pub(super) fn check_expiry(expiry: Expiry) -> Result<(), Refusal> {
    if !(1..=TTL_MAX_S).contains(&expiry.ttl_s) {
        return Err(Refusal::new(format!(
            "a TTL of {} seconds is not between 1 and {TTL_MAX_S}",
            expiry.ttl_s
        )));
    }
    check_seconds("expiration time", expiry.expires_at_s)
}

fn check_seconds(what: &str, seconds: i64) -> Result<(), Refusal> {
    match SECONDS.contains(&seconds) {
        true => Ok(()),
        false => Err(Refusal::new(format!(
            "the {what} {seconds} is not between 0 and {} seconds since 1970",
            SECONDS.end()
        ))),
    }
}
