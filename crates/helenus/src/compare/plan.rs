//! The comparison of one table: its columns, statements, and the decoding of its rows.

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_import::TableName;
use helenus_import::schema::{ColumnRole, TableShape};
use helenus_row::key::{compose_partition_key, murmur3_token};
use helenus_row::{KeyLayout, Order};

use anyhow::{Result, anyhow};

use super::row::{Cell, Place, TableRow};
use crate::table_reading::{ReadColumn, ReadStatements, shown};

/// A column of the primary key.
#[derive(Clone, Debug)]
struct KeyColumn {
    name: String,
    ty: CqlType,
}

/// A column outside of the primary key.
#[derive(Clone, Debug)]
pub struct ComparedColumn {
    pub name: String,
    ty: CqlType,
    pub is_static: bool,
    /// True if the cell's write time and TTL are compared.
    has_times: bool,
}

/// The plan of one table's comparison.
#[derive(Clone, Debug)]
pub struct TablePlan {
    pub name: TableName,
    key: Vec<KeyColumn>,
    /// Number of columns of the partition key.
    partition_len: usize,
    layout: KeyLayout,
    pub columns: Vec<ComparedColumn>,
    pub statements: ReadStatements,
}

/// The plan, or the reason why the table can't be compared; and notes on columns.
pub struct Planned {
    pub plan: Result<TablePlan, String>,
    /// Differences of the schema, in words.
    pub notes: Vec<String>,
}

impl TablePlan {
    /// Plans the comparison of a table by its columns on both sides.
    pub fn plan(name: &TableName, a: &TableShape, b: &TableShape, has_times: bool) -> Planned {
        let mut notes = Vec::new();
        if let Err(reason) = check_keys(a, b) {
            return Planned {
                plan: Err(reason),
                notes,
            };
        }
        for (side, shape, other) in [("a", a, b), ("b", b, a)] {
            let missing = shape
                .columns
                .keys()
                .filter(|column| !other.columns.contains_key(*column));
            notes.extend(missing.map(|column| format!("column {column} is only in {side}")));
        }
        let mut columns = Vec::new();
        for (column, shape) in &a.columns {
            let Some(other) = b.columns.get(column) else {
                continue;
            };
            if shape.role.is_key() || shape.ty == CqlType::EMPTY {
                continue;
            }
            if shape.ty != other.ty || shape.role != other.role {
                notes.push(format!(
                    "column {column} is {} of type {} in a, and {} of type {} in b",
                    shape.role.words(),
                    shape.ty,
                    other.role.words(),
                    other.ty
                ));
                continue;
            }
            columns.push(ComparedColumn {
                name: column.clone(),
                ty: shape.ty.clone(),
                is_static: shape.role == ColumnRole::Static,
                has_times: has_times && !shape.ty.is_multicell() && !shape.ty.is_counter(),
            });
        }
        let partition = a.key_columns(false);
        let clustering = a.key_columns(true);
        let layout = clustering.iter().map(|(_, column)| match column.is_descending {
            true => (column.ty.clone(), Order::Desc),
            false => (column.ty.clone(), Order::Asc),
        });
        let layout = KeyLayout::new(layout.collect());
        let key = partition.iter().chain(&clustering);
        let key: Vec<KeyColumn> = key
            .map(|(name, column)| KeyColumn {
                name: (*name).clone(),
                ty: column.ty.clone(),
            })
            .collect();
        let names = key.iter().map(|column| column.name.as_str());
        let read = columns.iter().map(|column| ReadColumn {
            name: &column.name,
            has_times: column.has_times,
        });
        let plan = TablePlan {
            name: name.clone(),
            statements: ReadStatements::new(name, names, partition.len(), read),
            key,
            partition_len: partition.len(),
            layout,
            columns,
        };
        Planned {
            plan: Ok(plan),
            notes,
        }
    }

