//! The writer of packed rows.

use bytes::Bytes;

use super::CellRef;
use super::parts::{
    COMPLEX, HAS_BASE_EXPIRY, HAS_COMPLEX_DELETION, HAS_DELETION, HAS_EXACT_CLUSTERING, HAS_LIVENESS,
    TimeBase, UNIFORM, put_cell, put_deletion, put_expiry,
};
use crate::row::{CellKind, ColumnId, Deletion, Liveness};
use crate::varint::{put_bytes, put_signed, put_unsigned};

/// Writes a packed row in one pass. The columns are written first, and the head is inserted before them at the end. Cells that the row's
/// own deletions shadow are omitted, so equal rows have equal bytes.
#[derive(Debug)]
pub(crate) struct RowWriter {
    liveness: Option<Liveness>,
    deletion: Option<Deletion>,
    base: Option<TimeBase>,
    uniform: bool,
    next_id: u32,
    body: Vec<u8>,
}

/// Maximum bytes of a head without exact clustering: flags, base, expiry, deletion.
const HEAD_LEN_MAX: usize = 1 + 10 + 5 + 10 + 10 + 10;

impl RowWriter {
    pub(crate) fn new(liveness: Option<Liveness>, deletion: Option<Deletion>, capacity: usize) -> RowWriter {
        let liveness =
            liveness.filter(|liveness| !deletion.is_some_and(|d| d.deletes(liveness.timestamp_us)));
        let mut body = Vec::with_capacity(HEAD_LEN_MAX + capacity);
        body.resize(HEAD_LEN_MAX, 0);
        RowWriter {
            liveness,
            deletion,
            base: liveness.map(|liveness| TimeBase {
                timestamp_us: liveness.timestamp_us,
                expiry: liveness.expiry,
            }),
            uniform: true,
            next_id: 0,
            body,
        }
    }

    fn column_id(&mut self, id: ColumnId) {
        put_unsigned(&mut self.body, u64::from(id.0.wrapping_sub(self.next_id)));
        self.next_id = id.0.wrapping_add(1);
    }

    /// Adds a column of one cell. Callers must add columns in ascending order of ids.
    #[inline]
    pub(crate) fn simple(&mut self, id: ColumnId, cell: &CellRef<'_>) {
        if self
            .deletion
            .is_some_and(|deletion| deletion.deletes(cell.timestamp_us))
        {
            return;
        }
        let base = *self.base.get_or_insert_with(|| base_of_cell(cell));
        self.uniform &= cell.timestamp_us == base.timestamp_us;
        self.column_id(id);
        put_cell(&mut self.body, cell, base);
    }

    /// Adds a column of many cells. Ids must ascend, and so must the paths.
    pub(crate) fn complex(
        &mut self,
        id: ColumnId,
        deletion: Option<Deletion>,
        cells: &[(&[u8], CellRef<'_>)],
    ) {
        let deletion = deletion.filter(|deletion| Some(*deletion) > self.deletion);
        let shadow = deletion.or(self.deletion);
        let mut kept = cells
            .iter()
            .filter(|(_, cell)| !shadow.is_some_and(|shadow| shadow.deletes(cell.timestamp_us)))
            .peekable();
        let base = match (self.base, deletion, kept.peek()) {
            (Some(base), _, _) => base,
            // An overwrite deletes at its timestamp minus one, so this base is the write's own timestamp.
            (None, Some(deletion), _) => TimeBase {
                timestamp_us: deletion.timestamp_us.saturating_add(1),
                expiry: None,
            },
            (None, None, Some((_, cell))) => base_of_cell(cell),
            (None, None, None) => return,
        };
        if deletion.is_none() && kept.peek().is_none() {
            return;
        }
        self.base = Some(base);
        self.uniform = false;
        self.column_id(id);
        self.body.push(
            COMPLEX
                | if deletion.is_some() {
                    HAS_COMPLEX_DELETION
                } else {
                    0
                },
        );
        let mut content = Vec::new();
        if let Some(deletion) = deletion {
            put_deletion(&mut content, deletion, base);
        }
        for (path, cell) in kept {
            put_bytes(&mut content, path);
            put_cell(&mut content, cell, base);
        }
        put_bytes(&mut self.body, &content);
    }

    /// Returns the packed row.
    pub(crate) fn finish(mut self, exact: Option<(i64, &[&[u8]])>) -> Bytes {
        let base = self.base.unwrap_or_else(|| TimeBase {
            timestamp_us: self.deletion.map_or(0, |deletion| deletion.timestamp_us),
            expiry: None,
        });
        let mut head = Vec::with_capacity(HEAD_LEN_MAX);
        head.push(self.flags(base, exact.is_some()));
        put_signed(&mut head, base.timestamp_us);
        if let Some(expiry) = base.expiry {
            put_expiry(&mut head, expiry, base.timestamp_us);
        }
        if let Some(deletion) = self.deletion {
            put_deletion(&mut head, deletion, base);
        }
        if let Some((timestamp_us, parts)) = exact {
            put_signed(&mut head, timestamp_us.wrapping_sub(base.timestamp_us));
            put_unsigned(&mut head, parts.len() as u64);
            parts.iter().for_each(|part| put_bytes(&mut head, part));
        }
        let start = HEAD_LEN_MAX.saturating_sub(head.len());
        if head.len() > HEAD_LEN_MAX {
            self.body.splice(..HEAD_LEN_MAX, head);
        } else if let Some(room) = self.body.get_mut(start..HEAD_LEN_MAX) {
            room.copy_from_slice(&head);
        }
        let packed = Bytes::from(self.body);
        packed.slice(start..)
    }

    fn flags(&self, base: TimeBase, exact: bool) -> u8 {
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        flag(self.liveness.is_some(), HAS_LIVENESS)
            | flag(base.expiry.is_some(), HAS_BASE_EXPIRY)
            | flag(self.deletion.is_some(), HAS_DELETION)
            | flag(exact, HAS_EXACT_CLUSTERING)
            | flag(self.uniform, UNIFORM)
    }
}

fn base_of_cell(cell: &CellRef<'_>) -> TimeBase {
    TimeBase {
        timestamp_us: cell.timestamp_us,
        expiry: match cell.kind {
            CellKind::Expiring(expiry) => Some(expiry),
            CellKind::Live | CellKind::Tombstone { .. } | CellKind::Counter => None,
        },
    }
}
