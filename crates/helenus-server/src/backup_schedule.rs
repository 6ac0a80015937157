//! Backups that nobody asks for: one whenever the newest in a place has reached an age. Of a cluster one node writes them.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helenus_query::engine::Engine;
use helenus_query::engine::backups::BackUp;

use crate::backup_commands::unusual_settings;
use crate::live_settings::LiveSettings;

/// How often the age of the newest backup is looked at, at most and at least.
const LOOK_MIN: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(60);

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
    /// Begins, for as long as the engine is there.
    pub fn start(self, engine: &Arc<Engine>, settings: Arc<dyn LiveSettings>) {
        let engine = Arc::downgrade(engine);
        tokio::spawn(self.run(engine, settings));
    }

    async fn run(self, engine: Weak<Engine>, settings: Arc<dyn LiveSettings>) {
        // What is known of the place, without looking at it each time.
        let mut newest_ms = None;
        loop {
            tokio::time::sleep((self.interval / 10).clamp(LOOK_MIN, LOOK_MAX)).await;
            let Some(engine) = engine.upgrade() else { return };
            if !engine.writes_scheduled_backups() || !self.is_due(newest_ms, now_ms()) {
                continue;
            }
            match self.write_if_due(&engine, settings.as_ref()).await {
                Ok(found_ms) => newest_ms = Some(found_ms),
                Err(error) => {
                    tracing::warn!(
                        to = self.to,
                        error,
                        "a scheduled backup has failed and is tried again"
                    );
                }
            }
        }
    }

    /// Writes a backup if the newest in the place is old enough, whoever has written that; the moment of the newest.
    async fn write_if_due(&self, engine: &Arc<Engine>, settings: &dyn LiveSettings) -> Result<i64, String> {
        let wanted = BackUp {
            to: self.to.clone(),
            name: None,
            keep: Some(self.keep),
            keep_for_ms: None,
            key_file: self.key_file.clone(),
        };
        let newest_ms = engine.newest_backup_ms(&wanted).await;
        let newest_ms = newest_ms.map_err(|error| error.to_string())?;
        if let Some(newest_ms) = newest_ms.filter(|newest_ms| !self.is_due(Some(*newest_ms), now_ms())) {
            return Ok(newest_ms);
        }
        let begun_ms = now_ms();
        let written = engine.back_up(&wanted, unusual_settings(settings)).await;
        written.map(|_| begun_ms).map_err(|error| error.to_string())
    }

    fn is_due(&self, newest_ms: Option<i64>, now_ms: i64) -> bool {
        let interval_ms = i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX);
        newest_ms.is_none_or(|newest_ms| now_ms.saturating_sub(newest_ms) >= interval_ms)
    }
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
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