    /// Returns the statement for a row's key, and its values.
    pub fn statement_of(&self, row: &TableRow) -> (&str, Vec<Bytes>) {
        let values = |count| row.key.iter().take(count).flatten().cloned().collect();
        match row.place.clustering {
            Some(_) => (&self.statements.row, values(row.key.len())),
            None => (&self.statements.first_row, values(self.partition_len)),
        }
    }

    /// Decodes an answered row. `now_s` is the time of the answer in seconds since 1970.
    ///
    /// # Errors
    /// If the answer is not one to the plan's statements.
    pub fn decode(&self, answered: Vec<Option<Bytes>>, now_s: i64) -> Result<TableRow> {
        let unexpected = || {
            anyhow!(
                "{}: a row of the answer has unexpected cells; is the schema being changed?",
                self.name
            )
        };
        let mut cells = answered.into_iter();
        let key: Vec<Option<Bytes>> = cells.by_ref().take(self.key.len()).collect();
        if key.len() != self.key.len() {
            return Err(unexpected());
        }
        let (partition, clustering) = key.split_at(self.partition_len);
        let partition: Vec<Bytes> = partition.iter().flatten().cloned().collect();
        let partition = compose_partition_key(&partition).map_err(|_| unexpected())?;
        let values: Vec<Bytes> = clustering.iter().flatten().cloned().collect();
        let clustering = match clustering.len() == values.len() {
            true => Some(
                self.layout
                    .encode_clustering(&values)
                    .map_err(|_| unexpected())?
                    .bytes,
            ),
            false => None,
        };
        let mut compared = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let mut cell = Cell::default();
            if column.has_times {
                cell.written = cells.next().ok_or_else(unexpected)?;
                let ttl = cells.next().ok_or_else(unexpected)?;
                let ttl_s = ttl.and_then(|ttl| Some(i32::from_be_bytes(ttl.as_ref().try_into().ok()?)));
                cell.ends_s = ttl_s.map(|ttl_s| now_s + i64::from(ttl_s));
            }
            cell.value = cells.next().ok_or_else(unexpected)?;
            compared.push(cell);
        }
        Ok(TableRow {
            place: Place {
                token: murmur3_token(&partition),
                partition,
                clustering,
            },
            key,
            cells: compared,
        })
    }

    /// Returns the primary key of a row in words.
    pub fn key_text(&self, row: &TableRow) -> String {
        let parts = self.key.iter().zip(&row.key);
        let parts =
            parts.map(|(key, value)| format!("{} = {}", key.name, value_text(&key.ty, value.as_ref())));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Returns a cell in words.
    pub fn cell_text(&self, position: usize, cell: &Cell) -> String {
        let Some(column) = self.columns.get(position) else {
            return String::new();
        };
        let mut text = value_text(&column.ty, cell.value.as_ref());
        let written = cell.written.as_ref();
        if let Some(written) = written.and_then(|bytes| <[u8; 8]>::try_from(bytes.as_ref()).ok()) {
            text += &format!(" written at {} us", i64::from_be_bytes(written));
        }
        if let Some(ends_s) = cell.ends_s {
            text += &format!(", expires at {ends_s} s");
        }
        text
    }
}

fn value_text(ty: &CqlType, value: Option<&Bytes>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| shown(ty, value))
}

/// Returns the reason why rows of tables with these keys can't be compared.
fn check_keys(a: &TableShape, b: &TableShape) -> Result<(), String> {
    for (is_clustering, words) in [(false, "partition key"), (true, "clustering")] {
        let described = |shape: &TableShape| {
            let columns = shape.key_columns(is_clustering).into_iter();
            let columns = columns.map(|(name, column)| {
                let order = if column.is_descending { " DESC" } else { "" };
                format!("{name} {}{order}", column.ty)
            });
            columns.collect::<Vec<_>>().join(", ")
        };
        let (of_a, of_b) = (described(a), described(b));
        if of_a != of_b {
            return Err(format!("the {words} is ({of_a}) in a, and ({of_b}) in b"));
        }
    }
    Ok(())
}
