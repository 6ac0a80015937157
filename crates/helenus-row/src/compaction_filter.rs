//! Decides which entries a compaction purges.
//!
//! Rows that a deletion of their partition covers are dropped whenever the filter has seen the header, in any compaction: the header is kept
//! and shadows their remains elsewhere. Expired cells lose their values. Tombstones and deletions are purged where no older version lies
//! below: at the last run, or where the older runs never had the row. The deletions of a header are purged where nothing of its partition
//! lies below.
//!
//! Clients choose timestamps, so a tombstone may also shadow data that is newer than the inputs of the job: in memory, in the log, in
//! younger files. A tombstone is therefore kept unless all such data of its table is newer than it ([`CompactionContext::newer`]). Later
//! writes find it in the archive ([`crate::archive`]). Writes that are too recent to look there are newer than any purged tombstone, since a
//! tombstone whose timestamp lies in the future is kept as long as its archived copy.
//!
//! The header precedes the rows that it covers. A compaction that purges it removes those rows as well: they are in its inputs, as nothing
//! older lies elsewhere. But a job may be split into ranges, or resumed after a crash, in the middle of a partition, with a filter that has
//! not seen the header. Such a filter requests it ([`RowFilter::needs_header`]); the current state of the tablet still has it, because the
//! outputs of a job replace its inputs only when the whole job is complete.

use std::sync::Arc;

use bytes::Bytes;

use crate::archive::{ARCHIVE, archived_table, without_value};
use crate::error::RowError;
use crate::header::PartitionHeader;
use crate::key::{KeyKind, KeyParts, TableId, key_in_partition, split_key};
use crate::packed::{CellRef, ColumnRef, Packed, RowWriter};
use crate::read::merge_alike;
use crate::row::{CellKind, CellRules, Deletion, Expiry, Liveness};

const MICROS: i64 = 1_000_000;
/// A tombstone whose timestamp lies no further back than this is kept, unless it is as old as the archive's. A write looks into the archive
/// when its timestamp lies further back than a shorter time; so a write that does not look is never older than a purged tombstone.
const LATE_S_MAX: i64 = 5;

/// The state of a table, by which a compaction treats its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableState {
    Live {
        /// Tombstones younger than this are kept whatever is below, so that a write which is still under way with an older
        /// timestamp stays deleted.
        purge_grace_s: i64,
        /// How long the archive keeps tombstones for late writes.
        late_window_s: i64,
        /// Rows that no compaction sees may lie below all of the table's: no tombstone is purged.
        has_origin: bool,
        /// Which cells are never read again, and which count as one.
        rules: CellRules,
    },
    /// Dropped or truncated: all its keys may go.
    Gone,
}

/// The oldest timestamp, in µs, of a table's data that is newer than a compaction's inputs; `i64::MAX` if there is none.
pub type MinNewerTimestamp = Arc<dyn Fn(TableId) -> i64 + Send + Sync>;

/// The parameters of a compaction job.
#[derive(Clone)]
pub struct CompactionContext {
    /// The caller answers [`RowFilter::needs_header`]; otherwise deletions in headers are never purged.
    pub forgets_headers: bool,
    pub now_s: i64,
    pub newer: MinNewerTimestamp,
}

/// The overlap of an entry with older runs, which take no part in the compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OlderOverlap {
    /// No older version of the entry; of a header, nothing of its partition.
    Nothing,
    /// Older versions, which the entry hides whatever they are because it is a whole value.
    Hidden,
    /// Older versions.
    Something,
}

/// The decision on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Keep,
    Drop,
    Replace(Bytes),
}

/// The decision on an entry, with its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterOutcome {
    pub decision: Decision,
    /// A deletion was kept that would be purged with [`OlderOverlap::Nothing`].
    pub purge_blocked: bool,
    /// The entry has no live cells.
    pub is_dead: bool,
    /// A deletion that covers other keys was purged.
    pub purged_covering_deletion: bool,
}

/// The filter of one compaction job (or of one part of it): entries come in key order.
pub struct RowFilter<T> {
    context: CompactionContext,
    tables: T,
    table: Option<(TableId, TableState)>,
    /// Of the partition that the last entry was in.
    partition: Option<(Vec<u8>, PartitionHeader)>,
}

