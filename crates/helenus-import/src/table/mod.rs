//! The columns of a table's SSTables, and their places in the rows that are sent.
//!
//! Columns and their types come from the serialization headers, by name. The target's table decides which of them are imported. A column
//! that it lacks was dropped, so its cells are left out and counted. Types that don't fit are refused by name.

mod keys;
mod targets;

#[cfg(test)]
mod table_tests;

use std::collections::BTreeMap;

use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_row::{ColumnId, KeyLayout};
use helenus_sstable::{Column, ColumnKind, SsTable, Version};

use crate::error::ImportError;
use crate::schema::compare::fits;
use crate::schema::{ColumnRole, TableShape};
use crate::table_name::TableName;

pub(crate) use targets::{Target, Targets};

/// A column whose cells are imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    pub name: String,
    pub kind: ColumnKind,
    pub ty: CqlType,
    /// Time in µs up to which cells are deleted, because the column was dropped and added again. `None` if it never was.
    pub dropped_us: Option<i64>,
    /// True if no statement can name the target's column, as in compact tables.
    pub is_hidden: bool,
}

/// A column whose cells are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutColumn {
    pub name: String,
    /// The reason in words.
    pub reason: &'static str,
}

/// The form of a table's rows: the columns in the order of the statement, and the order of its rows.
#[derive(Clone, Debug)]
pub struct TableLayout {
    pub name: TableName,
    pub keys: KeyLayout,
    /// The columns of `INSERT INTO … (…) ROWS ?`. A column's position is its id in packed rows.
    pub columns: Vec<TableColumn>,
    pub left_out: Vec<LeftOutColumn>,
    pub is_counter: bool,
    /// False for tables of counters and compact tables, whose rows exist by their cells alone.
    pub has_liveness: bool,
    /// True for a compact table of which only the static row can be read.
    pub has_hidden_rows: bool,
}

/// The known columns of a table, beside those of its SSTables.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownTable<'a> {
    /// The table on the target. `None` if there is no target, or the table isn't made yet.
    pub target: Option<&'a TableShape>,
    /// The table in schema.cql. `None` if no file has it.
    pub source: Option<&'a TableShape>,
}

impl KnownTable<'_> {
    fn shape(&self) -> Option<&TableShape> {
        self.target.or(self.source)
    }

    /// Returns the time in µs at which the column was dropped. `None` if it never was.
    fn dropped_us(&self, column: &str) -> Option<i64> {
        let shapes = [self.source, self.target].into_iter().flatten();
        shapes
            .filter_map(|shape| shape.dropped.get(column).copied())
            .max()
    }
}

impl TableLayout {
    /// Combines the headers of all SSTables. The SSTables of 3.11 learn from the schema which of their user types are frozen.
    ///
    /// # Errors
    /// If types don't fit, or SSTables differ in their keys.
    pub fn new(
        name: &TableName,
        sstables: &mut [SsTable],
        known: KnownTable<'_>,
    ) -> Result<TableLayout, ImportError> {
        if let Some(shape) = known.shape() {
            sstables.iter_mut().for_each(|sstable| freeze(sstable, shape));
        }
        let mut layout = TableLayout {
            name: name.clone(),
            keys: keys::key_layout(name, sstables, known.shape())?,
            columns: Vec::new(),
            left_out: Vec::new(),
            is_counter: false,
            has_liveness: true,
            has_hidden_rows: known.target.is_some_and(TableShape::is_static_compact),
        };
        let mut columns: BTreeMap<String, TableColumn> = BTreeMap::new();
        for sstable in sstables.iter() {
            let header = sstable.header();
            for column in header.static_columns.iter().chain(&header.regular_columns) {
                layout.add(&mut columns, sstable, column, known)?;
            }
        }
        layout.columns = columns.into_values().collect();
        // The order of rows in files, so that columns come in ascending order of their ids.
        layout
            .columns
            .sort_by_key(|column| (column.kind != ColumnKind::Static, column.ty.is_multicell()));
        layout.is_counter = layout.columns.iter().any(|column| column.ty.is_counter())
            || known.shape().is_some_and(TableShape::is_counter);
        let is_compact = known.shape().is_some_and(|shape| shape.is_compact);
        layout.has_liveness = !layout.is_counter && !is_compact;
        Ok(layout)
    }

