//! Rows as plain data, before they are packed.
//!
//! The names and the rules follow `org.apache.cassandra.db.{LivenessInfo, DeletionTime}` and `org.apache.cassandra.db.rows.*`. Timestamps are
//! the client's, in microseconds; deletion and expiration times are the server's clock, in seconds since 1970.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::types::CqlType;

use crate::error::RowError;
use crate::merge::{merge_liveness, reconcile_cells};
use crate::packed::{CellRef, ColumnRef, RowRef, RowWriter};

/// The permanent id of a column within a table. It survives ALTER TABLE … RENAME, and no other column ever gets it. A column that is
/// dropped and added again keeps its id. [`CellRules`] then separate its old cells from its new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// A row's primary key liveness. It records that an INSERT wrote the row, whatever happens to the row's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    pub timestamp_us: i64,
    /// `None` if written without TTL.
    pub expiry: Option<Expiry>,
}

/// The TTL and the expiry time of a cell or of a liveness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expiry {
    /// The TTL given in `USING TTL`, above 0.
    pub ttl_s: i32,
    /// The expiry time: the cell is live while `now < expires_at_s` (Cassandra's local deletion time of an expiring cell).
    pub expires_at_s: i64,
}

/// A deletion, which shadows everything written at or before its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deletion {
    pub timestamp_us: i64,
    /// The time at which the server performed the deletion.
    pub local_deletion_s: i64,
}

impl Deletion {
    /// Returns true if the deletion shadows data written at `timestamp_us` (`DeletionTime.deletes`).
    pub fn deletes(&self, timestamp_us: i64) -> bool {
        timestamp_us <= self.timestamp_us
    }

    /// Returns the stronger of two deletions; the order is that of `DeletionTime.supersedes`.
    pub fn max(a: Option<Deletion>, b: Option<Deletion>) -> Option<Deletion> {
        Ord::max(a, b)
    }
}

/// Properties of cells that follow from the table's definition, not from their bytes. Most tables have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellRules {
    /// Dropped columns, each with the time of its drop in µs. Cells of the column up to that time are deleted.
    dropped: Option<Arc<[(ColumnId, i64)]>>,
    /// Columns of many cells whose paths can be equal but differ in bytes, such as `1.0` and `1.00`, each with the type of its paths.
    alike: Option<Arc<[(ColumnId, CqlType)]>>,
}

impl CellRules {
    /// Creates rules from columns in any order. No column may occur twice in a list.
    pub fn new(mut dropped: Vec<(ColumnId, i64)>, alike: Vec<(ColumnId, CqlType)>) -> CellRules {
        dropped.sort_unstable();
        CellRules {
            dropped: (!dropped.is_empty()).then(|| dropped.into()),
            alike: (!alike.is_empty()).then(|| alike.into()),
        }
    }

    /// Returns the type of the column's paths if different bytes can be equal paths, and `None` otherwise.
    pub fn alike(&self, column: ColumnId) -> Option<&CqlType> {
        let mut columns = self.alike.as_ref()?.iter();
        columns.find(|(id, _)| *id == column).map(|(_, ty)| ty)
    }

    /// Returns the deletion that shadows a cell of the column. `shadow` is the deletion that shadows the row.
    pub fn over(&self, column: ColumnId, shadow: Option<Deletion>) -> Option<Deletion> {
        let Some(columns) = &self.dropped else {
            return shadow;
        };
        let Ok(at) = columns.binary_search_by_key(&column, |(id, _)| *id) else {
            return shadow;
        };
        let dropped = columns.get(at).map(|(_, timestamp_us)| Deletion {
            timestamp_us: *timestamp_us,
            local_deletion_s: i64::MAX,
        });
        Deletion::max(shadow, dropped)
    }
}

impl Liveness {
    /// Returns true if this liveness makes the row live at `now_s`.
    pub fn is_live(&self, now_s: i64) -> bool {
        self.expiry.is_none_or(|expiry| now_s < expiry.expires_at_s)
    }
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellKind {
    Live,
    Expiring(Expiry),
    /// A deleted cell, without a value.
    Tombstone {
        local_deletion_s: i64,
    },
    /// A counter's total: 8 bytes, big-endian.
    Counter,
}

/// One value, or the tombstone of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub timestamp_us: i64,
    pub kind: CellKind,
    /// The serialized value. Empty for tombstones.
    pub value: Bytes,
}

