//! Removal of stale index entries. An entry becomes stale when its value expires, or when a deletion of a range or of the partition covers
//! its row. The writers of these deletions do not know the entries.
//!
//! A reader that finds stale entries has the owner of their rows remove them, in the background and only a few at a time. The owner checks
//! the row again under the partition's lock. A writer of the row holds this lock from before it adds the entry until the row is written. An
//! entry is deleted with its own timestamp, so that an entry that was added again since then stays, in whichever order the two are written.
//! `index::entry_ops` adds the entry again with every write that makes the value expire later.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::KeyKind;
use helenus_row::read::LiveRow;
use helenus_tablet::{Op, WriteBatch};
use tokio::time::Instant;
use uuid::Uuid;

use super::entries::is_by_partition;
use super::posting_lists::hidden_rows;
use super::posting_lists::packed_vector::{pack, packed_vectors};
use super::stale_entry::{STALE_MAX, StaleEntries, StaleEntry};
use super::upkeep;
use crate::cluster::Owner;
use crate::failure::ExecutionError;
use crate::rows::{PartitionKey, RowSelection, corrupt_key};
use crate::schema::{Column, ColumnKind, Index, Table};
use crate::storage::row_reads::{RowCursor, read_header, read_stored_row_under, read_stored_static};
use crate::storage::writes::write_ops;
use crate::storage::{Access, ExecutionContext};

/// Maximum number of reads whose entries are being removed. Stale entries beyond that wait until another read finds them.
const AT_A_TIME: usize = 4;
/// Maximum time for removing the entries of one read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Removes stale entries that a read has found, in the background. Does nothing if too many removals are running.
pub fn report(context: &Arc<ExecutionContext>, mut stale: StaleEntries) {
    let counts = &context.indexes.stale;
    counts
        .found
        .fetch_add(stale.entries.len() as u64, Ordering::Relaxed);
    if context.store.is_read_only() {
        return;
    }
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
    let context = context.clone();
    tokio::spawn(async move {
        let removing = have_removed(&context, stale.clone());
        if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, removing).await {
            tracing::debug!(%error, "stale index entries stay until they are read again");
        }
        context
            .indexes
            .stale
            .running
            .lock()
            .retain(|other| *other != stale);
    });
}

