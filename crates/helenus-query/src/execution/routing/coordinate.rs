//! Coordination of a client's request: it runs on this node, at the owner of its partitions, or divided into parts.

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use helenus_cql::error::{CqlError, WriteType};
use tokio::time::Instant;
use uuid::Uuid;

use super::route::{OwnerPart, Route, route};
use crate::analysis::Plan;
use crate::cluster::{Backoff, Cluster, Forwarded, Origin, Owner, RemoteError};
use crate::execution::modification::run_batch_message;
use crate::execution::routing::request::{Request, RequestWork};
use crate::execution::run_here;
use crate::execution::timing::Timing;
use crate::failure::{ExecutionError, read_timeout, says_undone, unavailable, write_timeout};
use crate::measurement;
use crate::metrics::Side;
use crate::request::{Place, QueryOptions};
use crate::response::{Outcome, PassedOn, Response};
use crate::schema::TableKind;
use crate::storage::ExecutionContext;
use crate::trace;

/// The outcome of one attempt.
enum AttemptOutcome {
    Done(Result<Outcome, CqlError>),
    /// The owner was not found, and nothing was done. Another attempt may find it.
    Moved,
    /// The write may have been done. It may be repeated.
    Unanswered(WriteType),
}

impl From<Result<Outcome, ExecutionError>> for AttemptOutcome {
    fn from(result: Result<Outcome, ExecutionError>) -> AttemptOutcome {
        match result {
            Ok(outcome) => AttemptOutcome::Done(Ok(outcome)),
            Err(ExecutionError::NotOwned) => AttemptOutcome::Moved,
            Err(ExecutionError::Failed(error)) => AttemptOutcome::Done(Err(error)),
        }
    }
}

impl Request<'_> {
    /// Returns the error with the consistency of this client's request, which lower layers do not know.
    fn client_error(&self, error: CqlError) -> CqlError {
        let consistency = self.options.consistency;
        match error {
            CqlError::WriteTimeout { .. } => {
                write_timeout(consistency, self.work.write_type().unwrap_or(WriteType::Simple))
            }
            CqlError::ReadTimeout { .. } => match self.work.write_type() {
                None => read_timeout(consistency),
                Some(_) => unavailable(consistency),
            },
            other => other,
        }
    }

    /// Runs the request on this node.
    async fn run_here(
        &self,
        context: &Arc<ExecutionContext>,
        place: &Place,
    ) -> Result<Outcome, ExecutionError> {
        let options = match place {
            Place::Coordinator => Cow::Borrowed(self.options),
            place => Cow::Owned(QueryOptions {
                place: place.clone(),
                ..self.options.clone()
            }),
        };
        match self.work {
            RequestWork::Statement { planned, values } => {
                let origin = Some(Origin {
                    keyspace: self.keyspace,
                    source: self.source,
                    options: &options,
                });
                let (direct, client) = (self.direct, self.client);
                run_here(context, direct, client, planned, values, &options, origin).await
            }
            RequestWork::Batch(batch) => run_batch_message(context, batch, &options).await,
        }
    }

    /// Runs the request on this node. The answer is refused if it may be stale. An attempt that must be repeated counts neither as a
    /// statement nor as a read. `timing` is that of this attempt.
    pub async fn serve(
        &self,
        context: &Arc<ExecutionContext>,
        cluster: &dyn Cluster,
        place: &Place,
        deadline: Instant,
        timing: Timing,
    ) -> Result<Outcome, ExecutionError> {
        let mut served = self.try_to_serve(context, cluster, place, deadline).await;
        let ended = match (&served, self.work) {
            (Err(ExecutionError::NotOwned), _) => {
                timing.forget();
                None
            }
            (_, RequestWork::Statement { planned, .. }) => {
                timing.end(context, Side::Local, planned, &self.source, None)
            }
            (_, RequestWork::Batch(batch)) => Some(timing.end_batch(context, Side::Local, batch, None)),
        };
        if let Ok(outcome) = &mut served {
            outcome.ended = ended;
        }
        served
    }

    async fn try_to_serve(
        &self,
        context: &Arc<ExecutionContext>,
        cluster: &dyn Cluster,
        place: &Place,
        deadline: Instant,
    ) -> Result<Outcome, ExecutionError> {
        if !self.work.reads() {
            return self.run_here(context, place).await;
        }
        // This is read before the request runs, because the node may have had tablets until then.
        let is_guest = cluster.has_left();
        let term = cluster.lease_term();
        let outcome = match self.work.write_type() {
            // A read may be abandoned at its deadline. A write may not.
            None => tokio::time::timeout_at(deadline, self.run_here(context, place))
                .await
                .unwrap_or_else(|_| Err(read_timeout(self.options.consistency).into()))?,
            Some(_) => self.run_here(context, place).await?,
        };
        // A conditional write that was applied is not stale: it would have failed if another owner had written.
        let is_applied = outcome.is_applied == Some(true);
        let has_read = matches!(outcome.response, Response::Rows(_)) && !is_applied;
        if has_read && self.reads_tablets() && !is_guest && !cluster.may_serve_since(term) {
            return Err(ExecutionError::NotOwned);
        }
        Ok(outcome)
    }

    fn reads_tablets(&self) -> bool {
        match self.work {
            RequestWork::Statement { planned, .. } => match &planned.plan {
                Plan::Select(plan) => plan.table().kind != TableKind::Virtual,
                Plan::Direct(_) => false,
                Plan::Modification(_) | Plan::Batch(_) => true,
            },
            RequestWork::Batch(_) => true,
        }
    }
}

