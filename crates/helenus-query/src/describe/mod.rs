//! DESCRIBE, as the server answers it to cqlsh.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::engine::Engine;
use crate::request::{ClientState, QueryOptions};
use crate::response::Outcome;

/// Answers a DESCRIBE statement.
pub async fn execute(
    _engine: &Arc<Engine>,
    _client: &ClientState,
    _statement: &ast::Describe,
    _options: &QueryOptions,
) -> Result<Outcome, CqlError> {
    Err(CqlError::invalid("DESCRIBE is not supported yet"))
}
