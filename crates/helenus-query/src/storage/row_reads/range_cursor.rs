//! Partitions of a range of tokens, over all tablets, in the order of tokens.

pub(crate) mod fitting;
mod fitting_reads;
pub(crate) mod visiting;

use std::ops::Bound;
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::{ByteRange, CellRules, KeyKind, TableId, key};
use helenus_tablet::StoreError;

use super::{read_header, read_stored_static};
use crate::cluster::{Cluster, ScanRange};
use crate::failure::{ExecutionError, store_error};
use crate::limits::scope;
use crate::rows::{PartitionKey, RowAt, RowSelection, StoredRow, corrupt, corrupt_key};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::key_reads::{self, TabletScan, Undecided, scan_tablet};

/// Rows of a partition that are skipped one by one. If there are more, a new scan starts after the partition.
const STEPS_MAX: usize = 32;

/// Maximum time that a scan waits for news about a tablet that moved away, before it looks for the new owner.
const MOVED_WAIT: Duration = Duration::from_millis(5);
/// Maximum number of times that a read-only node looks again for a tablet that went away.
const RESTARTS_MAX: u8 = 3;

/// A partition that a range scan has reached.
#[derive(Clone, Debug)]
pub struct FoundPartition {
    pub key: PartitionKey,
    pub static_row: Option<StoredRow>,
}

/// An entry of the store, with its key decoded.
pub(super) struct Entry {
    pub(super) partition: PartitionKey,
    pub(super) kind: KeyKind,
    pub(super) clustering: Bytes,
    pub(super) packed: Bytes,
}

/// A cursor over the partitions of a range of tokens and over their rows.
pub struct RangeCursor {
    table: TableId,
    rules: CellRules,
    wanted: RowSelection,
    /// The keys after the current scan. `None` once the last tablet's scan was begun.
    rest: Option<ByteRange>,
    /// End of the range. `None` if it is the end of all keys.
    end: Option<Bytes>,
    scan: Option<TabletScan>,
    /// Start of the current scan, and below the last key that it returned. They are needed in a cluster and on a read-only node, because
    /// the tablet may move away during the scan.
    begun_at: Option<Bytes>,
    last: Option<Bytes>,
    /// Number of times that a read-only node has restarted the scan since it last returned a row.
    restarts: u8,
    pending: Option<Entry>,
    current: Option<PartitionKey>,
    header: Option<PartitionHeader>,
    /// A partition that an earlier page has begun, and the last clustering of that page.
    resume: Option<(PartitionKey, Bytes)>,
}

impl RangeCursor {
    /// Returns a cursor over all partitions with tokens within the bounds, with their wanted rows.
    pub fn new(table: &Table, start: Bound<i64>, end: Bound<i64>, wanted: RowSelection) -> RangeCursor {
        RangeCursor::within(table, key::token_range(table.number, start, end), wanted)
    }

    /// Returns a cursor over all partitions with keys in the range, with their wanted rows.
    pub fn within(table: &Table, range: ByteRange, wanted: RowSelection) -> RangeCursor {
        RangeCursor {
            table: table.number,
            rules: table.cell_rules.clone(),
            wanted,
            end: range.end.clone(),
            rest: Some(range),
            scan: None,
            begun_at: None,
            last: None,
            restarts: 0,
            pending: None,
            current: None,
            header: None,
            resume: None,
        }
    }

    /// Continues after a partition.
    pub fn skip_past(&mut self, partition: &PartitionKey) {
        let end = key::partition_range(self.table, partition.token, &partition.bytes).end;
        self.raise_start(end);
    }

    /// Continues within a partition, after the row of the given encoded clustering.
    pub fn resume_in(&mut self, partition: PartitionKey, clustering: Bytes) {
        let mut start = key::row_key(self.table, partition.token, &partition.bytes, &clustering).to_vec();
        start.push(0);
        self.raise_start(Some(start.into()));
        self.resume = Some((partition, clustering));
    }

    /// Continues at `start`, which lies in the tablet of the current scan or after it.
    fn raise_start(&mut self, start: Option<Bytes>) {
        self.pending = None;
        let behind_scan = self.rest.take().map(|rest| rest.start);
        let is_scanning = self.scan.take().is_some();
        self.rest = start.map(|start| ByteRange {
            start: match behind_scan {
                Some(least) if !is_scanning => start.max(least),
                _ => start,
            },
            end: self.end.clone(),
        });
    }

