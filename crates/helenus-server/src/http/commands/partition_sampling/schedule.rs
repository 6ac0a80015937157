//! Samplings that are repeated and logged (Cassandra's `SamplingManager`).

use std::sync::Arc;
use std::time::Instant;

use helenus_query::engine::Engine;
use helenus_query::engine::sampling::NamedSample;
use helenus_query::metrics::sampling::{JOBS_MAX, SamplerKind};
use parking_lot::Mutex;

use super::Order;

/// The keyspace and the table that are sampled. `None` stands for all.
type JobId = (Option<String>, Option<String>);

/// The scheduled samplings of a node. Each has a flag that ends it after the running sampling.
#[derive(Debug, Default)]
pub(super) struct Schedule(Mutex<Vec<Job>>);

#[derive(Debug)]
struct Job {
    id: JobId,
    is_stopping: bool,
}

impl Schedule {
    /// Schedules a sampling. Returns false if one of its tables has a scheduled sampling already, or too many are scheduled.
    ///
    /// # Errors
    /// There is no such keyspace or table, or too many samplings run already.
    pub fn begin(self: &Arc<Self>, engine: Arc<Engine>, order: Order) -> Result<bool, String> {
        // Checks the request now. Otherwise its error would only be in the log.
        drop(engine.begin_sampling(&order.request)?);
        let id = (order.request.keyspace.clone(), order.request.table.clone());
        let mut jobs = self.0.lock();
        if jobs.len() >= JOBS_MAX || jobs.iter().any(|job| overlap(&job.id, &id)) {
            return Ok(false);
        }
        jobs.push(Job {
            id: id.clone(),
            is_stopping: false,
        });
        drop(jobs);
        tokio::spawn(run(self.clone(), engine, order, id));
        Ok(true)
    }

    /// Ends a scheduled sampling once its running sampling has been logged. Ends all of them if neither a keyspace nor a table is given.
    /// Returns false if there is no such sampling.
    pub fn stop(&self, keyspace: Option<String>, table: Option<String>) -> bool {
        let stops_all = keyspace.is_none() && table.is_none();
        let id = (keyspace, table);
        let mut jobs = self.0.lock();
        let running = jobs.iter_mut().filter(|job| !job.is_stopping);
        let stopped = running.filter(|job| stops_all || job.id == id);
        let count = stopped.map(|job| job.is_stopping = true).count();
        count > 0 || stops_all
    }

    /// Returns the tables of scheduled samplings, as `KEYSPACE.TABLE` with `*` for all.
    pub fn list(&self) -> Vec<String> {
        self.0.lock().iter().map(|job| shown(&job.id)).collect()
    }

    fn is_stopping(&self, id: &JobId) -> bool {
        let jobs = self.0.lock();
        jobs.iter().any(|job| job.id == *id && job.is_stopping)
    }
}

fn shown((keyspace, table): &JobId) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "*".to_owned());
    format!("{}.{}", name(keyspace), name(table))
}

/// Returns true if the two samplings have a table in common.
fn overlap(one: &JobId, other: &JobId) -> bool {
    let meet =
        |one: &Option<String>, other: &Option<String>| one.is_none() || other.is_none() || one == other;
    meet(&one.0, &other.0) && meet(&one.1, &other.1)
}

async fn run(schedule: Arc<Schedule>, engine: Arc<Engine>, order: Order, id: JobId) {
    let tables = shown(&id);
    while !schedule.is_stopping(&id) {
        let began = Instant::now();
        match order.run(&engine).await {
            Ok(found) => found
                .iter()
                .for_each(|(kind, samples)| log(&tables, *kind, samples)),
            Err(why) => {
                tracing::warn!(tables, why, "a scheduled sampling has ended");
                break;
            }
        }
        if !schedule.is_stopping(&id) {
            tokio::time::sleep(order.interval.saturating_sub(began.elapsed())).await;
        }
    }
    schedule.0.lock().retain(|job| job.id != id);
}

/// Logs the results of a sampler in one line, such as `shop.carts 17 (4012), shop.carts 3 (88)`.
fn log(tables: &str, kind: SamplerKind, samples: &[NamedSample]) {
    let sample = |one: &NamedSample| format!("{}.{} {} ({})", one.keyspace, one.table, one.value, one.count);
    let top: Vec<String> = samples.iter().map(sample).collect();
    tracing::info!(
        tables,
        sampler = kind.name(),
        top = top.join(", "),
        "sampled partitions"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samplings_that_share_a_table_overlap() {
        let id = |keyspace: &str, table: &str| {
            let name = |name: &str| (name != "*").then(|| name.to_owned());
            (name(keyspace), name(table))
        };
        assert!(overlap(&id("*", "*"), &id("a", "t")));
        assert!(overlap(&id("a", "t"), &id("a", "*")));
        assert!(overlap(&id("a", "t"), &id("a", "t")));
        assert!(!overlap(&id("a", "t"), &id("a", "u")));
        assert!(!overlap(&id("a", "*"), &id("b", "*")));
    }
}
