//! Progress of a COPY, shown on the terminal every second.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);

/// Counter of rows, which shows their number.
pub struct Progress {
    started: Instant,
    reported: Instant,
    is_reported: bool,
    pub rows: u64,
}

impl Progress {
    pub fn start() -> Progress {
        let now = Instant::now();
        Progress {
            started: now,
            reported: now,
            is_reported: std::io::stderr().is_terminal(),
            rows: 0,
        }
    }

    pub fn add(&mut self, rows: u64) {
        self.rows += rows;
        if self.is_reported && self.reported.elapsed() >= INTERVAL {
            self.reported = Instant::now();
            let rate = self.rate();
            // An error is ignored, because a closed terminal is no reason to stop.
            let _ = write!(
                std::io::stderr(),
                "\rProcessed: {} rows; Rate: {rate:.0} rows/s ",
                self.rows
            );
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn rate(&self) -> f64 {
        self.rows as f64 / self.elapsed().as_secs_f64().max(0.001)
    }

    /// Ends the line of the progress.
    pub fn finish(&self) {
        if self.is_reported && self.reported > self.started {
            eprintln!();
        }
    }
}
