//! How many partitions of what size lie in each of the node's ranges of tokens (`system.size_estimates`, `system.table_estimates`;
//! Cassandra's `SizeEstimatesRecorder`). Tools part by it what they read.
//!
//! Tokens are spread evenly, so the first partitions of a table tell how many there are: as many more as the node's ranges are longer
//! than the stretch on which those lie.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{TableId, key};
use helenus_tablet::{Tablet, TokenRange};

use super::Row;
use super::row::{bigint, get_text as get, row, set, text};
use crate::boxed;
use crate::engine::Engine;
use crate::failure::{ExecutionError, store_error};
use crate::schema::Table;
use crate::storage::reads::{keys_of, scan_tablet};

/// What is read of a table at most.
const SAMPLE_PARTITIONS: u64 = 256;
const SAMPLE_BYTES: u64 = 4 << 20;

/// The kinds of ranges in `table_estimates`. A partition has one owner, so they are the same.
const RANGE_TYPES: [&str; 2] = ["primary", "local_primary"];

pub(crate) fn is_mine(table: &Table) -> bool {
    table.keyspace == "system" && matches!(table.name.as_str(), "size_estimates" | "table_estimates")
}

/// Returns a row for each range of each table, still without the estimates.
pub(crate) fn rows(engine: &Engine, table: &Table) -> Vec<Row> {
    let kinds: &[&str] = match table.name.as_str() {
        "table_estimates" => &RANGE_TYPES,
        _ => &[""],
    };
    let mut rows = Vec::new();
    for of in engine.schema().stored_tables() {
        for tablet in engine.context.store.tablets().iter() {
            let tokens = tablet.token_range();
            let keys = [
                ("keyspace_name", text(&of.keyspace)),
                ("table_name", text(&of.name)),
                ("range_start", text(before(tokens))),
                ("range_end", text(tokens.last.to_string())),
            ];
            rows.extend(kinds.iter().map(|kind| {
                let mut row = row(table, keys.clone());
                set(&mut row, table, "range_type", text(kind));
                row
            }));
        }
    }
    rows
}

/// Returns the token before a range, by which the range is told.
fn before(tokens: TokenRange) -> String {
    tokens.first.saturating_sub(1).to_string()
}

/// Puts the estimates into rows.
pub(crate) async fn complete<'r>(
    engine: &Engine,
    table: &Table,
    rows: impl Iterator<Item = &'r mut Row>,
) -> Result<(), CqlError> {
    let schema = engine.schema();
    let tablets = engine.context.store.tablets();
    let mut samples: HashMap<TableId, Sample> = HashMap::new();
    for row in rows {
        let name = (get(row, table, "keyspace_name"), get(row, table, "table_name"));
        let Some(of) = schema.table(name.0, name.1) else {
            continue;
        };
        let sample = match samples.entry(of.number) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Sample::take(of, &tablets).await?),
        };
        let start = get(row, table, "range_start");
        let ranges = tablets.iter().map(|tablet| tablet.token_range());
        let Some((place, tokens)) = ranges.enumerate().find(|(_, tokens)| before(*tokens) == start) else {
            continue;
        };
        let partitions = sample.partitions_in(place, tokens);
        set(row, table, "partitions_count", bigint(partitions));
        set(row, table, "mean_partition_size", bigint(sample.mean_bytes()));
    }
    Ok(())
}

/// What a sample tells of a table's partitions.
#[derive(Clone, Debug, Default)]
pub struct PartitionEstimate {
    /// How many there are on this node, about.
    pub partitions: u64,
    /// The bytes of those that were read, in memory's form, ascending.
    pub sizes: Vec<u64>,
}

impl Engine {
    /// Reads the first partitions of a table, up to 256 of them or 4 MiB.
    ///
    /// # Errors
    /// When the store can't be read.
    #[boxed]
    pub async fn estimate_partitions(&self, table: &Table) -> Result<PartitionEstimate, CqlError> {
        let tablets = self.context.store.tablets();
        let sample = Sample::take(table, &tablets).await?;
        let counts = tablets
            .iter()
            .enumerate()
            .map(|(place, tablet)| sample.partitions_in(place, tablet.token_range()));
        let partitions = counts.map(|count| u64::try_from(count).unwrap_or(0)).sum();
        let mut sizes = sample.sizes;
        sizes.sort_unstable();
        Ok(PartitionEstimate { partitions, sizes })
    }
}

/// What was read of a table.
#[derive(Debug, Default)]
struct Sample {
    /// Of tablets that were read to their end: how many partitions each holds.
    whole: Vec<u64>,
    partitions: u64,
    bytes: u64,
    /// The bytes of each partition that was read, the last perhaps in part.
    sizes: Vec<u64>,
    /// How many tokens lie on the stretch that was read.
    width: f64,
}

impl Sample {
    async fn take(table: &Table, tablets: &[Arc<Tablet>]) -> Result<Sample, CqlError> {
        let mut sample = Sample::default();
        for tablet in tablets {
            let tokens = tablet.token_range();
            let before = sample.partitions;
            let end = sample.read(table, tablet, tokens).await?;
            sample.width += width(tokens.first, end.unwrap_or(tokens.last));
            if end.is_some() {
                break;
            }
            sample.whole.push(sample.partitions - before);
            // Others wait for this thread, and there may be many tables.
            tokio::task::yield_now().await;
        }
        Ok(sample)
    }

    /// Counts a tablet's partitions. The last token that was read, if that was enough.
    async fn read(
        &mut self,
        table: &Table,
        tablet: &Tablet,
        tokens: TokenRange,
    ) -> Result<Option<i64>, CqlError> {
        let range = keys_of(table.number, tokens);
        let scan = scan_tablet(tablet, range, false).await;
        let mut scan = scan.map_err(ExecutionError::into_client_error)?;
        let mut current: Option<Bytes> = None;
        let mut last = tokens.first;
        while let Some((key, packed)) = scan.next().await.map_err(store_error)? {
            let prefix = key.slice(..key::partition_prefix_len(&key).unwrap_or(key.len()));
            let is_enough = self.bytes >= SAMPLE_BYTES;
            if current.as_ref() != Some(&prefix) {
                if is_enough || self.partitions >= SAMPLE_PARTITIONS {
                    return Ok(Some(last));
                }
                self.partitions += 1;
                self.sizes.push(0);
                last = key::token_of(&key).unwrap_or(last);
                current = Some(prefix);
            } else if is_enough {
                return Ok(Some(last));
            }
            let bytes = (key.len() + packed.len()) as u64;
            self.bytes += bytes;
            if let Some(size) = self.sizes.last_mut() {
                *size += bytes;
            }
        }
        Ok(None)
    }

    fn mean_bytes(&self) -> i64 {
        (self.bytes / self.partitions.max(1)) as i64
    }

    /// How many partitions the tablet at that place holds.
    fn partitions_in(&self, place: usize, tokens: TokenRange) -> i64 {
        match self.whole.get(place) {
            Some(count) => *count as i64,
            None => (self.partitions as f64 / self.width * width(tokens.first, tokens.last)).round() as i64,
        }
    }
}

/// How many tokens there are from one to another.
fn width(first: i64, last: i64) -> f64 {
    (i128::from(last) - i128::from(first) + 1) as f64
}
