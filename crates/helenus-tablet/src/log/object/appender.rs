//! Appends frames as objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use super::LogId;
use super::format::{encode, log_path};
use super::newest::NewestGroups;
use crate::clock::StoreClock;
use crate::error::{StoreError, chain};
use crate::log::ledger::{Ledger, SegmentInfo};
use crate::log::writer::{LogAppender, empty_frame};

/// Timeout of a PUT. A second is added for each MiB of the object.
const PUT_TIMEOUT: Duration = Duration::from_secs(5);
/// Limits of the pause between two tries of a PUT. The pause doubles after each failure.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Divisor of the last group's duration. The quotient is the time that a group waits for the writers just answered. Waits below the minimum
/// are skipped.
const FOLLOWER_WAIT_PART: u32 = 8;
const FOLLOWER_WAIT_MIN: Duration = Duration::from_micros(250);

/// Retries of the first object's PUT.
const BEGIN_ATTEMPTS: u32 = 5;

/// Appends groups to this process's own log.
pub(crate) struct ObjectAppender {
    pub store: Arc<dyn ObjectStore>,
    pub id: LogId,
    pub next: u64,
    pub ledger: Arc<Ledger>,
    pub clock: Arc<StoreClock>,
    /// Minimum time from one PUT to the next.
    pub interval: Duration,
    /// Receives appended groups for the history. `None` if no history is kept.
    pub newest: Option<Arc<NewestGroups>>,
    /// True if the log shall end without waiting for the bucket.
    pub is_abandoned: Arc<AtomicBool>,
}

/// Begins a log by writing its first object.
pub(crate) async fn begin(
    store: &Arc<dyn ObjectStore>,
    id: LogId,
    clock: &StoreClock,
    ledger: &Ledger,
) -> Result<(), StoreError> {
    let payload = encode(id, 1, 1, clock.commit_time(), empty_frame());
    let mut failures = 0;
    loop {
        let options = PutOptions::from(PutMode::Create);
        match store.put_opts(&log_path(id, 1), payload.clone(), options).await {
            Ok(_) => break,
            // The id is new, so an existing object must be from an earlier try.
            Err(Error::AlreadyExists { .. }) if failures > 0 => break,
            Err(error) if failures >= BEGIN_ATTEMPTS => return Err(StoreError::Unavailable(chain(&error))),
            Err(_) => {}
        }
        failures += 1;
        tokio::time::sleep(PAUSE_MIN).await;
    }
    ledger.begin_segment(SegmentInfo::new(1, payload.content_length() as u64));
    Ok(())
}

/// Outcome of one try.
enum Attempt {
    Done,
    Fenced,
    Failed(String),
}

#[async_trait]
impl LogAppender for ObjectAppender {
    async fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError> {
        let number = self.next;
        let first = self.first();
        let payload = encode(
            self.id,
            number,
            first,
            self.clock.commit_time(),
            std::mem::take(frame),
        );
        let bytes = payload.content_length() as u64;
        let began = Instant::now();
        // The payload consists of the head and the frame.
        let frame = payload.iter().nth(1).cloned();
        self.put(number, payload).await?;
        if let (Some(newest), Some(frame)) = (&self.newest, frame) {
            newest.push(number, frame);
        }
        self.next += 1;
        self.ledger.add_segment(number, bytes, began.elapsed());
        Ok(bytes)
    }

    fn follower_wait(&self, took: Duration) -> Duration {
        let wait = took / FOLLOWER_WAIT_PART;
        if wait < FOLLOWER_WAIT_MIN {
            Duration::ZERO
        } else {
            wait
        }
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

impl ObjectAppender {
    /// Returns the number of the oldest object that is still needed.
    fn first(&self) -> u64 {
        let segments = self.ledger.segments.lock();
        segments.first().map_or(self.next, |segment| segment.number)
    }

    /// Retries the PUT of an object until this object or another one exists under its name.
    async fn put(&self, number: u64, payload: PutPayload) -> Result<(), StoreError> {
        let path = log_path(self.id, number);
        let mut pause = PAUSE_MIN;
        let mut failures = 0;
        loop {
            match self.try_put(&path, &payload).await {
                Attempt::Done => break,
                Attempt::Fenced => return Err(StoreError::Fenced),
                Attempt::Failed(error) => {
                    self.ledger.counters.failures.fetch_add(1, Ordering::Relaxed);
                    if failures == 0 {
                        tracing::warn!(object = %path, %error, "the object store does not take the log; writes wait");
                    }
                    failures += 1;
                    if self.is_abandoned.load(Ordering::Acquire) {
                        return Err(StoreError::Unknown(error));
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        if failures > 0 {
            tracing::info!(object = %path, failures, "the object store takes the log again");
        }
        Ok(())
    }

    async fn try_put(&self, path: &object_store::path::Path, payload: &PutPayload) -> Attempt {
        // Large objects get more time, because the connection may be slow.
        let patience = PUT_TIMEOUT + Duration::from_secs(payload.content_length() as u64 >> 20);
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(path, payload.clone(), options);
        match tokio::time::timeout(patience, put).await {
            Ok(Ok(_)) => Attempt::Done,
            // The existing object may be this one, from an earlier try that seemed to fail.
            Ok(Err(Error::AlreadyExists { .. })) => match self.store.get(path).await {
                Ok(found) => match found.bytes().await {
                    Ok(found) if is_same(payload, &found) => Attempt::Done,
                    Ok(_) => Attempt::Fenced,
                    Err(error) => Attempt::Failed(chain(&error)),
                },
                // S3 may refuse both of two simultaneous PUTs, so the object may be missing. The PUT is retried.
                Err(error) => Attempt::Failed(chain(&error)),
            },
            Ok(Err(error)) => Attempt::Failed(chain(&error)),
            Err(_) => Attempt::Failed(format!("no answer within {} s", patience.as_secs())),
        }
    }
}

fn is_same(payload: &PutPayload, mut found: &[u8]) -> bool {
    for part in payload {
        match found.strip_prefix(part.as_ref()) {
            Some(rest) => found = rest,
            None => return false,
        }
    }
    found.is_empty()
}
