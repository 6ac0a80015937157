//! A timer with the kernel's precision. Tokio's own clock counts milliseconds and wakes up to one late.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One of the kernel's timers.
pub(super) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// # Errors
    /// If the process has no file descriptors left.
    #[allow(unsafe_code)]
    pub(super) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an `OwnedFd` is open, and the same, until it is dropped.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE)? };
        Ok(Timer(timer))
    }

    /// Waits until `due`. May be cancelled, and begun again with another time.
    ///
    /// # Errors
    /// The kernel's.
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
