//! INSERT, UPDATE, DELETE and BATCH.

pub mod index;

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::engine::Engine;
use crate::plan::PlanContext;
use crate::request::{BatchStatement, BoundValue, ClientState, QueryOptions};
use crate::response::Outcome;
use crate::schema::Table;

pub use index::build_index;

/// A modification ready to run.
#[derive(Debug)]
pub struct ModificationPlan {
    table: Arc<Table>,
}

impl ModificationPlan {
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A batch ready to run.
#[derive(Debug)]
pub struct BatchPlan {
    statements: Vec<ModificationPlan>,
}

impl BatchPlan {
    /// The statements in the order written.
    pub fn statements(&self) -> &[ModificationPlan] {
        &self.statements
    }
}

/// Plans an INSERT, UPDATE or DELETE.
pub fn plan(_ctx: &mut PlanContext<'_>, _statement: &ast::Statement) -> Result<ModificationPlan, CqlError> {
    Err(CqlError::invalid("modifications are not supported yet"))
}

/// Plans a BATCH statement.
pub fn plan_batch(_ctx: &mut PlanContext<'_>, _statement: &ast::Batch) -> Result<BatchPlan, CqlError> {
    Err(CqlError::invalid("BATCH is not supported yet"))
}

/// Runs a modification.
pub async fn execute(
    _engine: &Arc<Engine>,
    _plan: &ModificationPlan,
    _values: &[BoundValue],
    _options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    Err(CqlError::invalid("modifications are not supported yet"))
}

/// Runs a BATCH statement.
pub async fn execute_batch(
    _engine: &Arc<Engine>,
    _plan: &BatchPlan,
    _values: &[BoundValue],
    _options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    Err(CqlError::invalid("BATCH is not supported yet"))
}

/// Runs a BATCH message of the protocol, whose statements come prepared or as text, each with its own values.
pub async fn execute_batch_message(
    _engine: &Arc<Engine>,
    _client: &ClientState,
    _kind: ast::BatchKind,
    _statements: &[BatchStatement],
    _options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    Err(CqlError::invalid("BATCH is not supported yet"))
}
