//! The clock of the engine under test. Only the cases move it, so that no outcome depends on how busy the machine is.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use helenus_query::clock::{Clock, SystemClock};

/// A clock that starts at the machine's time. Each reading moves it by a microsecond.
pub struct CaseClock {
    now_us: AtomicI64,
}

impl CaseClock {
    /// Returns a clock that shows the machine's time.
    pub fn new() -> CaseClock {
        CaseClock {
            now_us: AtomicI64::new(SystemClock.now_us()),
        }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let by_us = i64::try_from(by.as_micros()).expect("a wait of a case is short");
        self.now_us.fetch_add(by_us, Ordering::Relaxed);
    }
}

impl Clock for CaseClock {
    fn now_us(&self) -> i64 {
        self.now_us.fetch_add(1, Ordering::Relaxed)
    }
}
