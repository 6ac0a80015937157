//! A token bucket. Pure, with times as arguments.

use std::time::Duration;

/// A token bucket of bytes or rows, which holds one second's.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    units_per_s: f64,
    level: f64,
    filled_at: Duration,
}

impl TokenBucket {
    pub fn new(units_per_s: f64) -> TokenBucket {
        TokenBucket {
            units_per_s,
            level: 0.0,
            filled_at: Duration::ZERO,
        }
    }

    /// Takes units, and returns the time to wait before they are used.
    pub fn take(&mut self, units: usize, now: Duration) -> Duration {
        let passed_s = now.saturating_sub(self.filled_at).as_secs_f64();
        self.filled_at = now;
        self.level = (self.level + passed_s * self.units_per_s).min(self.units_per_s) - units as f64;
        Duration::from_secs_f64((-self.level / self.units_per_s).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn bucket_spreads_bytes_over_time() {
        let mut bucket = TokenBucket::new(1000.0);
        assert_eq!(bucket.take(500, Duration::ZERO), 500 * MS);
        assert_eq!(bucket.take(500, Duration::ZERO), 1000 * MS);
        // After a pause, at most the bytes of one second may go at once.
        assert_eq!(bucket.take(1000, Duration::from_secs(60)), Duration::ZERO);
        assert_eq!(bucket.take(250, Duration::from_secs(60)), 250 * MS);
    }
}
