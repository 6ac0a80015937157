//! SELECT: planning and execution.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::engine::Engine;
use crate::plan::PlanContext;
use crate::request::{BoundValue, QueryOptions};
use crate::response::{Outcome, ResultMetadata};
use crate::schema::Table;

/// A SELECT ready to run.
#[derive(Debug)]
pub struct SelectPlan {
    table: Arc<Table>,
    metadata: Arc<ResultMetadata>,
}

impl SelectPlan {
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub fn metadata(&self) -> &Arc<ResultMetadata> {
        &self.metadata
    }
}

/// Plans a SELECT.
pub fn plan(_ctx: &mut PlanContext<'_>, _statement: &ast::Select) -> Result<SelectPlan, CqlError> {
    Err(CqlError::invalid("SELECT is not supported yet"))
}

/// Runs a SELECT.
pub async fn execute(
    _engine: &Arc<Engine>,
    _plan: &SelectPlan,
    _values: &[BoundValue],
    _options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    Err(CqlError::invalid("SELECT is not supported yet"))
}
