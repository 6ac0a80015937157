//! The files of the audit log: one for each roll cycle. The oldest are deleted.
//!
//! A failure to begin or delete a file is reported in the node's own log. If a file cannot be begun, lines continue to go to the previous
//! one.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_cql::value::civil::date_text;
use helenus_tablet::FailureStreak;

use super::AuditOptions;
use crate::logs::RollCycle;

const PREFIX: &str = "audit.";
const SUFFIX: &str = ".log";
const DAY_S: u64 = 86_400;

/// Writer of the file of the current cycle.
pub(super) struct AuditFiles {
    folder: PathBuf,
    roll_cycle: RollCycle,
    files_max: usize,
    file: File,
    /// Number of the current cycle, counted from 1970.
    cycle: u64,
    beginning: FailureStreak,
    deleting: FailureStreak,
}

impl AuditFiles {
    /// Creates the folder, and begins or continues the file of the current cycle.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn open(options: &AuditOptions) -> io::Result<AuditFiles> {
        let (folder, roll_cycle) = (options.folder.clone(), options.roll_cycle);
        std::fs::create_dir_all(&folder)?;
        let now_s = now_s();
        let mut files = AuditFiles {
            file: append_to(folder.join(file_name(roll_cycle, now_s)))?,
            folder,
            roll_cycle,
            files_max: options.files_max,
            cycle: now_s / roll_cycle.seconds(),
            beginning: FailureStreak::new(
                "a new file of the audit log cannot be begun; lines go to the one before",
                "a new file of the audit log is begun again",
            ),
            deleting: FailureStreak::new(
                "old files of the audit log cannot be deleted; trying again",
                "old files of the audit log are deleted again",
            ),
        };
        files.delete_old();
        Ok(files)
    }

    fn roll(&mut self, now_s: u64) {
        let cycle = now_s / self.roll_cycle.seconds();
        if cycle == self.cycle {
            return;
        }
        // After a failure, the next attempt is made in the next cycle, so that not every line costs an attempt.
        self.cycle = cycle;
        let begun = append_to(self.folder.join(file_name(self.roll_cycle, now_s)));
        self.beginning.note(&begun);
        if let Ok(file) = begun {
            self.file = file;
            self.delete_old();
        }
    }

    fn delete_old(&mut self) {
        let deleted = self.delete_beyond_max();
        self.deleting.note(&deleted);
    }

    fn delete_beyond_max(&self) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let is_ours = |name: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
            if name.to_str().is_some_and(is_ours) {
                names.push(name);
            }
        }
        // The names sort by time.
        names.sort_unstable();
        let surplus = names.len().saturating_sub(self.files_max);
        for name in names.into_iter().take(surplus) {
            std::fs::remove_file(self.folder.join(name))?;
        }
        Ok(())
    }
}

impl io::Write for AuditFiles {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.roll(now_s());
        self.file.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn append_to(path: PathBuf) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Returns the name of a file, such as `audit.2026-11-28-13.log`: the beginning of its cycle, in UTC.
fn file_name(roll_cycle: RollCycle, now_s: u64) -> String {
    let date = date_text(i64::try_from(now_s / DAY_S).unwrap_or(i64::MAX));
    let (hour, minute) = (now_s % DAY_S / 3600, now_s % 3600 / 60);
    let time = match roll_cycle {
        RollCycle::Minutely => format!("-{hour:02}-{minute:02}"),
        RollCycle::Hourly => format!("-{hour:02}"),
        RollCycle::Daily => String::new(),
    };
    format!("{PREFIX}{date}{time}{SUFFIX}")
}

fn now_s() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_secs()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_name_has_the_beginning_of_its_cycle() {
        // 2026-11-28 13:07:59 UTC
        let at = 1_795_871_279;
        assert_eq!(file_name(RollCycle::Minutely, at), "audit.2026-11-28-13-07.log");
        assert_eq!(file_name(RollCycle::Hourly, at), "audit.2026-11-28-13.log");
        assert_eq!(file_name(RollCycle::Daily, at), "audit.2026-11-28.log");
    }

    #[test]
    fn each_cycle_has_a_file_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions {
            folder: folder.path().join("made"),
            files_max: 2,
            ..AuditOptions::default()
        };
        let mut files = AuditFiles::open(&options).unwrap();
        let first = now_s();
        for hours in 1..4 {
            files.roll(first + hours * 3600);
            files.file.write_all(b"line\n").unwrap();
        }
        let mut left: Vec<_> = std::fs::read_dir(&options.folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let expected = [2, 3].map(|hours| file_name(RollCycle::Hourly, first + hours * 3600));
        assert_eq!(left, expected);
    }
}
