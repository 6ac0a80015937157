//! The register of clients' statements that are running, for `system_views.queries`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// Number of shards of the register. A statement locks one of them.
const SHARDS: usize = 16;

/// The text of a running statement.
#[derive(Clone, Debug)]
pub enum StatementText {
    Text(Box<str>),
    Prepared(Arc<str>),
    /// A BATCH message.
    Batch,
}

impl fmt::Display for StatementText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatementText::Text(text) => write!(f, "QUERY {text}"),
            StatementText::Prepared(text) => write!(f, "EXECUTE {text}"),
            StatementText::Batch => f.write_str("BATCH"),
        }
    }
}

/// A running statement.
#[derive(Clone, Debug)]
pub struct RunningStatement {
    pub id: u64,
    pub text: StatementText,
    pub began: Instant,
}

/// The register of running statements.
#[derive(Debug, Default)]
pub struct RunningStatements {
    next: AtomicU64,
    shards: [Mutex<Shard>; SHARDS],
}

/// Statements in slots. A statement takes a free slot, so that entering it hashes and allocates nothing.
#[derive(Debug, Default)]
struct Shard {
    slots: Vec<Option<RunningStatement>>,
    /// Indexes of the empty slots.
    free: Vec<usize>,
}

impl Shard {
    fn enter(&mut self, statement: RunningStatement) -> usize {
        let free = self.free.pop().filter(|slot| *slot < self.slots.len());
        let slot = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = Some(statement);
        }
        slot
    }

    fn leave(&mut self, slot: usize) -> Option<RunningStatement> {
        let left = self.slots.get_mut(slot)?.take();
        self.free.push(slot);
        left
    }
}

/// Place of a statement in the register. [`RunningStatements::leave`] removes the statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningPlace {
    shard: usize,
    slot: usize,
}

/// Entry of a statement in the register. Dropping it removes the statement.
pub(crate) struct Running<'r> {
    place: RunningPlace,
    running: &'r RunningStatements,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.running.leave(self.place);
    }
}

impl RunningStatements {
    /// Enters a statement that began at `began` into the register, until the returned guard is dropped.
    pub(crate) fn begin(&self, text: StatementText, began: Instant) -> Option<Running<'_>> {
        let place = self.enter(text, began)?;
        Some(Running { place, running: self })
    }

    /// Enters a statement that began at `began` into the register, until [`RunningStatements::leave`].
    pub(crate) fn enter(&self, text: StatementText, began: Instant) -> Option<RunningPlace> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let shard = id as usize % SHARDS;
        let statement = RunningStatement { id, text, began };
        let slot = self.shards.get(shard)?.lock().enter(statement);
        Some(RunningPlace { shard, slot })
    }

    /// Removes a statement. Each place is left once.
    pub(crate) fn leave(&self, place: RunningPlace) {
        if let Some(shard) = self.shards.get(place.shard) {
            // The text is dropped once the lock is released.
            let left = shard.lock().leave(place.slot);
            drop(left);
        }
    }

    /// Returns the running statements, oldest first.
    pub fn list(&self) -> Vec<RunningStatement> {
        let shards = self.shards.iter();
        let mut list: Vec<RunningStatement> = shards
            .flat_map(|shard| shard.lock().slots.iter().flatten().cloned().collect::<Vec<_>>())
            .collect();
        list.sort_by_key(|running| running.id);
        list
    }

    /// Returns the number of statements begun since the node started.
    pub fn begun(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "running_tests.rs"]
mod tests;
