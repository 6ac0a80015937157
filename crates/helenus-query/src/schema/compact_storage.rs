//! Tables created WITH COMPACT STORAGE (Cassandra's `CompactTableMetadata`), which behave like tables of the Thrift protocol.
//!
//! Rows of compact tables have no liveness: a row exists as long as one of its cells does. Some of their columns are hidden from CQL, until ALTER TABLE
//! … DROP COMPACT STORAGE turns them into ordinary tables with the same columns.

use std::sync::Arc;

use helenus_cql::types::CqlType;

use super::{Column, ColumnKind, Table};
use crate::schema::table::Compact;

impl Table {
    pub fn is_static_compact(&self) -> bool {
        self.compact == Some(Compact::Static)
    }

    pub fn is_dense(&self) -> bool {
        self.compact == Some(Compact::Dense)
    }

    /// Returns true if the table is compact, or has a column of a type that only formerly compact tables have.
    pub fn has_been_compact(&self) -> bool {
        self.compact.is_some() || self.columns.iter().any(|column| column.ty == CqlType::EMPTY)
    }

    /// Returns true for a column of a compact table that CQL cannot name.
    pub fn is_hidden(&self, column: &Column) -> bool {
        match self.compact {
            None => false,
            Some(Compact::Static) => matches!(column.kind, ColumnKind::Clustering | ColumnKind::Regular),
            Some(Compact::Dense) => column.kind == ColumnKind::Regular && column.ty == CqlType::EMPTY,
        }
    }

    /// Returns the column of that name in statements, with its index in [`Table::columns`] (`TableMetadata.getExistingColumn`). `None` if
    /// there is none, or it is hidden.
    pub fn visible_column(&self, name: &str) -> Option<(usize, &Arc<Column>)> {
        self.column(name).filter(|(_, column)| !self.is_hidden(column))
    }

    /// Returns the indexes of the columns of `SELECT *`.
    pub fn visible_places(&self) -> impl Iterator<Item = usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(_, column)| !self.is_hidden(column))
            .map(|(place, _)| place)
    }
}
