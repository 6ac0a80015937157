//! Scheduling priorities of threads.
//!
//! By default, Linux lets a running thread finish its time slice of some 3 ms before it runs a thread that wakes up meanwhile. The
//! exception is a thread with a shorter slice. On a few cores this determines the tail latency: the log thread waits for the slice of a
//! running thread, and so does the kernel thread that hands the log's writes to the disk. Each thread therefore requests a slice of
//! suitable length. That needs no privilege. Kernels before 6.12 have no such request and use niceness alone.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Niceness of background threads, from 0 to 19.
const BACKGROUND_NICENESS: i32 = 15;
/// Time slice of a background thread, and the time it works before it yields the core.
const BACKGROUND_SLICE: Duration = Duration::from_micros(200);
/// Rows between two readings of the clock.
const ROWS: u32 = 32;

thread_local! {
    static BACKGROUND: Cell<Option<BackgroundSlice>> = const { Cell::new(None) };
}

/// The work of a background thread since it last yielded the core.
#[derive(Clone, Copy)]
struct BackgroundSlice {
    rows: u32,
    since: Instant,
}

/// Makes the calling thread a background thread, which any other thread may interrupt.
pub(crate) fn set_background() {
    let _ = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
    set_slice(BACKGROUND_SLICE);
    BACKGROUND.set(Some(BackgroundSlice {
        rows: 0,
        since: Instant::now(),
    }));
}

/// Niceness of threads with long computations, for the benefit of threads that serve single requests.
const LONG_RUNNING_NICENESS: i32 = 10;

/// Makes the calling thread one with long computations, which threads with short work may interrupt.
pub fn set_long_running() {
    let _ = rustix::process::setpriority_process(None, LONG_RUNNING_NICENESS);
    set_slice(Duration::from_micros(500));
}

/// Counts a row of work. A background thread yields the core now and then.
///
/// Niceness is not enough: a thread that wakes up after it has used its share waits until the running thread stops. Otherwise it waits for
/// the next tick of the clock, 4 ms with many kernels. All writers wait if that thread is the kernel's, which hands the log's syncs to the
/// disk.
pub(crate) fn yield_if_due() {
    let Some(mut work) = BACKGROUND.get() else { return };
    work.rows += 1;
    if work.rows == ROWS {
        work.rows = 0;
        let now = Instant::now();
        if now.duration_since(work.since) > BACKGROUND_SLICE {
            std::thread::yield_now();
            work.since = Instant::now();
        }
    }
    BACKGROUND.set(Some(work));
}

/// Makes the calling thread latency-critical: other threads wait for it, and its work is short.
pub(crate) fn set_latency_critical() {
    set_slice(Duration::from_micros(100));
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn set_slice(slice: Duration) {
    let Ok(niceness) = rustix::process::getpriority_process(None) else {
        return;
    };
    let attr = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: niceness,
        sched_priority: 0,
        sched_runtime: slice.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of the struct, which outlives the call; thread 0 is the caller.
    unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0);
    }
}

#[cfg(not(target_os = "linux"))]
fn set_slice(_: Duration) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn since() -> Option<Instant> {
        BACKGROUND.get().map(|work| work.since)
    }

    #[test]
    fn the_background_breathes_when_it_has_worked_for_a_while() {
        yield_if_due();
        assert_eq!(since(), None, "who isn't of the background need not");
        set_background();
        let began = since();
        (0..ROWS - 1).for_each(|_| yield_if_due());
        assert_eq!(since(), began, "few rows are no work");
        std::thread::sleep(BACKGROUND_SLICE * 2);
        yield_if_due();
        assert!(since() > began);
    }
}
