//! Execution of plans: reads, writes, conditions, batches, the maintenance of views, and the routing of requests to the owners of their
//! partitions.

pub(crate) mod at_cut;
pub(crate) mod backfill;
pub(crate) mod modification;
pub(crate) mod rate_limits;
pub(crate) mod routing;
pub(crate) mod sampling;
pub(crate) mod select;
pub(crate) mod timing;
pub(crate) mod transaction;
pub(crate) mod views;
pub(crate) mod writes;

use std::sync::Arc;

use helenus_cql::error::CqlError;

use crate::analysis::Plan;
use crate::cluster::{Request, RequestWork};
use crate::failure::{ExecutionError, at_consistency};
use crate::limits::{Timeouts, scope};
use crate::request::QueryParameters;
use crate::response::Outcome;
use crate::storage::ExecutionContext;

/// Returns the time of a request, in seconds since 1970. The request may set it itself.
pub(crate) fn now_s(context: &ExecutionContext, parameters: &QueryParameters) -> i64 {
    let now_s = || context.clock.now_us().div_euclid(1_000_000);
    parameters.now_s.unwrap_or_else(now_s)
}

/// Runs a request on this node, whichever node owns its rows. Other nodes may read parts of it.
pub(crate) async fn run_here(
    context: &Arc<ExecutionContext>,
    request: &Request<'_>,
) -> Result<Outcome, ExecutionError> {
    let parameters = request.frame.parameters;
    let (planned, values) = match request.work {
        RequestWork::Statement { planned, values } => (planned, values),
        RequestWork::Batch(batch) => {
            return modification::run_batch_message(context, batch, parameters, request.share).await;
        }
    };
    limit_time(&context.limits().timeouts, &planned.plan);
    let outcome = match &planned.plan {
        Plan::Select(plan) => {
            select::run::execute(context, planned, plan, values, parameters, Some(request)).await
        }
        Plan::Modification(plan) => {
            modification::execute(context, plan, values, parameters, request.share).await
        }
        Plan::InsertRows(plan) => {
            Box::pin(modification::insert_rows::execute(
                context, plan, values, parameters,
            ))
            .await
        }
        Plan::Batch(plan) => {
            let batch = modification::execute_batch(context, plan, values, parameters, request.share);
            Box::pin(batch).await
        }
        Plan::Transaction(plan) => {
            let share = request.share;
            let ran = transaction::execute(context, planned, plan, values, parameters, share);
            Box::pin(ran).await
        }
        Plan::Direct(_) => Err(CqlError::Server("the statement concerns no rows".to_owned()).into()),
    };
    let write_type = planned.plan.write_type();
    outcome
        .map_err(|error| error.map_failed(|error| at_consistency(error, parameters.consistency, write_type)))
}

/// Limits the time that a request may compute, depending on its kind.
pub(crate) fn limit_time(timeouts: &Timeouts, plan: &Plan) {
    match plan {
        // The statement sets its own timeout.
        Plan::Select(plan) if plan.timeout().is_some() => {}
        Plan::Select(plan) if plan.reads_range() => scope::limit_time(timeouts.range_request_timeout, false),
        Plan::Select(_) => scope::limit_time(timeouts.read_request_timeout, false),
        Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) => {
            scope::limit_time(timeouts.write(plan.write_type()), true);
        }
        Plan::Transaction(transaction) => match transaction.write_type() {
            Some(write_type) => scope::limit_time(timeouts.write(write_type), true),
            None => scope::limit_time(timeouts.read_request_timeout, false),
        },
        Plan::Direct(_) => {}
    }
}
