//! Tables made WITH COMPACT STORAGE (Cassandra's `CompactTableMetadata`): they have what tables of the Thrift protocol had.
//!
//! Their rows have no liveness: a row is there as long as one of its cells is. Some of their columns can't be seen through CQL, until
//! ALTER TABLE … DROP COMPACT STORAGE makes them ordinary tables of the same columns.

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

    /// Returns true if it is compact, or was and has a column of a type that only such tables have.
    pub fn has_been_compact(&self) -> bool {
        self.compact.is_some() || self.columns.iter().any(|column| column.ty == CqlType::EMPTY)
    }

    /// Returns true for a column of a compact table that CQL can't name.
    pub fn is_hidden(&self, column: &Column) -> bool {
        match self.compact {
            None => false,
            Some(Compact::Static) => matches!(column.kind, ColumnKind::Clustering | ColumnKind::Regular),
            Some(Compact::Dense) => column.kind == ColumnKind::Regular && column.ty == CqlType::EMPTY,
        }
    }

    /// Returns the column that statements mean by that name, and its place in [`Table::columns`] (`TableMetadata.getExistingColumn`).
    pub fn visible_column(&self, name: &str) -> Option<(usize, &Arc<Column>)> {
        self.column(name).filter(|(_, column)| !self.is_hidden(column))
    }

    /// Returns the places of the columns that `SELECT *` gives.
    pub fn visible_places(&self) -> impl Iterator<Item = usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(_, column)| !self.is_hidden(column))
            .map(|(place, _)| place)
    }
}
