//! The statements that read a table's rows with write times and TTLs, and the rows that they return.

use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_import::TableName;
use helenus_import::schema::TableShape;
use helenus_import::table::TableLayout;
use helenus_import::verify::{TargetCells, TargetRow};
use helenus_row::ColumnId;
use helenus_sstable::ColumnKind;

/// The columns that are read.
#[derive(Clone, Debug)]
pub struct Selection {
    name: TableName,
    /// Names and types of the partition key, and then of the clustering columns.
    keys: Vec<(String, CqlType)>,
    partition_keys: usize,
    columns: Vec<Selected>,
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
            columns.map(|(name, column)| (name.clone(), column.ty.clone()))
        };
        let partition_keys = keys(false).count();
        if keys(true).count() != layout.keys.clustering.len() {
            bail!(
                "{}: the target's table has {} clustering columns, and the SSTables have {}; leave it out with --exclude",
                layout.name,
                keys(true).count(),
                layout.keys.clustering.len()
            );
        }
        let columns = layout.columns.iter().enumerate();
        // The hidden column of some compact tables has no values and can't be named.
        let columns = columns.filter(|(_, column)| column.ty != CqlType::EMPTY && !column.name.is_empty());
        let columns = columns.map(|(position, column)| Selected {
            id: ColumnId(u32::try_from(position).unwrap_or(u32::MAX)),
            name: column.name.clone(),
            ty: column.ty.clone(),
            is_static: column.kind == ColumnKind::Static,
        });
        Ok(Selection {
            name: layout.name.clone(),
            columns: columns.collect(),
            keys: keys(false).chain(keys(true)).collect(),
            partition_keys,
        })
    }

    /// Returns the statement that reads a range of tokens. Its values are the excluded start and the included end.
    pub fn scan(&self) -> String {
        let keys: Vec<String> = self
            .partition_key()
            .map(|(name, _)| quote_identifier(name))
            .collect();
        let token = format!("token({})", keys.join(", "));
        format!("{} WHERE {token} > ? AND {token} <= ?", self.select())
    }

    /// Returns the statement that reads a row. Its values are the partition key and the clustering.
    pub fn row(&self) -> String {
        let terms: Vec<String> = self
            .keys
            .iter()
            .map(|(name, _)| format!("{} = ?", quote_identifier(name)))
            .collect();
        format!("{} WHERE {}", self.select(), terms.join(" AND "))
    }

    /// Returns the statement that reads the first row of a partition, which has the static columns.
    pub fn first_row(&self) -> String {
        let terms: Vec<String> = self
            .partition_key()
            .map(|(name, _)| format!("{} = ?", quote_identifier(name)))
            .collect();
        format!("{} WHERE {} LIMIT 1", self.select(), terms.join(" AND "))
    }

    fn partition_key(&self) -> impl Iterator<Item = &(String, CqlType)> {
        self.keys.iter().take(self.partition_keys)
    }

    fn select(&self) -> String {
        let mut selectors: Vec<String> = self.keys.iter().map(|(name, _)| quote_identifier(name)).collect();
        for column in &self.columns {
            let name = quote_identifier(&column.name);
            if !column.ty.is_counter() {
                selectors.push(format!("writetime({name})"));
                selectors.push(format!("ttl({name})"));
            }
            selectors.push(name);
        }
        format!("SELECT {} FROM {}", selectors.join(", "), self.name)
    }

    /// Returns the values of the partition key, from its form in SSTables.
    pub fn key_values(&self, key: &Bytes) -> Result<Vec<Bytes>> {
        if self.partition_keys == 1 {
            return Ok(vec![key.clone()]);
        }
        let torn = || anyhow!("{}: a partition key is torn", self.name);
        let mut rest = &**key;
        let mut values = Vec::with_capacity(self.partition_keys);
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            let (value, after) = after.split_at_checked(length).ok_or_else(torn)?;
            values.push(key.slice_ref(value));
            rest = after.split_first().ok_or_else(torn)?.1;
        }
        Ok(values)
    }

    /// Returns a row of the server. `read_at_s` is the time at which it came, in s since 1970.
    pub fn decode(&self, row: Vec<Option<Bytes>>, read_at_s: i64) -> Result<TargetRow> {
        let mut cells = row.into_iter();
        let mut next = || cells.next().flatten();
        let keys: Vec<Option<Bytes>> = self.keys.iter().map(|_| next()).collect();
        let (partition, clustering) = keys.split_at_checked(self.partition_keys).unwrap_or_default();
        let is_static_only = !clustering.is_empty() && clustering.iter().all(Option::is_none);
        let mut row = TargetRow {
            key: joined(partition),
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
            .map(|((name, ty), value)| {
                format!(
                    "{} = {}",
                    quote_identifier(name),
                    super::differences::shown(ty, value)
                )
            })
            .collect();
        shown.join(", ")
    }
}

/// Returns the key in the form of SSTables: a single value, or each with a length of two bytes before and a zero byte after it.
fn joined(values: &[Option<Bytes>]) -> Bytes {
    let nothing = Bytes::new();
    if let [single] = values {
        return single.clone().unwrap_or_default();
    }
    let mut key = Vec::new();
    for value in values {
        let value = value.as_ref().unwrap_or(&nothing);
        key.extend_from_slice(&(value.len() as u16).to_be_bytes());
        key.extend_from_slice(value);
        key.push(0);
    }
    key.into()
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
