//! The machine's own time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use crate::environment::Clock;

/// The machine's clocks, and tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        since_boot()
    }

    fn wall_ms(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since_epoch.as_millis() as i64
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Returns the time since boot. Unlike `Instant`, this clock also runs while the machine is suspended, which a lease must not outlive.
#[cfg(target_os = "linux")]
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock since boot"
)]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        time.tv_sec.max(0) as u64,
        time.tv_nsec.clamp(0, 999_999_999) as u32,
    )
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
