//! A load with the driver: threads of requests, each with a fixed number in flight. They follow a pace, and each request is counted at its
//! end.
//!
//! A thread (a [`LoadThread`]) is a task that polls its slots. A slot runs one request after the other. Slots share only the counters of
//! their thread and a recorder, whose figures are swapped out every second. [`crate::raw`] is the load without the driver.

pub mod collector;
pub mod job;
pub mod load_thread;
pub mod pace;
pub mod stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::data::keys::KeyPicker;
use crate::db::Db;
use crate::operation::{OperationOutcome, ReadSummary, Slot, ThreadKeys, Workload};
use job::{Keys, Mix};
use load_thread::{LoadThread, Recorder};
use pace::{Pace, Schedule, Stop, Turn};
use stats::Stats;

/// Maximum attempts of an operation of `populate` or `verify`.
const TRIES: u32 = 8;
/// Maximum number of failed keys that are listed.
const NAMED_KEYS: usize = 20;

/// The work of the threads of a pool.
#[derive(Debug)]
pub enum Job {
    Mix(Mix),
    /// Writes each key once. `keys` gives out numbers, and `numbering` turns them into keys.
    Populate {
        keys: Arc<Keys>,
        numbering: Numbering,
    },
    Verify {
        keys: Arc<Keys>,
        numbering: Numbering,
    },
}

/// Consecutive numbers for the first few keys of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    /// Keys per thread that have numbers, from 1 to all.
    pub meant: u64,
    /// All keys per thread.
    pub all: u64,
}

impl Numbering {
    /// Returns the key with this number.
    pub fn key(self, number: u64) -> u64 {
        number / self.meant * self.all + number % self.meant
    }
}

/// Threads with the same work.
#[derive(Debug)]
pub struct Pool {
    pub threads: u32,
    pub in_flight: u32,
    pub job: Job,
    pub pace: Pace,
}

/// A load that is ready to run.
pub struct Load {
    pub db: Arc<Db>,
    pub workload: Arc<dyn Workload>,
    pub pools: Vec<Pool>,
    pub stop: Stop,
    /// Start of measuring. Operations that were due earlier are not counted.
    pub measure_from: Instant,
    /// Number of kinds of operations that are counted separately.
    pub kinds: usize,
    /// The first few keys that could not be written or verified, with the reasons.
    pub bad_keys: Mutex<Vec<(u64, String)>>,
    /// Number of keys that could not be written or read.
    pub given_up: AtomicU64,
}

impl Load {
    /// Returns the schedules of all open loops.
    pub fn schedules(&self) -> impl Iterator<Item = &Schedule> {
        self.pools.iter().filter_map(|pool| match &pool.pace {
            Pace::Open(schedule) => Some(schedule),
            Pace::Closed => None,
        })
    }
}

/// Initial values of slots: the seed of their random numbers, and the versions that they write.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    pub seed: u64,
    /// First version: microseconds since 1970, so that a later run has greater versions.
    pub version: u64,
}

/// Creates the recorders of a load. Threads share them.
pub fn recorders(load: &Load) -> Vec<Arc<Recorder>> {
    let threads: usize = load.pools.iter().map(|pool| pool.threads as usize).sum();
    let cores = std::thread::available_parallelism().map_or(4, usize::from);
    let count = threads.clamp(1, 2 * cores);
    (0..count).map(|_| Arc::new(Recorder::new(load.kinds))).collect()
}

/// Runs a load to its end. `picker` creates the key picker of a thread from its number.
pub async fn drive(
    load: Arc<Load>,
    recorders: &[Arc<Recorder>],
    seeds: Seeds,
    picker: impl Fn(u64) -> KeyPicker,
) {
    let mut threads = Vec::new();
    let mut index = 0;
    for pool in 0..load.pools.len() {
        for _ in 0..load.pools[pool].threads {
            let recorder = recorders[index as usize % recorders.len()].clone();
            let thread = LoadThread::new(index, ThreadKeys::new(picker(index)), recorder);
            threads.push(tokio::spawn(run_thread(load.clone(), pool, thread, seeds)));
            index += 1;
        }
    }
    for thread in threads {
        if let Err(panic) = thread.await {
            std::panic::resume_unwind(panic.into_panic());
        }
    }
}

