//! Rows during a read, as [`RowView`] shows them.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::packed::{CellRef, RowRef};
use helenus_row::read::{LiveColumn, LiveRow};
use helenus_row::{ColumnId, RowBuilder};

use crate::response::RowsBuilder;
use crate::rows::{CellView, RowAt, RowView, corrupt, corrupt_key};
use crate::schema::{Column, ColumnKind, Table};

/// The live part of a stored row, and the row from which it borrows.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    pub packed: &'a RowRef,
    pub row: &'a LiveRow<'a>,
}

impl<'a> Live<'a> {
    fn column(&self, column: &Column) -> Option<&'a LiveColumn<'a>> {
        self.row.column(column.id)
    }

    fn value(&self, column: &Column) -> Option<Bytes> {
        match self.column(column)? {
            LiveColumn::Simple(cell) => Some(self.packed.slice(cell.value)),
            LiveColumn::Complex(elements) => Some(elements.clone().value(&column.ty)),
        }
    }

    /// Writes the value as it is sent, without an intermediate copy.
    fn write(&self, column: &Column, out: &mut RowsBuilder) {
        match self.column(column) {
            None => out.push(None),
            Some(LiveColumn::Simple(cell)) => out.push(Some(cell.value)),
            Some(LiveColumn::Complex(elements)) => out.push(Some(&elements.clone().value(&column.ty))),
        }
    }

    /// Returns the packed row of these columns. The rows of static columns have no liveness.
    fn packed(&self, columns: &[&Column]) -> Option<Bytes> {
        let mut builder = RowBuilder::new();
        if let Some(liveness) = self.row.liveness {
            builder.liveness(liveness);
        }
        for (position, column) in columns.iter().enumerate() {
            let id = ColumnId(u32::try_from(position).ok()?);
            match self.column(column) {
                None => {}
                Some(LiveColumn::Simple(cell)) => {
                    builder.cell(id, self.packed.own(cell));
                }
                Some(LiveColumn::Complex(elements)) => {
                    let elements = elements.clone().in_cql_order(&column.ty);
                    let own = |(path, cell): &(&[u8], CellRef<'_>)| {
                        (self.packed.slice(path), self.packed.own(cell))
                    };
                    builder.complex_cells(id, elements.iter().map(own).collect::<Vec<_>>());
                }
            }
        }
        (!builder.is_empty()).then(|| builder.build())
    }

    fn cells(&self, column: &Column, now_s: i64) -> Vec<CellView> {
        let cell_view = |path: Option<&[u8]>, cell: &CellRef<'_>| CellView {
            path: path.map(|path| self.packed.slice(path)),
            value: self.packed.slice(cell.value),
            timestamp_us: cell.timestamp_us,
            ttl_s: cell.ttl_left_s(now_s),
        };
        match self.column(column) {
            None => Vec::new(),
            Some(LiveColumn::Simple(cell)) => vec![cell_view(None, cell)],
            Some(LiveColumn::Complex(elements)) => {
                let elements = elements.clone().in_cql_order(&column.ty);
                elements
                    .iter()
                    .map(|(path, cell)| cell_view(Some(path), cell))
                    .collect()
            }
        }
    }
}

/// A row of a stored table.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub table: &'a Table,
    /// Values of the partition key columns.
    pub key: &'a [Bytes],
    /// Values of the clustering columns. Empty if the row stands for the partition's static content alone.
    pub clustering: &'a [Bytes],
    pub row: Option<Live<'a>>,
    pub statics: Option<Live<'a>>,
    pub now_s: i64,
}

impl View<'_> {
    fn live(&self, column: &Column) -> Option<Live<'_>> {
        match column.kind {
            ColumnKind::Static => self.statics,
            ColumnKind::Regular => self.row,
            ColumnKind::PartitionKey | ColumnKind::Clustering => None,
        }
    }
}

