//! Runs plans: reads, writes, conditions, batches, the upkeep of views, and the routing of requests to the nodes that own their partitions.

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

/// Runs the statements that are about no rows: changes of the schema and of the roles, USE, DESCRIBE.
#[async_trait]
pub(crate) trait DirectStatements: Send + Sync {
    async fn run_direct(
        &self,
        client: &ClientState,
        plan: &DirectPlan,
        options: &QueryOptions,
    ) -> Result<Outcome, CqlError>;
}

/// Returns the time that a request is about, in seconds since 1970.
pub(crate) fn now_s(context: &ExecutionContext, options: &QueryOptions) -> i64 {
    let now_s = || context.clock.now_us().div_euclid(1_000_000);
    options.now_s.unwrap_or_else(now_s)
}

/// Runs a statement on this node, whoever owns what it is about. Of what has an origin, parts may be read by other nodes.
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

/// Has a request end when it has computed for as long as its kind may.
pub(crate) fn limit_time(timeouts: &Timeouts, plan: &Plan) {
    match plan {
        // It says so itself.
        Plan::Select(plan) if plan.timeout().is_some() => {}
        Plan::Select(plan) if plan.reads_range() => scope::limit_time(timeouts.range_request_timeout, false),
        Plan::Select(_) => scope::limit_time(timeouts.read_request_timeout, false),
        Plan::Modification(_) | Plan::Batch(_) => scope::limit_time(timeouts.write(plan.write_type()), true),
        Plan::Direct(_) => {}
    }
}