impl<T: FnMut(TableId) -> TableState> RowFilter<T> {
    pub fn new(context: CompactionContext, tables: T) -> Self {
        RowFilter {
            context,
            tables,
            table: None,
            partition: None,
        }
    }

    /// Returns the header key that must be looked up (a point read of the tablet, whose current state still holds the job's inputs) and
    /// given to [`RowFilter::set_header`] before `key` is filtered. Asked for at most once, when the job or its
    /// resumed part starts in the middle of a partition.
    pub fn needs_header(&self, key: &[u8]) -> Option<Bytes> {
        if self.partition.is_some() || !self.context.forgets_headers {
            return None;
        }
        let parts = split_key(key).ok()?;
        (parts.kind != KeyKind::Header && parts.table != ARCHIVE)
            .then(|| key_in_partition(parts.partition_prefix, KeyKind::Header, &[]))
    }

    /// Answers [`RowFilter::needs_header`].
    ///
    /// # Errors
    /// [`RowError`] if key or value is corrupt.
    pub fn set_header(&mut self, header_key: &[u8], value: Option<&[u8]>) -> Result<(), RowError> {
        let parts = split_key(header_key)?;
        let header = value
            .map(PartitionHeader::decode)
            .transpose()?
            .unwrap_or_default();
        self.partition = Some((parts.partition_prefix.to_vec(), header));
        Ok(())
    }

    /// Decides on one entry, a merge operand or a whole value. May be called again when more is known of the overlap.
    ///
    /// # Errors
    /// [`RowError`] if key or value is corrupt.
    pub fn filter(
        &mut self,
        key: &[u8],
        value: &Bytes,
        below: OlderOverlap,
    ) -> Result<FilterOutcome, RowError> {
        let parts = split_key(key)?;
        if parts.table == ARCHIVE {
            return self.archived(&parts, value);
        }
        self.enter(&parts);
        let Some((
            table,
            TableState::Live {
                purge_grace_s,
                late_window_s,
                has_origin,
                rules,
            },
        )) = &self.table
        else {
            return Ok(FilterOutcome::gone());
        };
        let now_s = self.context.now_s;
        let below = match has_origin {
            true => OlderOverlap::Something,
            false => below,
        };
        let mut purge = Purge {
            purges: match parts.kind {
                // A header's deletions are about rows, which nothing hides.
                KeyKind::Header => below == OlderOverlap::Nothing && self.context.forgets_headers,
                KeyKind::Static | KeyKind::Row => below != OlderOverlap::Something,
            },
            purge_blocked: false,
            now_s,
            before_s: now_s.saturating_sub(*purge_grace_s),
            future_us: now_s.saturating_sub(LATE_S_MAX).saturating_mul(MICROS),
            future_before_s: now_s.saturating_sub(*late_window_s),
            newer_us: (self.context.newer)(*table),
        };
        if parts.kind == KeyKind::Header {
            let header = PartitionHeader::decode(value)?;
            let decision = purge.header(&header);
            match &mut self.partition {
                // Several versions of one header come one after another.
                Some((_, seen)) => *seen = seen.merge(&header),
                None => self.partition = Some((parts.partition_prefix.to_vec(), header)),
            }
            return Ok(FilterOutcome {
                purge_blocked: purge.purge_blocked && self.context.forgets_headers,
                purged_covering_deletion: decision != Decision::Keep,
                ..purge.verdict(decision, false)
            });
        }
        let shadow = self.partition.as_ref().and_then(|(_, header)| match parts.kind {
            KeyKind::Row => header.deletion_at(parts.clustering),
            KeyKind::Static | KeyKind::Header => header.deletion,
        });
        purge.row(value, shadow, rules)
    }

