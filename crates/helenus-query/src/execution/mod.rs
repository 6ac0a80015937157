//! Execution of plans: reads, writes, conditions, batches, the maintenance of views, and the routing of requests to the owners of their
//! partitions.

pub(crate) mod backfill;
pub(crate) mod modification;
pub(crate) mod rate_limits;
pub(crate) mod routing;
pub(crate) mod sampling;
pub(crate) mod select;
pub(crate) mod timing;
pub(crate) mod views;
pub(crate) mod writes;

use std::sync::Arc;

use async_trait::async_trait;
use helenus_cql::error::CqlError;

use crate::analysis::{DirectPlan, Plan, Planned};
use crate::cluster::Origin;
use crate::failure::{ExecutionError, at_consistency};
use crate::limits::{Timeouts, scope};
use crate::request::{BoundValue, ClientState, QueryOptions};
use crate::response::Outcome;
use crate::storage::ExecutionContext;

/// Execution of statements that concern no rows: changes of the schema and of roles, USE, DESCRIBE.
#[async_trait]
pub(crate) trait DirectStatements: Send + Sync {
    async fn run_direct(
        &self,
        client: &ClientState,
        plan: &DirectPlan,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError>;
}

/// Returns the time of a request, in seconds since 1970. The request may set it itself.
pub(crate) fn now_s(context: &ExecutionContext, options: &QueryOptions) -> i64 {
    let now_s = || context.clock.now_us().div_euclid(1_000_000);
    options.now_s.unwrap_or_else(now_s)
}

/// Runs a statement on this node, whichever node owns its rows. If there is an `origin`, other nodes may read parts.
pub(crate) async fn run_here(
    context: &Arc<ExecutionContext>,
    direct: &dyn DirectStatements,
    client: &ClientState,
    planned: &Arc<Planned>,
    values: &[BoundValue],
    options: &QueryOptions,
    origin: Option<Origin<'_>>,
) -> Result<Outcome, ExecutionError> {
    limit_time(&context.limits().timeouts, &planned.plan);
    let outcome = match &planned.plan {
        Plan::Select(plan) => select::run::execute(context, planned, plan, values, options, origin).await,
        Plan::Modification(plan) => modification::execute(context, plan, values, options).await,
        Plan::Batch(plan) => Box::pin(modification::execute_batch(context, plan, values, options)).await,
        Plan::Direct(plan) => return Ok(direct.run_direct(client, plan, options).await?),
    };
    let write_type = planned.plan.write_type();
    outcome.map_err(|error| error.map_failed(|error| at_consistency(error, options.consistency, write_type)))
}

/// Limits the time that a request may compute, depending on its kind.
pub(crate) fn limit_time(timeouts: &Timeouts, plan: &Plan) {
    match plan {
        // The statement sets its own timeout.
        Plan::Select(plan) if plan.timeout().is_some() => {}
        Plan::Select(plan) if plan.reads_range() => scope::limit_time(timeouts.range_request_timeout, false),
        Plan::Select(_) => scope::limit_time(timeouts.read_request_timeout, false),
        Plan::Modification(_) | Plan::Batch(_) => scope::limit_time(timeouts.write(plan.write_type()), true),
        Plan::Direct(_) => {}
    }
}
