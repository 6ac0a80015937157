//! Counters that are incremented: in the end, each counts every acknowledged increment, and none twice.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::Workload;
use crate::clients::{Clients, Failure};

const COUNTERS: u64 = 12;

/// The increments of one counter.
#[derive(Default)]
struct Counter {
    acknowledged: u64,
    /// Increments that may have taken effect.
    unknown: u64,
    /// The value that was read in the end.
    last: Option<u64>,
}

#[derive(Default)]
pub struct Counters(Mutex<BTreeMap<u64, Counter>>);

#[async_trait]
impl Workload for Counters {
    fn schema(&self) -> Vec<String> {
        vec!["CREATE TABLE IF NOT EXISTS ks.counters (k bigint PRIMARY KEY, n counter)".to_owned()]
    }

    async fn operate(&self, clients: &Clients) {
        let key = clients.dice.range(0..COUNTERS);
        let text = format!("UPDATE ks.counters SET n = n + 1 WHERE k = {key}");
        let result = clients.run(clients.any_node(), &text).await;
        let mut counters = self.0.lock().unwrap();
        let counter = counters.entry(key).or_default();
        match result {
            Ok(_) => counter.acknowledged += 1,
            Err(Failure::Unknown(_)) => counter.unknown += 1,
            Err(Failure::NotDone(_)) => {}
        }
    }

    async fn read_at_last(&self, clients: &Clients) {
        for key in 0..COUNTERS {
            let text = format!("SELECT n FROM ks.counters WHERE k = {key}");
            let value = clients.run_at_last(clients.any_node(), &text).await;
            let mut counters = self.0.lock().unwrap();
            counters.entry(key).or_default().last = Some(value.parse().unwrap_or(0));
        }
    }

    fn check(&self) -> Result<(), String> {
        for (key, counter) in self.0.lock().unwrap().iter() {
            let least = counter.acknowledged;
            let most = least + counter.unknown;
            if !counter.last.is_some_and(|last| (least..=most).contains(&last)) {
                let last = counter.last;
                return Err(format!(
                    "counter {key} is {last:?} after {least} to {most} increments"
                ));
            }
        }
        Ok(())
    }

    fn operation_count(&self) -> usize {
        let counters = self.0.lock().unwrap();
        counters
            .values()
            .map(|counter| counter.acknowledged + counter.unknown)
            .sum::<u64>() as usize
    }
}
