//! A timer with the kernel's precision. Tokio's clock has milliseconds, and can be a millisecond late.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel (timerfd).
pub(super) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// Creates a timer.
    ///
    /// # Errors
    /// Fails if the process has no file descriptors left.
    #[allow(unsafe_code)]
    pub(super) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an `OwnedFd` is open until it is dropped, and does not change.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE)? };
        Ok(Timer(timer))
    }

    /// Waits until `due`. May be cancelled, and called again with another time.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub(super) async fn wait_until(&self, due: Instant) -> io::Result<()> {
        // A duration of zero would turn the timer off.
        let wait = due
            .saturating_duration_since(Instant::now())
            .max(Duration::from_nanos(1));
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: wait.as_secs() as i64,
                tv_nsec: i64::from(wait.subsec_nanos()),
            },
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let expired = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0; 8])?));
            if let Ok(expired) = expired {
                return expired.map(drop);
            }
        }
    }
}
