//! The tables of the operations that measure the cost of change data capture.

use anyhow::{Result, bail};

use crate::operation::Operation;

/// Returns the statements that create the tables of those of the operations that are about captured changes.
///
/// # Errors
/// Cassandra is to be measured too, which has no log tables.
pub fn statements(operations: &[Operation], is_alone: bool) -> Result<Vec<&'static str>> {
    let mut statements = Vec::new();
    for &operation in operations {
        let Some(statement) = create_table(operation) else {
            continue;
        };
        if !is_alone {
            bail!(
                "operation {}: Cassandra has no log tables. Measure only Helenus (--alone)",
                operation.name()
            );
        }
        statements.push(statement);
    }
    Ok(statements)
}

/// Returns the statement that creates an operation's table. `None` if the operation is not about captured changes.
fn create_table(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::CdcNone => {
            Some("CREATE TABLE IF NOT EXISTS compare.cdc_none (k text PRIMARY KEY, v blob)")
        }
        Operation::CdcDelta => Some(
            "CREATE TABLE IF NOT EXISTS compare.cdc_delta (k text PRIMARY KEY, v blob) \
             WITH cdc = {'enabled': true}",
        ),
        Operation::CdcPreimage => Some(
            "CREATE TABLE IF NOT EXISTS compare.cdc_preimage (k text PRIMARY KEY, v blob) \
             WITH cdc = {'enabled': true, 'preimage': true}",
        ),
        _ => None,
    }
}