impl Cell {
    pub fn live(timestamp_us: i64, value: impl Into<Bytes>) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Live,
            value: value.into(),
        }
    }

    pub fn expiring(timestamp_us: i64, expiry: Expiry, value: impl Into<Bytes>) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Expiring(expiry),
            value: value.into(),
        }
    }

    pub fn tombstone(timestamp_us: i64, local_deletion_s: i64) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Tombstone { local_deletion_s },
            value: Bytes::new(),
        }
    }

    pub fn counter(timestamp_us: i64, total: i64) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Counter,
            value: Bytes::copy_from_slice(&total.to_be_bytes()),
        }
    }
}

impl Cell {
    /// Returns a borrowed form of the cell, which reads and merges use.
    pub fn borrow(&self) -> CellRef<'_> {
        CellRef {
            timestamp_us: self.timestamp_us,
            kind: self.kind,
            value: &self.value,
        }
    }
}

/// The cells of a collection or user type that isn't frozen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complex {
    /// The deletion that shadows older elements. An overwrite (`SET c = {…}`) deletes at its timestamp minus one.
    pub deletion: Option<Deletion>,
    /// The cells by path, ascending as unsigned bytes. No path occurs twice. The path is a list's timeuuid, a set's element, a map's key
    /// (both serialized), or a user type's field position as a big-endian u16.
    pub cells: Vec<(Bytes, Cell)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnData {
    Simple(Cell),
    Complex(Complex),
}

/// Clustering values whose bytes differ from those that the key decodes to. For example, the decimal `1.0` has the key of `1`. The values
/// of the oldest write are kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExactClustering {
    pub timestamp_us: i64,
    pub components: Vec<Bytes>,
}

/// A row or a part of one: the effect of one write, or of all writes so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub liveness: Option<Liveness>,
    pub deletion: Option<Deletion>,
    pub exact_clustering: Option<ExactClustering>,
    /// The columns, in ascending order. No column occurs twice.
    pub columns: Vec<(ColumnId, ColumnData)>,
}

impl Row {
    /// Returns true if the row has neither liveness, deletion nor cells.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_none() && self.deletion.is_none() && self.columns.is_empty()
    }

    /// Returns the packed bytes, which are both a merge operand and a stored value. Cells that the row's own deletions shadow are omitted.
    pub fn encode(&self) -> Bytes {
        let mut writer = RowWriter::new(self.liveness, self.deletion, self.values_len());
        let mut elements = Vec::new();
        for (id, column) in &self.columns {
            match column {
                ColumnData::Simple(cell) => writer.simple(*id, &cell.borrow()),
                ColumnData::Complex(complex) => {
                    elements.clear();
                    elements.extend(complex.cells.iter().map(|(path, cell)| (&**path, cell.borrow())));
                    writer.complex(*id, complex.deletion, &elements);
                }
            }
        }
        let exact = self.exact_clustering.as_ref().map(|exact| {
            let parts: Vec<&[u8]> = exact.components.iter().map(|part| &**part).collect();
            (exact.timestamp_us, parts)
        });
        writer.finish(
            exact
                .as_ref()
                .map(|(timestamp_us, parts)| (*timestamp_us, &**parts)),
        )
    }

    /// Returns an estimate of the columns' packed size, in bytes.
    fn values_len(&self) -> usize {
        self.columns
            .iter()
            .map(|(_, column)| match column {
                ColumnData::Simple(cell) => cell.value.len() + 8,
                ColumnData::Complex(_) => 64,
            })
            .sum()
    }

    /// Unpacks the whole row. Reads use [`crate::packed::RowRef`] instead.
    ///
    /// # Errors
    /// [`RowError`] if the bytes aren't a packed row.
    pub fn decode(packed: &Bytes) -> Result<Row, RowError> {
        let row = RowRef::parse(packed.clone())?;
        let mut columns = Vec::new();
        for column in row.columns() {
            let (id, column) = column?;
            let data = match column {
                ColumnRef::Simple(cell) => ColumnData::Simple(row.own(&cell)),
                ColumnRef::Complex(complex) => ColumnData::Complex(Complex {
                    deletion: complex.deletion,
                    cells: complex
                        .cells()
                        .map(|element| element.map(|(path, cell)| (row.slice(path), row.own(&cell))))
                        .collect::<Result<_, _>>()?,
                }),
            };
            columns.push((id, data));
        }
        Ok(Row {
            liveness: row.liveness(),
            deletion: row.deletion(),
            exact_clustering: row.exact_clustering()?,
            columns,
        })
    }
}

/// Collects the changes of one write to one row, in any order. Repeated changes are reconciled.
#[derive(Clone, Debug, Default)]
pub struct RowBuilder {
    row: Row,
}