async fn have_removed(context: &Arc<ExecutionContext>, stale: StaleEntries) -> Result<(), ExecutionError> {
    let Some(cluster) = context.cluster().cloned() else {
        return remove(context, &stale).await.map(drop);
    };
    let mut by_owner: HashMap<Option<Uuid>, Vec<StaleEntry>> = HashMap::new();
    for entry in stale.entries {
        match cluster.owner(entry.partition.token) {
            Owner::Here => by_owner.entry(None).or_default().push(entry),
            Owner::Peer(node) => by_owner.entry(Some(node)).or_default().push(entry),
            Owner::Unowned => {}
        }
    }
    for (owner, entries) in by_owner {
        let part = StaleEntries {
            index: stale.index,
            value: stale.value.clone(),
            entries,
        };
        match owner {
            None => drop(remove(context, &part).await?),
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

/// Removes the entries that are stale, as far as this node owns their rows. Returns their number.
pub(crate) async fn remove(context: &ExecutionContext, stale: &StaleEntries) -> Result<u64, ExecutionError> {
    let _epoch = context.writing.epochs.enter();
    let schema = context.schema();
    let found = schema.index_of_hidden_table(stale.index);
    let found = found.and_then(|(table, index)| {
        let (_, column) = table.column(&index.target.column)?;
        Some((table, index, column))
    });
    let Some((table, index, column)) = found else {
        return Ok(0);
    };
    let indexed = Indexed { table, index, column };
    let mut ops = Vec::new();
    for entry in stale.entries.iter().take(STALE_MAX) {
        ops.extend(removal(context, &indexed, &stale.value, entry).await?);
    }
    if ops.is_empty() {
        return Ok(0);
    }
    let count = ops.len() as u64;
    match context.cluster() {
        Some(cluster) => write_ops(context, cluster, ops, false, Instant::now() + PATIENCE).await?,
        None => {
            let batch = WriteBatch::of(ops);
            context.store.write(batch, false).await?;
        }
    }
    context.indexes.stale.removed.fetch_add(count, Ordering::Relaxed);
    Ok(count)
}

/// Returns the operation that removes an entry. `None` if its row has the value, or if this node may not own the row.
async fn removal(
    context: &ExecutionContext,
    indexed: &Indexed<'_>,
    value: &Bytes,
    entry: &StaleEntry,
) -> Result<Option<Op>, ExecutionError> {
    let cluster = context.cluster();
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
    let guard = context.lock_partitions([partition]).await?;
    guard.await_pending().await;
    if indexed.holds(context, value, entry).await? {
        return Ok(None);
    }
    // Another node may have owned the partition meanwhile, with a lock of its own.
    let may_serve = cluster
        .zip(term)
        .is_none_or(|(cluster, term)| cluster.may_serve_since(term));
    if changes() != before || !may_serve {
        return Ok(None);
    }
    Ok(Some(indexed.removal(value, entry)?))
}

/// An index with its table and column.
struct Indexed<'a> {
    table: &'a Arc<Table>,
    index: &'a Index,
    column: &'a Column,
}

impl Indexed<'_> {
    /// Returns true if the entry's row or partition has the value.
    async fn holds(
        &self,
        context: &ExecutionContext,
        value: &Bytes,
        entry: &StaleEntry,
    ) -> Result<bool, ExecutionError> {
        let (table, partition) = (self.table, &entry.partition);
        let now_s = context.clock.now_us().div_euclid(1_000_000);
        let header = read_header(context, table, partition).await?;
        if is_by_partition(self.index, table) {
            let statics = read_stored_static(context, table, partition, header.as_ref()).await?;
            let live = statics.as_ref().map(|row| row.live(now_s)).transpose()?.flatten();
            if self.column.kind == ColumnKind::Static {
                return Ok(self.has_value(partition, KeyKind::Static, &[], live.as_ref(), value)?);
            }
            if live.is_some() {
                return Ok(true);
            }
            let mut rows = RowCursor::new(table, partition.clone(), header, RowSelection::all(), false);
            while let Some(found) = rows.next(context).await? {
                if found.row.live(now_s)?.is_some() {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let row =
            read_stored_row_under(context, table, partition, &entry.clustering, header.as_ref()).await?;
        let live = row.as_ref().map(|row| row.live(now_s)).transpose()?.flatten();
        let clustering = self.clustering(entry)?;
        if self.index.has_posting_lists {
            return self.has_vector(context, value, entry, live.as_ref()).await;
        }
        Ok(self.has_value(partition, KeyKind::Row, &clustering, live.as_ref(), value)?)
    }

    /// Returns true if the entry of a posting list contains the row's vector.
    async fn has_vector(
        &self,
        context: &ExecutionContext,
        list: &Bytes,
        entry: &StaleEntry,
        row: Option<&LiveRow<'_>>,
    ) -> Result<bool, ExecutionError> {
        let Some(vector) = hidden_rows::vector(self.table, self.index, row) else {
            return Ok(false);
        };
        let place = hidden_rows::entry_row(self.index, &entry.partition, &self.clustering(entry)?)?;
        let list = PartitionKey::new(list.clone());
        let stored = read_stored_row_under(context, &self.index.table, &list, &place, None).await?;
        let live = stored.as_ref().map(|row| row.live(0)).transpose()?.flatten();
        let cell = live.as_ref().and_then(hidden_rows::cell).unwrap_or_default();
        let wanted = pack(&vector);
        Ok(packed_vectors(cell).any(|packed| packed == wanted))
    }

    fn has_value(
        &self,
        partition: &PartitionKey,
        kind: KeyKind,
        clustering: &[Bytes],
        row: Option<&LiveRow<'_>>,
        value: &Bytes,
    ) -> Result<bool, CqlError> {
        let place = super::values::RowLocation {
            partition,
            kind,
            clustering,
        };
        let values = super::values::values(self.table, self.index, self.column, place, row)?;
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
        let change = upkeep::Change::Removed {
            timestamp_us: entry.written_us,
        };
        upkeep::entry(
            self.table,
            self.index,
            &entry.partition,
            &clustering,
            value,
            change,
        )
    }
}
