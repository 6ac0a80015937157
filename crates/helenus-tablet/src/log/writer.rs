//! The log thread: takes the pending group, makes it durable, and applies it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::frame::FRAME_HEADER_LEN;
use super::{Entry, Log, Route};
use crate::error::StoreError;
use crate::threads::{self, NodeThread};

/// Makes frames durable, one after the other. Each kind of log implements this.
#[async_trait]
pub(crate) trait LogAppender: Send + 'static {
    /// Makes a frame durable, whose header is still empty, and adds its segment to the ledger. The call may block, because the log thread
    /// has nothing else to do. Returns the bytes of the segment up to the end of the frame.
    ///
    /// # Errors
    /// The frame is not in the log and never will be. After [`StoreError::Fenced`], nothing more is appended.
    async fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError>;

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

#[async_trait]
impl LogAppender for Box<dyn LogAppender> {
    async fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError> {
        (**self).append(frame).await
    }

    fn follower_wait(&self, took: Duration) -> Duration {
        (**self).follower_wait(took)
    }

    fn interval(&self) -> Duration {
        (**self).interval()
    }
}

/// Applies groups once they are in the log.
#[async_trait]
pub(crate) trait Dispatch<R>: Send + Sync + 'static {
    /// The entries of a group, by tablet.
    type Group: Send;

    fn route(&self, entries: Vec<Entry<R>>) -> Self::Group;
    /// Returns the number of the last record of each tablet.
    fn last_lsns(&self, group: &Self::Group) -> Vec<(u32, u64)>;
    /// Applies the group. Returns the pause before the next group, so that background work can keep up.
    async fn apply(&self, group: Self::Group) -> Duration;
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

/// Starts the log thread. Its requests to a bucket or to brokers belong to the current runtime.
pub(crate) fn start<R: Route, D: Dispatch<R>, A: LogAppender>(
    log: Arc<Log<R>>,
    dispatch: Arc<D>,
    appender: A,
) -> std::io::Result<NodeThread> {
    let writer = Writer {
        log,
        dispatch,
        appender,
    };
    threads::spawn_critical("helenus-log", writer.run())
}

impl<R: Route, D: Dispatch<R>, A: LogAppender> Writer<R, D, A> {
    async fn run(mut self) {
        let mut frame = empty_frame();
        while let Some((entries, between_groups)) = self.log.take(&mut frame).await {
            let (began, count) = (Instant::now(), entries.len());
            let result = match frame.len() > FRAME_HEADER_LEN {
                true => self.appender.append(&mut frame).await.map(Some),
                false => Ok(None),
            };
            match result {
                Ok(bytes) => hand_on(&self.log, &*self.dispatch, entries, bytes).await,
                Err(error) => self.refuse(entries, &error),
            }
            for work in between_groups {
                work.await;
            }
            frame.resize(FRAME_HEADER_LEN, 0);
            frame.shrink_to(KEPT_BUFFER_MAX);
            self.gather(count, began).await;
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
    async fn gather(&mut self, answered: usize, began: Instant) {
        let took = began.elapsed();
        let interval = self.appender.interval().saturating_sub(took);
        if !interval.is_zero() {
            self.log.wait_for(usize::MAX, interval).await;
            return;
        }
        let wait = self.appender.follower_wait(took);
        if answered > 1 && !wait.is_zero() {
            self.log.wait_for(answered, wait).await;
        }
    }
}

/// Applies a group that is in the log. `bytes` is `None` if the group has left no frame.
async fn hand_on<R: Route, D: Dispatch<R>>(
    log: &Log<R>,
    dispatch: &D,
    entries: Vec<Entry<R>>,
    bytes: Option<u64>,
) {
    let counters = &log.ledger.counters;
    counters.groups.fetch_add(1, Ordering::Relaxed);
    counters
        .records
        .fetch_add(entries.len() as u64, Ordering::Relaxed);
    let group = dispatch.route(entries);
    if let Some(bytes) = bytes {
        let last_lsns = dispatch.last_lsns(&group);
        log.ledger.record(last_lsns.into_iter(), bytes);
    }
    let pause = dispatch.apply(group).await;
    if !pause.is_zero() {
        threads::pause(pause).await;
    }
}
