//! The threads that do the work.

use std::time::{Duration, Instant};

use super::queue::{Job, Queue};
use super::worker::{Next, Worker};

/// Time before work is tried again after a failure, and the time between two messages about failures.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
const MESSAGE_INTERVAL: Duration = Duration::from_secs(10);

/// Works until the process ends. `copies` is false for a thread that only follows.
pub fn run(mut worker: Worker<'_>, queue: &Queue, copies: bool) {
    let mut reported_at: Option<Instant> = None;
    while !worker.shared.interrupt.is_set() {
        let Some((number, mut job)) = queue.take(copies) else {
            continue;
        };
        let ran = match &mut job {
            Job::Copy(job) => job.run(&mut worker),
            Job::Follow(job) => job.run(&mut worker),
        };
        match ran {
            Ok(Next::After(pause)) => queue.put_back(number, job, pause),
            Ok(Next::Done) => {
                if let Job::Follow(job) = &job {
                    worker.shared.forget(job.table, &job.stream);
                }
                queue.finish(number, job.key());
            }
            Err(error) => {
                if !worker.shared.interrupt.is_set() {
                    queue.count_failure();
                    if reported_at.is_none_or(|at| at.elapsed() >= MESSAGE_INTERVAL) {
                        eprintln!("{error:#}; trying again");
                        reported_at = Some(Instant::now());
                    }
                }
                queue.put_back(number, job, PAUSE_AFTER_FAILURE);
            }
        }
    }
}
