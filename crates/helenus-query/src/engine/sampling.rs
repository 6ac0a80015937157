//! Samples of the reads and writes of partitions, with names of tables and keys as text. They are for `nodetool toppartitions` and
//! `profileload`, and for the console.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value::text::{get_string, hex};
use helenus_row::key::{decode_partition_prefix, split_partition_key};
use uuid::Uuid;

use super::Engine;
use crate::boxed;
use crate::metrics::sampling::recent::{RecentActivity, RecentReport};
use crate::metrics::sampling::{RunningSampling, Sample, SampledTables, SamplerKind, Samples, SamplingPlan};
use crate::schema::{Table, TableKind};

/// Number of the largest partitions of all tables among which those of users' tables are looked for.
const LARGEST_LOOKED_AT: usize = 1024;

/// Request for a sampling job. Without a keyspace all tables are sampled, and without a table all tables of the keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingRequest {
    pub keyspace: Option<String>,
    pub table: Option<String>,
    /// Maximum number of keys that each sampler counts at a time.
    pub capacity: usize,
    pub kinds: Vec<SamplerKind>,
}

/// One of the greatest values, in readable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSample {
    pub keyspace: String,
    pub table: String,
    /// The key of a partition, or the text of a statement.
    pub value: String,
    pub count: u64,
    /// Maximum error: the true count may be lower by this much.
    pub error: u64,
}

/// The most active partitions, and the number of requests for all partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedActivity {
    pub top: Vec<NamedSample>,
    pub total: u64,
}

/// The most active partitions of the last minutes.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentlyActive {
    /// Sampling interval: one request in so many was counted. 0 if the list is off.
    pub interval: u32,
    /// Time that the numbers cover, in seconds.
    pub span_s: f64,
    pub reads: NamedActivity,
    pub writes: NamedActivity,
}

impl Engine {
    /// Begins to sample the reads and writes that this node does itself. The returned guard ends the sampling.
    ///
    /// # Errors
    /// A message: there is no such keyspace or table, or the maximum number of sampling jobs is running.
    pub fn begin_sampling(&self, request: &SamplingRequest) -> Result<RunningSampling, String> {
        self.metrics().sampling.begin(SamplingPlan {
            tables: self.sampled_tables(request)?,
            capacity: request.capacity,
            kinds: request.kinds.clone(),
        })
    }

    fn sampled_tables(&self, request: &SamplingRequest) -> Result<SampledTables, String> {
        let Some(keyspace) = &request.keyspace else {
            return Ok(SampledTables::All);
        };
        let schema = self.schema();
        if schema.keyspace(keyspace).is_none() {
            return Err(format!("Unknown keyspace '{keyspace}'"));
        }
        let Some(name) = &request.table else {
            let tables = schema.stored_tables().filter(|table| table.keyspace == *keyspace);
            let ids: HashSet<Uuid> = tables.map(|table| table.id).collect();
            return Ok(SampledTables::These(ids));
        };
        let table = schema.table(keyspace, name);
        let table = table.ok_or_else(|| format!("Unknown table '{name}' in keyspace '{keyspace}'"))?;
        Ok(SampledTables::These(HashSet::from([table.id])))
    }

    /// Returns samples with the names of their tables. Samples of dropped tables and of the hidden tables of indexes are left out.
    pub fn named_samples(&self, kind: SamplerKind, samples: Samples) -> Vec<NamedSample> {
        let show = match kind {
            SamplerKind::LocalReadTime => |_: &Table, text: &[u8]| String::from_utf8_lossy(text).into_owned(),
            _ => key_text,
        };
        self.name_each(samples, show)
    }

    fn name_each(&self, samples: Samples, show: fn(&Table, &[u8]) -> String) -> Vec<NamedSample> {
        if samples.is_empty() {
            return Vec::new();
        }
        let schema = self.schema();
        let tables = schema
            .stored_tables()
            .filter(|table| table.kind != TableKind::Index);
        let tables: HashMap<Uuid, &Arc<Table>> = tables.map(|table| (table.id, table)).collect();
        let named = |sample: Sample| {
            let table = tables.get(&sample.table)?;
            Some(NamedSample {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                value: show(table, &sample.item),
                count: sample.count,
                error: sample.error,
            })
        };
        samples.into_iter().filter_map(named).collect()
    }

    /// Returns the most active partitions of the last minutes, at most `most` each for reads and writes.
    pub fn recently_active(&self, most: usize) -> RecentlyActive {
        let RecentReport {
            interval,
            span,
            reads,
            writes,
        } = self.metrics().sampling.recent.report(most);
        let named = |activity: RecentActivity| NamedActivity {
            top: self.name_each(activity.top, key_text),
            total: activity.total,
        };
        RecentlyActive {
            interval,
            span_s: span.as_secs_f64(),
            reads: named(reads),
            writes: named(writes),
        }
    }
}

impl Engine {
    /// Returns the largest partitions on disk, at most `most`, with their bytes. The hidden tables of indexes are left out.
    ///
    /// # Errors
    /// The store can't be read.
    #[boxed]
    pub async fn largest_partitions(&self, most: usize) -> Result<Vec<NamedSample>, CqlError> {
        let largest = self.largest_prefixes(LARGEST_LOOKED_AT).await?;
        let schema = self.schema();
        let tables = schema
            .stored_tables()
            .filter(|table| table.kind != TableKind::Index);
        let tables: HashMap<u32, &Arc<Table>> = tables.map(|table| (table.number.0, table)).collect();
        let named = |(prefix, bytes): (Bytes, u64)| {
            let number = u32::from_be_bytes(*prefix.first_chunk()?);
            let table = tables.get(&number)?;
            let (_, key) = decode_partition_prefix(&prefix).ok()?;
            Some(NamedSample {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                value: key_text(table, &key),
                count: bytes,
                error: 0,
            })
        };
        Ok(largest.into_iter().filter_map(named).take(most).collect())
    }
}

/// Returns the key of a partition as text that [`Engine::token_of_key`] can read. Components of a composite key are separated by colons
/// (Cassandra's `AbstractType.getString`).
pub(crate) fn key_text(table: &Table, key: &[u8]) -> String {
    let columns = table.partition_key();
    let text = || match columns {
        [column] => get_string(&column.ty, key).ok(),
        columns => {
            let parts = split_partition_key(&key.to_vec().into(), columns.len()).ok()?;
            let pairs = columns.iter().zip(&parts);
            let shown: Result<Vec<String>, String> = pairs
                .map(|(column, part)| Ok(get_string(&column.ty, part)?.replace(':', "\\:")))
                .collect();
            Some(shown.ok()?.join(":"))
        }
    };
    text().unwrap_or_else(|| hex(key))
}
