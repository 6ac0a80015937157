//! Scheduled backups: a new one is written whenever the newest at the destination has reached an age. In a cluster, one node writes them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_query::engine::Engine;
use helenus_query::engine::backups::BackUp;
use helenus_tablet::FailureStreak;

use super::monitor::{BackupMonitor, now_ms};
use crate::boxed;
use crate::settings::{LiveSettings, unusual_settings};

/// Minimum and maximum time between two checks of the newest backup's age.
const LOOK_MIN: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(60);
/// Maximum time for which the start of the node waits for the destination.
const CHECK_MAX: Duration = Duration::from_secs(10);

/// The interval and the destination of scheduled backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSchedule {
    /// URL of the destination.
    pub to: String,
    /// Age of the newest backup at which the next one is written.
    pub interval: Duration,
    /// Number of backups that are kept.
    pub keep: usize,
    /// Path of the file with the key that encrypts backups. `None` if they are not encrypted.
    pub key_file: Option<String>,
}

impl BackupSchedule {
    /// Checks whether backups can be written to the destination. Returns a temporary error, or `None` if there is none.
    ///
    /// # Errors
    /// The destination or the key is wrong, so that waiting would not help.
    #[boxed]
    pub async fn check(&self, engine: &Engine) -> Result<Option<String>, String> {
        let wanted = self.wanted();
        match tokio::time::timeout(CHECK_MAX, engine.check_backup_place(&wanted)).await {
            Ok(Ok(())) => Ok(None),
            Ok(Err(CqlError::Invalid(why))) => Err(why),
            Ok(Err(error)) => Ok(Some(error.to_string())),
            Err(_) => Ok(Some(format!("no answer within {} s", CHECK_MAX.as_secs()))),
        }
    }

    /// Starts the schedule, which runs as long as the engine exists. `trouble` is the result of [`BackupSchedule::check`].
    pub fn start(
        self,
        engine: &Arc<Engine>,
        settings: Arc<dyn LiveSettings>,
        trouble: Option<String>,
    ) -> Arc<BackupMonitor> {
        let monitor = Arc::new(BackupMonitor::new(self.to.clone(), self.interval));
        if let Some(error) = trouble {
            self.note_failure(&monitor, &mut self.streak(), error);
        }
        let engine = Arc::downgrade(engine);
        tokio::spawn(self.run(engine, settings, monitor.clone()));
        monitor
    }

    async fn run(self, engine: Weak<Engine>, settings: Arc<dyn LiveSettings>, monitor: Arc<BackupMonitor>) {
        // Time of the newest known backup. The destination is only read when, by this time, a backup is due.
        let mut newest_ms = None;
        let mut streak = self.streak();
        loop {
            tokio::time::sleep((self.interval / 10).clamp(LOOK_MIN, LOOK_MAX)).await;
            let Some(engine) = engine.upgrade() else { return };
            let is_writer = engine.writes_scheduled_backups();
            monitor.set_writer(is_writer);
            if !is_writer {
                // Another node writes the backups now and reports its own errors. This node forgets its last one.
                monitor.succeeded(None);
                continue;
            }
            if !self.is_due(newest_ms, now_ms()) {
                continue;
            }
            match self.write_if_due(&engine, settings.as_ref(), &monitor).await {
                Ok(found_ms) => {
                    newest_ms = Some(found_ms);
                    monitor.succeeded(newest_ms);
                    streak.note(&Ok::<_, String>(()));
                }
                Err(error) => self.note_failure(&monitor, &mut streak, error),
            }
        }
    }

    fn streak(&self) -> FailureStreak {
        FailureStreak::new(
            "a scheduled backup has failed and is tried again",
            "scheduled backups are written again",
        )
    }

    fn note_failure(&self, monitor: &BackupMonitor, streak: &mut FailureStreak, error: String) {
        streak.note(&Err::<(), _>(format!("{}: {error}", self.to)));
        monitor.failed(error);
    }

    fn wanted(&self) -> BackUp {
        BackUp {
            to: self.to.clone(),
            name: None,
            keep: Some(self.keep),
            keep_for_ms: None,
            key_file: self.key_file.clone(),
        }
    }

    /// Writes a backup if the newest at the destination is old enough, no matter which node wrote that one. Returns the time of the newest
    /// backup.
    async fn write_if_due(
        &self,
        engine: &Arc<Engine>,
        settings: &dyn LiveSettings,
        monitor: &BackupMonitor,
    ) -> Result<i64, String> {
        let wanted = self.wanted();
        let newest_ms = engine.newest_backup_ms(&wanted).await;
        let newest_ms = newest_ms.map_err(|error| error.to_string())?;
        monitor.found(newest_ms);
        if let Some(newest_ms) = newest_ms.filter(|newest_ms| !self.is_due(Some(*newest_ms), now_ms())) {
            return Ok(newest_ms);
        }
        let begun_ms = now_ms();
        let written = engine.back_up(&wanted, unusual_settings(settings)).await;
        let report = written.map_err(|error| error.to_string())?;
        monitor.copied(report.copied_bytes);
        Ok(begun_ms)
    }

    fn is_due(&self, newest_ms: Option<i64>, now_ms: i64) -> bool {
        let interval_ms = i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX);
        newest_ms.is_none_or(|newest_ms| now_ms.saturating_sub(newest_ms) >= interval_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_due_when_the_newest_is_as_old_as_the_interval() {
        let schedule = BackupSchedule {
            to: String::new(),
            interval: Duration::from_secs(10),
            keep: 1,
            key_file: None,
        };
        assert!(schedule.is_due(None, 0));
        assert!(!schedule.is_due(Some(1_000), 10_999));
        assert!(schedule.is_due(Some(1_000), 11_000));
        assert!(!schedule.is_due(Some(20_000), 1_000), "the clock was set back");
    }
}
