//! A modification with its values bound: its partitions and its rows.

use std::borrow::Cow;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value;
use helenus_row::{ClusteringRange, key};

use super::ModificationPlan;
use super::constrained::{check_clustering, check_partition_key, check_present};
use super::operation::Operation;
use crate::analysis::EvalContext;
use crate::analysis::restrictions::RangeBounds;
use crate::analysis::restrictions::StatementKind;
use crate::analysis::restrictions::bounds::DeletedSlices;
use crate::rows::PartitionKey;
use crate::schema::Table;

/// Refuses nulls in the lists of a written key, and empty elements that stand for nulls. The bound values may contain both.
pub(crate) fn check_lists(table: &Table, partitions: &[PartitionKey]) -> Result<(), CqlError> {
    let columns = table.partition_key();
    if !columns
        .iter()
        .any(|column| matches!(column.ty, CqlType::List { .. }))
    {
        return Ok(());
    }
    for partition in partitions {
        let parts = key::split_partition_key(&partition.bytes, columns.len())
            .map_err(|error| CqlError::Server(error.to_string()))?;
        for (column, part) in columns.iter().zip(&parts) {
            let CqlType::List { element, .. } = &column.ty else {
                continue;
            };
            value::validate(&column.ty, part).map_err(CqlError::Invalid)?;
            let elements = value::read_elements(&column.ty, part).map_err(CqlError::Invalid)?;
            if value::is_empty_meaningless(element) && elements.iter().any(|element| element.is_empty()) {
                return Err(CqlError::invalid("Null value read when not allowed"));
            }
        }
    }
    Ok(())
}

/// Maximum length in bytes of a row's clustering values together.
const CLUSTERING_LEN_MAX: usize = 65_535;

/// A row, identified by its encoded clustering.
#[derive(Clone, Debug)]
pub struct RowName {
    pub clustering: Bytes,
    /// The values as written. `None` if the encoded values have no other form.
    pub exact: Option<Vec<Bytes>>,
}

/// The rows of each partition that a statement modifies.
#[derive(Clone, Debug)]
pub enum RowsBound {
    /// No rows: the statement modifies only static columns, or the partition as a whole.
    None,
    Names(Vec<RowName>),
    /// Ranges of rows by the kind of their bounds.
    Ranges(Vec<(RangeBounds, Vec<ClusteringRange>)>),
    /// The rows of a slice with a null bound of the column at this index. The null is an error once the statement deletes by it.
    Null(usize),
}

/// A modification with its values.
pub struct BoundModification<'p> {
    pub plan: &'p ModificationPlan,
    pub eval: EvalContext<'p>,
    pub partitions: Vec<PartitionKey>,
    pub rows: RowsBound,
    pub operations: Cow<'p, [Operation]>,
    /// The statement's own timestamp.
    pub timestamp_us: Option<i64>,
}

