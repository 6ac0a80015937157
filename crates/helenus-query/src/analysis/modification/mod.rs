//! Plans of INSERT, UPDATE, DELETE and BATCH, and their binding to the values of a request.

pub(crate) mod attributes;
pub(crate) mod batch;
pub(crate) mod bound;
pub(crate) mod columns;
pub(crate) mod conditions;
mod constrained;
#[cfg(test)]
mod explain;
pub(crate) mod insert_rows;
pub(crate) mod json;
pub(crate) mod operation;
pub(crate) mod plan;

pub use batch::BatchPlan;
pub use bound::BoundModification;
pub use insert_rows::InsertRowsPlan;

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::{CqlError, WriteType};
use helenus_cql::types::CqlType;
use smallvec::SmallVec;

use super::PlanContext;
use super::restrictions::{StatementKind, StatementRestrictions};
use super::select::PointKey;
use crate::schema::{Table, TableKind};
use attributes::Attributes;
use conditions::Conditions;
use json::JsonSource;
use operation::Operation;

/// A modification ready to run. The fields that every request needs come first. With thousands of statements, no cache holds them all, and
/// each cache line that a request touches is fetched from memory.
#[derive(Debug)]
#[repr(C)]
pub struct ModificationPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) kind: StatementKind,
    /// True if a function gives another result each time.
    pub(crate) is_volatile: bool,
    pub(crate) operations: SmallVec<[Operation; 1]>,
    /// The key. `None` unless each of its columns is given by `=`.
    pub(crate) point: Option<PointKey>,
    pub(crate) conditions: Conditions,
    pub(crate) attributes: Attributes,
    /// Source of the document of INSERT JSON, which gives keys and operations. `None` for other statements.
    pub(crate) json: Option<JsonSource>,
    pub(crate) restrictions: StatementRestrictions,
}

impl ModificationPlan {
    /// Returns Cassandra's name for such a write.
    pub fn write_type(&self) -> WriteType {
        match (self.conditions.is_empty(), self.table.is_counter) {
            (false, _) => WriteType::Cas,
            (true, true) => WriteType::Counter,
            (true, false) => WriteType::Simple,
        }
    }

    pub(crate) fn new(
        table: Arc<Table>,
        kind: StatementKind,
        restrictions: StatementRestrictions,
        operations: Vec<Operation>,
        attributes: Attributes,
        conditions: Conditions,
        json: Option<JsonSource>,
    ) -> ModificationPlan {
        ModificationPlan {
            point: PointKey::of(&restrictions),
            table,
            kind,
            restrictions,
            operations: operations.into_iter().collect(),
            attributes,
            conditions,
            json,
            is_volatile: false,
        }
    }

    /// Returns true if repeating the modification with the same timestamp changes nothing.
    pub(crate) fn is_repeatable(&self) -> bool {
        let is_list = |operation: &Operation| {
            let column = self.table.columns.get(operation.column);
            // The elements of a list get new ids each time.
            column.is_none_or(|column| matches!(column.ty, CqlType::List { frozen: false, .. }))
        };
        !self.is_volatile
            && !self.table.is_counter
            && self.conditions.is_empty()
            && self.json.is_none()
            && !self.operations.iter().any(is_list)
    }

    /// Returns true if the statement has USING TIMESTAMP.
    pub(crate) fn has_timestamp(&self) -> bool {
        self.attributes.has_timestamp()
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Checks a statement that could be planned (Cassandra's `ModificationStatement.validate`). PREPARE reports these errors at once. A
    /// request with values reports them after their number is checked.
    ///
    /// # Errors
    /// Cassandra's.
    pub(crate) fn validate(&self) -> Result<(), CqlError> {
        let (table, attributes) = (&self.table, &self.attributes);
        let is_virtual = table.kind == TableKind::Virtual;
        let refused = [
            (
                table.is_counter && attributes.has_timestamp(),
                "Cannot provide custom timestamp for counter updates",
            ),
            (
                table.is_counter && attributes.has_ttl(),
                "Cannot provide custom TTL for counter updates",
            ),
            (table.is_view(), "Cannot directly modify a materialized view"),
            (
                is_virtual && attributes.has_timestamp(),
                "Custom timestamp is not supported by virtual tables",
            ),
            (
                is_virtual && attributes.has_ttl(),
                "Expiring columns are not supported by virtual tables",
            ),
            (
                is_virtual && self.is_conditional(),
                "Conditional updates are not supported by virtual tables",
            ),
        ];
        if table.is_cdc_log() {
            return Err(unmodifiable_log(table));
        }
        match refused.into_iter().find(|(applies, _)| *applies) {
            Some((_, message)) => Err(CqlError::invalid(message)),
            None => Ok(()),
        }
    }

    /// Refuses a virtual table, because none of them takes writes.
    pub(crate) fn refuse_virtual(&self) -> Result<(), CqlError> {
        match self.table.kind == TableKind::Virtual {
            true => Err(CqlError::invalid(format!(
                "Modification is not supported by table {}",
                self.table.full_name()
            ))),
            false => Ok(()),
        }
    }

    /// Returns true if the statement has an IF clause.
    pub fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Returns true in the first place if there are operations on static columns, and in the second if there are operations on regular
    /// ones.
    pub(crate) fn operation_kinds(&self) -> (bool, bool) {
        (
            self.operations.iter().any(|operation| operation.is_static),
            self.operations.iter().any(|operation| !operation.is_static),
        )
    }
}

/// Plans an INSERT, UPDATE or DELETE.
pub fn plan(ctx: &mut PlanContext<'_>, statement: &ast::Statement) -> Result<ModificationPlan, CqlError> {
    let modification = match statement {
        ast::Statement::Insert(insert) => ast::Modification::Insert(insert.as_ref().clone()),
        ast::Statement::InsertJson(insert) => ast::Modification::InsertJson(insert.as_ref().clone()),
        ast::Statement::Update(update) => ast::Modification::Update(update.as_ref().clone()),
        ast::Statement::Delete(delete) => ast::Modification::Delete(delete.as_ref().clone()),
        _ => return Err(CqlError::Server("not a modification".to_owned())),
    };
    plan::plan(ctx, &modification)
}

/// Plans one statement of a transaction.
pub(crate) fn plan_one(
    ctx: &mut PlanContext<'_>,
    statement: &ast::Modification,
) -> Result<ModificationPlan, CqlError> {
    plan::plan(ctx, statement)
}

/// Plans a BATCH statement.
pub fn plan_batch(ctx: &mut PlanContext<'_>, statement: &ast::Batch) -> Result<BatchPlan, CqlError> {
    batch::plan(ctx, statement)
}

/// Returns the error for a write to a log of captured changes.
pub(crate) fn unmodifiable_log(table: &Table) -> CqlError {
    CqlError::invalid(format!(
        "Cannot modify CDC log table {}, whose rows the server writes. They expire after the table's ttl; TRUNCATE removes all of them",
        table.full_name()
    ))
}
