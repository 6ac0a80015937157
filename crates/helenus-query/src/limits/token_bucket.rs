//! A token bucket that is stored as one number (the generic cell rate algorithm): the time at which it is full again. It holds the tokens
//! of one second, so a client may send a second's requests at once.

/// Time in which an empty bucket fills.
const FILL_NS: u64 = 1_000_000_000;

/// Takes a token from a bucket that fills at the given rate and is full at `full_at_ns`. Returns the time at which it is full afterwards.
/// `None` if it has no token.
pub(crate) fn take(full_at_ns: u64, rate_per_second: u32, now_ns: u64) -> Option<u64> {
    let interval_ns = FILL_NS.checked_div(u64::from(rate_per_second))?;
    let full_at_ns = full_at_ns.max(now_ns).saturating_add(interval_ns);
    (full_at_ns - now_ns <= FILL_NS).then_some(full_at_ns)
}

#[cfg(test)]
#[path = "token_bucket_tests.rs"]
mod tests;