    /// Returns the next partition that has any stored entry. The rest of the current partition is skipped.
    pub async fn next_partition(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
    ) -> Result<Option<FoundPartition>, CqlError> {
        if let Some((partition, _)) = self.resume.take() {
            return self.resume_partition(context, table, partition).await.map(Some);
        }
        self.leave_partition(context).await?;
        let Some(first) = self.next_entry(context).await? else {
            return Ok(None);
        };
        let partition = first.partition.clone();
        self.current = Some(partition.clone());
        self.header = None;
        let mut static_row = None;
        let mut next = Some(first);
        while let Some(entry) = next {
            if entry.kind == KeyKind::Row || entry.partition != partition {
                self.pending = Some(entry);
                break;
            }
            if entry.kind == KeyKind::Header {
                self.header = Some(PartitionHeader::decode(&entry.packed).map_err(corrupt)?);
            } else {
                let shadow = self.header.as_ref().and_then(|header| header.deletion);
                static_row = Some(StoredRow::parse(entry.packed, shadow, &self.rules)?);
            }
            next = self.next_entry(context).await?;
        }
        Ok(Some(FoundPartition {
            key: partition,
            static_row,
        }))
    }

    async fn resume_partition(
        &mut self,
        context: &ExecutionContext,
        table: &Table,
        partition: PartitionKey,
    ) -> Result<FoundPartition, CqlError> {
        self.header = read_header(context, table, &partition).await?;
        let static_row = match table.has_static() {
            true => read_stored_static(context, table, &partition, self.header.as_ref()).await?,
            false => None,
        };
        self.current = Some(partition.clone());
        Ok(FoundPartition {
            key: partition,
            static_row,
        })
    }

    /// Returns the next wanted row of the current partition. `None` if there is none.
    pub async fn next_row(&mut self, context: &ExecutionContext) -> Result<Option<RowAt>, CqlError> {
        if self.current.is_none() {
            return Ok(None);
        }
        while let Some(entry) = self.next_entry(context).await? {
            if self.current.as_ref() != Some(&entry.partition) {
                self.pending = Some(entry);
                return Ok(None);
            }
            if entry.kind != KeyKind::Row || !self.wanted.contains(&entry.clustering) {
                scope::checkpoint().await?;
                continue;
            }
            let shadow = self
                .header
                .as_ref()
                .and_then(|header| header.deletion_at(&entry.clustering));
            return Ok(Some(RowAt {
                row: StoredRow::parse(entry.packed, shadow, &self.rules)?,
                clustering: entry.clustering,
            }));
        }
        Ok(None)
    }

