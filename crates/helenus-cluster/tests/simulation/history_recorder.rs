//! Sees everything, and remembers what clients did and what must not have been.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helenus_cluster::Epoch;

use crate::bucket::Key;
use crate::history::Operation;

#[derive(Default)]
struct Recorded {
    operations: Vec<Operation>,
    /// The highest epoch at which anyone answered for a key.
    epochs: BTreeMap<Key, Epoch>,
    violations: Vec<String>,
}

#[derive(Clone, Default)]
pub struct Recorder {
    seen: Arc<Mutex<Recorded>>,
}

impl Recorder {
    /// A node answers a client for a key that it holds at this epoch. Nobody may do so after another has at a later one.
    pub fn answered(&self, key: Key, epoch: Epoch) {
        let mut seen = self.seen.lock().unwrap();
        let highest = seen.epochs.entry(key).or_default();
        let before = *highest;
        *highest = before.max(epoch);
        if epoch < before {
            seen.violations
                .push(format!("key {key} was served at epoch {epoch} after {before}"));
        }
    }

    /// Returns an operation begins; returns its number. Until it ends it may have taken effect.
    pub fn begins(&self, operation: Operation) -> usize {
        let operations = &mut self.seen.lock().unwrap().operations;
        operations.push(operation);
        operations.len() - 1
    }

    /// An operation was answered: a read with this value.
    pub fn ends(&self, number: usize, value: u64, end: Duration) {
        let operation = &mut self.seen.lock().unwrap().operations[number];
        operation.value = value;
        operation.end = Some(end);
    }

    pub fn operations(&self) -> Vec<Operation> {
        self.seen.lock().unwrap().operations.clone()
    }

    pub fn violations(&self) -> Vec<String> {
        self.seen.lock().unwrap().violations.clone()
    }
}
