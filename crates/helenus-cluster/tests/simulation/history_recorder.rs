//! Records the operations of clients, and the violations of invariants.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helenus_cluster::Epoch;

use crate::bucket::Key;
use crate::history::Operation;

#[derive(Default)]
struct Recorded {
    operations: Vec<Operation>,
    /// The highest epoch at which a node has answered for a key.
    epochs: BTreeMap<Key, Epoch>,
    violations: Vec<String>,
}

#[derive(Clone, Default)]
pub struct Recorder {
    seen: Arc<Mutex<Recorded>>,
}

impl Recorder {
    /// Records that a node answers a client for a key whose tablet it owns at this epoch. After that, no node may answer at an earlier one.
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

    /// Records the beginning of an operation. Returns its number. From now on the operation may take effect.
    pub fn begins(&self, operation: Operation) -> usize {
        let operations = &mut self.seen.lock().unwrap().operations;
        operations.push(operation);
        operations.len() - 1
    }

    /// Records the answer to an operation. `value` is the value that a read returned.
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