    async fn leave_partition(&mut self, context: &ExecutionContext) -> Result<(), CqlError> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        if self
            .pending
            .as_ref()
            .is_some_and(|next| next.partition != current)
        {
            return Ok(());
        }
        for _ in 0..STEPS_MAX {
            match self.next_entry(context).await? {
                Some(entry) if entry.partition == current => {}
                Some(entry) => {
                    self.pending = Some(entry);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
        self.skip_past(&current);
        Ok(())
    }

    async fn next_entry(&mut self, context: &ExecutionContext) -> Result<Option<Entry>, CqlError> {
        if let Some(entry) = self.pending.take() {
            return Ok(Some(entry));
        }
        let next = self.next_stored(context).await?;
        next.map(|(key, packed)| entry(&key, packed)).transpose()
    }

    async fn next_stored(&mut self, context: &ExecutionContext) -> Result<Option<(Bytes, Bytes)>, CqlError> {
        loop {
            if let Some(scan) = &mut self.scan {
                match scan.next().await {
                    Ok(Some((key, packed))) => {
                        if self.begun_at.is_some() {
                            self.last = Some(key.clone());
                            self.restarts = 0;
                        }
                        return Ok(Some((key, packed)));
                    }
                    Ok(None) => self.scan = None,
                    Err(ExecutionError::NotOwned) if may_begin_again(context, &mut self.restarts) => {
                        self.begin_again(context).await;
                    }
                    Err(error) => return Err(error.into_client_error()),
                }
            }
            if !self.begin_tablet(context).await? {
                return Ok(None);
            }
        }
    }

    /// Begins the scan of the next tablet. Returns false if the range is done.
    async fn begin_tablet(&mut self, context: &ExecutionContext) -> Result<bool, CqlError> {
        let Some(rest) = self.rest.take() else {
            return Ok(false);
        };
        if rest.end.as_ref().is_some_and(|end| *end <= rest.start) {
            return Ok(false);
        }
        if let Some(cluster) = context.cluster() {
            return self.begin_owned_tablet(context, cluster.as_ref(), rest).await;
        }
        let table = key::table_range(self.table);
        let mut next = Some(i64::MIN);
        for tablet in context.store.tablets().iter() {
            let tokens = tablet.token_range();
            let gap = next.filter(|next| *next < tokens.first);
            next = tokens.last.checked_add(1);
            let covered = key_reads::keys_of(self.table, tokens);
            let end = covered.end.clone().or_else(|| table.end.clone());
            if end.as_ref().is_some_and(|end| *end <= rest.start) {
                continue;
            }
            // All earlier tablets end at or before the start of the rest.
            if let Some(token) = gap
                && rest.start < covered.start
            {
                return Err(store_error(StoreError::NotOwned(token)));
            }
            let this = ByteRange {
                start: rest.start.clone().max(covered.start),
                end: min_end(rest.end.clone(), end.clone()),
            };
            if this.end.as_ref().is_some_and(|end| *end <= this.start) {
                return Ok(false);
            }
            if context.store.is_read_only() {
                (self.begun_at, self.last) = (Some(this.start.clone()), None);
            }
            let scan = scan_tablet(tablet, this, false).await;
            self.scan = Some(TabletScan::Local(
                scan.map_err(ExecutionError::into_client_error)?,
            ));
            self.rest = end.map(|start| ByteRange { start, end: rest.end });
            return Ok(true);
        }
        match next {
            Some(token) => Err(store_error(StoreError::NotOwned(token))),
            None => Ok(false),
        }
    }
}

impl RangeCursor {
    /// Begins the scan of the next tablet in a cluster, where another node may own it.
    async fn begin_owned_tablet(
        &mut self,
        context: &ExecutionContext,
        cluster: &dyn Cluster,
        rest: ByteRange,
    ) -> Result<bool, CqlError> {
        let (scan, tokens, end) = loop {
            let tokens = key_reads::tokens_of(cluster, &rest.start);
            let covered = key_reads::keys_of(self.table, tokens);
            let range = ScanRange {
                tokens,
                start: rest.start.clone(),
                end: min_end(rest.end.clone(), covered.end.clone()),
                reversed: false,
            };
            if let Some(scan) = key_reads::scan(context, cluster, &range, Undecided::Awaited).await? {
                break (scan, tokens, covered.end);
            }
        };
        self.begun_at = Some(rest.start);
        self.last = None;
        self.scan = Some(scan);
        self.rest = end
            .filter(|_| tokens.last != i64::MAX)
            .map(|start| ByteRange { start, end: rest.end });
        Ok(true)
    }

    /// Drops the current scan. The next one begins after the last returned key.
    async fn begin_again(&mut self, context: &ExecutionContext) {
        self.scan = None;
        wait_for_tablets(context).await;
        let start = match self.last.take() {
            Some(last) => [last.as_ref(), &[0]].concat().into(),
            None => self.begun_at.take().unwrap_or_default(),
        };
        self.rest = Some(ByteRange {
            start,
            end: self.end.clone(),
        });
    }
}

/// Returns true if the scan may look for the tablet that moved away.
pub(super) fn may_begin_again(context: &ExecutionContext, restarts: &mut u8) -> bool {
    if context.cluster().is_some() {
        return true;
    }
    *restarts += 1;
    context.store.is_read_only() && *restarts <= RESTARTS_MAX
}

/// Waits until the new place of a tablet that moved away may be known.
pub(super) async fn wait_for_tablets(context: &ExecutionContext) {
    match context.cluster() {
        Some(cluster) => drop(cluster.changed(cluster.changes(), MOVED_WAIT).await),
        None => _ = context.store.refreshed().await,
    }
}

/// Returns the lesser of two ends. `None` is the end of all keys.
fn min_end(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Decodes an entry's key.
pub(super) fn entry(key: &Bytes, packed: Bytes) -> Result<Entry, CqlError> {
    let parts = key::decode_key(key).map_err(corrupt_key)?;
    let partition_key = match parts.partition_key {
        std::borrow::Cow::Borrowed(part) => key.slice_ref(part),
        std::borrow::Cow::Owned(part) => Bytes::from(part),
    };
    Ok(Entry {
        partition: PartitionKey {
            token: parts.token,
            bytes: partition_key,
        },
        kind: parts.kind,
        clustering: key.slice_ref(parts.clustering),
        packed,
    })
}
