//! BATCH messages whose statements have plans.

use std::sync::Arc;

use helenus_cql::ast::BatchKind;
use helenus_cql::error::CqlError;

use crate::analysis::modification::ModificationPlan;
use crate::analysis::modification::attributes::Attributes;
use crate::analysis::modification::batch::{check, invalid};
use crate::analysis::{Plan, Planned};
use crate::request::BoundValue;

/// The statements of a BATCH message with their plans, each with its own values.
#[derive(Debug)]
pub struct PlannedBatch {
    pub(crate) kind: BatchKind,
    statements: Vec<(Arc<Planned>, Arc<[BoundValue]>)>,
}

impl PlannedBatch {
    /// Returns a batch without statements.
    pub fn new(kind: BatchKind) -> PlannedBatch {
        PlannedBatch {
            kind,
            statements: Vec::new(),
        }
    }

    /// Adds a statement with its values.
    ///
    /// # Errors
    /// If there are more or fewer values than markers.
    pub fn push(&mut self, plan: Arc<Planned>, values: &[BoundValue]) -> Result<(), CqlError> {
        let markers = plan.markers.len();
        if markers != values.len() {
            return Err(wrong_count(markers, values.len()));
        }
        self.statements.push((plan, values.into()));
        Ok(())
    }

    /// Checks the statements together.
    ///
    /// # Errors
    /// Cassandra's, for statements that can't go together.
    pub fn check(&self) -> Result<(), CqlError> {
        if self
            .statements
            .iter()
            .any(|(plan, _)| !matches!(plan.plan, Plan::Modification(_)))
        {
            return invalid(
                "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
            );
        }
        check(
            self.kind,
            &Attributes::default(),
            &self.modifications().collect::<Vec<_>>(),
        )
    }

    /// Returns the statements' plans with the values of each.
    pub(crate) fn bound(&self) -> impl Iterator<Item = (&ModificationPlan, &[BoundValue])> + Clone {
        self.statements
            .iter()
            .filter_map(|(planned, values)| match &planned.plan {
                Plan::Modification(plan) => Some((plan, values.as_ref())),
                _ => None,
            })
    }

    /// Returns what was planned for each statement.
    pub(crate) fn planned(&self) -> impl Iterator<Item = &Planned> {
        self.statements.iter().map(|(planned, _)| planned.as_ref())
    }

    /// Returns the statements' plans.
    pub(crate) fn modifications(&self) -> impl Iterator<Item = &ModificationPlan> {
        self.bound().map(|(plan, _)| plan)
    }
}

/// Returns the error for a wrong number of values, in the words of BATCH.
pub(crate) fn wrong_count(expected: usize, got: usize) -> CqlError {
    CqlError::invalid(format!(
        "There were {expected} markers(?) in CQL but {got} bound variables"
    ))
}
