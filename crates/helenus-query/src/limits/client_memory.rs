//! The memory that clients' requests and answers take on a node, beside what runs: half-read and waiting requests, pages of rows that are
//! being made, and answers that were not taken. When it is short, pages end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers are counted from this length on, and again whenever they have grown by as much.
pub const CHARGED_STEP: usize = 64 * 1024;

/// What is held, and how much it may be.
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

    /// Returns the bytes that are held.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whoever held so many bytes holds others now.
    pub fn change(&self, before: usize, now: usize) {
        self.held.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// What may be held while a quarter is left to what runs.
    pub fn limit_of_waiting(&self) -> usize {
        self.limit - self.limit / 4
    }

    /// Returns true if pages of rows had better end.
    pub fn is_short(&self) -> bool {
        self.held() >= self.limit_of_waiting()
    }

    /// Holds so many bytes for as long as the result lives.
    pub fn charge(self: &Arc<ClientMemory>, bytes: usize) -> Charge {
        self.change(0, bytes);
        Charge {
            memory: self.clone(),
            bytes,
        }
    }
}

/// Bytes that are held.
#[derive(Debug)]
pub struct Charge {
    memory: Arc<ClientMemory>,
    bytes: usize,
}

impl Charge {
    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// So many there are now.
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
