//! The requests of a connection that were not answered at once. The caller can give them up, and grant chunks to scans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The running requests of a connection, by id.
#[derive(Clone, Default)]
pub(super) struct RunningRequests(Arc<Mutex<HashMap<u32, RunningRequest>>>);

struct RunningRequest {
    /// Set to true to end the request at its next checkpoint.
    is_left: Arc<AtomicBool>,
    /// Number of chunks that a scan may send. `None` if the request is no scan.
    credit: Option<Arc<Semaphore>>,
}

impl RunningRequest {
    fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
        if let Some(credit) = &self.credit {
            credit.close();
        }
    }
}

impl RunningRequests {
    /// Adds a request until the result is dropped.
    pub fn begin(&self, id: u32, is_left: Arc<AtomicBool>, credit: Option<Arc<Semaphore>>) -> RunningGuard {
        self.0.lock().insert(id, RunningRequest { is_left, credit });
        RunningGuard {
            id,
            running: self.clone(),
        }
    }

    /// Ends a request whose caller does not wait for the answer any more.
    pub fn leave(&self, id: u32) {
        if let Some(request) = self.0.lock().get(&id) {
            request.leave();
        }
    }

    /// Ends all requests, because the connection has ended.
    pub fn leave_all(&self) {
        self.0.lock().values().for_each(RunningRequest::leave);
    }

    /// Lets a scan send one more chunk. At most `credit_max` chunks can be granted ahead.
    pub fn grant(&self, id: u32, credit_max: usize) {
        let running = self.0.lock();
        let credit = running.get(&id).and_then(|request| request.credit.as_ref());
        if let Some(credit) = credit
            && credit.available_permits() < credit_max
        {
            credit.add_permits(1);
        }
    }
}

/// A running request. Dropping this removes it.
pub(super) struct RunningGuard {
    id: u32,
    running: RunningRequests,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_left_and_scans_are_granted_chunks() {
        let running = RunningRequests::default();
        let (is_left, credit) = (Arc::<AtomicBool>::default(), Arc::new(Semaphore::new(0)));
        let guard = running.begin(7, is_left.clone(), Some(credit.clone()));
        for _ in 0..5 {
            running.grant(7, 2);
        }
        assert_eq!(credit.available_permits(), 2);
        running.grant(8, 2);
        running.leave(8);
        assert!(!is_left.load(Ordering::Relaxed));
        running.leave(7);
        assert!(is_left.load(Ordering::Relaxed) && credit.is_closed());
        drop(guard);
        assert!(running.0.lock().is_empty());
    }
}
