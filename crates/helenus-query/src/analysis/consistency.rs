//! Consistency levels that a request may have (Cassandra's `ConsistencyLevel.validateForWrite` and related methods).
//!
//! Each partition has one owner, so all accepted levels are served alike. Levels that make no sense are refused as in Cassandra.

use helenus_cql::error::{Consistency, CqlError};

use super::modification::BoundModification;
use crate::request::QueryParameters;
use crate::schema::{Schema, Table};

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message.into()))
}

/// Refuses the level `NODE_LOCAL`, which is not for clients.
pub(crate) fn check_request(consistency: Consistency) -> Result<(), CqlError> {
    match consistency {
        Consistency::NodeLocal => invalid(
            "NODE_LOCAL consistency level is highly dangerous and should be used only for debugging purposes",
        ),
        _ => Ok(()),
    }
}

/// Checks that the level is one of reads. The number of replicas is checked later, after the values of the request.
pub(crate) fn check_read(consistency: Consistency) -> Result<(), CqlError> {
    match consistency {
        Consistency::Any => invalid("ANY ConsistencyLevel is only supported for writes"),
        _ => Ok(()),
    }
}

/// Checks that the level is one of single writes without a condition. The number of replicas is checked later, after the values of the
/// request.
pub(crate) fn check_write(table: &Table, consistency: Consistency) -> Result<(), CqlError> {
    if table.is_counter {
        if consistency == Consistency::Any {
            return invalid(format!(
                "Consistency level ANY is not yet supported for counter table {}",
                table.name
            ));
        }
        if consistency.is_serial() {
            return invalid("Counter operations are inherently non-serializable");
        }
    }
    if consistency.is_serial() {
        return invalid("You must use conditional updates for serializable writes");
    }
    Ok(())
}

/// Checks the level of a write that reads what it changes. Such a write needs a level of reads.
pub(crate) fn check_read_of_write(
    schema: &Schema,
    bound: &BoundModification<'_>,
    consistency: Consistency,
) -> Result<(), CqlError> {
    if !bound.requires_read() || bound.writes_nothing() {
        return Ok(());
    }
    if consistency == Consistency::Any {
        return invalid("Write operation require a read but consistency ANY is not supported on reads");
    }
    require_replicas(schema, bound.table(), consistency)
}

/// Checks the levels of a write with a condition.
pub(crate) fn check_conditional(
    schema: &Schema,
    table: &Table,
    parameters: &QueryParameters,
) -> Result<(), CqlError> {
    if parameters
        .serial_consistency
        .is_some_and(|serial| !serial.is_serial())
    {
        return invalid("Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
    }
    if parameters.consistency.is_serial() {
        return invalid(format!(
            "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
            parameters.consistency
        ));
    }
    let class = schema
        .keyspace(&table.keyspace)
        .map(|keyspace| keyspace.replication.class.as_str());
    match (parameters.consistency, class) {
        (Consistency::EachQuorum, Some(class)) if class != "NetworkTopologyStrategy" => invalid(format!(
            "consistency level EACH_QUORUM not compatible with replication strategy (org.apache.cassandra.locator.{class})"
        )),
        _ => Ok(()),
    }
}

/// Refuses a level that counts more replicas than the keyspace has, and every level in a keyspace without replicas. All other levels are
/// served by a partition's one owner, whatever the replication factor is.
///
/// # Errors
/// `Cannot achieve consistency level TWO`
pub(crate) fn require_replicas(
    schema: &Schema,
    table: &Table,
    consistency: Consistency,
) -> Result<(), CqlError> {
    let required = match consistency {
        Consistency::Any => return Ok(()),
        Consistency::Two => 2,
        Consistency::Three => 3,
        _ => 1,
    };
    let Some(keyspace) = schema.keyspace(&table.keyspace) else {
        return Ok(());
    };
    let replicas = keyspace.replication.replicas;
    if replicas >= required {
        return Ok(());
    }
    if consistency == Consistency::All && replicas == 0 {
        return Err(CqlError::Unavailable {
            message: "Insufficient full replicas".to_owned(),
            consistency,
            required: 0,
            alive: 0,
        });
    }
    Err(CqlError::Unavailable {
        message: format!("Cannot achieve consistency level {consistency}"),
        consistency,
        required,
        alive: replicas,
    })
}
