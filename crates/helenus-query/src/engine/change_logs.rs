//! Figures of the logs of captured changes on this node: their sizes, and the ages of their oldest changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value::uuid::{min_at_millis, unix_micros};
use helenus_row::ClusteringRange;
use tokio::sync::Mutex;

use super::Engine;
use crate::failure::ExecutionError;
use crate::rows::{PartitionKey, RowAt, RowSelection, corrupt_key};
use crate::schema::Table;
use crate::storage::row_reads::{RowCursor, read_header};

/// Minimum time between two readings of the figures for metrics.
const READ_INTERVAL_US: i64 = 60_000_000;

/// Rows of a stream that are examined for a live one. Expired rows may be there until the next compaction.
const EXAMINED_MAX: usize = 64;

/// The log of a table's changes.
#[derive(Clone, Debug)]
pub struct ChangeLog {
    pub table: Arc<Table>,
    /// Bytes in SSTables.
    pub bytes: u64,
    /// Age of the oldest change. `None` if there are no changes.
    pub oldest_age: Option<Duration>,
}

/// The figures as of the last reading.
#[derive(Default)]
pub(crate) struct RecentChangeLogs {
    figures: ArcSwap<Vec<ChangeLog>>,
    /// Held while the figures are read. The value is the time of the last reading, in µs since 1970.
    read_us: Arc<Mutex<Option<i64>>>,
}

impl Engine {
    /// Returns the figures of all logs as last read, and begins to read them again if that was a minute ago. Never waits for the store.
    pub fn recent_change_logs(self: &Arc<Self>) -> Arc<Vec<ChangeLog>> {
        let now_us = self.context.clock.now_us();
        if !self.context.schema.load().has_cdc() {
            return Arc::default();
        }
        let is_due =
            |read_us: Option<i64>| read_us.is_none_or(|read_us| now_us - read_us >= READ_INTERVAL_US);
        if let Ok(mut read_us) = self.change_logs.read_us.clone().try_lock_owned()
            && is_due(*read_us)
        {
            *read_us = Some(now_us);
            let engine = self.clone();
            tokio::spawn(async move {
                match engine.change_logs().await {
                    Ok(figures) => engine.change_logs.figures.store(Arc::new(figures)),
                    Err(error) => {
                        tracing::debug!(%error, "the logs of captured changes could not be measured")
                    }
                }
                drop(read_us);
            });
        }
        self.change_logs.figures.load_full()
    }

    /// Reads the figures of all logs: the index of each SSTable that was not read before, and the first row of each stream of each log.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn change_logs(&self) -> Result<Vec<ChangeLog>, CqlError> {
        let schema = self.schema();
        let logs: Vec<&Arc<Table>> = schema
            .stored_tables()
            .filter(|table| table.is_cdc_log())
            .collect();
        if logs.is_empty() {
            return Ok(Vec::new());
        }
        let sizes = self.table_sizes().await?;
        let streams = self.streams_here().await?;
        let mut figures = Vec::with_capacity(logs.len());
        for log in logs {
            figures.push(ChangeLog {
                table: log.clone(),
                bytes: sizes.get(&log.number).map_or(0, |size| size.bytes),
                oldest_age: self.oldest_change_age(log, &streams).await?,
            });
        }
        Ok(figures)
    }

    /// Returns the streams of all generations in the tablets of this node.
    async fn streams_here(&self) -> Result<Vec<PartitionKey>, CqlError> {
        self.context.load_generations().await?;
        let generations = self.context.known_generations();
        // A range that is split and merged again has the same stream again.
        let streams: BTreeMap<Bytes, PartitionKey> = generations
            .into_iter()
            .flat_map(|generation| generation.opened)
            .filter(|stream| self.context.owns(stream.key.token))
            .map(|stream| (stream.key.bytes.clone(), stream.key))
            .collect();
        Ok(streams.into_values().collect())
    }

    /// Returns the age of the oldest change of these streams. `None` if there are no changes.
    async fn oldest_change_age(
        &self,
        log: &Table,
        streams: &[PartitionKey],
    ) -> Result<Option<Duration>, CqlError> {
        let mut oldest_us: Option<i64> = None;
        for stream in streams {
            let first_us = match self.first_change_us(log, stream.clone()).await {
                // The tablet is being handed to another node, which has this stream in its own figures.
                Err(ExecutionError::NotOwned) => None,
                found => found.map_err(ExecutionError::into_client_error)?,
            };
            oldest_us = oldest_us.into_iter().chain(first_us).min();
        }
        let age_us = |then_us: i64| self.context.clock.now_us().saturating_sub(then_us).max(0);
        Ok(oldest_us.map(|then_us| Duration::from_micros(age_us(then_us).unsigned_abs())))
    }

    /// Returns the time of the first change of a stream that has not expired, in µs since 1970. `None` if there is none.
    async fn first_change_us(
        &self,
        log: &Table,
        stream: PartitionKey,
    ) -> Result<Option<i64>, ExecutionError> {
        let context = &self.context;
        let now_s = context.clock.now_us().div_euclid(1_000_000);
        let wanted = RowSelection::Slices(Arc::new([self.not_expired(log, now_s)?]));
        let header = read_header(context, log, &stream).await?;
        let mut cursor = RowCursor::new(log, stream, header, wanted, false);
        let mut last = None;
        for _ in 0..EXAMINED_MAX {
            let Some(RowAt { clustering, row }) = cursor.next(context).await? else {
                return Ok(None);
            };
            let is_live = row.live(now_s)?.is_some();
            last = Some(clustering);
            if is_live {
                break;
            }
        }
        let Some(clustering) = last else { return Ok(None) };
        let values = log.layout.decode_clustering(&clustering).map_err(corrupt_key)?;
        let time = values.first().and_then(|time| time.as_ref().try_into().ok());
        Ok(time.map(|time| unix_micros(u128::from_be_bytes(time))))
    }

    /// Returns the range of the changes that the base table's present `ttl` keeps. It spares the expired rows that no compaction has purged.
    fn not_expired(&self, log: &Table, now_s: i64) -> Result<ClusteringRange, CqlError> {
        let schema = self.schema();
        let base = log
            .cdc_log_of
            .as_ref()
            .and_then(|base| schema.table(&log.keyspace, base));
        let ttl_s = base.map_or(0, |base| i64::from(base.options.cdc.ttl_s));
        if ttl_s <= 0 {
            return Ok(ClusteringRange::all());
        }
        let first = min_at_millis((now_s - ttl_s).saturating_mul(1000)).to_be_bytes();
        log.layout
            .slice(Some((&[first], true)), None)
            .map_err(corrupt_key)
    }
}

#[cfg(test)]
#[path = "change_logs_tests.rs"]
mod tests;
