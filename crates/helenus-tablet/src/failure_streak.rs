//! Logs the failures of a task that is retried, without a message for each failure.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Interval between two log messages about a streak of failures.
const REPEAT_AFTER: Duration = Duration::from_secs(600);

/// The current streak of failures of a task.
#[derive(Debug)]
pub struct FailureStreak {
    failing: &'static str,
    working: &'static str,
    tablet: Option<u32>,
    failures: u64,
    /// Time of the last log message of the streak. `None` if no failure of the streak was logged.
    logged: Option<Instant>,
}

impl FailureStreak {
    /// Returns a streak without failures. `failing` and `working` are the messages at the beginning and at the end of a streak.
    pub fn new(failing: &'static str, working: &'static str) -> FailureStreak {
        FailureStreak {
            failing,
            working,
            tablet: None,
            failures: 0,
            logged: None,
        }
    }

    /// Adds the number of a tablet to the log messages.
    pub(crate) fn of_tablet(self, tablet: u32) -> FailureStreak {
        FailureStreak {
            tablet: Some(tablet),
            ..self
        }
    }

    /// Counts the outcome of a try. Logs the first failure of a streak, another one every ten minutes, and the end of the streak.
    pub fn note<T, E: Display>(&mut self, outcome: &Result<T, E>) {
        let (tablet, failures) = (self.tablet, self.failures);
        match outcome {
            Ok(_) if failures == 0 => {}
            Ok(_) => {
                tracing::info!(tablet, failures, "{}", self.working);
                (self.failures, self.logged) = (0, None);
            }
            Err(error) => {
                if self.is_to_be_logged(Instant::now()) {
                    let failures = self.failures;
                    tracing::warn!(tablet, %error, failures, "{}", self.failing);
                }
            }
        }
    }

    /// Returns the number of failures since the last success.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    fn is_to_be_logged(&mut self, now: Instant) -> bool {
        self.failures += 1;
        let is_due = |logged: Instant| now.saturating_duration_since(logged) >= REPEAT_AFTER;
        let is_due = self.logged.is_none_or(is_due);
        if is_due {
            self.logged = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streak_is_logged_at_its_start_and_each_ten_minutes() {
        let mut streak = FailureStreak::new("fails", "works");
        let now = Instant::now();
        assert!(streak.is_to_be_logged(now));
        assert!(!streak.is_to_be_logged(now + REPEAT_AFTER / 2));
        assert!(streak.is_to_be_logged(now + REPEAT_AFTER));
        assert_eq!(streak.failures(), 3);
        streak.note(&Ok::<(), String>(()));
        assert_eq!(streak.failures(), 0);
        assert!(streak.is_to_be_logged(now + REPEAT_AFTER), "a new streak begins");
    }
}
