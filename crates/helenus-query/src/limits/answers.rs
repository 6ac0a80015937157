//! The memory that answers take until they are sent: so much on the whole node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use helenus_cql::error::CqlError;
use tokio::sync::Notify;

/// Memory for answers.
#[derive(Debug)]
pub struct ResultMemory {
    bytes_max: usize,
    reserved: AtomicUsize,
    /// Wakes those who wait for room.
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

    /// Reserves memory, if there is room. One that is alone has room, whatever its size.
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

    /// Reserves memory as soon as there is room.
    ///
    /// # Errors
    /// If there is none until then.
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

    /// What a client is told for whose answer there is no memory.
    pub fn exhausted(&self) -> CqlError {
        CqlError::Overloaded(format!(
            "The answers that are being made and sent take all of the {} bytes that they may take (answers_bytes_max); \
             ask again later, or for smaller pages",
            self.bytes_max
        ))
    }
}

/// Memory that is reserved, until it is dropped.
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

    /// Takes over what another has reserved of the same memory.
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
