//! Plans of BEGIN TRANSACTION (Cassandra 6's `TransactionStatement`).
//!
//! LET reads one row. Conditions, the answer and written values refer to columns of these rows. A reference in a written value is planned
//! as a marker behind those of the client. So writes are ordinary modifications, whose values are complete once the rows have been read.

pub(crate) mod check;
pub(crate) mod condition;
pub(crate) mod plan;
pub(crate) mod reference;

use std::sync::Arc;

use helenus_cql::error::{CqlError, WriteType};

use super::modification::ModificationPlan;
use super::select::SelectPlan;
use crate::response::ResultMetadata;
use crate::schema::Table;
use condition::Condition;
use reference::Reference;

/// A transaction ready to run.
#[derive(Debug)]
pub struct TransactionPlan {
    /// The rows that LET reads.
    pub(crate) reads: Vec<RowRead>,
    pub(crate) returning: Returning,
    /// The blocks of IF and ELSE IF.
    pub(crate) branches: Vec<Branch>,
    /// All writes: those of the branches, of ELSE, and without a condition, in this order.
    pub(crate) writes: Vec<ModificationPlan>,
    /// Number of the last writes that have no condition.
    pub(crate) unconditional: usize,
    /// The references in written values, in the order of their markers.
    pub(crate) references: Vec<Reference>,
}

/// The row of a LET.
#[derive(Debug)]
pub(crate) struct RowRead {
    /// The SELECT, whose restrictions name the row.
    pub select: SelectPlan,
    /// The referenced columns, by their indexes in [`Table::columns`].
    pub columns: Vec<usize>,
    /// The statement's position, as messages show it.
    pub position: String,
}

/// The answer of a transaction.
#[derive(Debug)]
pub(crate) enum Returning {
    /// No rows.
    Nothing,
    Select {
        plan: Box<SelectPlan>,
        position: String,
    },
    References {
        references: Vec<Reference>,
        metadata: Arc<ResultMetadata>,
    },
}

/// The block of IF or ELSE IF.
#[derive(Debug)]
pub(crate) struct Branch {
    pub conditions: Vec<Condition>,
    /// Index behind the block's last write. Its first write follows the last one of the block before.
    pub writes_end: usize,
}

impl TransactionPlan {
    /// Returns all writes, whatever the conditions.
    pub(crate) fn modifications(&self) -> impl Iterator<Item = &ModificationPlan> {
        self.writes.iter()
    }

    /// Returns the SELECTs of LET and of the answer.
    pub(crate) fn selects(&self) -> impl Iterator<Item = &SelectPlan> {
        let read = self.reads.iter().map(|read| &read.select);
        read.chain(self.returned_select())
    }

    /// Returns the ordinary SELECT of the answer. `None` if there is none.
    pub(crate) fn returned_select(&self) -> Option<&SelectPlan> {
        match &self.returning {
            Returning::Select { plan, .. } => Some(plan),
            Returning::Nothing | Returning::References { .. } => None,
        }
    }

    /// Returns the tables of all statements, with repetitions.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let read = self.selects().map(SelectPlan::table);
        read.chain(self.modifications().map(ModificationPlan::table))
    }

    /// Returns the kind of write. `None` if the transaction only reads.
    pub(crate) fn write_type(&self) -> Option<WriteType> {
        (!self.writes.is_empty()).then_some(WriteType::Cas)
    }

    /// Returns the columns of the answer. `None` if it has no rows.
    pub(crate) fn metadata(&self) -> Option<&Arc<ResultMetadata>> {
        match &self.returning {
            Returning::Nothing => None,
            Returning::Select { plan, .. } => Some(plan.metadata()),
            Returning::References { metadata, .. } => Some(metadata),
        }
    }

    /// Returns true if the answer's SELECT shows a masked column.
    pub(crate) fn selects_masked(&self) -> bool {
        self.returned_select().is_some_and(SelectPlan::selects_masked)
    }

    /// Returns the writes of a branch, or of ELSE if `branch` is the number of branches.
    pub(crate) fn writes_of(&self, branch: usize) -> std::ops::Range<usize> {
        let end_of = |branch: usize| self.branches.get(branch).map(|branch| branch.writes_end);
        let start = branch.checked_sub(1).and_then(end_of).unwrap_or(0);
        start..end_of(branch).unwrap_or_else(|| self.writes.len() - self.unconditional)
    }

    /// Returns the writes without a condition.
    pub(crate) fn unconditional_writes(&self) -> std::ops::Range<usize> {
        self.writes.len() - self.unconditional..self.writes.len()
    }

    /// Makes the checks of each statement that follow planning.
    ///
    /// # Errors
    /// Cassandra's.
    pub(crate) fn validate(&self) -> Result<(), CqlError> {
        self.modifications().try_for_each(ModificationPlan::validate)
    }
}