    /// Decides on an entry of the archive, which has no effect on older runs.
    fn archived(&mut self, parts: &KeyParts<'_>, value: &Bytes) -> Result<FilterOutcome, RowError> {
        let state = archived_table(parts).map(&mut self.tables);
        let Some(TableState::Live { late_window_s, .. }) = state else {
            return Ok(FilterOutcome::gone());
        };
        let mut purge = Purge::at(self.context.now_s, late_window_s);
        let verdict = match parts.kind {
            KeyKind::Header => {
                let decision = purge.header(&PartitionHeader::decode(value)?);
                purge.verdict(decision, false)
            }
            KeyKind::Static | KeyKind::Row => purge.row(value, None, &CellRules::default())?,
        };
        // It deletes nothing where it lies, so no reader stumbles over it.
        Ok(FilterOutcome {
            purge_blocked: false,
            is_dead: false,
            ..verdict
        })
    }

    /// Enters the partition and the table of a key, and leaves the previous ones.
    fn enter(&mut self, parts: &KeyParts<'_>) {
        if self.table.as_ref().is_none_or(|(table, _)| *table != parts.table) {
            self.table = Some((parts.table, (self.tables)(parts.table)));
        }
        match &mut self.partition {
            Some((prefix, _)) if prefix == parts.partition_prefix => {}
            Some((prefix, header)) => {
                prefix.clear();
                prefix.extend_from_slice(parts.partition_prefix);
                *header = PartitionHeader::default();
            }
            None => self.partition = Some((parts.partition_prefix.to_vec(), PartitionHeader::default())),
        }
    }
}

impl FilterOutcome {
    /// Returns the decision on entries of a dropped table.
    fn gone() -> FilterOutcome {
        FilterOutcome {
            decision: Decision::Drop,
            purge_blocked: false,
            is_dead: true,
            purged_covering_deletion: false,
        }
    }
}

/// The conditions for purging dead data.
#[derive(Clone, Copy, Debug)]
struct Purge {
    /// Nothing older lies below, or it stays hidden.
    purges: bool,
    /// Data was kept only because of the overlap with older runs.
    purge_blocked: bool,
    now_s: i64,
    /// Deletions made before are old enough.
    before_s: i64,
    /// Deletions with later timestamps than this are old enough only if they were made before `future_before_s`.
    future_us: i64,
    future_before_s: i64,
    /// Data newer than the compaction's inputs is not older than this.
    newer_us: i64,
}

impl Purge {
    /// Purges tombstones that were made longer ago than `age_s`.
    fn at(now_s: i64, age_s: i64) -> Purge {
        Purge {
            purges: true,
            purge_blocked: false,
            now_s,
            before_s: now_s.saturating_sub(age_s),
            future_us: i64::MAX,
            future_before_s: i64::MAX,
            newer_us: i64::MAX,
        }
    }

    fn forgets(&mut self, timestamp_us: i64, local_deletion_s: i64) -> bool {
        let is_old = local_deletion_s <= self.before_s
            && (timestamp_us <= self.future_us || local_deletion_s <= self.future_before_s);
        let may_go = is_old && timestamp_us < self.newer_us;
        self.purge_blocked |= may_go && !self.purges;
        may_go && self.purges
    }

    fn forgets_deletion(&mut self, deletion: &Deletion) -> bool {
        self.forgets(deletion.timestamp_us, deletion.local_deletion_s)
    }

    fn header(&mut self, header: &PartitionHeader) -> Decision {
        let mut forgets = |deletion: &Deletion| self.forgets_deletion(deletion);
        let mut kept = header.clone();
        kept.deletion = kept.deletion.filter(|deletion| !forgets(deletion));
        kept.retain_ranges(|tombstone| !forgets(&tombstone.deletion));
        if kept.is_empty() {
            Decision::Drop
        } else if kept == *header {
            Decision::Keep
        } else {
            Decision::Replace(kept.encode())
        }
    }

