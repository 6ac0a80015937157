//! Logs repeated refusals of other nodes and by other nodes at a limited rate.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

/// Time after which the same refusal is logged again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of refusals that are remembered, so that unknown callers cannot fill the memory.
const MAX: usize = 256;

/// Recent refusals, by node and kind.
#[derive(Default)]
pub(super) struct RefusalLog(Mutex<HashMap<(Uuid, String), RefusalHistory>>);

struct RefusalHistory {
    first: Instant,
    last: Instant,
    reported: Option<Instant>,
}

impl RefusalLog {
    /// Time within which all nodes know of a node that has joined.
    pub const JOIN_GRACE: Duration = Duration::from_secs(1);

    /// Returns true if a refusal must be logged now: it has gone on for `grace`, and was not logged recently.
    pub fn should_log(&self, node: Uuid, kind: &str, grace: Duration) -> bool {
        self.should_log_at(Instant::now(), node, kind, grace)
    }

    fn should_log_at(&self, now: Instant, node: Uuid, kind: &str, grace: Duration) -> bool {
        let mut all = self.0.lock();
        if all.len() >= MAX {
            all.retain(|_, seen| now.duration_since(seen.last) < REPEAT_INTERVAL);
        }
        if all.len() >= MAX {
            return false;
        }
        let seen = all.entry((node, kind.to_owned())).or_insert(RefusalHistory {
            first: now,
            last: now,
            reported: None,
        });
        if now.duration_since(seen.last) > REPEAT_INTERVAL {
            seen.first = now;
        }
        seen.last = now;
        let is_due = seen
            .reported
            .is_none_or(|reported| now.duration_since(reported) >= REPEAT_INTERVAL);
        let should_log = is_due && now.duration_since(seen.first) >= grace;
        if should_log {
            seen.reported = Some(now);
        }
        should_log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_is_logged_once_a_minute_unless_transient() {
        let refusals = RefusalLog::default();
        let (began, node) = (Instant::now(), Uuid::from_u128(1));
        let at = |s: u64, kind: &str, grace| {
            refusals.should_log_at(began + Duration::from_secs(s), node, kind, grace)
        };
        assert!(at(0, "store", Duration::ZERO));
        assert!(!at(1, "store", Duration::ZERO) && !at(59, "store", Duration::ZERO));
        assert!(at(60, "store", Duration::ZERO));
        let grace = Duration::from_secs(3);
        assert!(!at(60, "member", grace) && !at(62, "member", grace));
        assert!(at(63, "member", grace));
        assert!(!at(100, "other", grace), "the first");
        assert!(!at(200, "other", grace), "begun anew");
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let refusals = RefusalLog::default();
        for number in 0..10_000 {
            refusals.should_log(Uuid::from_u128(number), "store", Duration::ZERO);
        }
        assert_eq!(refusals.0.lock().len(), MAX);
    }
}