impl RowView for View<'_> {
    fn value(&self, place: usize) -> Option<Bytes> {
        let column = self.table.columns.get(place)?;
        match column.kind {
            ColumnKind::PartitionKey => self.key.get(column.position).cloned(),
            ColumnKind::Clustering => self.clustering.get(column.position).cloned(),
            ColumnKind::Static | ColumnKind::Regular => self.live(column)?.value(column),
        }
    }

    fn write(&self, place: usize, out: &mut RowsBuilder) {
        let Some(column) = self.table.columns.get(place) else {
            return out.push(None);
        };
        let live = match column.kind {
            ColumnKind::PartitionKey => return out.push(self.key.get(column.position).map(Bytes::as_ref)),
            ColumnKind::Clustering => {
                return out.push(self.clustering.get(column.position).map(Bytes::as_ref));
            }
            ColumnKind::Static => &self.statics,
            ColumnKind::Regular => &self.row,
        };
        match live {
            Some(live) => live.write(column, out),
            None => out.push(None),
        }
    }

    fn cells(&self, place: usize) -> Vec<CellView> {
        let Some(column) = self.table.columns.get(place) else {
            return Vec::new();
        };
        self.live(column)
            .map(|live| live.cells(column, self.now_s))
            .unwrap_or_default()
    }

    fn packed(&self, places: &[usize]) -> Option<Bytes> {
        let columns = places
            .iter()
            .map(|place| self.table.columns.get(*place).map(|column| &**column));
        let columns: Vec<&Column> = columns.collect::<Option<_>>()?;
        let live = match columns.first().map(|column| column.kind) {
            Some(ColumnKind::Static) => self.statics,
            _ => self.row,
        };
        live?.packed(&columns)
    }
}

/// A row of a virtual table, with its values in the order of [`Table::columns`].
#[derive(Clone, Copy)]
pub struct VirtualView<'a> {
    pub table: &'a Table,
    pub values: &'a [Option<Bytes>],
}

impl RowView for VirtualView<'_> {
    fn value(&self, place: usize) -> Option<Bytes> {
        self.values.get(place).cloned().flatten()
    }

    fn cells(&self, place: usize) -> Vec<CellView> {
        let Some(column) = self.table.columns.get(place) else {
            return Vec::new();
        };
        match self.value(place) {
            Some(value) if column.ty.is_multicell() => whole_as_cells(column, &value),
            Some(value) => vec![CellView {
                path: None,
                value,
                timestamp_us: 0,
                ttl_s: None,
            }],
            None => Vec::new(),
        }
    }
}

/// Returns the elements of a serialized collection as cells.
fn whole_as_cells(column: &Column, whole: &Bytes) -> Vec<CellView> {
    use helenus_cql::types::CqlType;
    let cell = |path: Option<&[u8]>, value: &[u8]| CellView {
        path: path.map(|path| whole.slice_ref(path)),
        value: whole.slice_ref(value),
        timestamp_us: 0,
        ttl_s: None,
    };
    match &column.ty {
        CqlType::Map { .. } => {
            let entries = helenus_cql::value::read_map(&column.ty, whole).unwrap_or_default();
            entries
                .into_iter()
                .map(|(key, value)| cell(Some(key), value))
                .collect()
        }
        CqlType::Set { .. } => {
            let elements = helenus_cql::value::read_elements(&column.ty, whole).unwrap_or_default();
            elements
                .into_iter()
                .map(|element| cell(Some(element), &[]))
                .collect()
        }
        CqlType::List { .. } => {
            let elements = helenus_cql::value::read_elements(&column.ty, whole).unwrap_or_default();
            elements.into_iter().map(|element| cell(None, element)).collect()
        }
        _ => vec![cell(None, whole)],
    }
}

/// Returns the clustering values of a stored row, as they were written.
pub(crate) fn clustering_values(table: &Table, found: &RowAt) -> Result<Vec<Bytes>, CqlError> {
    match found.row.packed.exact_clustering().map_err(corrupt)? {
        Some(exact) => Ok(exact.components),
        None => table
            .layout
            .decode_clustering(&found.clustering)
            .map_err(corrupt_key),
    }
}
