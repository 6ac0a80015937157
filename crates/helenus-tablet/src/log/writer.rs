//! The log thread: takes the pending group, makes it durable, and applies it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::frame::FRAME_HEADER_LEN;
use super::{BetweenGroups, Entry, Log, Route};
use crate::error::StoreError;
use crate::priority::set_latency_critical;

/// Makes frames durable, one after the other. Each kind of log implements this.
pub(crate) trait LogAppender: Send + 'static {
    /// Makes a frame durable, whose header is still empty, and adds its segment to the ledger. The call may block, because the log thread
    /// has nothing else to do. Returns the bytes of the segment up to the end of the frame.
    ///
    /// # Errors
    /// The frame is not in the log and never will be. After [`StoreError::Fenced`], nothing more is appended.
    fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError>;

    /// Returns the maximum time that a group waits for the writers just answered, after a group that took `took`. Without this wait,
    /// sequential writers would split into two halves, each of which waits for the other's group.
    fn follower_wait(&self, took: Duration) -> Duration {
        let _ = took;
        Duration::ZERO
    }

    /// Returns the minimum time from the beginning of one group to that of the next.
    fn interval(&self) -> Duration {
        Duration::ZERO
    }
}

impl LogAppender for Box<dyn LogAppender> {
    fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError> {
        (**self).append(frame)
    }

    fn follower_wait(&self, took: Duration) -> Duration {
        (**self).follower_wait(took)
    }

    fn interval(&self) -> Duration {
        (**self).interval()
    }
}

/// Applies groups once they are in the log.
pub(crate) trait Dispatch<R>: Send + Sync + 'static {
    /// The entries of a group, by tablet.
    type Group;

    fn route(&self, entries: Vec<Entry<R>>) -> Self::Group;
    /// Returns the number of the last record of each tablet.
    fn last_lsns(&self, group: &Self::Group) -> Vec<(u32, u64)>;
    /// Applies the group. Returns the pause before the next group, so that background work can keep up.
    fn apply(&self, group: Self::Group) -> Duration;
    /// Notifies the tablets that another process has fenced the log.
    fn fenced(&self);
}

/// Returns a frame without records.
pub(crate) fn empty_frame() -> Vec<u8> {
    vec![0; FRAME_HEADER_LEN]
}

/// Maximum bytes of a buffer that is kept for the next group.
const KEPT_BUFFER_MAX: usize = 4 << 20;

struct Writer<R, D, A> {
    log: Arc<Log<R>>,
    dispatch: Arc<D>,
    appender: A,
}

/// Starts the log thread.
pub(crate) fn start<R: Route, D: Dispatch<R>, A: LogAppender>(
    log: Arc<Log<R>>,
    dispatch: Arc<D>,
    appender: A,
) -> std::io::Result<JoinHandle<()>> {
    let writer = Writer {
        log,
        dispatch,
        appender,
    };
    std::thread::Builder::new()
        .name("helenus-log".into())
        .spawn(move || writer.run())
}

impl<R: Route, D: Dispatch<R>, A: LogAppender> Writer<R, D, A> {
    fn run(mut self) {
        set_latency_critical();
        let mut frame = empty_frame();
        while let Some((entries, between_groups)) = self.take(&mut frame) {
            let (began, count) = (Instant::now(), entries.len());
            let result = match frame.len() > FRAME_HEADER_LEN {
                true => self.appender.append(&mut frame).map(Some),
                false => Ok(None),
            };
            match result {
                Ok(bytes) => self.hand_on(entries, bytes),
                Err(error) => self.refuse(entries, &error),
            }
            between_groups.into_iter().for_each(|work| work());
            frame.resize(FRAME_HEADER_LEN, 0);
            frame.shrink_to(KEPT_BUFFER_MAX);
            self.gather(count, began);
        }
    }

    /// Waits for writes, and takes all queued ones with the work to be done after them. `None` if the log is closed and the queue is empty.
    fn take(&self, frame: &mut Vec<u8>) -> Option<(Vec<Entry<R>>, Vec<BetweenGroups>)> {
        let mut pending = self.log.pending.lock();
        while pending.entries.is_empty() && pending.between_groups.is_empty() {
            if pending.closed.is_some() {
                return None;
            }
            pending.awaited = 1;
            self.log.ready.wait(&mut pending);
        }
        pending.awaited = 0;
        std::mem::swap(&mut pending.frame, frame);
        let capacity = pending.entries.len().next_power_of_two().min(1024);
        let entries = std::mem::replace(&mut pending.entries, Vec::with_capacity(capacity));
        Some((entries, std::mem::take(&mut pending.between_groups)))
    }

    /// Applies a group that is in the log. `bytes` is `None` if the group has left no frame.
    fn hand_on(&self, entries: Vec<Entry<R>>, bytes: Option<u64>) {
        let counters = &self.log.ledger.counters;
        counters.groups.fetch_add(1, Ordering::Relaxed);
        counters
            .records
            .fetch_add(entries.len() as u64, Ordering::Relaxed);
        let group = self.dispatch.route(entries);
        if let Some(bytes) = bytes {
            let last_lsns = self.dispatch.last_lsns(&group);
            self.log.ledger.record(last_lsns.into_iter(), bytes);
        }
        let pause = self.dispatch.apply(group);
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }

    fn refuse(&self, entries: Vec<Entry<R>>, error: &StoreError) {
        self.log.ledger.counters.failures.fetch_add(1, Ordering::Relaxed);
        match error {
            StoreError::Fenced => {
                self.log.close(StoreError::Fenced);
                self.dispatch.fenced();
                self.log.refuse_pending(error);
            }
            _ => self.log.refuse_dependent(error),
        }
        for waiter in entries.into_iter().filter_map(|entry| entry.waiter) {
            waiter.done(Err(error.clone()));
        }
    }

    /// Waits before the next group if that can make the group larger.
    fn gather(&self, answered: usize, began: Instant) {
        let took = began.elapsed();
        let interval = self.appender.interval().saturating_sub(took);
        if !interval.is_zero() {
            self.log.wait_for(usize::MAX, interval);
            return;
        }
        let wait = self.appender.follower_wait(took);
        if answered > 1 && !wait.is_zero() {
            self.log.wait_for(answered, wait);
        }
    }
}