/// Runs a request of a client.
pub(crate) async fn run(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: Request<'_>,
) -> Result<Outcome, CqlError> {
    let deadline = context.deadline();
    let deadline = match request.timing.timeout {
        Some(timeout) => deadline.min(Instant::now() + timeout),
        None => deadline,
    };
    run_part(context, cluster, request, Place::Coordinator, deadline)
        .await
        .map_err(|error| request.client_error(error))
}

/// Repeats attempts until the request is done, has failed, or the deadline has passed.
fn run_part<'a>(
    context: &'a Arc<ExecutionContext>,
    cluster: &'a dyn Cluster,
    request: Request<'a>,
    place: Place,
    deadline: Instant,
) -> BoxFuture<'a, Result<Outcome, CqlError>> {
    Box::pin(async move {
        let mut backoff = Backoff::until(deadline, cluster);
        let consistency = request.options.consistency;
        let mut in_the_end = unavailable(consistency);
        let mut place = place;
        let mut is_first = true;
        loop {
            let routed = route(context, cluster, &request, &place)?;
            if let (true, Some((kind, partitions))) = (is_first, routed.batch) {
                context.metrics.batch(kind, partitions);
            }
            let timing = match is_first {
                true => request.timing,
                false => Timing::begin(None),
            };
            is_first = false;
            let tried = match routed.route {
                Route::Anywhere => {
                    let served = request.serve(context, cluster, &place, deadline, timing);
                    served.await.into()
                }
                Route::Owner(target) => {
                    let parts = target.parts.clone();
                    let tried = at_owner(context, cluster, &request, &place, target, deadline, timing).await;
                    // Further attempts keep these keys. A key that the statement computes, such as a random one, would otherwise differ at
                    // each attempt and could belong to another node.
                    if let (AttemptOutcome::Moved, Place::Coordinator, Some(parts)) = (&tried, &place, parts)
                    {
                        place = Place::Part(parts);
                    }
                    tried
                }
                Route::Several(targets) => {
                    return run_parts(context, cluster, request, targets, deadline).await;
                }
            };
            match tried {
                AttemptOutcome::Done(result) => return result,
                AttemptOutcome::Moved => {}
                AttemptOutcome::Unanswered(write_type) => in_the_end = write_timeout(consistency, write_type),
            }
            if !backoff.wait(cluster).await {
                return Err(in_the_end);
            }
        }
    })
}

