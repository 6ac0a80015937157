//! Which threads go ahead of which.
//!
//! Linux lets a running thread finish its slice, some 3 ms if nobody says otherwise, whoever wakes up meanwhile, unless that one's own
//! slice is shorter. On a few cores that is the tail of all latencies: the log's thread, and the kernel's that hands its writes to the
//! disk, wait for a slice of whoever happens to run. So the threads say how long theirs are. Asking for one needs no privilege;
//! kernels before 6.12 know none and go by niceness alone.

use std::time::Duration;

/// How nice the background is, from 0 to 19.
const BACKGROUND_NICENESS: i32 = 15;

/// Makes the calling thread one of the background, which anyone may interrupt.
pub(crate) fn give_way() {
    let _ = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
    set_slice(Duration::from_millis(100));
}

/// Makes the calling thread one that others wait for and that is soon done.
pub(crate) fn go_ahead() {
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
