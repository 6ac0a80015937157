//! Statements that change the schema.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use helenus_tablet::Store;
use uuid::Uuid;

use crate::engine::{Engine, NodeInfo};
use crate::request::ClientState;
use crate::response::Outcome;
use crate::schema::Schema;

/// Runs a statement that changes the schema (or TRUNCATE).
pub async fn execute(
    _engine: &Arc<Engine>,
    _client: &ClientState,
    _statement: &ast::Statement,
) -> Result<Outcome, CqlError> {
    Err(CqlError::invalid("this statement is not supported yet"))
}

/// Reads the schema from the store; a new store has the system keyspaces only.
pub async fn load(_store: &Store, _node: &NodeInfo) -> Result<Schema, CqlError> {
    Ok(Schema {
        version: Uuid::nil(),
        generation: 0,
        next_table_number: 1,
        keyspaces: Default::default(),
    })
}
