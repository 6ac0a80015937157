//! The state of scheduled backups, for metrics and warnings.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::{Counter, counter, gauge};
use parking_lot::Mutex;

/// The state of a node's scheduled backups, for metrics and warnings.
pub struct BackupMonitor {
    to: String,
    interval: Duration,
    state: Mutex<Known>,
    failures: Counter,
    bytes: Counter,
}

/// The part of the state that changes.
#[derive(Debug, Default)]
struct Known {
    /// True if this node is the one that writes the backups at present.
    is_writer: bool,
    /// Time of the newest backup at the destination, in milliseconds since 1970. `None` if there is none, or the destination was not read.
    newest_ms: Option<i64>,
    /// Error of the last attempt. `None` if it succeeded.
    error: Option<String>,
}

impl BackupMonitor {
    /// Returns the monitor of backups that are written to `to` whenever the newest is older than `interval`.
    pub(crate) fn new(to: String, interval: Duration) -> BackupMonitor {
        BackupMonitor {
            to,
            interval,
            state: Mutex::default(),
            failures: counter!("helenus_backup_failures_total"),
            bytes: counter!("helenus_backup_bytes_total"),
        }
    }

    /// Sets whether this node is the one that writes the backups at present.
    pub(crate) fn set_writer(&self, is_writer: bool) {
        self.state.lock().is_writer = is_writer;
    }

    /// Records the time of the newest backup at the destination. `None` if there is none.
    pub(crate) fn found(&self, newest_ms: Option<i64>) {
        self.state.lock().newest_ms = newest_ms;
    }

    /// Adds the bytes that a backup has copied.
    pub(crate) fn copied(&self, bytes: u64) {
        self.bytes.increment(bytes);
    }

    /// Records that the last attempt succeeded. `None` leaves the known time of the newest backup unchanged.
    pub(crate) fn succeeded(&self, newest_ms: Option<i64>) {
        let mut state = self.state.lock();
        state.newest_ms = newest_ms.or(state.newest_ms);
        state.error = None;
    }

    /// Records that the last attempt failed.
    pub(crate) fn failed(&self, error: String) {
        self.failures.increment(1);
        self.state.lock().error = Some(error);
    }

    /// Sets the gauges. The time of the newest backup is 0 on nodes that do not write the backups.
    pub fn record(&self) {
        gauge!("helenus_backup_interval_seconds").set(self.interval.as_secs_f64());
        // Registers the counters even if they never changed, so that they are shown as 0.
        self.failures.increment(0);
        self.bytes.increment(0);
        let state = self.state.lock();
        let newest_ms = state.newest_ms.filter(|_| state.is_writer);
        gauge!("helenus_backup_last_success_seconds").set(newest_ms.map_or(0.0, |ms| ms as f64 / 1e3));
    }

    /// Returns a warning about failed or late backups. `None` if all is well, or another node writes them.
    pub fn warning(&self) -> Option<String> {
        let state = self.state.lock();
        state.warning(&self.to, self.interval, now_ms())
    }
}

impl Known {
    fn warning(&self, to: &str, interval: Duration, now_ms: i64) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(format!("the last scheduled backup to {to} has failed: {error}"));
        }
        let age_ms = now_ms.saturating_sub(self.newest_ms?);
        let late_ms = i64::try_from(interval.as_millis())
            .unwrap_or(i64::MAX)
            .saturating_mul(2);
        let is_late = self.is_writer && age_ms > late_ms;
        is_late.then(|| format!("the newest backup in {to} is {} h old", age_ms / 3_600_000))
    }
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_and_failed_backups_are_warned_of_at_their_writer() {
        let hour = Duration::from_secs(3600);
        let mut known = Known {
            is_writer: true,
            newest_ms: Some(0),
            error: None,
        };
        assert_eq!(known.warning("/b", hour, 7_200_000), None);
        let late = known.warning("/b", hour, 7_200_001).unwrap();
        assert_eq!(late, "the newest backup in /b is 2 h old");
        known.error = Some("full".to_owned());
        let failed = known.warning("/b", hour, 0).unwrap();
        assert_eq!(failed, "the last scheduled backup to /b has failed: full");
        let reader = Known {
            newest_ms: Some(0),
            ..Known::default()
        };
        assert_eq!(reader.warning("/b", hour, i64::MAX), None);
    }
}
