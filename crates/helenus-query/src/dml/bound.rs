//! A modification with its values bound: which partitions, which rows.

use std::borrow::Cow;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::ClusteringRange;

use super::ModificationPlan;
use super::operation::Operation;
use crate::select::restrictions::StatementKind;
use crate::storage::read::{PartitionKey, RowsWanted};
use crate::term::EvalContext;

/// The sum of a row's clustering values is no longer than this.
const CLUSTERING_LEN_MAX: usize = 65_535;

/// A row by its encoded clustering.
#[derive(Clone, Debug)]
pub struct RowName {
    pub clustering: Bytes,
    /// The values as written, where the encoded ones stand for another form of them.
    pub exact: Option<Vec<Bytes>>,
}

/// The rows of each partition that a statement modifies.
#[derive(Clone, Debug)]
pub enum RowsBound {
    /// None: static columns only, or the partition as a whole.
    None,
    Names(Vec<RowName>),
    Ranges(Vec<ClusteringRange>),
}

/// A modification with its values.
pub struct Bound<'p> {
    pub plan: &'p ModificationPlan,
    pub eval: EvalContext<'p>,
    pub partitions: Vec<PartitionKey>,
    pub rows: RowsBound,
    pub operations: Cow<'p, [Operation]>,
}

impl<'p> Bound<'p> {
    /// # Errors
    /// Cassandra's, for keys that are null, unset, empty or too long.
    pub fn new(plan: &'p ModificationPlan, eval: EvalContext<'p>) -> Result<Bound<'p>, CqlError> {
        if let Some(json) = &plan.json {
            let row = json.row(&plan.table, &eval)?;
            let name = row_name(plan, &row.clustering)?;
            return Ok(Bound {
                plan,
                eval,
                partitions: vec![row.partition],
                rows: RowsBound::Names(vec![name]),
                operations: Cow::Owned(row.operations),
            });
        }
        Ok(Bound {
            partitions: plan.restrictions.partition_keys(&eval)?,
            rows: bind_rows(plan, &eval)?,
            plan,
            eval,
            operations: Cow::Borrowed(&plan.operations),
        })
    }

    /// True if the operations are on regular columns, or a row is inserted or deleted.
    pub fn updates_regular_rows(&self) -> bool {
        self.plan.table.clustering_count == 0 || !matches!(self.rows, RowsBound::None)
    }

    pub fn updates_static_row(&self) -> bool {
        self.static_operations().next().is_some()
    }

    fn is_static(&self, operation: &Operation) -> bool {
        self.plan
            .table
            .columns
            .get(operation.column)
            .is_some_and(|column| column.is_static())
    }

    pub fn static_operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations
            .iter()
            .filter(|operation| self.is_static(operation))
    }

    pub fn regular_operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations
            .iter()
            .filter(|operation| !self.is_static(operation))
    }

    /// True if what is written depends on what is there, or changes an index.
    pub fn needs_lock(&self) -> bool {
        let table = &self.plan.table;
        table.is_counter
            || !table.indexes.is_empty()
            || self
                .operations
                .iter()
                .any(|operation| operation.action.requires_read())
    }
}

fn bind_rows(plan: &ModificationPlan, eval: &EvalContext<'_>) -> Result<RowsBound, CqlError> {
    let table = &plan.table;
    if table.clustering_count == 0 {
        return Ok(RowsBound::Names(vec![RowName {
            clustering: Bytes::new(),
            exact: None,
        }]));
    }
    if plan.restrictions.clustering.is_empty() {
        return Ok(RowsBound::None);
    }
    if let Some(terms) = &plan.exact {
        let values = terms
            .iter()
            .map(|term| term.value(eval))
            .collect::<Result<Option<Vec<Bytes>>, _>>();
        if let Ok(Some(values)) = values {
            return Ok(RowsBound::Names(vec![row_name(plan, &values)?]));
        }
    }
    Ok(match plan.restrictions.rows_wanted(eval)? {
        RowsWanted::Names(names) => RowsBound::Names(
            names
                .iter()
                .map(|name| RowName {
                    clustering: name.clone(),
                    exact: None,
                })
                .collect(),
        ),
        RowsWanted::Slices(ranges) => {
            debug_assert_eq!(plan.kind, StatementKind::Delete);
            RowsBound::Ranges(ranges.iter().filter(|range| !range.is_empty()).cloned().collect())
        }
    })
}

fn row_name(plan: &ModificationPlan, values: &[Bytes]) -> Result<RowName, CqlError> {
    let len: usize = values.iter().map(Bytes::len).sum();
    if len > CLUSTERING_LEN_MAX {
        return Err(CqlError::invalid(format!(
            "The sum of all clustering columns is too long ({len} > {CLUSTERING_LEN_MAX})"
        )));
    }
    let encoded = plan
        .table
        .layout
        .encode_clustering(values)
        .map_err(|error| CqlError::invalid(error.to_string()))?;
    let exact = (!encoded.canonical).then(|| values.to_vec());
    Ok(RowName {
        clustering: encoded.bytes,
        exact,
    })
}
