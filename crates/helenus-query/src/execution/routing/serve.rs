//! Execution of a request on the node that owns its rows.

use std::sync::Arc;

use tokio::time::Instant;

use crate::analysis::Plan;
use crate::cluster::{Cluster, Request, RequestWork};
use crate::execution::run_here;
use crate::execution::timing::Timing;
use crate::failure::{ExecutionError, read_timeout};
use crate::metrics::Side;
use crate::response::{Outcome, Response};
use crate::schema::TableKind;
use crate::storage::ExecutionContext;

/// Runs the request on this node. The answer is refused if it may be stale. An attempt that must be repeated counts neither as a statement
/// nor as a read. `timing` is that of this attempt.
///
/// # Errors
/// [`ExecutionError::NotOwned`], before anything was done, if a write belongs to another node. Reads find the rows on any node.
pub(crate) async fn serve(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: &Request<'_>,
    deadline: Instant,
    timing: Timing,
) -> Result<Outcome, ExecutionError> {
    let mut served = try_to_serve(context, cluster, request, deadline).await;
    let ended = match (&served, request.work) {
        (Err(ExecutionError::NotOwned), _) => {
            timing.forget();
            None
        }
        (_, RequestWork::Statement { planned, .. }) => {
            timing.end(context, Side::Local, planned, &request.source, None)
        }
        (_, RequestWork::Batch(batch)) => Some(timing.end_batch(context, Side::Local, batch, None)),
    };
    if let Ok(outcome) = &mut served {
        outcome.ended = ended;
    }
    served
}

async fn try_to_serve(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: &Request<'_>,
    deadline: Instant,
) -> Result<Outcome, ExecutionError> {
    if !request.work.reads() {
        return run_here(context, request).await;
    }
    // This is read before the request runs, because the node may have had tablets until then.
    let is_guest = cluster.has_left();
    let term = cluster.lease_term();
    let outcome = match request.work.write_type() {
        // A read may be abandoned at its deadline. A write may not.
        None => tokio::time::timeout_at(deadline, run_here(context, request))
            .await
            .unwrap_or_else(|_| Err(read_timeout(request.frame.parameters.consistency).into()))?,
        Some(_) => run_here(context, request).await?,
    };
    // A conditional write that was applied is not stale: it would have failed if another owner had written.
    let is_applied = outcome.is_applied == Some(true);
    // A transaction whose conditions do not hold depends on rows, although its answer may have none.
    let depends_on_rows = matches!(outcome.response, Response::Rows(_)) || is_transaction(request);
    let has_read = depends_on_rows && !is_applied;
    if has_read && reads_tablets(request) && !is_guest && !cluster.may_serve_since(term) {
        return Err(ExecutionError::NotOwned);
    }
    Ok(outcome)
}

fn reads_tablets(request: &Request<'_>) -> bool {
    match request.work {
        RequestWork::Statement { planned, .. } => match &planned.plan {
            Plan::Select(plan) => plan.table().kind != TableKind::Virtual,
            Plan::Direct(_) => false,
            Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) | Plan::Transaction(_) => true,
        },
        RequestWork::Batch(_) => true,
    }
}

fn is_transaction(request: &Request<'_>) -> bool {
    match request.work {
        RequestWork::Statement { planned, .. } => matches!(planned.plan, Plan::Transaction(_)),
        RequestWork::Batch(_) => false,
    }
}
