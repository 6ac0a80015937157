//! Backups that nobody asks for: one whenever the newest in a place has reached an age. Of a cluster one node writes them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_query::engine::Engine;
use helenus_query::engine::backups::BackUp;
use helenus_tablet::FailureStreak;

use crate::backup_commands::unusual_settings;
use crate::backup_monitor::{BackupMonitor, now_ms};
use crate::boxed;
use crate::live_settings::LiveSettings;

/// How often the age of the newest backup is looked at, at most and at least.
const LOOK_MIN: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(60);
/// Maximum time for which the start waits for the place.
const CHECK_MAX: Duration = Duration::from_secs(10);

/// When backups are written, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSchedule {
    /// The URL of the place.
    pub to: String,
    /// The age of the newest backup at which another one is written.
    pub interval: Duration,
    /// How many backups stay.
    pub keep: usize,
    /// The file with the key of encrypted backups.
    pub key_file: Option<String>,
}

impl BackupSchedule {
    /// Looks whether backups can be written to the place. Returns why not at present; `None` if they can.
    ///
    /// # Errors
    /// The place or the key is wrong, and waiting would not help.
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

    /// Begins, for as long as the engine is there. `trouble` is what [`BackupSchedule::check`] has returned.
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
        // What is known of the place, without looking at it each time.
        let mut newest_ms = None;
        let mut streak = self.streak();
        loop {
            tokio::time::sleep((self.interval / 10).clamp(LOOK_MIN, LOOK_MAX)).await;
            let Some(engine) = engine.upgrade() else { return };
            let is_writer = engine.writes_scheduled_backups();
            monitor.set_writer(is_writer);
            if !is_writer {
                // The errors of a former writer are the new writer's to find.
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

    /// Writes a backup if the newest in the place is old enough, whoever has written that; the moment of the newest.
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
