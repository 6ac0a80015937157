//! Detects stalls of the machine.
//!
//! A host sometimes takes the cores away from a virtual machine, all of them for tens of milliseconds. The longest pause of a server is
//! then the host's. On each core a thread with a higher priority than all others wakes up every other millisecond. If it is late, no other
//! thread ran on the core either.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use helenus_stress::raw::Stall;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Interval at which each core is checked.
const INTERVAL: Duration = Duration::from_millis(2);
/// Minimum delay that counts as a stall.
const LATE: Duration = Duration::from_millis(3);
/// Real-time priority above all threads but the kernel's own.
const PRIORITY: u8 = 50;

/// Detector that records stalls until it is dropped.
pub struct StallDetector {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stalls: Mutex<Vec<Stall>>,
    is_over: AtomicBool,
}

impl StallDetector {
    /// Starts to watch every core. `None` if the process may not use real-time priority, which needs CAP_SYS_NICE. Without that priority, a
    /// late thread could mean that the machine was only busy.
    pub fn start() -> Option<StallDetector> {
        let shared = Arc::new(Shared::default());
        let mut detector = StallDetector {
            shared: shared.clone(),
            threads: Vec::new(),
        };
        for core in core_affinity::get_core_ids()? {
            let (allowed, is_allowed) = std::sync::mpsc::channel();
            let shared = shared.clone();
            detector.threads.push(std::thread::spawn(move || {
                let is_first = core_affinity::set_for_current(core) && go_ahead();
                if allowed.send(is_first).is_ok() && is_first {
                    shared.watch();
                }
            }));
            if is_allowed.recv() != Ok(true) {
                return None;
            }
        }
        Some(detector)
    }

    /// Returns the stalls that ended after `then`.
    pub fn since(&self, then: Instant) -> Vec<Stall> {
        let stalls = self.shared.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        stalls
            .iter()
            .filter(|stall| stall.ended >= then)
            .copied()
            .collect()
    }
}

impl Drop for StallDetector {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn watch(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let asleep = Instant::now();
            std::thread::sleep(INTERVAL);
            let ended = Instant::now();
            let begun = asleep + INTERVAL;
            if ended.duration_since(begun) > LATE {
                let mut stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
                stalls.push(Stall { begun, ended });
            }
        }
    }
}

/// Gives the calling thread a higher priority than all ordinary threads. Returns false if that is not allowed.
fn go_ahead() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = PRIORITY.try_into().map(ThreadPriority::Crossplatform);
    priority
        .is_ok_and(|priority| set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok())
}

/// Returns the total time of stalls. Simultaneous stalls of several cores count once.
pub fn total(stalls: &[Stall]) -> Duration {
    let mut sorted = stalls.to_vec();
    sorted.sort_by_key(|stall| stall.begun);
    let mut total = Duration::ZERO;
    let mut counted_to: Option<Instant> = None;
    for stall in sorted {
        let begun = counted_to.map_or(stall.begun, |to| to.max(stall.begun));
        total += stall.ended.saturating_duration_since(begun);
        counted_to = Some(counted_to.map_or(stall.ended, |to| to.max(stall.ended)));
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_of_two_cores_at_once_are_one() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stall = |begun, ended| Stall {
            begun: at(begun),
            ended: at(ended),
        };
        assert_eq!(total(&[]), Duration::ZERO);
        assert_eq!(
            total(&[stall(10, 30), stall(12, 34), stall(13, 20), stall(50, 51)]),
            Duration::from_millis(25)
        );
    }
}