impl RowBuilder {
    pub fn new() -> RowBuilder {
        RowBuilder::default()
    }

    /// Adds a liveness, as an INSERT does.
    pub fn liveness(&mut self, liveness: Liveness) -> &mut Self {
        self.row.liveness = merge_liveness(self.row.liveness, Some(liveness));
        self
    }

    /// Deletes the row: everything at or before the deletion's timestamp.
    pub fn delete_row(&mut self, deletion: Deletion) -> &mut Self {
        self.row.deletion = Deletion::max(self.row.deletion, Some(deletion));
        self
    }

    /// Adds the clustering values as the client wrote them. They are needed if [`crate::key::EncodedClustering::canonical`] is false, or
    /// may be false in another write of the row.
    pub fn exact_clustering(&mut self, timestamp_us: i64, components: Vec<Bytes>) -> &mut Self {
        let exact = ExactClustering {
            timestamp_us,
            components,
        };
        self.row.exact_clustering = Some(match self.row.exact_clustering.take() {
            Some(known) => known.min(exact),
            None => exact,
        });
        self
    }

    /// Writes or deletes (with a tombstone) a column of one cell. A column that already has many cells keeps them.
    pub fn cell(&mut self, column: ColumnId, cell: Cell) -> &mut Self {
        match self.row.columns.binary_search_by_key(&column, |(id, _)| *id) {
            Err(at) => self.row.columns.insert(at, (column, ColumnData::Simple(cell))),
            Ok(at) => {
                if let Some((_, ColumnData::Simple(old))) = self.row.columns.get_mut(at)
                    && reconcile_cells(&cell.borrow(), &old.borrow()).is_gt()
                {
                    *old = cell;
                }
            }
        }
        self
    }

    /// Deletes all elements of a column of many cells.
    pub fn delete_complex(&mut self, column: ColumnId, deletion: Deletion) -> &mut Self {
        let complex = self.complex(column);
        complex.deletion = Deletion::max(complex.deletion, Some(deletion));
        self
    }

    /// Writes or deletes one element of a column of many cells.
    pub fn complex_cell(&mut self, column: ColumnId, path: Bytes, cell: Cell) -> &mut Self {
        let cells = &mut self.complex(column).cells;
        match cells.binary_search_by(|(other, _)| other.cmp(&path)) {
            Err(at) => cells.insert(at, (path, cell)),
            Ok(at) => {
                if let Some((_, old)) = cells.get_mut(at)
                    && reconcile_cells(&cell.borrow(), &old.borrow()).is_gt()
                {
                    *old = cell;
                }
            }
        }
        self
    }

    /// Writes or deletes many elements of a column of many cells, in any order. Clients do not send elements in the order of paths, and
    /// inserting them one by one would take quadratic time.
    pub fn complex_cells(
        &mut self,
        column: ColumnId,
        added: impl IntoIterator<Item = (Bytes, Cell)>,
    ) -> &mut Self {
        let cells = &mut self.complex(column).cells;
        let known = cells.len();
        cells.extend(added);
        let is_ascending = |pair: &[(Bytes, Cell)]| matches!(pair, [(a, _), (b, _)] if a < b);
        let from = known.saturating_sub(1);
        if cells
            .get(from..)
            .is_some_and(|tail| tail.windows(2).all(is_ascending))
        {
            return self;
        }
        // The sort is stable: of cells that reconcile as equal the first is kept, as if they were added one by one.
        cells.sort_by(|(a, _), (b, _)| a.cmp(b));
        cells.dedup_by(|(path, cell), (kept_path, kept)| {
            let is_same = path == kept_path;
            if is_same && reconcile_cells(&cell.borrow(), &kept.borrow()).is_gt() {
                std::mem::swap(cell, kept);
            }
            is_same
        });
        self
    }

    fn complex(&mut self, column: ColumnId) -> &mut Complex {
        let columns = &mut self.row.columns;
        let at = match columns.binary_search_by_key(&column, |(id, _)| *id) {
            Ok(at) => at,
            Err(at) => {
                columns.insert(at, (column, ColumnData::Complex(Complex::default())));
                at
            }
        };
        let data = &mut columns[at].1;
        if let ColumnData::Simple(_) = data {
            *data = ColumnData::Complex(Complex::default());
        }
        match data {
            ColumnData::Complex(complex) => complex,
            ColumnData::Simple(_) => unreachable!("replaced above"),
        }
    }

    /// Returns the row as built so far.
    pub fn row(&self) -> &Row {
        &self.row
    }

    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// Returns the packed merge operand.
    pub fn build(&self) -> Bytes {
        self.row.encode()
    }
}