impl<'p> BoundModification<'p> {
    /// Binds the values.
    ///
    /// # Errors
    /// Cassandra's, for keys that are null, unset, empty or too long.
    pub fn new(plan: &'p ModificationPlan, eval: EvalContext<'p>) -> Result<BoundModification<'p>, CqlError> {
        let bound = BoundModification::unchecked(plan, eval)?;
        bound.check_keys()?;
        Ok(bound)
    }

    fn unchecked(
        plan: &'p ModificationPlan,
        eval: EvalContext<'p>,
    ) -> Result<BoundModification<'p>, CqlError> {
        // Errors in the timestamp are reported before those in keys.
        let timestamp_us = plan.attributes.timestamp_us(&eval)?;
        if let Some(json) = &plan.json {
            let row = json.row(&plan.table, &eval)?;
            check_present(&plan.table, &row.operations)?;
            let name = row_name(&plan.table, &row.clustering)?;
            return Ok(BoundModification {
                plan,
                eval,
                partitions: vec![row.partition],
                rows: RowsBound::Names(vec![name]),
                operations: Cow::Owned(row.operations),
                timestamp_us,
            });
        }
        if let Some(point) = &plan.point {
            let (partition, clustering) = point.bind(&plan.table, &eval)?;
            check_lists(&plan.table, std::slice::from_ref(&partition))?;
            return Ok(BoundModification {
                plan,
                eval,
                partitions: vec![partition],
                rows: RowsBound::Names(vec![row_name(&plan.table, &clustering)?]),
                operations: Cow::Borrowed(&plan.operations),
                timestamp_us,
            });
        }
        let partitions = plan.restrictions.partition_keys(&eval)?;
        check_lists(&plan.table, &partitions)?;
        if !plan.conditions.is_empty() {
            refuse_in(plan)?;
        }
        Ok(BoundModification {
            partitions,
            rows: bind_rows(plan, &eval)?,
            plan,
            eval,
            operations: Cow::Borrowed(&plan.operations),
            timestamp_us,
        })
    }

    /// Checks the constraints of key columns. A DELETE may name any key.
    fn check_keys(&self) -> Result<(), CqlError> {
        let table = &self.plan.table;
        if !table.has_constraints || self.plan.kind == StatementKind::Delete {
            return Ok(());
        }
        for partition in &self.partitions {
            check_partition_key(table, &partition.bytes)?;
        }
        let RowsBound::Names(names) = &self.rows else {
            return Ok(());
        };
        names
            .iter()
            .try_for_each(|name| check_clustering(table, &name.clustering, name.exact.as_deref()))
    }

    /// Returns true if the operations are on regular columns, or a row is inserted or deleted.
    pub fn updates_regular_rows(&self) -> bool {
        self.plan.table.clustering_count == 0 || !matches!(self.rows, RowsBound::None)
    }

    /// Returns true if the clustering columns are restricted to nothing, by an empty IN or by an empty slice. False if a slice has bounds,
    /// but no value lies between them.
    pub fn names_no_rows(&self) -> bool {
        match &self.rows {
            RowsBound::None => false,
            RowsBound::Names(names) => names.is_empty(),
            RowsBound::Ranges(_) | RowsBound::Null(_) => false,
        }
    }

    /// Returns true if the modification reads what it changes. Counters don't count.
    pub fn requires_read(&self) -> bool {
        !self.plan.table.is_counter
            && self
                .operations
                .iter()
                .any(|operation| operation.action.requires_read())
    }

    /// Returns the modified table.
    pub fn table(&self) -> &Table {
        &self.plan.table
    }

    /// Returns true if the modification has no partition or no row to write to.
    pub fn writes_nothing(&self) -> bool {
        self.partitions.is_empty() || self.names_no_rows()
    }

    pub fn updates_static_row(&self) -> bool {
        self.static_operations().next().is_some()
    }

    pub fn static_operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| operation.is_static)
    }

    pub fn regular_operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| !operation.is_static)
    }

    /// Returns true if the written data depends on stored data, or if an index, a view or an image follows from stored data.
    pub fn needs_lock(&self) -> bool {
        let table = &self.plan.table;
        table.is_counter
            || table.reads_old_rows()
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
    let restrictions = &plan.restrictions;
    if plan.kind == StatementKind::Delete && restrictions.names_slices() {
        return Ok(match restrictions.deleted_slices(eval)? {
            DeletedSlices::None => RowsBound::Names(Vec::new()),
            DeletedSlices::Ranges(ranges) => RowsBound::Ranges(ranges),
            DeletedSlices::Null(column) => RowsBound::Null(column),
        });
    }
    let names = restrictions.row_names(eval)?;
    let mut rows = Vec::with_capacity(names.len());
    for clustering in names.iter() {
        let name = RowName {
            clustering: clustering.clone(),
            exact: None,
        };
        check_len(table, &name)?;
        rows.push(name);
    }
    Ok(RowsBound::Names(rows))
}

/// Returns the name of the row with these clustering values.
///
/// # Errors
/// The values are not those of the clustering columns, or are too long.
pub(crate) fn row_name(table: &Table, values: &[Bytes]) -> Result<RowName, CqlError> {
    let encoded = table
        .layout
        .encode_clustering(values)
        .map_err(|error| CqlError::invalid(error.to_string()))?;
    // The exact values are kept for every decimal, so that a row keeps the form in which its key was first written.
    let has_forms = !encoded.canonical || table.clustering().iter().any(|column| is_decimal(&column.ty));
    let name = RowName {
        clustering: encoded.bytes,
        exact: has_forms.then(|| values.to_vec()),
    };
    check_len(table, &name)?;
    Ok(name)
}

/// Refuses IN in a statement with a condition, which is about one row. The error is reported before the rows are bound.
fn refuse_in(plan: &ModificationPlan) -> Result<(), CqlError> {
    if plan.restrictions.key_is_in() {
        return Err(in_of_conditional(plan, "partition key"));
    }
    if plan.restrictions.clustering.has_in {
        return Err(in_of_conditional(plan, "clustering key columns"));
    }
    Ok(())
}

/// Returns the error `IN on the partition key is not supported with conditional updates`.
pub(crate) fn in_of_conditional(plan: &ModificationPlan, part: &str) -> CqlError {
    let noun = match plan.kind {
        StatementKind::Delete => "deletions",
        _ => "updates",
    };
    CqlError::invalid(format!(
        "IN on the {part} is not supported with conditional {noun}"
    ))
}

fn is_decimal(ty: &CqlType) -> bool {
    *ty == CqlType::DECIMAL
}

/// Checks the length of a row's clustering values. Cassandra's limit is for the values; their encoded form is hardly ever shorter.
fn check_len(table: &Table, name: &RowName) -> Result<(), CqlError> {
    if name.clustering.len() <= CLUSTERING_LEN_MAX {
        return Ok(());
    }
    let values = table.layout.decode_clustering(&name.clustering);
    let values = values.map_err(|error| CqlError::Server(error.to_string()))?;
    let len: usize = values.iter().map(Bytes::len).sum();
    if len > CLUSTERING_LEN_MAX {
        return Err(CqlError::invalid(format!(
            "Key length of {len} is longer than maximum of {CLUSTERING_LEN_MAX}"
        )));
    }
    Ok(())
}
