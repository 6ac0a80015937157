//! Scheduled backups: their [`schedule`], and the [`monitor`] for metrics and warnings. Commands for backups are in `http/commands/backups.rs`.
//! `helenus-tablet/src/backup` reads and writes the backups themselves.

mod monitor;
mod schedule;

pub use monitor::BackupMonitor;
pub use schedule::BackupSchedule;
