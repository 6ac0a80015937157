//! Logged batches over several partitions: in the end, each is complete or absent, and complete if it was acknowledged.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;

use super::Workload;
use crate::clients::{Clients, Failure};

const PARTITIONS: u64 = 5;
/// Maximum number of reads of a batch that is there in part, one each second.
const READS: usize = 20;

/// Outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Acknowledged,
    NotDone,
    Unknown,
}

#[derive(Default)]
struct State {
    last: u64,
    outcomes: BTreeMap<u64, Outcome>,
    /// Number of each batch's rows that are there in the end.
    rows: BTreeMap<u64, u64>,
}

#[derive(Default)]
pub struct Batches(Mutex<State>);

impl Batches {
    fn key(batch: u64, at: u64) -> u64 {
        batch * PARTITIONS + at
    }
}

#[async_trait]
impl Workload for Batches {
    fn schema(&self) -> Vec<String> {
        vec!["CREATE TABLE IF NOT EXISTS ks.batches (k bigint PRIMARY KEY, b bigint)".to_owned()]
    }

    async fn operate(&self, clients: &Clients) {
        let batch = {
            let mut state = self.0.lock().unwrap();
            state.last += 1;
            state.last
        };
        let insert = |at| {
            let key = Batches::key(batch, at);
            format!("INSERT INTO ks.batches (k, b) VALUES ({key}, {batch});")
        };
        let inserts: String = (0..PARTITIONS).map(insert).collect();
        let text = format!("BEGIN BATCH {inserts} APPLY BATCH");
        let outcome = match clients.run(clients.any_node(), &text).await {
            Ok(_) => Outcome::Acknowledged,
            Err(Failure::NotDone(_)) => Outcome::NotDone,
            Err(Failure::Unknown(_)) => Outcome::Unknown,
        };
        self.0.lock().unwrap().outcomes.insert(batch, outcome);
    }

    async fn read_at_last(&self, clients: &Clients) {
        let batches: Vec<u64> = self.0.lock().unwrap().outcomes.keys().copied().collect();
        for batch in batches {
            let keys: Vec<String> = (0..PARTITIONS)
                .map(|at| Batches::key(batch, at).to_string())
                .collect();
            let text = format!("SELECT count(*) FROM ks.batches WHERE k IN ({})", keys.join(", "));
            // A batch of unknown outcome may just be taking effect.
            for _ in 0..READS {
                let rows = clients.run_at_last(clients.any_node(), &text).await;
                let rows = rows.parse().unwrap();
                self.0.lock().unwrap().rows.insert(batch, rows);
                if rows == 0 || rows == PARTITIONS {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let state = self.0.lock().unwrap();
        for (batch, outcome) in &state.outcomes {
            let rows = state.rows.get(batch).copied().unwrap_or(0);
            let is_possible = match outcome {
                Outcome::Acknowledged => rows == PARTITIONS,
                Outcome::NotDone => rows == 0,
                Outcome::Unknown => rows == 0 || rows == PARTITIONS,
            };
            if !is_possible {
                return Err(format!(
                    "{rows} of {PARTITIONS} rows of batch {batch} are there: {outcome:?}"
                ));
            }
        }
        Ok(())
    }

    fn operation_count(&self) -> usize {
        self.0.lock().unwrap().outcomes.len()
    }
}