async fn at_owner(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: &Request<'_>,
    place: &Place,
    target: OwnerPart,
    deadline: Instant,
    timing: Timing,
) -> AttemptOutcome {
    match cluster.owner(target.token) {
        Owner::Here => {
            let served = request.serve(context, cluster, place, deadline, timing);
            served.await.into()
        }
        Owner::Unowned => AttemptOutcome::Moved,
        Owner::Peer(node) => {
            let place = match target.parts {
                Some(parts) => Place::Part(parts),
                None => Place::Owner,
            };
            let mut tried = forward(context, cluster, request, place, node, deadline).await;
            if let AttemptOutcome::Done(Ok(outcome)) = &mut tried {
                let tokens = cluster.tablet(target.token);
                outcome.passed_on = Some(Box::new(PassedOn { tokens, node }));
            }
            tried
        }
    }
}

async fn forward(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    request: &Request<'_>,
    place: Place,
    node: Uuid,
    deadline: Instant,
) -> AttemptOutcome {
    trace::step(|| format!("Passing the request on to node {node}"));
    let options = QueryOptions {
        place,
        ..request.options.clone()
    };
    let forwarded = Forwarded {
        keyspace: request.keyspace,
        source: request.source,
        options: &options,
        schema_version: context.schema().document_version,
    };
    let requested_at = std::time::Instant::now();
    let answer = cluster.execute(node, &forwarded, deadline).await;
    let ended = Some(measurement::waited_for_owner(node, requested_at));
    match answer {
        Ok(outcome) => AttemptOutcome::Done(Ok(Outcome { ended, ..outcome })),
        Err(RemoteError::NotOwned | RemoteError::Unreachable(_)) => AttemptOutcome::Moved,
        Err(RemoteError::Failed(error)) => AttemptOutcome::Done(Err(error)),
        Err(RemoteError::NoAnswer(why)) => match request.work.write_type() {
            None => AttemptOutcome::Moved,
            Some(write_type) if request.work.is_repeatable(&options) => {
                AttemptOutcome::Unanswered(write_type)
            }
            Some(write_type) => {
                tracing::debug!(%node, why, "a write that was passed on has no answer");
                AttemptOutcome::Done(Err(write_timeout(options.consistency, write_type)))
            }
        },
    }
}

/// Runs the parts of a request concurrently.
async fn run_parts(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: Request<'_>,
    targets: Vec<OwnerPart>,
    deadline: Instant,
) -> Result<Outcome, CqlError> {
    let timestamp_us = match request.options.timestamp_us {
        None if !request.work.is_counter() => Some(context.next_timestamp_us()),
        given => given,
    };
    let options = QueryOptions {
        timestamp_us,
        ..request.options.clone()
    };
    let request = Request {
        options: &options,
        ..request
    };
    let part = |target: OwnerPart| {
        let place = Place::Part(target.parts.unwrap_or_default());
        run_part(context, cluster, request, place, deadline)
    };
    let mut warnings = Vec::new();
    let mut begun = false;
    let mut ended: Option<std::time::Instant> = None;
    let mut failed = None;
    for result in join_all(targets.into_iter().map(part)).await {
        match result {
            Ok(outcome) => {
                begun = true;
                ended = ended.max(outcome.ended);
                warnings.extend(outcome.warnings);
            }
            Err(error) => {
                begun |= matches!(error, CqlError::WriteTimeout { .. });
                failed = Some(error);
            }
        }
    }
    match failed {
        // Parts of the request were done, or may have been.
        Some(error) if begun && says_undone(&error) => Err(write_timeout(
            options.consistency,
            request.work.write_type().unwrap_or(WriteType::Simple),
        )),
        Some(error) => Err(error),
        None => {
            warnings.dedup();
            Ok(Outcome {
                ended,
                ..Response::Void.with(warnings)
            })
        }
    }
}
