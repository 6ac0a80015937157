//! Index entries that have outlived what they stood for: the value has expired, or a deletion of a range or of the partition covers the row.
//! Nobody who wrote that knew of them.
//!
//! A reader that comes across some has the owner of their rows remove them, in the background and no more than a few at a time. The owner
//! looks again under the partition's lock: who writes a row holds it from before the entry is added until the row is written. An entry is
//! deleted as of its own timestamp, so that one that was added anew since stays, whichever of the two is written first. That every write
//! that gives a value a longer life adds the entry anew, `index::entry_ops` sees to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::KeyKind;
use helenus_row::read::LiveRow;
use helenus_tablet::{Op, WriteBatch};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::index;
use crate::cluster::writes::write_ops;
use crate::cluster::{Owner, Refused};
use crate::engine::{Engine, store_error};
use crate::schema::{Column, ColumnKind, Index, Table};
use crate::storage::Access;
use crate::storage::index_entry::is_by_partition;
use crate::storage::read::{
    PartitionKey, RowCursor, RowsWanted, corrupt_key, read_header, read_stored_row_under, read_stored_static,
};

/// Entries that one read has removed at most.
pub const STALE_MAX: usize = 32;
/// Reads whose entries are looked after at a time; those of others wait for another read.
const AT_A_TIME: usize = 4;
/// How long a look at the entries of one read may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Entries of one value that seem to stand for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleEntries {
    /// The number of the index's hidden table.
    pub index: u32,
    /// The value that they are for.
    pub value: Bytes,
    pub entries: Vec<StaleEntry>,
}

/// An entry, by the row that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleEntry {
    pub(crate) partition: PartitionKey,
    /// Encoded; empty where the entry is for a partition.
    pub clustering: Bytes,
    /// The entry's own timestamp.
    pub written_us: i64,
}

impl StaleEntry {
    pub fn new(partition_key: Bytes, clustering: Bytes, written_us: i64) -> StaleEntry {
        StaleEntry {
            partition: PartitionKey::new(partition_key),
            clustering,
            written_us,
        }
    }

    /// The serialized key of the row's partition.
    pub fn partition_key(&self) -> &Bytes {
        &self.partition.bytes
    }
}

/// What was found and done since the node began.
#[derive(Default)]
pub struct StaleCounts {
    /// Entries that readers came across.
    pub found: AtomicU64,
    /// Entries of this node's rows that were removed; one that several reads came across at the same time may count more than once.
    pub removed: AtomicU64,
    /// What is looked after now, one for each read.
    running: Mutex<Vec<StaleEntries>>,
}

/// Has entries removed that a read came across, unless there is enough to do. Nobody waits for it.
pub fn report(engine: &Arc<Engine>, mut stale: StaleEntries) {
    let counts = &engine.stale;
    counts
        .found
        .fetch_add(stale.entries.len() as u64, Ordering::Relaxed);
    {
        let mut running = counts.running.lock();
        let same = |other: &&StaleEntries| other.index == stale.index && other.value == stale.value;
        let known: Vec<&StaleEntry> = running
            .iter()
            .filter(same)
            .flat_map(|other| &other.entries)
            .collect();
        stale.entries.retain(|entry| !known.contains(&entry));
        if stale.entries.is_empty() || running.len() >= AT_A_TIME {
            return;
        }
        running.push(stale.clone());
    }
    let engine = engine.clone();
    tokio::spawn(async move {
        let removing = have_removed(&engine, stale.clone());
        if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, removing).await {
            tracing::debug!(%error, "stale index entries stay until they are read again");
        }
        engine.stale.running.lock().retain(|other| *other != stale);
    });
}

async fn have_removed(engine: &Arc<Engine>, stale: StaleEntries) -> Result<(), CqlError> {
    let Some(cluster) = engine.cluster().cloned() else {
        return engine.remove_stale(&stale).await.map(drop);
    };
    let mut by_owner: HashMap<Option<Uuid>, Vec<StaleEntry>> = HashMap::new();
    for entry in stale.entries {
        match cluster.owner(entry.partition.token) {
            Owner::Here => by_owner.entry(None).or_default().push(entry),
            Owner::Peer(node) => by_owner.entry(Some(node)).or_default().push(entry),
            Owner::Nobody => {}
        }
    }
    for (owner, entries) in by_owner {
        let part = StaleEntries {
            index: stale.index,
            value: stale.value.clone(),
            entries,
        };
        match owner {
            None => drop(engine.remove_stale(&part).await?),
            Some(node) => {
                let removed = cluster.remove_stale(node, &part, Instant::now() + PATIENCE).await;
                if let Err(error) = removed {
                    tracing::debug!(%node, ?error, "stale index entries stay until they are read again");
                }
            }
        }
    }
    Ok(())
}

impl Engine {
    /// Removes those of the entries that stand for nothing, as far as their rows are this node's; their number.
    pub async fn serve_stale(self: &Arc<Self>, stale: &StaleEntries) -> Result<u64, Refused> {
        Ok(self.remove_stale(stale).await?)
    }

