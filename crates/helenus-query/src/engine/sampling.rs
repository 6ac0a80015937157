//! Samples of what partitions are asked for, by names: for `nodetool toppartitions` and `profileload`, and for the console.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value::text::{get_string, hex};
use helenus_row::key::{decode_partition_prefix, split_partition_key};
use uuid::Uuid;

use super::Engine;
use crate::boxed;
use crate::figures::sampling::recent::{RecentActivity, RecentReport};
use crate::figures::sampling::{RunningSampling, Sample, SampledTables, SamplerKind, Samples, SamplingPlan};
use crate::schema::{Table, TableKind};

/// Partitions among which the largest of tables that people know are looked for.
const LARGEST_LOOKED_AT: usize = 1024;

/// What is sampled, by names. All tables without a keyspace, all of a keyspace without a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingRequest {
    pub keyspace: Option<String>,
    pub table: Option<String>,
    /// Keys that each sampler counts at a time.
    pub capacity: usize,
    pub kinds: Vec<SamplerKind>,
}

/// One of the greatest, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSample {
    pub keyspace: String,
    pub table: String,
    /// The key of a partition, or the text of a statement.
    pub value: String,
    pub count: u64,
    /// How much too great the count may be.
    pub error: u64,
}

/// Partitions that are active or large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedActivity {
    pub top: Vec<NamedSample>,
    pub total: u64,
}

/// The most active partitions of the last minutes.
#[derive(Clone, Debug, PartialEq)]
pub struct RecentlyActive {
    /// One request in so many was counted; none with 0.
    pub interval: u32,
    /// The time that the numbers are about, in seconds.
    pub span_s: f64,
    pub reads: NamedActivity,
    pub writes: NamedActivity,
}

impl Engine {
    /// Begins to sample what this node reads and writes itself; what is returned ends it.
    ///
    /// # Errors
    /// In words: there is no such keyspace or table, or as many sample already as may.
    pub fn begin_sampling(&self, request: &SamplingRequest) -> Result<RunningSampling, String> {
        self.figures.sampling.begin(SamplingPlan {
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

    /// Samples with the names of their tables. Those of tables that are gone are left out, and so are those of the tables that hold indexes.
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

    /// Returns the partitions that were read and written the most in the last minutes, at most `most` of each.
    pub fn recently_active(&self, most: usize) -> RecentlyActive {
        let RecentReport {
            interval,
            span,
            reads,
            writes,
        } = self.figures.sampling.recent.report(most);
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
    /// Returns the partitions that take the most on disk, at most `most`, with their bytes. Those of the tables that hold indexes are left
    /// out.
    ///
    /// # Errors
    /// When the store can't be read.
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

/// Returns the key of a partition as text, the components of a composite one parted by colons (Cassandra's `AbstractType.getString`), as
/// [`Engine::token_of_key`] reads it.
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
