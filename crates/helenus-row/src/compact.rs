//! What a compaction may forget.
//!
//! Rows that a partition's deletions cover go whenever the filter has seen the header, in any compaction: the header, which is
//! merged on, keeps shadowing what lies elsewhere. Expired cells become tombstones. Where nothing older lies below, at the last run
//! or because the runs below never had the row, tombstones and deletions go too. A header's go where nothing of its partition is below.
//!
//! The header comes before the rows that it covers, so when it is forgotten the same compaction removes those
//! rows: they are in its inputs, as nothing older lies outside of them. But a job may be split into ranges, or resumed after a
//! crash, in the middle of a partition, by a filter that has not seen the header. Such a filter asks for it
//! ([`RowFilter::needs_header`]); the tablet's current state still has it, because a job's outputs replace its
//! inputs only when all of it is done.

use bytes::Bytes;

use crate::error::RowError;
use crate::header::PartitionHeader;
use crate::key::{KeyKind, KeyParts, TableId, key_in_partition, split_key};
use crate::packed::{CellRef, ColumnRef, Packed, RowWriter};
use crate::read::merge_alike;
use crate::row::{CellKind, CellRules, Deletion, Liveness};

/// What is known of a table when a compaction meets its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableState {
    Live {
        /// Tombstones younger than this are kept whatever is below, so that a write which is still under way with an older
        /// timestamp stays deleted.
        purge_grace_s: i64,
        /// Which cells are never read again, and which count as one.
        rules: CellRules,
    },
    /// Dropped or truncated: all its keys may go.
    Gone,
}

/// A compaction job, as its filter is told.
#[derive(Clone, Copy, Debug)]
pub struct CompactionContext {
    /// The caller answers [`RowFilter::needs_header`]; otherwise deletions in headers are never forgotten.
    pub forgets_headers: bool,
    pub now_s: i64,
}

/// What older runs, which take no part in the compaction, may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// No older version of the entry; of a header, nothing of its partition.
    Nothing,
    /// Older versions, which the entry hides whatever they are because it is a whole value.
    Hidden,
    /// Older versions.
    Something,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Keep,
    Drop,
    Replace(Bytes),
}

/// What becomes of an entry, and what is to be known of what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    /// A deletion was kept that would be forgotten with [`Below::Nothing`].
    pub waits: bool,
    /// Nothing of the entry is alive.
    pub is_dead: bool,
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

    /// The header key that must be looked up (a point read of the tablet, whose current state still holds the job's inputs) and
    /// given to [`RowFilter::set_header`] before `key` is filtered. Asked for at most once, when the job or its
    /// resumed part starts in the middle of a partition.
    pub fn needs_header(&self, key: &[u8]) -> Option<Bytes> {
        if self.partition.is_some() || !self.context.forgets_headers {
            return None;
        }
        let parts = split_key(key).ok()?;
        (parts.kind != KeyKind::Header)
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

    /// Decides on one entry, a merge operand or a whole value. May be asked again when more is known of what is below.
    ///
    /// # Errors
    /// [`RowError`] if key or value is corrupt.
    pub fn filter(&mut self, key: &[u8], value: &Bytes, below: Below) -> Result<Verdict, RowError> {
        let parts = split_key(key)?;
        self.enter(&parts);
        let Some((_, TableState::Live { purge_grace_s, rules })) = &self.table else {
            return Ok(Verdict {
                decision: Decision::Drop,
                waits: false,
                is_dead: true,
            });
        };
        let mut purge = Purge {
            purges: match parts.kind {
                // A header's deletions are about rows, which nothing hides.
                KeyKind::Header => below == Below::Nothing && self.context.forgets_headers,
                KeyKind::Static | KeyKind::Row => below != Below::Something,
            },
            waits: false,
            now_s: self.context.now_s,
            before_s: self.context.now_s.saturating_sub(*purge_grace_s),
        };
        if parts.kind == KeyKind::Header {
            let header = PartitionHeader::decode(value)?;
            let decision = purge.header(&header);
            match &mut self.partition {
                // Several versions of one header come one after another.
                Some((_, seen)) => *seen = seen.merge(&header),
                None => self.partition = Some((parts.partition_prefix.to_vec(), header)),
            }
            return Ok(Verdict {
                waits: purge.waits && self.context.forgets_headers,
                ..purge.verdict(decision, false)
            });
        }
        let shadow = self.partition.as_ref().and_then(|(_, header)| match parts.kind {
            KeyKind::Row => header.deletion_at(parts.clustering),
            KeyKind::Static | KeyKind::Header => header.deletion,
        });
        purge.row(value, shadow, rules)
    }

    /// Forgets the partition and the table before, if these are others.
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

/// When what is dead may be forgotten.
#[derive(Clone, Copy, Debug)]
struct Purge {
    /// Nothing older lies below, or it stays hidden.
    purges: bool,
    /// Something was kept only because of what is below.
    waits: bool,
    now_s: i64,
    /// Deletions made before are old enough.
    before_s: i64,
}

impl Purge {
    fn forgets(&mut self, local_deletion_s: i64) -> bool {
        let is_old = local_deletion_s <= self.before_s;
        self.waits |= is_old && !self.purges;
        is_old && self.purges
    }

    fn header(&mut self, header: &PartitionHeader) -> Decision {
        let mut forgets = |deletion: &Deletion| self.forgets(deletion.local_deletion_s);
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
    ) -> Result<Verdict, RowError> {
        let row = Packed::parse(value)?;
        // A row deletion that the header's supersedes is of no more use.
        let deletion = row
            .deletion()
            .filter(|deletion| Some(*deletion) > shadow && !self.forgets(deletion.local_deletion_s));
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
                    // A tombstone that is forgotten must not leave what it deletes.
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
                    let kept = complex_deletion.filter(|d| !self.forgets(d.local_deletion_s));
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

    fn verdict(&self, decision: Decision, is_alive: bool) -> Verdict {
        Verdict {
            decision,
            waits: self.waits,
            is_dead: !is_alive,
        }
    }

    /// An expired liveness still supersedes older ones.
    fn forgets_liveness(&mut self, liveness: &Liveness) -> bool {
        liveness.expiry.is_some_and(|expiry| {
            expiry.expires_at_s <= self.now_s
                && self.forgets(expiry.expires_at_s.saturating_sub(i64::from(expiry.ttl_s)))
        })
    }

    /// What is left of a cell: an expired one is the tombstone that was written when the cell was
    /// (`AbstractCell.purge`).
    fn cell<'a>(&mut self, cell: CellRef<'a>) -> Option<CellRef<'a>> {
        let cell = match cell.kind {
            CellKind::Expiring(expiry) if expiry.expires_at_s <= self.now_s => CellRef {
                timestamp_us: cell.timestamp_us,
                kind: CellKind::Tombstone {
                    local_deletion_s: expiry.expires_at_s.saturating_sub(i64::from(expiry.ttl_s)),
                },
                value: &[],
            },
            _ => cell,
        };
        match cell.kind {
            CellKind::Tombstone { local_deletion_s } if self.forgets(local_deletion_s) => None,
            _ => Some(cell),
        }
    }
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod compact_tests;