async fn run_thread(load: Arc<Load>, pool: usize, thread: LoadThread, seeds: Seeds) {
    let in_flight = u64::from(load.pools[pool].in_flight);
    let mut slots: FuturesUnordered<_> = (0..in_flight)
        .map(|number| {
            let number = thread.index * in_flight + number;
            let rng = SmallRng::seed_from_u64(seeds.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number);
            run_slot(
                &load,
                &load.pools[pool],
                &thread,
                Slot::new(thread.keys.clone(), number, rng, seeds.version),
            )
        })
        .collect();
    while slots.next().await.is_some() {}
}

async fn run_slot(load: &Load, pool: &Pool, thread: &LoadThread, mut slot: Slot) {
    match &pool.job {
        Job::Mix(mix) => {
            while let Some(Turn { due }) = pool.pace.next(thread, &load.stop).await {
                let operation = load.workload.choose(mix.pick(&mut slot.rng), &mut slot);
                slot.mark_sent();
                let outcome = load.workload.perform(&load.db, operation, &mut slot).await;
                record(load, thread, slot.sent(), operation, due, outcome);
            }
        }
        Job::Populate { keys, numbering } | Job::Verify { keys, numbering } => {
            while let Some(piece) = keys.take() {
                for number in piece.clone() {
                    let Some(Turn { due }) = pool.pace.next(thread, &load.stop).await else {
                        return;
                    };
                    until_done(load, &pool.job, numbering.key(number), due, thread, &mut slot).await;
                }
                keys.finish(piece.start);
            }
        }
    }
}

/// Writes or verifies a key. Repeats it if it fails.
async fn until_done(
    load: &Load,
    job: &Job,
    key: u64,
    due: Option<Instant>,
    thread: &LoadThread,
    slot: &mut Slot,
) {
    for attempt in 1..=TRIES {
        slot.mark_sent();
        let outcome = match job {
            Job::Verify { .. } => load.workload.verify(&load.db, key, slot).await,
            _ => load.workload.populate(&load.db, key, slot).await,
        };
        let failed = outcome.as_ref().err().map(ToString::to_string);
        if let Some(why) = failed.clone().or_else(|| fault(&outcome)) {
            let last = failed.is_none() || attempt == TRIES || load.stop.is_cancelled();
            if last {
                load.given_up
                    .fetch_add(u64::from(failed.is_some()), Ordering::Relaxed);
                remember(load, key, why);
            }
        }
        record(load, thread, slot.sent(), 0, due, outcome);
        if failed.is_none() || load.stop.is_cancelled() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50) * 2_u32.pow(attempt)).await;
    }
}

/// Returns the fault in the values that were read. `None` if there is none.
fn fault(outcome: &OperationOutcome) -> Option<String> {
    match outcome {
        Ok(ReadSummary { corrupt, .. }) if *corrupt > 0 => Some("corrupt".into()),
        Ok(ReadSummary { missing, .. }) if *missing > 0 => Some("missing".into()),
        _ => None,
    }
}

fn remember(load: &Load, key: u64, why: String) {
    let mut bad_keys = load.bad_keys.lock();
    if bad_keys.len() < NAMED_KEYS {
        bad_keys.push((key, why));
    }
}

/// Records an operation. Its response time counts from when it was due, or from when it was sent in a closed loop.
fn record(
    load: &Load,
    thread: &LoadThread,
    sent: Instant,
    kind: usize,
    due: Option<Instant>,
    outcome: OperationOutcome,
) {
    let done = Instant::now();
    let due = due.unwrap_or(sent);
    if due >= load.measure_from {
        thread
            .recorder
            .record(|stats: &mut Stats| stats.record(kind, done - due, done - sent, outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keys_of_each_thread_are_numbered_through() {
        let numbering = Numbering { meant: 2, all: 100 };
        let keys: Vec<u64> = (0..6).map(|number| numbering.key(number)).collect();
        assert_eq!(keys, [0, 1, 100, 101, 200, 201]);
    }
}
