//! Decides which entries a compaction purges.
//!
//! Rows that a deletion of their partition covers are dropped in any compaction whose filter has seen the header. The header is kept, and
//! shadows older versions of these rows in other runs. Expired cells lose their values. Tombstones and deletions are purged if no older
//! version lies below: at the last run, or if the older runs never had the row. The deletions of a header are purged if nothing of its
//! partition lies below.
//!
//! Clients choose timestamps, so a tombstone may also shadow data that is newer than the inputs of the job: in memory, in the log, in
//! younger files. A tombstone is therefore kept unless all such data of its table is newer than the tombstone
//! ([`CompactionContext::newer`]). Later writes find the tombstone in the archive ([`crate::archive`]). Writes that are too recent to look
//! there are newer than any purged tombstone. This holds because a tombstone with a timestamp in the future is kept as long as its archived
//! copy.
//!
//! The header precedes the rows that it covers. A compaction that purges a header also removes those rows: they are in its inputs, as
//! nothing older lies in other runs. But a job may be split into ranges, or resumed after a crash. Its filter may then begin in the middle
//! of a partition, without having seen the header. Such a filter requests the header ([`RowFilter::needs_header`]). The current state of
//! the tablet still has the header, because a job's outputs replace its inputs only when the whole job is complete.

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
/// Age in seconds up to which a tombstone's timestamp is recent. A tombstone with a recent timestamp is kept until it is old enough for the
/// archive to purge it. A write looks into the archive if its timestamp is older than a shorter age. So a write that does not look is never
/// older than a purged tombstone.
const LATE_S_MAX: i64 = 5;

/// The state of a table, which decides how a compaction treats the table's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableState {
    Live {
        /// Seconds for which tombstones are kept whatever is below. A write that is still under way with an older timestamp then stays
        /// deleted.
        purge_grace_s: i64,
        /// Seconds for which the archive keeps tombstones for late writes.
        late_window_s: i64,
        /// True if rows that no compaction sees may lie below all rows of the table. Then no tombstone is purged.
        has_origin: bool,
        /// Rules for cells of dropped columns, and for elements that count as one.
        rules: CellRules,
    },
    /// Dropped or truncated: all its keys may be dropped.
    Gone,
}

/// A function that returns the oldest timestamp, in µs, of a table's data that is newer than a compaction's inputs. `i64::MAX` if there is
/// no such data.
pub type MinNewerTimestamp = Arc<dyn Fn(TableId) -> i64 + Send + Sync>;

/// The parameters of a compaction job.
#[derive(Clone)]
pub struct CompactionContext {
    /// True if the caller answers [`RowFilter::needs_header`]. Otherwise deletions in headers are never purged.
    pub forgets_headers: bool,
    pub now_s: i64,
    pub newer: MinNewerTimestamp,
}

/// The overlap of an entry with older runs, which take no part in the compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OlderOverlap {
    /// No older version of the entry. For a header: nothing of its partition.
    Nothing,
    /// Older versions, all hidden by the entry because it is a whole value.
    Hidden,
    /// Older versions that the entry does not necessarily hide.
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
    /// True if a deletion was kept that would be purged with [`OlderOverlap::Nothing`].
    pub purge_blocked: bool,
    /// True if the entry has no live cells.
    pub is_dead: bool,
    /// True if a deletion that covers other keys was purged.
    pub purged_covering_deletion: bool,
}

/// The filter of one compaction job, or of one part of it. Entries must come in key order.
pub struct RowFilter<T> {
    context: CompactionContext,
    tables: T,
    table: Option<(TableId, TableState)>,
    /// The prefix and header of the last entry's partition. `None` before the first entry.
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

    /// Returns the header key that must be looked up and given to [`RowFilter::set_header`] before `key` is filtered. The caller reads it
    /// from the tablet, whose current state still holds the job's inputs. `None` if no header is needed. At most one header is requested,
    /// when the job or its resumed part starts in the middle of a partition.
    pub fn needs_header(&self, key: &[u8]) -> Option<Bytes> {
        if self.partition.is_some() || !self.context.forgets_headers {
            return None;
        }
        let parts = split_key(key).ok()?;
        (parts.kind != KeyKind::Header && parts.table != ARCHIVE)
            .then(|| key_in_partition(parts.partition_prefix, KeyKind::Header, &[]))
    }

    /// Sets the header that [`RowFilter::needs_header`] requested. `value` is `None` if the partition has no header.
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

    /// Decides on one entry, a merge operand or a whole value. Can be called again for the entry when more is known of the overlap.
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
                // A header's deletions cover rows, which a whole header value does not hide.
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
                // Several versions of one header arrive in sequence.
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

    /// Decides on an entry of the archive. Such entries have no effect on older runs.
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
        // An archived tombstone deletes nothing in place and costs readers nothing.
        Ok(FilterOutcome {
            purge_blocked: false,
            is_dead: false,
            ..verdict
        })
    }

    /// Sets the current partition and table to those of a key.
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
    /// True if no older version lies below, or if the entry hides all of them.
    purges: bool,
    /// True if data was kept only because of the overlap with older runs.
    purge_blocked: bool,
    now_s: i64,
    /// The latest deletion time at which a deletion is old enough to be purged.
    before_s: i64,
    /// Timestamp in µs. Deletions with a later timestamp are purged only if they were made at `future_before_s` or earlier.
    future_us: i64,
    future_before_s: i64,
    /// Lower bound, in µs, of the timestamps of data newer than the compaction's inputs.
    newer_us: i64,
}

impl Purge {
    /// Returns the conditions that purge tombstones made at least `age_s` ago.
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
        // A row deletion is useless if the header's deletion supersedes it.
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
                    // Equal elements are merged first: purging a tombstone must not leave the data that the tombstone deletes.
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

    /// Returns true if an expired liveness can be purged. Until then it is kept like a tombstone, since it still supersedes older ones.
    fn forgets_liveness(&mut self, liveness: &Liveness) -> bool {
        liveness
            .expiry
            .is_some_and(|expiry| self.forgets_expired(liveness.timestamp_us, expiry))
    }

    /// Returns true if an expired cell or liveness can be purged. Its age counts from the write that set its expiry (`AbstractCell.purge`).
    fn forgets_expired(&mut self, timestamp_us: i64, expiry: Expiry) -> bool {
        expiry.expires_at_s <= self.now_s
            && self.forgets(
                timestamp_us,
                expiry.expires_at_s.saturating_sub(i64::from(expiry.ttl_s)),
            )
    }

    /// Returns the part of a cell that is kept. An expired cell stays an expired cell, without its value. A tombstone in its place, as in
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