    async fn remove_stale(self: &Arc<Self>, stale: &StaleEntries) -> Result<u64, CqlError> {
        let _epoch = self.writes.enter();
        let schema = self.schema();
        let found = schema.stored_tables().find_map(|table| {
            let of_index = |index: &&Arc<Index>| index.table.number.0 == stale.index;
            let index = table.indexes.iter().find(of_index)?;
            let (_, column) = table.column(&index.target.column)?;
            Some((table, index, column))
        });
        let Some((table, index, column)) = found else {
            return Ok(0);
        };
        let indexed = Indexed { table, index, column };
        let mut ops = Vec::new();
        for entry in stale.entries.iter().take(STALE_MAX) {
            ops.extend(self.removal(&indexed, &stale.value, entry).await?);
        }
        if ops.is_empty() {
            return Ok(0);
        }
        let count = ops.len() as u64;
        match self.cluster() {
            Some(cluster) => write_ops(self, cluster, ops, false, Instant::now() + PATIENCE).await?,
            None => {
                let batch = WriteBatch::of(ops);
                self.store.write(batch, false).await.map_err(store_error)?;
            }
        }
        self.stale.removed.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }

    /// What removes an entry; none if its row has the value, or is not surely this node's.
    async fn removal(
        &self,
        indexed: &Indexed<'_>,
        value: &Bytes,
        entry: &StaleEntry,
    ) -> Result<Option<Op>, CqlError> {
        let cluster = self.cluster();
        let is_mine = || {
            let owner = cluster.map(|cluster| cluster.owner(entry.partition.token));
            owner.is_none_or(|owner| owner == Owner::Here)
        };
        let changes = || cluster.map(|cluster| cluster.changes());
        let before = changes();
        let term = cluster.map(|cluster| cluster.lease_term());
        if !is_mine() {
            return Ok(None);
        }
        let partition = (indexed.table.number, entry.partition.token, Access::Alone);
        let _guard = self.lock_partitions([partition]).await?;
        if indexed.holds(self, value, entry).await? {
            return Ok(None);
        }
        // Somebody else may have had the partition since, and another lock for it.
        let may_serve = cluster
            .zip(term)
            .is_none_or(|(cluster, term)| cluster.may_serve_since(term));
        if changes() != before || !may_serve {
            return Ok(None);
        }
        indexed.removal(value, entry).map(Some)
    }
}

/// An index and what it is on.
struct Indexed<'a> {
    table: &'a Arc<Table>,
    index: &'a Index,
    column: &'a Column,
}

impl Indexed<'_> {
    /// Whether there is a row, or partition, of that entry that has the value.
    async fn holds(&self, engine: &Engine, value: &Bytes, entry: &StaleEntry) -> Result<bool, CqlError> {
        let (table, partition) = (self.table, &entry.partition);
        let now_s = engine.clock.now_us().div_euclid(1_000_000);
        let header = read_header(engine, table, partition).await?;
        if is_by_partition(self.index, table) {
            let statics = read_stored_static(engine, table, partition, header.as_ref()).await?;
            let live = statics.as_ref().map(|row| row.live(now_s)).transpose()?.flatten();
            if self.column.kind == ColumnKind::Static {
                return self.has_value(partition, KeyKind::Static, &[], live.as_ref(), value);
            }
            if live.is_some() {
                return Ok(true);
            }
            let mut rows = RowCursor::new(table, partition.clone(), header, RowsWanted::all(), false);
            while let Some(found) = rows.next(engine).await? {
                if found.row.live(now_s)?.is_some() {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let row = read_stored_row_under(engine, table, partition, &entry.clustering, header.as_ref()).await?;
        let live = row.as_ref().map(|row| row.live(now_s)).transpose()?.flatten();
        let clustering = self.clustering(entry)?;
        self.has_value(partition, KeyKind::Row, &clustering, live.as_ref(), value)
    }

    fn has_value(
        &self,
        partition: &PartitionKey,
        kind: KeyKind,
        clustering: &[Bytes],
        row: Option<&LiveRow<'_>>,
        value: &Bytes,
    ) -> Result<bool, CqlError> {
        let place = index::Place {
            partition,
            kind,
            clustering,
        };
        let values = index::values(self.table, self.index, self.column, place, row)?;
        Ok(values.contains(value))
    }

    fn clustering(&self, entry: &StaleEntry) -> Result<Vec<Bytes>, CqlError> {
        self.table
            .layout
            .decode_clustering(&entry.clustering)
            .map_err(corrupt_key)
    }

    fn removal(&self, value: &Bytes, entry: &StaleEntry) -> Result<Op, CqlError> {
        let clustering = match is_by_partition(self.index, self.table) {
            true => Vec::new(),
            false => self.clustering(entry)?,
        };
        let change = index::Change::Removed {
            timestamp_us: entry.written_us,
        };
        index::entry(
            self.table,
            self.index,
            &entry.partition,
            &clustering,
            value,
            change,
        )
    }
}
