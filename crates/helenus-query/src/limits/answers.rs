//! Memory that answers take until they are sent, limited for the whole node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use helenus_cql::error::CqlError;
use tokio::sync::Notify;

/// Memory for answers, with a limit.
#[derive(Debug)]
pub struct ResultMemory {
    bytes_max: usize,
    reserved: AtomicUsize,
    /// Wakes the requests that wait for memory.
    released: Notify,
}

impl ResultMemory {
    pub fn new(bytes_max: usize) -> ResultMemory {
        ResultMemory {
            bytes_max,
            reserved: AtomicUsize::new(0),
            released: Notify::new(),
        }
    }

    /// Reserves memory if the limit allows it. The only reservation is always allowed, whatever its size. `None` if there is not enough
    /// memory.
    pub fn try_reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let fits = |reserved: usize| {
            let after = reserved.saturating_add(bytes);
            (reserved == 0 || after <= self.bytes_max).then_some(after)
        };
        let reserved = self
            .reserved
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits);
        reserved.ok().map(|_| Reservation {
            answers: self.clone(),
            bytes,
        })
    }

    /// Reserves memory as soon as there is enough.
    ///
    /// # Errors
    /// There is not enough memory before `until`.
    pub async fn reserve(self: &Arc<Self>, bytes: usize, until: Instant) -> Result<Reservation, CqlError> {
        let reserved = async {
            loop {
                let released = self.released.notified();
                if let Some(reserved) = self.try_reserve(bytes) {
                    return reserved;
                }
                released.await;
            }
        };
        tokio::time::timeout_at(until.into(), reserved)
            .await
            .map_err(|_| self.exhausted())
    }

    /// Returns the client's error if there is no memory for its answer.
    pub fn exhausted(&self) -> CqlError {
        CqlError::Overloaded(format!(
            "Long responses that are being computed or sent take all of the {} bytes that they may take (answers_bytes_max); \
             try again later, or request smaller pages",
            self.bytes_max
        ))
    }
}

/// Reserved memory. It is released when the reservation is dropped.
#[derive(Debug)]
pub struct Reservation {
    answers: Arc<ResultMemory>,
    bytes: usize,
}

impl Reservation {
    /// Returns true if less than a quarter of the memory is left.
    pub fn is_scarce(&self) -> bool {
        let reserved = self.answers.reserved.load(Ordering::Acquire);
        reserved >= self.answers.bytes_max - self.answers.bytes_max / 4
    }

    /// Adds another reservation of the same memory to this one.
    pub fn add(&mut self, mut other: Reservation) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.answers.reserved.fetch_sub(self.bytes, Ordering::AcqRel);
            self.answers.released.notify_waiters();
        }
    }
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
