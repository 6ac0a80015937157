//! Parts of a read on other nodes: each part is sent to the owner of its tokens, which answers with the part's result.
//!
//! If the owner fails to read a part for a temporary reason, this node fetches the rows and reads the part itself. An execution sends no
//! more parts to a node that it could not reach or that does not support such requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_tablet::TokenRange;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use uuid::Uuid;

use super::SelectExecution;
use super::part_work::{Part, PartResult};
use crate::analysis::select::SelectPlan;
use crate::analysis::select::limits::NO_LIMIT;
use crate::analysis::select::paging::PagingState;
use crate::analysis::select::plan::Aggregation;
use crate::analysis::{EvalContext, Planned};
use crate::cluster::{Cluster, Owner, PartAnswer, RemoteError, Request};
use crate::execution::now_s;
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::request::{BoundValue, ClientFrame, QueryParameters};
use crate::storage::ExecutionContext;
use crate::trace;

/// Maximum time in which an owner aggregates a part. Cassandra limits each page of an aggregate, not their sum.
const AGGREGATE_TIME_MAX: Duration = Duration::from_secs(3_600);

/// The other nodes that read parts of one execution.
pub(super) struct PartOwners<'a> {
    context: &'a ExecutionContext,
    cluster: &'a dyn Cluster,
    plan: &'a SelectPlan,
    request: &'a Request<'a>,
    /// The parameters of the request to the owner of a part.
    parameters: QueryParameters,
    nodes: Mutex<HashMap<Uuid, Arc<PartNode>>>,
}

/// A node that reads parts.
struct PartNode {
    /// Permits for concurrent parts on the node. The node also limits the parts of all requests together.
    places: Semaphore,
    /// True if the node did not answer.
    is_silent: AtomicBool,
}

impl SelectExecution<'_> {
    /// Returns the other nodes for parts. `None` if this node reads their parts, row by row.
    pub(super) fn part_owners(&self) -> Option<PartOwners<'_>> {
        let (cluster, request) = (self.context.cluster()?, self.request?);
        // A trace only shows the steps of one task.
        if trace::is_recording() {
            return None;
        }
        Some(PartOwners {
            context: self.context,
            cluster: cluster.as_ref(),
            plan: self.plan,
            request,
            parameters: QueryParameters {
                now_s: Some(self.now_s),
                paging_state: None,
                ..request.frame.parameters.clone()
            },
            nodes: Mutex::default(),
        })
    }
}

impl PartOwners<'_> {
    /// Returns the result of a part from its owner. `None` if this node must read the part.
    ///
    /// # Errors
    /// Errors that another attempt would meet too.
    pub async fn request(&self, part: &Part) -> Result<Option<PartResult>, ExecutionError> {
        let Owner::Peer(id) = self.cluster.owner(part.tokens.first) else {
            return Ok(None);
        };
        let node = self.node(id);
        let _place = node.places.acquire().await;
        if node.is_silent.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.request_from_node(id, part).await {
            Ok(answer) => Ok(PartResult::of_answer(answer, self.plan)),
            Err(RemoteError::Failed(error)) if !is_passing(&error) => Err(error.into()),
            Err(error) => {
                let is_silent = matches!(error, RemoteError::Unreachable(_) | RemoteError::NoAnswer(_));
                node.is_silent.fetch_or(is_silent, Ordering::Relaxed);
                tracing::debug!(node = %id, ?error, "a part of a read is executed here, because its owner has not executed it");
                Ok(None)
            }
        }
    }

    async fn request_from_node(&self, node: Uuid, part: &Part) -> Result<PartAnswer, RemoteError> {
        let parameters = QueryParameters {
            page_size: i32::try_from(part.rows_max).ok(),
            paging_state: part.resume.as_ref().map(PagingState::encode),
            ..self.parameters.clone()
        };
        let request = Request {
            frame: ClientFrame::from(&parameters),
            token: Some(part.tokens.first),
            schema_version: self.context.schema().document_version,
            ..*self.request
        };
        self.cluster
            .read_part(node, &request, part.tokens, self.deadline())
            .await
    }

    /// Returns the time by which an owner must have read a part.
    fn deadline(&self) -> Instant {
        let restarts = self.plan.timeout().is_none() && !matches!(self.plan.aggregation, Aggregation::None);
        match scope::deadline() {
            // The owner restarts the time with each page of rows that it aggregates. The connection fails if the owner dies.
            _ if restarts => Instant::now() + AGGREGATE_TIME_MAX,
            Some(at) => at.into(),
            None => self.context.deadline(),
        }
    }

    fn node(&self, id: Uuid) -> Arc<PartNode> {
        let new = || PartNode {
            places: Semaphore::new(self.context.limits().scan_concurrency),
            is_silent: AtomicBool::new(false),
        };
        self.nodes
            .lock()
            .entry(id)
            .or_insert_with(|| Arc::new(new()))
            .clone()
    }
}

/// Returns true for failures of a node that another attempt, or another way, may not meet.
fn is_passing(error: &CqlError) -> bool {
    match error {
        CqlError::Server(_)
        | CqlError::Unavailable { .. }
        | CqlError::Overloaded(_)
        | CqlError::IsBootstrapping(_) => true,
        CqlError::Warned { error, .. } => is_passing(error),
        _ => false,
    }
}

/// Reads a part of this node for the node that merges it. Parts of aggregates wait for a permit. Parts with result rows are read at once,
/// like pages, because a client waits for each page.
///
/// # Errors
/// Errors of the read. A temporary one if this node does not read the statement in parts.
pub(crate) async fn serve(
    context: &Arc<ExecutionContext>,
    planned: &Arc<Planned>,
    values: &[BoundValue],
    parameters: &QueryParameters,
    tokens: TokenRange,
) -> Result<PartAnswer, ExecutionError> {
    let ctx = EvalContext {
        values,
        clock: context.clock.as_ref(),
        protocol_version: parameters.version.number(),
    };
    let run = SelectExecution::of_part(context, planned, ctx, now_s(context, parameters))?;
    let filter = run.plan.restrictions.filter(&ctx)?;
    let work = run
        .part_work(&run.row_selection()?, &filter)
        .ok_or_else(not_in_parts)?;
    let part = requested_part(parameters, tokens, run.plan).ok_or_else(not_in_parts)?;
    scope::step_aside().await;
    let _permit = match work.gives_rows() {
        true => None,
        false => Some(context.limits.scan_permits.acquire().await),
    };
    scope::checkpoint().await?;
    let result = work.run(context, part).await?;
    Ok(result.into_answer(run.plan).ok_or_else(not_in_parts)?)
}

/// Returns the part that [`PartOwners::request_from_node`] has encoded. `None` if it belongs to another table.
fn requested_part(parameters: &QueryParameters, tokens: TokenRange, plan: &SelectPlan) -> Option<Part> {
    let state = |state: &Bytes| PagingState::decode(state)?.of(&plan.table);
    let rows_max = parameters.page_size.and_then(|size| u32::try_from(size).ok());
    Some(Part {
        tokens,
        rows_max: rows_max.unwrap_or(NO_LIMIT),
        resume: parameters.paging_state.as_ref().map(state).transpose().ok()?,
    })
}

fn not_in_parts() -> CqlError {
    CqlError::Server("the statement is not read in parts here".to_owned())
}

#[cfg(test)]
#[path = "part_owners_tests.rs"]
mod tests;
