//! Memory of a node for clients' requests and answers that wait: half-read and queued requests, pages of rows that are being made, and
//! answers that clients have not read yet. When this memory is short, pages end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes from which on an answer is counted. A longer one is counted again each time it has grown by as much.
pub const CHARGED_STEP: usize = 64 * 1024;

/// The bytes in use, and their limit.
#[derive(Debug)]
pub struct ClientMemory {
    limit: usize,
    held: AtomicUsize,
}

impl ClientMemory {
    pub fn new(limit: usize) -> Arc<ClientMemory> {
        Arc::new(ClientMemory {
            limit,
            held: AtomicUsize::new(0),
        })
    }

    /// Returns the bytes in use.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Records that a holder of `before` bytes now holds `now` bytes.
    pub fn change(&self, before: usize, now: usize) {
        self.held.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Returns the bytes that waiting requests and answers may hold. A quarter of the limit is left for running requests.
    pub fn limit_of_waiting(&self) -> usize {
        self.limit - self.limit / 4
    }

    /// Returns true if pages of rows should end early.
    pub fn is_short(&self) -> bool {
        self.held() >= self.limit_of_waiting()
    }

    /// Counts `bytes` as used until the result is dropped.
    pub fn charge(self: &Arc<ClientMemory>, bytes: usize) -> Charge {
        self.change(0, bytes);
        Charge {
            memory: self.clone(),
            bytes,
        }
    }
}

/// Bytes that are counted as used until this is dropped.
#[derive(Debug)]
pub struct Charge {
    memory: Arc<ClientMemory>,
    bytes: usize,
}

impl Charge {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the number of bytes.
    pub fn set(&mut self, bytes: usize) {
        self.memory.change(self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.change(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let memory = ClientMemory::new(100);
        let mut charge = memory.charge(50);
        assert!(memory.held() == 50 && !memory.is_short());
        charge.set(75);
        assert!(memory.is_short());
        let other = memory.charge(10);
        charge.set(20);
        assert_eq!((memory.held(), charge.bytes()), (30, 20));
        drop((charge, other));
        assert_eq!(memory.held(), 0);
    }
}
