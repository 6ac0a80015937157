//! Ctrl-C while the shell works: the signal sets a flag, and the running work checks it.
//!
//! At the prompt the terminal is in raw mode, where the line editor reads Ctrl-C as a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Maximum time between two checks for Ctrl-C during a sleep.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// True if Ctrl-C was pressed. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs a handler for SIGINT, so that it does not end the process.
    pub fn catch(&self) -> Result<()> {
        signal_hook::flag::register(SIGINT, Arc::clone(&self.0)).context("can't catch Ctrl-C")?;
        Ok(())
    }

    /// Treats SIGTERM as Ctrl-C.
    pub fn catch_termination(&self) -> Result<()> {
        signal_hook::flag::register(SIGTERM, Arc::clone(&self.0)).context("can't catch SIGTERM")?;
        Ok(())
    }

    /// Returns true if Ctrl-C was pressed since the last [`Interrupt::clear`].
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps, but not after Ctrl-C. Returns false if Ctrl-C was pressed.
    pub fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(CHECK_INTERVAL));
        }
        false
    }

    /// Acts as if Ctrl-C was pressed.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
