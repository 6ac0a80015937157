//! The pace of operations.
//!
//! In a closed loop an operation is sent as soon as another one has ended. An open loop has a schedule: operation `k` is due `k / rate`
//! after the start. A separate thread gives a permit for each operation when it is due, and never holds one back. If all slots are busy,
//! permits accumulate and operations are sent late. The delay is part of their response times, and of the lag that is shown.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::load_thread::LoadThread;

/// Minimum sleep of the pacing thread. Operations that become due meanwhile are released together.
const TICK: Duration = Duration::from_micros(100);

/// Conditions that end a load.
#[derive(Debug)]
pub struct Stop {
    /// Time after which no operation begins. `None` if there is no limit.
    pub deadline: Option<Instant>,
    /// Operations per thread. In an open loop, the schedule has the total. `None` if there is no limit.
    pub iterations: Option<u64>,
    cancelled: AtomicBool,
    /// True if all operations are done.
    ended: AtomicBool,
}

impl Stop {
    pub fn new(deadline: Option<Instant>, iterations: Option<u64>) -> Self {
        Self {
            deadline,
            iterations,
            cancelled: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// Ends the load early. Requests in flight are awaited, and no more are sent.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Ends the pacing thread after the last operation.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Returns true if the load was ended early.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn is_over(&self, now: Instant) -> bool {
        self.is_cancelled()
            || self.ended.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| now >= deadline)
    }
}

/// Permission to send an operation.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Time when the operation was due. `None` in a closed loop.
    pub due: Option<Instant>,
}

/// Pace of a pool of threads.
#[derive(Debug)]
pub enum Pace {
    Closed,
    Open(Schedule),
}

impl Pace {
    /// Waits for the turn of the next operation. `None` if there are no more operations.
    pub async fn next(&self, thread: &LoadThread, stop: &Stop) -> Option<Turn> {
        match self {
            Pace::Closed => {
                let now = Instant::now();
                let more = !stop.is_over(now) && stop.iterations.is_none_or(|limit| thread.begin(limit));
                more.then_some(Turn { due: None })
            }
            Pace::Open(schedule) => schedule.next().await.map(|due| Turn { due: Some(due) }),
        }
    }
}

/// Schedule of an open loop.
#[derive(Debug)]
pub struct Schedule {
    start: Instant,
    per_s: f64,
    /// Total number of operations. `None` if there is no limit.
    total: Option<u64>,
    permits: Semaphore,
    handed_out: AtomicU64,
    taken: AtomicU64,
    lag_max_us: AtomicU64,
    /// Lag at the end of the schedule.
    lag_end: OnceLock<Duration>,
}

impl Schedule {
    /// Creates a schedule of `per_s` operations per second, which must be positive, from `start` on.
    pub fn new(start: Instant, per_s: f64, total: Option<u64>) -> Self {
        Self {
            start,
            per_s,
            total,
            permits: Semaphore::new(0),
            handed_out: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lag_max_us: AtomicU64::new(0),
            lag_end: OnceLock::new(),
        }
    }

    /// Returns the time when the operation with this number, from 0, is due.
    pub fn due(&self, number: u64) -> Instant {
        self.start + Duration::from_secs_f64(number as f64 / self.per_s)
    }

    /// Returns the number of operations that are due by `now`.
    fn due_by(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.start).as_secs_f64();
        let due = (elapsed * self.per_s) as u64 + 1;
        self.total.map_or(due, |total| due.min(total))
    }

    async fn next(&self) -> Option<Instant> {
        self.permits.acquire().await.ok()?.forget();
        let due = self.due(self.taken.fetch_add(1, Ordering::Relaxed));
        let lag = due.elapsed().as_micros() as u64;
        if lag > self.lag_max_us.load(Ordering::Relaxed) {
            self.lag_max_us.fetch_max(lag, Ordering::Relaxed);
        }
        Some(due)
    }

    /// Returns the number of operations that were due when the schedule ended, and were not sent.
    pub fn unsent(&self) -> u64 {
        self.handed_out
            .load(Ordering::Relaxed)
            .saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Returns the present lag, or that at the end of the schedule. The lag is the time since the oldest waiting operation was due.
    pub fn lag(&self) -> Duration {
        if let Some(lag) = self.lag_end.get() {
            return *lag;
        }
        let waiting = self.due(self.taken.load(Ordering::Relaxed));
        Instant::now().saturating_duration_since(waiting)
    }

    /// Returns the maximum lag so far.
    pub fn lag_max(&self) -> Duration {
        Duration::from_micros(self.lag_max_us.load(Ordering::Relaxed)).max(self.lag())
    }
}

