//! The columns of a table that are read with write times and TTLs, and the rows of the answers.

use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_import::TableName;
use helenus_import::schema::TableShape;
use helenus_import::table::TableLayout;
use helenus_import::verify::{TargetCells, TargetRow};
use helenus_row::ColumnId;
use helenus_row::key::{compose_partition_key, split_partition_key};
use helenus_sstable::ColumnKind;

use crate::table_reading::{ReadColumn, ReadStatements, shown};

/// The columns that are read.
#[derive(Clone, Debug)]
pub struct Selection {
    name: TableName,
    /// Names and types of the partition key, and then of the clustering columns.
    keys: Vec<(String, CqlType)>,
    partition_keys: usize,
    columns: Vec<Selected>,
    /// True for a compact table of which only the static row can be read.
    has_hidden_rows: bool,
    pub statements: ReadStatements,
}

#[derive(Clone, Debug)]
struct Selected {
    id: ColumnId,
    name: String,
    ty: CqlType,
    is_static: bool,
}

impl Selection {
    /// Returns the selection of the layout's columns. `shape` is the table on the target.
    pub fn new(layout: &TableLayout, shape: &TableShape) -> Result<Selection> {
        let keys = |is_clustering| {
            let columns = shape.key_columns(is_clustering).into_iter();
            let columns = columns.filter(|(_, column)| !shape.is_hidden(column));
            columns.map(|(name, column)| (name.clone(), column.ty.clone()))
        };
        let partition_keys = keys(false).count();
        let clustering = shape.key_columns(true).len();
        if clustering != layout.keys.clustering.len() {
            bail!(
                "{}: the target's table has {clustering} clustering columns, and the SSTables have {}; leave it out with --exclude",
                layout.name,
                layout.keys.clustering.len()
            );
        }
        let columns = layout.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| !column.is_hidden);
        let columns = columns.map(|(position, column)| Selected {
            id: ColumnId(u32::try_from(position).unwrap_or(u32::MAX)),
            name: column.name.clone(),
            ty: column.ty.clone(),
            is_static: column.kind == ColumnKind::Static,
        });
        let keys = keys(false).chain(keys(true)).collect();
        Ok(Selection::of(
            layout.name.clone(),
            keys,
            partition_keys,
            columns.collect(),
            layout.has_hidden_rows,
        ))
    }

    fn of(
        name: TableName,
        keys: Vec<(String, CqlType)>,
        partition_keys: usize,
        columns: Vec<Selected>,
        has_hidden_rows: bool,
    ) -> Selection {
        let read = columns.iter().map(|column| ReadColumn {
            name: &column.name,
            has_times: !column.ty.is_counter(),
        });
        let names = keys.iter().map(|(name, _)| name.as_str());
        Selection {
            statements: ReadStatements::new(&name, names, partition_keys, read),
            name,
            keys,
            partition_keys,
            columns,
            has_hidden_rows,
        }
    }

    /// Returns the statement that reads a row again, and its values.
    pub fn row_statement(&self, key: &Bytes, clustering: Option<&[Bytes]>) -> Result<(&str, Vec<Bytes>)> {
        let mut values = self.key_values(key)?;
        let clustering = clustering.unwrap_or_default();
        values.extend(clustering.iter().cloned());
        let statement = match clustering.len() {
            0 => &self.statements.first_row,
            len => self
                .statements
                .prefixes
                .get(len - 1)
                .unwrap_or(&self.statements.row),
        };
        Ok((statement, values))
    }

    /// Returns the values of the partition key, from its form in SSTables.
    pub fn key_values(&self, key: &Bytes) -> Result<Vec<Bytes>> {
        split_partition_key(key, self.partition_keys).map_err(|error| anyhow!("{}: {error}", self.name))
    }

    /// Returns a row of the server. `read_at_s` is the time at which it came, in s since 1970.
    pub fn decode(&self, row: Vec<Option<Bytes>>, read_at_s: i64) -> Result<TargetRow> {
        let mut cells = row.into_iter();
        let mut next = || cells.next().flatten();
        let keys: Vec<Option<Bytes>> = self.keys.iter().map(|_| next()).collect();
        let (partition, clustering) = keys.split_at_checked(self.partition_keys).unwrap_or_default();
        let partition: Vec<Bytes> = partition
            .iter()
            .map(|value| value.clone().unwrap_or_default())
            .collect();
        let is_static_only =
            self.has_hidden_rows || !clustering.is_empty() && clustering.iter().all(Option::is_none);
        let mut row = TargetRow {
            key: compose_partition_key(&partition).map_err(|error| anyhow!("{}: {error}", self.name))?,
            clustering: (!is_static_only).then(|| clustering.iter().map_while(Clone::clone).collect()),
            statics: TargetCells::default(),
            cells: TargetCells::default(),
        };
        for column in &self.columns {
            let (written, ttl) = match column.ty.is_counter() {
                true => (None, None),
                false => (next(), next()),
            };
            let Some(value) = next() else {
                continue;
            };
            let cells = match column.is_static {
                true => &mut row.statics,
                false => &mut row.cells,
            };
            cells
                .add(
                    column.id,
                    &column.ty,
                    &value,
                    written.as_ref(),
                    ttl.as_ref(),
                    read_at_s,
                )
                .map_err(|problem| anyhow!("{}: column {}: {problem}", self.name, column.name))?;
        }
        Ok(row)
    }

    /// Returns names and values of the key, for messages.
    pub fn key_text(&self, key: &Bytes, clustering: Option<&[Bytes]>) -> String {
        let values = self.key_values(key).unwrap_or_else(|_| vec![key.clone()]);
        let values = values.iter().chain(clustering.unwrap_or_default());
        let shown: Vec<String> = self
            .keys
            .iter()
            .zip(values)
            .map(|((name, ty), value)| format!("{} = {}", quote_identifier(name), shown(ty, value)))
            .collect();
        shown.join(", ")
    }
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
