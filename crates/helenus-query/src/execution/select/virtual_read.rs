//! Reads of tables whose rows are computed ([`crate::storage::VirtualTables`]). They support the same restrictions, order and pages.

use std::cmp::Ordering;
use std::collections::HashMap;

use bytes::Bytes;
use helenus_cql::error::CqlError;

use super::SelectExecution;
use super::output::{FilteredRow, ResultCollector, Step};
use super::stored_row::VirtualView;
use crate::analysis::consistency;
use crate::analysis::restrictions::bounds::{compare_keys, invalid_key};
use crate::limits::scope;
use crate::rows::PartitionKey;
use crate::schema::Table;
use crate::schema::names::is_virtual_keyspace;

/// A computed row, with the position that it would have if it were stored.
struct VirtualRow {
    partition: PartitionKey,
    clustering: Bytes,
    values: Vec<Option<Bytes>>,
}

impl VirtualRow {
    fn key(&self, table: &Table) -> Vec<Bytes> {
        part(&self.values, 0, table.partition_key_count)
    }
}

fn part(values: &[Option<Bytes>], start: usize, count: usize) -> Vec<Bytes> {
    values
        .iter()
        .skip(start)
        .take(count)
        .map(|value| value.clone().unwrap_or_default())
        .collect()
}

fn place(table: &Table, values: Vec<Option<Bytes>>) -> Result<VirtualRow, CqlError> {
    let key = part(&values, 0, table.partition_key_count);
    let key = match key.as_slice() {
        [only] => only.clone(),
        several => helenus_row::key::compose_partition_key(several).map_err(invalid_key)?,
    };
    let clustering = part(&values, table.partition_key_count, table.clustering_count);
    let clustering = table
        .layout
        .encode_clustering(&clustering)
        .map_err(invalid_key)?
        .bytes;
    Ok(VirtualRow {
        partition: PartitionKey::new(key),
        clustering,
        values,
    })
}

/// Compares partitions as Cassandra orders them: by value in virtual tables, and by token in tables that are stored in Cassandra.
fn compare_partitions(table: &Table, a: &VirtualRow, b: &VirtualRow) -> Ordering {
    if is_virtual_keyspace(&table.keyspace) {
        return compare_keys(table, &a.key(table), &b.key(table));
    }
    let place = |row: &VirtualRow| (row.partition.token, row.partition.bytes.clone());
    place(a).cmp(&place(b))
}

impl SelectExecution<'_> {
    /// Reads a virtual table.
    pub(crate) async fn read_virtual(&mut self, output: &mut ResultCollector<'_>) -> Result<(), CqlError> {
        let table = self.plan.table.clone();
        let filter = self.plan.restrictions.filter(&self.ctx)?;
        if table.keyspace == "system_schema" {
            // The schema may have many tables, so that this takes long.
            scope::step_aside().await;
        }
        self.context.virtual_tables.refresh(&table).await?;
        let mut rows = self.virtual_rows(&table)?;
        let mut values: Vec<_> = rows.iter_mut().map(|row| &mut row.values).collect();
        self.context.virtual_tables.complete(&table, &mut values).await?;
        // A table that is computed here but stored in Cassandra has replicas there.
        if !is_virtual_keyspace(&table.keyspace) {
            consistency::require_replicas(&self.context.schema.load(), &table, self.consistency)?;
        }
        let resume = self.resume.clone();
        let last_key = match self.plan.restrictions.is_key_range {
            true => None,
            false => self.plan.restrictions.partition_keys(&self.ctx)?.pop(),
        };
        let mut skipped: Option<&Bytes> = None;
        let mut current: Option<&Bytes> = None;
        for row in &rows {
            scope::checkpoint().await?;
            if skipped == Some(&row.partition.bytes) {
                continue;
            }
            if current != Some(&row.partition.bytes) {
                current = Some(&row.partition.bytes);
                let state = resume
                    .as_ref()
                    .filter(|state| state.partition_key == row.partition.bytes);
                let is_last = last_key
                    .as_ref()
                    .is_some_and(|key| key.bytes == row.partition.bytes);
                output.begin_partition(state.map(|state| state.remaining_in_partition), is_last);
            }
            let view = VirtualView {
                table: &table,
                values: &row.values,
            };
            if !filter.accepts_partition(&table, &view) || !filter.accepts_row(&table, &view) {
                continue;
            }
            let clustering = part(&row.values, table.partition_key_count, table.clustering_count);
            let passed = FilteredRow {
                entry: None,
                view: &view,
                partition: &row.partition,
                clustering: &clustering,
                position: Some(&row.clustering),
            };
            match output.row(passed)? {
                Step::NextRow => {}
                Step::NextPartition => skipped = Some(&row.partition.bytes),
                Step::Stop => break,
            }
        }
        Ok(())
    }

    /// Returns the rows that the restrictions select, in order, after those of earlier pages.
    fn virtual_rows(&self, table: &Table) -> Result<Vec<VirtualRow>, CqlError> {
        let restrictions = &self.plan.restrictions;
        let wanted = self.row_selection()?;
        let rows = self.context.virtual_tables.rows(table)?;
        let mut rows = rows
            .into_iter()
            .map(|row| place(table, row))
            .collect::<Result<Vec<_>, _>>()?;
        rows.retain(|row| wanted.contains(&row.clustering));
        if restrictions.is_key_range {
            let bounds = restrictions.token_bounds(&self.ctx)?;
            rows.retain(|row| bounds.is_some_and(|bounds| bounds.contains(row.partition.token)));
            rows.sort_by(|a, b| {
                compare_partitions(table, a, b).then_with(|| a.clustering.cmp(&b.clustering))
            });
        } else {
            let keys = restrictions.partition_keys(&self.ctx)?;
            // The first position counts if a key is named twice.
            let ranks: HashMap<&Bytes, usize> = keys
                .iter()
                .enumerate()
                .rev()
                .map(|(at, key)| (&key.bytes, at))
                .collect();
            let rank = |row: &VirtualRow| ranks.get(&row.partition.bytes).copied();
            rows.retain(|row| rank(row).is_some());
            rows.sort_by(|a, b| {
                let order = a.clustering.cmp(&b.clustering);
                rank(a).cmp(&rank(b)).then(if self.plan.is_reversed {
                    order.reverse()
                } else {
                    order
                })
            });
        }
        self.drop_earlier(&mut rows);
        Ok(rows)
    }

    fn drop_earlier(&self, rows: &mut Vec<VirtualRow>) {
        let Some(state) = &self.resume else { return };
        let is_last = |row: &VirtualRow| {
            row.partition.bytes == state.partition_key
                && state
                    .clustering
                    .as_ref()
                    .is_none_or(|clustering| row.clustering == *clustering)
        };
        // If the last row is gone, its partition counts as done.
        let last = rows.iter().rposition(is_last);
        let last = last.or_else(|| {
            rows.iter()
                .rposition(|row| row.partition.bytes == state.partition_key)
        });
        if let Some(last) = last {
            rows.drain(..=last);
        }
    }
}
