//! Estimates of the number and size of partitions in each token range of the node (`system.size_estimates`, `system.table_estimates`;
//! Cassandra's `SizeEstimatesRecorder`). Tools split their reads according to these.
//!
//! Tokens are distributed evenly. The number of partitions is therefore extrapolated from the first partitions of a table: it grows in
//! proportion to the length of the token ranges.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{TableId, key};
use helenus_tablet::{Tablet, TokenRange};

use super::Row;
use super::row::{bigint, get_text as get, row, set, text};
use super::virtual_table::Completion;
use crate::boxed;
use crate::engine::Engine;
use crate::failure::{ExecutionError, store_error};
use crate::schema::Table;
use crate::storage::key_reads::{keys_of, scan_tablet};

/// Maximum number of partitions, and of bytes, that are read of a table.
const SAMPLE_PARTITIONS: u64 = 256;
const SAMPLE_BYTES: u64 = 4 << 20;

/// Kinds of ranges in `table_estimates`. Both have the same rows, because a partition has one owner.
const RANGE_TYPES: [&str; 2] = ["primary", "local_primary"];

/// Returns the rows of `size_estimates`, without the estimates.
pub(crate) fn size_estimates(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, &[""])
}

/// Returns the rows of `table_estimates`, without the estimates.
pub(crate) fn table_estimates(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, &RANGE_TYPES)
}

/// Returns a row for each range of each table and each kind of range, without the estimates.
fn rows(engine: &Engine, table: &Table, kinds: &[&str]) -> Vec<Row> {
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

/// Returns the token before a range, which is the range's exclusive start.
fn before(tokens: TokenRange) -> String {
    tokens.first.saturating_sub(1).to_string()
}

/// Sets the estimates in rows.
pub(crate) fn complete<'a>(engine: &'a Engine, table: &'a Table, rows: Vec<&'a mut Row>) -> Completion<'a> {
    Box::pin(set_estimates(engine, table, rows))
}

async fn set_estimates(engine: &Engine, table: &Table, rows: Vec<&mut Row>) -> Result<(), CqlError> {
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

/// Estimates of a table's partitions, from a sample.
#[derive(Clone, Debug, Default)]
pub struct PartitionEstimate {
    /// Approximate number of partitions on this node.
    pub partitions: u64,
    /// Bytes of the sampled partitions in their form in memory, ascending.
    pub sizes: Vec<u64>,
}

impl Engine {
    /// Estimates a table's partitions from the first ones, up to 256 partitions or 4 MiB.
    ///
    /// # Errors
    /// The store can't be read.
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

/// The first partitions of a table.
#[derive(Debug, Default)]
struct Sample {
    /// Number of partitions in each tablet that was read to its end.
    whole: Vec<u64>,
    partitions: u64,
    bytes: u64,
    /// Bytes of each partition that was read. The last one may have been read only in part.
    sizes: Vec<u64>,
    /// Number of tokens in the ranges that were read.
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
            // Other tasks need this thread, and there may be many tables.
            tokio::task::yield_now().await;
        }
        Ok(sample)
    }

    /// Counts a tablet's partitions. Returns the last token that was read if the sample is large enough, and `None` if the tablet was read
    /// to its end.
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

    /// Returns the number of partitions in the tablet with index `place`, counted or extrapolated.
    fn partitions_in(&self, place: usize, tokens: TokenRange) -> i64 {
        match self.whole.get(place) {
            Some(count) => *count as i64,
            None => (self.partitions as f64 / self.width * width(tokens.first, tokens.last)).round() as i64,
        }
    }
}

/// Returns the number of tokens in a range.
fn width(first: i64, last: i64) -> f64 {
    (i128::from(last) - i128::from(first) + 1) as f64
}
