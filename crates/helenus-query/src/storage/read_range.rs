//! The partitions of a range of tokens, over all tablets, in the order of tokens.

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
use crate::rows::{PartitionKey, RowAt, RowsWanted, StoredRow, corrupt, corrupt_key};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::reads::{self, TabletScan, scan_tablet};

/// Rows of a partition that are stepped over, before a new scan behind the partition is cheaper.
const STEPS_MAX: usize = 32;

/// How long a scan waits for the tablet that went away under it, before it looks where it is.
const MOVED_WAIT: Duration = Duration::from_millis(5);
/// How often a node that only reads looks for a tablet that went away.
const RESTARTS_MAX: u8 = 3;

/// A partition that a range scan has come to.
#[derive(Clone, Debug)]
pub struct FoundPartition {
    pub key: PartitionKey,
    pub static_row: Option<StoredRow>,
}

/// An entry of the store, its key taken apart.
pub(super) struct Entry {
    pub(super) partition: PartitionKey,
    pub(super) kind: KeyKind,
    pub(super) clustering: Bytes,
    pub(super) packed: Bytes,
}

/// Goes over the partitions of a range of tokens and over their rows.
pub struct RangeCursor {
    table: TableId,
    rules: CellRules,
    wanted: RowsWanted,
    /// What is left behind the scan under way, as keys; nothing once the last tablet was begun.
    rest: Option<ByteRange>,
    /// Where the range ends; none is the end of all keys.
    end: Option<Bytes>,
    scan: Option<TabletScan>,
    /// In a cluster and on a node that only reads, where the scan under way has begun, and the key that it has given last: the tablet may go
    /// away under it.
    begun_at: Option<Bytes>,
    last: Option<Bytes>,
    /// How often a node that only reads has begun again since a scan gave anything.
    restarts: u8,
    pending: Option<Entry>,
    current: Option<PartitionKey>,
    header: Option<PartitionHeader>,
    /// A partition that an earlier page has begun, and the last clustering that it gave.
    resume: Option<(PartitionKey, Bytes)>,
}

impl RangeCursor {
    /// Returns all partitions with tokens within the bounds, and of each the wanted rows.
    pub fn new(table: &Table, start: Bound<i64>, end: Bound<i64>, wanted: RowsWanted) -> RangeCursor {
        RangeCursor::within(table, key::token_range(table.number, start, end), wanted)
    }

    /// Returns all partitions with keys in the range, and of each the wanted rows.
    pub fn within(table: &Table, range: ByteRange, wanted: RowsWanted) -> RangeCursor {
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

    /// Goes on behind that partition.
    pub fn skip_past(&mut self, partition: &PartitionKey) {
        let end = key::partition_range(self.table, partition.token, &partition.bytes).end;
        self.raise_start(end);
    }

    /// Goes on within that partition, behind the row of that encoded clustering.
    pub fn resume_in(&mut self, partition: PartitionKey, clustering: Bytes) {
        let mut start = key::row_key(self.table, partition.token, &partition.bytes, &clustering).to_vec();
        start.push(0);
        self.raise_start(Some(start.into()));
        self.resume = Some((partition, clustering));
    }

    /// Goes on at `start`, which lies in the tablet being scanned or in what is left.
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

    /// Returns the next partition that holds anything at all, skipping what is left of the current one.
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

    /// Returns the next wanted row of the current partition.
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

    /// Gives entries to `visit`, in order, as long as it wants more: key and packed row, in place. A cursor that is read so is read so from the
    /// beginning. False once the range is done.
    pub async fn visit(
        &mut self,
        context: &ExecutionContext,
        visit: &mut (dyn FnMut(&[u8], &[u8]) -> bool + Send),
    ) -> Result<bool, CqlError> {
        let mut wants_more = true;
        while wants_more {
            if let Some(scan) = &mut self.scan {
                let last = scan.visit_at_hand(&mut |key, packed| {
                    wants_more = visit(key, packed);
                    wants_more
                });
                if last.is_some() && self.begun_at.is_some() {
                    self.last = last;
                    self.restarts = 0;
                }
                if !wants_more {
                    break;
                }
            }
            match self.next_stored(context).await? {
                Some((key, packed)) => wants_more = visit(&key, &packed),
                None => return Ok(false),
            }
        }
        Ok(true)
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

    /// Begins the scan of the next tablet; false if the range is done.
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
            let covered = reads::keys_of(self.table, tokens);
            let end = covered.end.clone().or_else(|| table.end.clone());
            if end.as_ref().is_some_and(|end| *end <= rest.start) {
                continue;
            }
            // The tablets before this one end where the rest begins.
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
    /// Returns the same in a cluster, where another node may have the tablet.
    async fn begin_owned_tablet(
        &mut self,
        context: &ExecutionContext,
        cluster: &dyn Cluster,
        rest: ByteRange,
    ) -> Result<bool, CqlError> {
        let (scan, tokens, end) = loop {
            let tokens = reads::tokens_of(cluster, &rest.start);
            let covered = reads::keys_of(self.table, tokens);
            let range = ScanRange {
                tokens,
                start: rest.start.clone(),
                end: min_end(rest.end.clone(), covered.end.clone()),
                reversed: false,
            };
            if let Some(scan) = reads::scan(context, cluster, &range).await? {
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

    /// Gives up the scan under way, to begin another behind what it has given.
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

/// Whether the tablet that went away under a scan can be looked for.
pub(super) fn may_begin_again(context: &ExecutionContext, restarts: &mut u8) -> bool {
    if context.cluster().is_some() {
        return true;
    }
    *restarts += 1;
    context.store.is_read_only() && *restarts <= RESTARTS_MAX
}

/// Until it may be known where the tablet is that went away under a scan.
pub(super) async fn wait_for_tablets(context: &ExecutionContext) {
    match context.cluster() {
        Some(cluster) => drop(cluster.changed(cluster.changes(), MOVED_WAIT).await),
        None => _ = context.store.refreshed().await,
    }
}

/// Returns the lesser of two ends; none is beyond everything.
fn min_end(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Takes an entry's key apart.
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
