//! Refusals of a node that only reads the store (`helenus serve --read-only`). The node has only what the owners of the tablets have
//! flushed. It therefore refuses reads that depend on the latest writes, and all writes.

use helenus_cql::ast::{ServiceLevelStatement, Statement};
use helenus_cql::error::CqlError;

use super::Engine;
use crate::analysis::Plan;
use crate::cluster::Request;
use crate::execution;
use crate::failure::{ExecutionError, refused_read_only};
use crate::measurement;
use crate::request::QueryParameters;
use crate::response::Outcome;
use crate::schema::roles::is_about_roles;

/// Refuses a statement that only a node of the cluster can execute.
///
/// # Errors
/// [`CqlError::Invalid`], which names the mode.
pub(super) fn check(plan: &Plan, parameters: &QueryParameters) -> Result<(), CqlError> {
    match plan {
        Plan::Select(_) if parameters.consistency.is_serial() => Err(refused_read_only(&format!(
            "it reads what the nodes of the cluster have flushed, and cannot read at {}",
            parameters.consistency
        ))),
        Plan::Select(_) => Ok(()),
        Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) => Err(refuse_writes()),
        Plan::Transaction(_) => Err(refused_read_only(
            "transactions, which read the latest writes, are for the nodes of the cluster",
        )),
        Plan::Direct(plan) => check_direct(&plan.statement),
    }
}

/// Returns the refusal of a statement that writes rows, with or without conditions.
pub(super) fn refuse_writes() -> CqlError {
    refused_read_only(
        "writes, conditional ones and those of counters included, are for the nodes of the cluster",
    )
}

fn check_direct(statement: &Statement) -> Result<(), CqlError> {
    match statement {
        Statement::Use(_)
        | Statement::Describe(_)
        | Statement::ListRoles(_)
        | Statement::ListPermissions(_)
        | Statement::ServiceLevel(ServiceLevelStatement::List(_)) => Ok(()),
        Statement::Truncate(_) => Err(refused_read_only("TRUNCATE is for the nodes of the cluster")),
        statement if is_about_roles(statement) => Err(refused_read_only(
            "changes of roles and permissions are for the nodes of the cluster",
        )),
        _ => Err(refused_read_only(
            "changes of the schema are for the nodes of the cluster",
        )),
    }
}

impl Engine {
    /// Runs a statement on a single node.
    pub(super) async fn run_alone(&self, request: &Request<'_>) -> Result<Outcome, CqlError> {
        let store = &self.context.store;
        let mut is_repeated = false;
        loop {
            let read_before = measurement::rows_read();
            let ran = execution::run_here(&self.context, request).await;
            match ran {
                // The tablet was split or merged, and deleted before this node knew its successors.
                Err(ExecutionError::NotOwned) if store.is_read_only() && !is_repeated => {
                    is_repeated = true;
                    measurement::forget_rows(read_before);
                    store.refreshed().await;
                }
                ran => return ran.map_err(ExecutionError::into_client_error),
            }
        }
    }
}
