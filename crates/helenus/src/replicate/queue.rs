//! The work of this process: ranges to copy and streams to follow, each at its time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use super::copy::CopyJob;
use super::follow::FollowJob;

/// Maximum time between two checks for the end of the process.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// A piece of work.
pub enum Job {
    Copy(CopyJob),
    Follow(FollowJob),
}

/// The name of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobKey {
    /// With the position of the table and the number of the range.
    Copy(usize, i32),
    /// With the position of the table and the stream.
    Follow(usize, Bytes),
}

impl Job {
    pub fn key(&self) -> JobKey {
        match self {
            Job::Copy(job) => JobKey::Copy(job.table, job.range),
            Job::Follow(job) => JobKey::Follow(job.table, job.stream.clone()),
        }
    }
}

/// The pieces of work that wait for their time.
#[derive(Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    next: u64,
    due: BTreeSet<(Instant, u64)>,
    waiting: HashMap<u64, Job>,
    /// Wanted work, waiting or in progress, with the number of its latest entry.
    wanted: HashMap<JobKey, u64>,
    finished: HashSet<JobKey>,
    failures: u64,
}

impl Queue {
    /// Replaces the wanted work. `create` returns new pieces. Returns the keys that are not wanted any more.
    pub fn want(
        &self,
        keys: &BTreeSet<JobKey>,
        mut create: impl FnMut(&JobKey) -> Option<Job>,
    ) -> Vec<JobKey> {
        let mut inner = self.inner.lock();
        let gone: Vec<JobKey> = inner
            .wanted
            .keys()
            .filter(|key| !keys.contains(*key))
            .cloned()
            .collect();
        for key in &gone {
            if let Some(number) = inner.wanted.remove(key) {
                inner.waiting.remove(&number);
                inner.due.retain(|(_, of)| *of != number);
            }
            // The work may come back to this process.
            inner.finished.remove(key);
        }
        for key in keys {
            if inner.wanted.contains_key(key) || inner.finished.contains(key) {
                continue;
            }
            if let Some(job) = create(key) {
                inner.add(job, Duration::ZERO);
            }
        }
        drop(inner);
        self.changed.notify_all();
        gone
    }

    /// Waits for work that is due. `None` after a while without any.
    pub fn take(&self, copies: bool) -> Option<(u64, Job)> {
        let mut inner = self.inner.lock();
        if let Some(taken) = inner.take_due(copies) {
            return Some(taken);
        }
        let next = inner
            .due
            .first()
            .map(|(at, _)| at.saturating_duration_since(Instant::now()));
        // Work that is due and was not taken is for other threads.
        let wait = next
            .filter(|next| !next.is_zero())
            .unwrap_or(WAIT_MAX)
            .min(WAIT_MAX);
        self.changed.wait_for(&mut inner, wait);
        inner.take_due(copies)
    }

    /// Returns true if the work is wanted or done.
    pub fn knows(&self, key: &JobKey) -> bool {
        let inner = self.inner.lock();
        inner.wanted.contains_key(key) || inner.finished.contains(key)
    }

    /// Puts work back, for another time. Work that is not wanted any more is dropped.
    pub fn put_back(&self, number: u64, job: Job, pause: Duration) {
        let mut inner = self.inner.lock();
        if inner.wanted.get(&job.key()) == Some(&number) {
            inner.add(job, pause);
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// Notes that work is done.
    pub fn finish(&self, number: u64, key: JobKey) {
        let mut inner = self.inner.lock();
        if inner.wanted.get(&key) == Some(&number) {
            inner.wanted.remove(&key);
            inner.finished.insert(key);
        }
    }

    /// Returns true if no work on a table is left.
    pub fn is_drained(&self, table: usize) -> bool {
        let inner = self.inner.lock();
        !inner.wanted.keys().any(|key| match key {
            JobKey::Copy(of, _) | JobKey::Follow(of, _) => *of == table,
        })
    }

    pub fn count_failure(&self) {
        self.inner.lock().failures += 1;
    }

    /// Returns the number of passes that failed, and were made again later.
    pub fn failures(&self) -> u64 {
        self.inner.lock().failures
    }
}

impl Inner {
    fn add(&mut self, job: Job, pause: Duration) {
        self.next += 1;
        self.wanted.insert(job.key(), self.next);
        self.due.insert((Instant::now() + pause, self.next));
        self.waiting.insert(self.next, job);
    }

    fn take_due(&mut self, copies: bool) -> Option<(u64, Job)> {
        let now = Instant::now();
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let mut fitting =
            due.filter(|(_, number)| copies || !matches!(self.waiting.get(number), Some(Job::Copy(_))));
        let first = *fitting.next()?;
        self.due.remove(&first);
        Some((first.1, self.waiting.remove(&first.1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(key: &JobKey) -> Option<Job> {
        match key {
            JobKey::Copy(table, range) => Some(Job::Copy(CopyJob::new(*table, *range, 4))),
            JobKey::Follow(table, stream) => Some(Job::Follow(FollowJob::new(*table, stream.clone(), 0))),
        }
    }

    #[test]
    fn finished_work_is_not_done_again() {
        let queue = Queue::default();
        let keys = BTreeSet::from([JobKey::Copy(0, 1)]);
        queue.want(&keys, copy);
        let (number, job) = queue.take(true).unwrap();
        assert!(queue.take(true).is_none());
        queue.finish(number, job.key());
        queue.want(&keys, copy);
        assert!(queue.is_drained(0) && queue.take(true).is_none());
    }

    #[test]
    fn unwanted_work_is_dropped() {
        let queue = Queue::default();
        let keys = BTreeSet::from([JobKey::Copy(0, 1), JobKey::Follow(0, Bytes::from_static(b"s"))]);
        queue.want(&keys, copy);
        let (number, job) = queue.take(true).unwrap();
        assert_eq!(queue.want(&BTreeSet::new(), copy).len(), 2);
        queue.put_back(number, job, Duration::ZERO);
        assert!(queue.take(true).is_none());
        // Dropped work may be wanted again.
        queue.want(&keys, copy);
        assert!(queue.take(false).is_some() && queue.take(false).is_none());
    }
}
