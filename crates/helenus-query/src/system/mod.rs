//! The system keyspaces: tables that are computed when they are read.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;

use crate::engine::{Engine, NodeInfo};
use crate::schema::{Keyspace, Table};

/// Every row of a virtual table: a value for each of [`Table::columns`].
pub fn rows(_engine: &Arc<Engine>, table: &Table) -> Result<Vec<Vec<Option<Bytes>>>, CqlError> {
    Err(CqlError::Server(format!("{} has no source", table.full_name())))
}

/// The keyspaces that are computed.
pub fn keyspaces(_node: &NodeInfo) -> Vec<Keyspace> {
    Vec::new()
}