    /// Returns the statement that takes the blobs.
    pub fn statement(&self) -> String {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|column| quote_identifier(&column.name))
            .collect();
        format!("INSERT INTO {} ({}) ROWS ?", self.name, names.join(", "))
    }

    /// Returns the places of an SSTable's columns.
    pub(crate) fn targets(&self, sstable: &SsTable) -> Targets {
        let header = sstable.header();
        let columns = header.static_columns.iter().chain(&header.regular_columns);
        Targets::new(columns.map(|column| (column.clone(), self.target(column))))
    }

    fn target(&self, column: &Column) -> Target {
        let name = String::from_utf8_lossy(&column.name);
        let found = self.columns.iter().position(|known| {
            known.name == name && known.kind == column.kind && fits(&column.column_type.ty, &known.ty)
        });
        match found {
            Some(position) => Target::Column {
                id: ColumnId(u32::try_from(position).unwrap_or(u32::MAX)),
                dropped_us: self.columns.get(position).and_then(|known| known.dropped_us),
            },
            None => {
                let position = self.left_out.iter().position(|known| known.name == name);
                Target::LeftOut(position.unwrap_or(0))
            }
        }
    }

    fn add(
        &mut self,
        columns: &mut BTreeMap<String, TableColumn>,
        sstable: &SsTable,
        column: &Column,
        known: KnownTable<'_>,
    ) -> Result<(), ImportError> {
        let refused = |problem: String| {
            ImportError::Refused(format!(
                "{} of {}: {problem}. Leave the table out, or correct the table on the target",
                sstable.descriptor(),
                self.name
            ))
        };
        let Ok(name) = std::str::from_utf8(&column.name) else {
            let lossy = String::from_utf8_lossy(&column.name);
            return Err(refused(format!(
                "the name of column '{lossy}' isn't UTF-8, as those of Thrift"
            )));
        };
        let shown = quote_identifier(name);
        let ty = &column.column_type.ty;
        let dropped_us = known.dropped_us(name);
        let wanted = match known.shape() {
            None => None,
            Some(shape) => match shape.columns.get(name) {
                Some(wanted) => Some(wanted),
                None => {
                    self.leave_out(name, "the table has no such column; it was dropped");
                    return Ok(());
                }
            },
        };
        if let Some(wanted) = wanted {
            let is_static = wanted.role == ColumnRole::Static;
            let has_role = is_static == (column.kind == ColumnKind::Static)
                // In schema.cql, the columns of some compact tables are regular.
                || known.shape().is_some_and(|shape| shape.is_compact);
            if !has_role || wanted.role.is_key() {
                return Err(refused(format!(
                    "column {shown} is {} in the SSTable, and {} in the schema",
                    kind_words(column.kind),
                    wanted.role.words()
                )));
            }
            if !fits(ty, &wanted.ty) {
                if dropped_us.is_some() {
                    self.leave_out(name, "cells of another type, from before the column was dropped");
                    return Ok(());
                }
                return Err(refused(format!(
                    "column {shown} has the type {ty} in the SSTable, and {} in the schema",
                    wanted.ty
                )));
            }
        }
        let of_target = known
            .target
            .and_then(|shape| Some((shape, shape.columns.get(name)?)));
        let is_hidden = of_target.is_some_and(|(shape, column)| shape.is_hidden(column));
        let wanted = wanted.map_or_else(|| ty.clone(), |wanted| wanted.ty.clone());
        let Some(before) = columns.get_mut(name) else {
            let column = TableColumn {
                name: name.to_owned(),
                kind: column.kind,
                ty: wanted,
                dropped_us,
                is_hidden,
            };
            columns.insert(column.name.clone(), column);
            return Ok(());
        };
        if before.kind != column.kind {
            return Err(refused(format!(
                "column {shown} is static in one SSTable and regular in another"
            )));
        }
        // Without a schema, the later type is that to which the others fit.
        if fits(&wanted, &before.ty) {
            return Ok(());
        }
        if !fits(&before.ty, &wanted) {
            return Err(refused(format!(
                "column {shown} has the type {wanted} in one SSTable, and {} in another",
                before.ty
            )));
        }
        before.ty = wanted;
        Ok(())
    }

    fn leave_out(&mut self, name: &str, reason: &'static str) {
        if self.left_out.iter().all(|known| known.name != name) {
            let name = name.to_owned();
            self.left_out.push(LeftOutColumn { name, reason });
        }
    }
}

fn kind_words(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Static => "static",
        ColumnKind::Regular => "regular",
    }
}

/// Marks those user types of an SSTable as frozen that are frozen in the schema. Later versions have the mark themselves.
fn freeze(sstable: &mut SsTable, shape: &TableShape) {
    if sstable.header().version > Version::Me {
        return;
    }
    sstable.freeze_columns(|column| {
        let name = String::from_utf8_lossy(&column.name);
        let is_user_type = matches!(column.column_type.ty, CqlType::Udt { .. });
        let known = shape.columns.get(&*name);
        is_user_type && known.is_some_and(|known| !known.ty.is_multicell())
    });
}
