//! The columns of a table, from CREATE TABLE and ALTER TABLE or from the target's schema.

use std::collections::BTreeMap;

use helenus_cql::ast::{ColumnDefinition, CreateTable, TableChange};
use helenus_cql::types::CqlType;

use super::resolve::{UserTypes, resolve_type};

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnRole {
    /// With the position within the partition key.
    PartitionKey(usize),
    /// With the position among the clustering columns.
    Clustering(usize),
    Static,
    Regular,
}

impl ColumnRole {
    /// Returns the role in words.
    pub fn words(self) -> String {
        match self {
            ColumnRole::PartitionKey(position) => format!("column {} of the partition key", position + 1),
            ColumnRole::Clustering(position) => format!("clustering column {}", position + 1),
            ColumnRole::Static => "a static column".to_owned(),
            ColumnRole::Regular => "a regular column".to_owned(),
        }
    }

    pub fn is_key(self) -> bool {
        matches!(self, ColumnRole::PartitionKey(_) | ColumnRole::Clustering(_))
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnShape {
    pub role: ColumnRole,
    pub ty: CqlType,
    /// True for a clustering column in descending order.
    pub is_descending: bool,
}

/// A table's columns by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableShape {
    pub columns: BTreeMap<String, ColumnShape>,
    /// Columns that were dropped, with the time in µs up to which their cells are deleted. A column that exists again is in both maps.
    pub dropped: BTreeMap<String, i64>,
    /// True for a table WITH COMPACT STORAGE.
    pub is_compact: bool,
}

impl TableShape {
    /// Returns the columns of a role's kind, in order of their positions.
    pub fn key_columns(&self, is_clustering: bool) -> Vec<(&String, &ColumnShape)> {
        let mut columns: Vec<_> = self
            .columns
            .iter()
            .filter(|(_, column)| match column.role {
                ColumnRole::PartitionKey(_) => !is_clustering,
                ColumnRole::Clustering(_) => is_clustering,
                ColumnRole::Static | ColumnRole::Regular => false,
            })
            .collect();
        columns.sort_by_key(|(_, column)| column.role);
        columns
    }

    /// Returns true for a table WITH COMPACT STORAGE and without clustering columns of its own. Its columns are static, and its rows are
    /// hidden, because only Thrift clients wrote them.
    pub fn is_static_compact(&self) -> bool {
        self.is_compact
            && self
                .columns
                .values()
                .any(|column| column.role == ColumnRole::Static)
    }

    /// Returns true for a column of a compact table that no statement can name.
    pub fn is_hidden(&self, column: &ColumnShape) -> bool {
        match column.role {
            ColumnRole::PartitionKey(_) | ColumnRole::Static => false,
            ColumnRole::Clustering(_) => self.is_static_compact(),
            ColumnRole::Regular => self.is_static_compact() || self.is_compact && column.ty == CqlType::EMPTY,
        }
    }

    /// Returns true if the table has counters.
    pub fn is_counter(&self) -> bool {
        self.columns.values().any(|column| column.ty.is_counter())
    }

    /// Returns the shape after CREATE TABLE and the changes of its columns.
    ///
    /// # Errors
    /// In words, if a type is unknown.
    pub fn of_statements<'a>(
        keyspace: &str,
        create: &CreateTable,
        changes: impl IntoIterator<Item = &'a TableChange>,
        types: &UserTypes,
    ) -> Result<TableShape, String> {
        let mut shape = TableShape {
            is_compact: create.compact_storage,
            ..TableShape::default()
        };
        for definition in &create.columns {
            shape.add(keyspace, definition, types)?;
        }
        let partition_key = create.partition_key.iter().flatten();
        for (position, name) in partition_key.enumerate() {
            shape.set_role(name.as_str(), ColumnRole::PartitionKey(position));
        }
        for (position, name) in create.clustering_columns.iter().enumerate() {
            shape.set_role(name.as_str(), ColumnRole::Clustering(position));
        }
        for order in &create.clustering_order {
            if let Some(column) = shape.columns.get_mut(order.column.as_str()) {
                column.is_descending = order.descending;
            }
        }
        for change in changes {
            shape.change(keyspace, change, types)?;
        }
        Ok(shape)
    }

    fn add(
        &mut self,
        keyspace: &str,
        definition: &ColumnDefinition,
        types: &UserTypes,
    ) -> Result<(), String> {
        let name = definition.name.as_str().to_owned();
        let ty = resolve_type(types, keyspace, &definition.ty)
            .map_err(|problem| format!("column {name}: {problem}"))?;
        let role = match definition.is_static {
            true => ColumnRole::Static,
            false => ColumnRole::Regular,
        };
        let column = ColumnShape {
            role,
            ty,
            is_descending: false,
        };
        self.columns.insert(name, column);
        Ok(())
    }

    fn set_role(&mut self, name: &str, role: ColumnRole) {
        if let Some(column) = self.columns.get_mut(name) {
            column.role = role;
            // Parts of a key are frozen, whatever their declaration.
            column.ty = column.ty.freeze();
        }
    }

    fn change(&mut self, keyspace: &str, change: &TableChange, types: &UserTypes) -> Result<(), String> {
        match change {
            TableChange::Add { columns, .. } => {
                for definition in columns {
                    self.add(keyspace, definition, types)?;
                }
            }
            TableChange::Drop {
                columns, timestamp, ..
            } => {
                for name in columns {
                    self.columns.remove(name.as_str());
                    if let Some(timestamp_us) = timestamp {
                        self.dropped.insert(name.as_str().to_owned(), *timestamp_us);
                    }
                }
            }
            TableChange::Rename { columns, .. } => {
                for (from, to) in columns {
                    if let Some(column) = self.columns.remove(from.as_str()) {
                        self.columns.insert(to.as_str().to_owned(), column);
                    }
                }
            }
            TableChange::DropCompactStorage => self.is_compact = false,
            TableChange::AlterType { .. }
            | TableChange::Mask { .. }
            | TableChange::Constrain { .. }
            | TableChange::Properties(_) => {}
        }
        Ok(())
    }
}