    fn row(
        &mut self,
        value: &Bytes,
        shadow: Option<Deletion>,
        rules: &CellRules,
    ) -> Result<FilterOutcome, RowError> {
        let row = Packed::parse(value)?;
        // A row deletion that the header's supersedes is of no more use.
        let deletion = row
            .deletion()
            .filter(|deletion| Some(*deletion) > shadow && !self.forgets_deletion(deletion));
        let shadow = Deletion::max(shadow, row.deletion());
        let shadows = |timestamp_us: i64| shadow.is_some_and(|shadow| shadow.deletes(timestamp_us));
        let liveness = row
            .liveness()
            .filter(|liveness| !shadows(liveness.timestamp_us) && !self.forgets_liveness(liveness));
        let mut writer = RowWriter::new(liveness, deletion, value.len());
        let mut elements = Vec::new();
        let mut empty = liveness.is_none() && deletion.is_none();
        let mut is_alive = liveness.is_some_and(|liveness| liveness.is_live(self.now_s));
        for column in row.columns() {
            let (id, column) = column?;
            let shadow = rules.over(id, shadow);
            match column {
                ColumnRef::Simple(cell) if shadow.is_some_and(|shadow| shadow.deletes(cell.timestamp_us)) => {
                }
                ColumnRef::Simple(cell) => {
                    if let Some(cell) = self.cell(cell) {
                        writer.simple(id, &cell);
                        empty = false;
                        is_alive |= cell.is_live(self.now_s);
                    }
                }
                ColumnRef::Complex(complex) => {
                    elements.clear();
                    let complex_deletion = complex.deletion.filter(|deletion| Some(*deletion) > shadow);
                    let shadow = complex_deletion.or(shadow);
                    for element in complex.cells() {
                        let (path, cell) = element?;
                        if !shadow.is_some_and(|shadow| shadow.deletes(cell.timestamp_us)) {
                            elements.push((path, cell));
                        }
                    }
                    // A purged tombstone must not leave the data that it deletes.
                    if let Some(path_type) = rules.alike(id) {
                        merge_alike(path_type, &mut elements);
                    }
                    elements.retain_mut(|(_, cell)| match self.cell(*cell) {
                        Some(kept) => {
                            *cell = kept;
                            true
                        }
                        None => false,
                    });
                    is_alive |= elements.iter().any(|(_, cell)| cell.is_live(self.now_s));
                    let kept = complex_deletion.filter(|deletion| !self.forgets_deletion(deletion));
                    empty &= kept.is_none() && elements.is_empty();
                    writer.complex(id, kept, &elements);
                }
            }
        }
        if empty {
            return Ok(self.verdict(Decision::Drop, false));
        }
        let exact = row.exact_clustering()?;
        let packed = writer.finish(
            exact
                .as_ref()
                .map(|(timestamp_us, parts)| (*timestamp_us, &**parts)),
        );
        let decision = if packed == *value {
            Decision::Keep
        } else {
            Decision::Replace(packed)
        };
        Ok(self.verdict(decision, is_alive))
    }

    fn verdict(&self, decision: Decision, is_alive: bool) -> FilterOutcome {
        FilterOutcome {
            decision,
            purge_blocked: self.purge_blocked,
            is_dead: !is_alive,
            purged_covering_deletion: false,
        }
    }

    /// Returns an expired liveness still supersedes older ones.
    fn forgets_liveness(&mut self, liveness: &Liveness) -> bool {
        liveness
            .expiry
            .is_some_and(|expiry| self.forgets_expired(liveness.timestamp_us, expiry))
    }

    /// Returns an expired cell is as old as the write that set its expiry (`AbstractCell.purge`).
    fn forgets_expired(&mut self, timestamp_us: i64, expiry: Expiry) -> bool {
        expiry.expires_at_s <= self.now_s
            && self.forgets(
                timestamp_us,
                expiry.expires_at_s.saturating_sub(i64::from(expiry.ttl_s)),
            )
    }

    /// Returns the part of a cell that is kept. An expired cell stays an expired cell, without its value: a tombstone in its place, as in
    /// Cassandra, would win over a cell of the same timestamp that expires later.
    fn cell<'a>(&mut self, cell: CellRef<'a>) -> Option<CellRef<'a>> {
        match cell.kind {
            CellKind::Expiring(expiry) if self.forgets_expired(cell.timestamp_us, expiry) => None,
            CellKind::Expiring(expiry) if expiry.expires_at_s <= self.now_s => Some(without_value(cell)),
            CellKind::Tombstone { local_deletion_s } if self.forgets(cell.timestamp_us, local_deletion_s) => {
                None
            }
            _ => Some(cell),
        }
    }
}

#[cfg(test)]
#[path = "compaction_filter_tests.rs"]
mod compaction_filter_tests;