/// Gives out the permits of all schedules when they are due, until the load ends. Blocks, so it needs a thread of its own.
pub fn hand_out(schedules: &[&Schedule], stop: &Stop) {
    loop {
        let now = Instant::now();
        let over = stop.is_over(now);
        let mut next = now + Duration::from_millis(50);
        let mut unsent = false;
        for schedule in schedules {
            let due = schedule.due_by(now);
            let before = schedule.handed_out.swap(due, Ordering::Relaxed);
            schedule.permits.add_permits((due - before) as usize);
            if schedule.total.is_none_or(|total| due < total) {
                next = next.min(schedule.due(due));
            }
            unsent |= schedule
                .total
                .is_none_or(|total| schedule.taken.load(Ordering::Relaxed) < total);
        }
        if over || !unsent {
            break;
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()).max(TICK));
    }
    for schedule in schedules {
        let _ = schedule.lag_end.set(schedule.lag());
        schedule.permits.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::keys::{KeyPicker, Picking};
    use crate::load::load_thread::Recorder;
    use crate::operation::ThreadKeys;

    fn load_thread() -> LoadThread {
        let picker = KeyPicker::new(Picking::Random, 0, 1);
        LoadThread::new(0, ThreadKeys::new(picker), Arc::new(Recorder::new(1)))
    }

    #[test]
    fn due_times_are_evenly_spaced_and_counted() {
        let start = Instant::now();
        let schedule = Schedule::new(start, 1000.0, Some(5));
        assert_eq!(schedule.due(3) - start, Duration::from_millis(3));
        assert_eq!(schedule.due_by(start), 1, "the first is due at once");
        assert_eq!(schedule.due_by(start + Duration::from_micros(3500)), 4);
        assert_eq!(
            schedule.due_by(start + Duration::from_secs(1)),
            5,
            "no more than all"
        );
    }

    #[tokio::test]
    async fn closed_loop_ends_after_iterations_or_on_stop() {
        let (thread, stop) = (load_thread(), Stop::new(None, Some(2)));
        assert!(Pace::Closed.next(&thread, &stop).await.is_some());
        assert!(Pace::Closed.next(&thread, &stop).await.is_some());
        assert!(Pace::Closed.next(&thread, &stop).await.is_none());
        let stop = Stop::new(None, None);
        assert!(Pace::Closed.next(&thread, &stop).await.is_some());
        stop.cancel();
        assert!(Pace::Closed.next(&thread, &stop).await.is_none());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_slow_taker_sees_how_late_it_is_and_loses_no_operation() {
        let stop = Arc::new(Stop::new(None, None));
        let pace = Arc::new(Pace::Open(Schedule::new(Instant::now(), 1000.0, Some(100))));
        let pacer = std::thread::spawn({
            let (pace, stop) = (pace.clone(), stop.clone());
            move || match &*pace {
                Pace::Open(schedule) => hand_out(&[schedule], &stop),
                Pace::Closed => {}
            }
        });
        let thread = load_thread();
        // All hundred operations become due before the first is taken, so the first is the latest.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let mut late = Vec::new();
        while let Some(turn) = pace.next(&thread, &stop).await {
            late.push(turn.due.unwrap().elapsed());
        }
        assert_eq!(late.len(), 100);
        assert!(late[0] >= Duration::from_millis(150), "{:?}", late[0]);
        assert!(late[99] >= Duration::from_millis(51) && late[99] < late[0]);
        let Pace::Open(schedule) = &*pace else {
            panic!("open")
        };
        assert!(schedule.lag_max() >= Duration::from_millis(149));
        pacer.join().unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_sent_after_deadline_and_rest_is_lag() {
        let start = Instant::now();
        let stop = Stop::new(Some(start + Duration::from_millis(50)), None);
        let schedule = Schedule::new(start, 1000.0, None);
        hand_out(&[&schedule], &stop);
        let pace = Pace::Open(schedule);
        assert!(pace.next(&load_thread(), &stop).await.is_none());
        let Pace::Open(schedule) = &pace else {
            panic!("open")
        };
        assert!(schedule.lag() >= Duration::from_millis(50));
    }
}
