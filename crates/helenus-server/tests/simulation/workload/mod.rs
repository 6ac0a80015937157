//! Workloads: the statements of clients, and the checks of their answers.

mod batches;
mod counters;
mod growth;
mod registers;
mod transfers;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::batches::Batches;
use self::counters::Counters;
use self::growth::Growth;
use self::registers::{Kind, Registers};
use self::transfers::Transfers;
use crate::clients::Clients;

/// Statements that clients run again and again, and the condition that all answers together must meet.
#[async_trait]
pub trait Workload: Send + Sync + 'static {
    /// Returns the statements that create the tables.
    fn schema(&self) -> Vec<String>;

    /// Runs one random operation through random nodes, and records its outcome.
    async fn operate(&self, clients: &Clients);

    /// Reads all that was written, when the faults have ended. Each read is repeated until it is answered.
    async fn read_at_last(&self, clients: &Clients);

    /// Checks the recorded answers.
    ///
    /// # Errors
    /// No store without faults could have given the answers. The text says which.
    fn check(&self) -> Result<(), String>;

    /// Returns the number of recorded operations.
    fn operation_count(&self) -> usize;

    /// Returns the number of clients that operate at the same time.
    fn clients(&self) -> usize {
        CLIENTS
    }
}

/// Number of clients of a workload, unless it says otherwise.
const CLIENTS: usize = 3;
/// Time between two operations of a client.
const THINK_MS: std::ops::Range<u64> = 1..160;

/// Makes a workload.
type Make = fn() -> Arc<dyn Workload>;

/// All workloads, by name.
const ALL: [(&str, Make); 8] = [
    ("plain", || Arc::new(Registers::new(Kind::Plain))),
    ("indexed", || Arc::new(Registers::new(Kind::Indexed))),
    ("searched", || Arc::new(Registers::new(Kind::StorageAttached))),
    ("viewed", || Arc::new(Registers::new(Kind::Viewed))),
    ("counters", || Arc::new(Counters::default())),
    ("batches", || Arc::new(Batches::default())),
    ("growth", || Arc::new(Growth::default())),
    ("transfers", || Arc::new(Transfers::default())),
];

/// Returns the names of all workloads.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Returns the named workloads.
pub fn named(names: &[String]) -> Vec<Arc<dyn Workload>> {
    let make = |name: &String| {
        let found = ALL.iter().find(|(known, _)| known == name);
        let (_, make) = found.unwrap_or_else(|| panic!("{name}: there is no such workload"));
        make()
    };
    names.iter().map(make).collect()
}

/// Runs operations of a workload until that time.
pub async fn run_client(workload: Arc<dyn Workload>, clients: Clients, until: Duration) {
    while crate::machine::elapsed() < until {
        tokio::time::sleep(clients.dice.millis(THINK_MS)).await;
        workload.operate(&clients).await;
    }
}
