//! The progress of an import on the terminal: bytes, rows a second, and the time that is left.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{msg} [{bar:24}] {bytes}/{total_bytes}, {prefix} rows/s, {eta} left";

/// A progress bar over the bytes of all tables.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    /// Bytes of the tables before the current one.
    before: u64,
    rows: u64,
}

impl Progress {
    /// Starts a bar. A hidden one shows nothing.
    pub fn start(bytes: u64, is_hidden: bool) -> Progress {
        let target = match is_hidden {
            true => ProgressDrawTarget::hidden(),
            // Indicatif shows nothing if the standard error is no terminal.
            false => ProgressDrawTarget::stderr_with_hz(4),
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Progress {
            bar,
            started: Instant::now(),
            before: 0,
            rows: 0,
        }
    }

    pub fn start_table(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    /// Shows the bytes of the current table that were read, and counts rows.
    pub fn advance(&mut self, bytes_read: u64, rows: u64) {
        self.rows += rows;
        let rate = self.rows as f64 / self.started.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        self.bar.set_prefix(format!("{rate:.0}"));
        self.bar.set_position(self.before + bytes_read);
    }

    pub fn finish_table(&mut self, bytes: u64) {
        self.before += bytes;
        self.bar.set_position(self.before);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
