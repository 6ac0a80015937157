//! Coordination of a client's request: it runs on this node, at the owner of its partitions, or divided into parts.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_cql::frame::forwarded::Share;
use tokio::time::Instant;
use uuid::Uuid;

use super::route::{OwnerPart, Route, route};
use super::serve::serve;
use crate::cluster::{Backoff, Cluster, Owner, RemoteError, Request};
use crate::execution::timing::Timing;
use crate::failure::{ExecutionError, read_timeout, says_undone, unavailable, write_timeout};
use crate::measurement;
use crate::request::{ClientFrame, QueryParameters};
use crate::response::{Outcome, PassedOn, Response};
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

/// Returns the error with the consistency of a client's request, which lower layers do not know. `write_type` is `None` for reads and for
/// statements that concern no rows.
pub(crate) fn client_error(
    error: CqlError,
    consistency: Consistency,
    write_type: Option<WriteType>,
) -> CqlError {
    match error {
        CqlError::WriteTimeout { .. } => write_timeout(consistency, write_type.unwrap_or(WriteType::Simple)),
        CqlError::ReadTimeout { .. } => match write_type {
            None => read_timeout(consistency),
            Some(_) => unavailable(consistency),
        },
        other => other,
    }
}

/// Runs a request of a client. `timing` measures its first attempt, and has the time limit by the service level of the client's role.
pub(crate) async fn run(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: Request<'_>,
    timing: Timing,
) -> Result<Outcome, CqlError> {
    let deadline = context.deadline();
    let deadline = match timing.timeout {
        Some(timeout) => deadline.min(Instant::now() + timeout),
        None => deadline,
    };
    let consistency = request.frame.parameters.consistency;
    let request = Request {
        token: request.work.token(),
        ..request
    };
    run_part(
        context,
        cluster,
        request,
        Attempts::until(deadline, cluster),
        timing,
    )
    .await
    .map_err(|error| client_error(error, consistency, request.work.write_type()))
}

/// The attempts of a request so far.
#[derive(Clone)]
pub(crate) struct Attempts {
    backoff: Backoff,
    deadline: Instant,
    /// Kind of a write that was sent and not answered. `None` if there is none.
    unanswered: Option<WriteType>,
}

impl Attempts {
    /// Starts the attempts of a request. Must be called before the first one.
    pub fn until(deadline: Instant, cluster: &dyn Cluster) -> Attempts {
        Attempts {
            backoff: Backoff::until(deadline, cluster),
            deadline,
            unanswered: None,
        }
    }

    /// Returns the time until which attempts are made.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The deadline leaves no time for another attempt.
    async fn wait(&mut self, cluster: &dyn Cluster, consistency: Consistency) -> Result<(), CqlError> {
        match (self.backoff.wait(cluster).await, self.unanswered) {
            (true, _) => Ok(()),
            (false, Some(write_type)) => Err(write_timeout(consistency, write_type)),
            (false, None) => Err(unavailable(consistency)),
        }
    }
}

/// Goes on with a request whose first attempt was relayed to `node`, and failed there. The result is that of [`run`].
pub(crate) async fn resume(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: Request<'_>,
    attempts: Attempts,
    (node, error): (Uuid, RemoteError),
) -> Result<Outcome, CqlError> {
    let consistency = request.frame.parameters.consistency;
    let resumed = async {
        let (mut request, mut attempts) = (request, attempts);
        if let RemoteError::Failed(CqlError::Unprepared(_)) = error {
            request.sends_texts = true;
        } else {
            match answered(&request, node, Err(error)) {
                AttemptOutcome::Done(result) => return result,
                AttemptOutcome::Moved => {}
                AttemptOutcome::Unanswered(write_type) => attempts.unanswered = Some(write_type),
            }
            attempts.wait(cluster, consistency).await?;
        }
        run_part(context, cluster, request, attempts, Timing::begin(None)).await
    };
    resumed
        .await
        .map_err(|error| client_error(error, consistency, request.work.write_type()))
}

/// Repeats attempts until the request is done, has failed, or the deadline has passed.
async fn run_part(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: Request<'_>,
    mut attempts: Attempts,
    timing: Timing,
) -> Result<Outcome, CqlError> {
    let deadline = attempts.deadline;
    let consistency = request.frame.parameters.consistency;
    let mut share: Option<Share> = None;
    let mut first = Some(timing);
    loop {
        let request = Request {
            share: share.as_ref().or(request.share),
            ..request
        };
        let routed = match request.token {
            Some(token) => Route::Owner(OwnerPart { token, share: None }).into(),
            None => route(context, cluster, &request)?,
        };
        if let (Some(_), Some((kind, partitions))) = (first, routed.batch) {
            context.metrics.batch(kind, partitions);
        }
        // Further attempts are measured from their own beginning.
        let timing = first.take().unwrap_or_else(|| Timing::begin(None));
        let tried = match routed.route {
            Route::Anywhere => serve(context, cluster, &request, deadline, timing).await.into(),
            Route::Owner(target) => {
                let tried = at_owner(context, cluster, &request, &target, deadline, timing).await;
                if let AttemptOutcome::Moved = tried {
                    // Further attempts keep these keys. A key that the statement computes, such as a random one, would otherwise differ at each
                    // attempt and could belong to another node.
                    share = share.or(target.share);
                }
                tried
            }
            Route::Several(targets) => {
                return run_parts(context, cluster, request, targets, deadline, timing).await;
            }
        };
        match tried {
            AttemptOutcome::Done(result) => return result,
            AttemptOutcome::Moved => {}
            AttemptOutcome::Unanswered(write_type) => attempts.unanswered = Some(write_type),
        }
        attempts.wait(cluster, consistency).await?;
    }
}

async fn at_owner(
    context: &Arc<ExecutionContext>,
    cluster: &dyn Cluster,
    request: &Request<'_>,
    target: &OwnerPart,
    deadline: Instant,
    timing: Timing,
) -> AttemptOutcome {
    match cluster.owner(target.token) {
        Owner::Here => serve(context, cluster, request, deadline, timing).await.into(),
        Owner::Unowned => AttemptOutcome::Moved,
        Owner::Peer(node) => {
            let request = Request {
                token: Some(target.token),
                share: target.share.as_ref(),
                ..*request
            };
            let mut tried = Box::pin(forward(cluster, &request, node, deadline)).await;
            if let AttemptOutcome::Done(Ok(outcome)) = &mut tried {
                let tokens = cluster.tablet(target.token);
                outcome.passed_on = Some(Box::new(PassedOn { tokens, node }));
            }
            tried
        }
    }
}

async fn forward(
    cluster: &dyn Cluster,
    request: &Request<'_>,
    node: Uuid,
    deadline: Instant,
) -> AttemptOutcome {
    trace::step(|| format!("Passing the request on to node {node}"));
    let requested_at = std::time::Instant::now();
    let answer = cluster.execute(node, request, deadline).await;
    let ended = Some(measurement::waited_for_owner(node, requested_at));
    answered(request, node, answer.map(|outcome| Outcome { ended, ..outcome }))
}

/// Returns the outcome of an attempt that was forwarded to `node`.
fn answered(request: &Request<'_>, node: Uuid, answer: Result<Outcome, RemoteError>) -> AttemptOutcome {
    match answer {
        Ok(outcome) => AttemptOutcome::Done(Ok(outcome)),
        Err(RemoteError::NotOwned | RemoteError::Unreachable(_)) => AttemptOutcome::Moved,
        Err(RemoteError::Failed(error)) => AttemptOutcome::Done(Err(error)),
        Err(RemoteError::NoAnswer(why)) => match request.work.write_type() {
            None => AttemptOutcome::Moved,
            Some(write_type) if request.is_repeatable() => AttemptOutcome::Unanswered(write_type),
            Some(write_type) => {
                tracing::debug!(%node, why, "a write that was passed on has no answer");
                let consistency = request.frame.parameters.consistency;
                AttemptOutcome::Done(Err(write_timeout(consistency, write_type)))
            }
        },
    }
}

/// Runs the parts of a request concurrently.
fn run_parts<'a>(
    context: &'a Arc<ExecutionContext>,
    cluster: &'a dyn Cluster,
    request: Request<'a>,
    targets: Vec<OwnerPart>,
    deadline: Instant,
    timing: Timing,
) -> BoxFuture<'a, Result<Outcome, CqlError>> {
    Box::pin(async move {
        let dated = dated(context, &request);
        let request = Request {
            frame: ClientFrame {
                parameters: &dated,
                ..request.frame
            },
            timestamp_us: dated.timestamp_us,
            ..request
        };
        let part = |target: &OwnerPart| {
            let share = target.share.clone().unwrap_or_default();
            async move {
                let request = Request {
                    share: Some(&share),
                    ..request
                };
                run_part(
                    context,
                    cluster,
                    request,
                    Attempts::until(deadline, cluster),
                    timing,
                )
                .await
            }
        };
        let results = join_all(targets.iter().map(part)).await;
        joined(&request, results)
    })
}

/// Returns the parameters with one timestamp for all parts. Each counter has a timestamp of its own.
fn dated(context: &ExecutionContext, request: &Request<'_>) -> QueryParameters {
    let parameters = request.frame.parameters;
    let timestamp_us = match parameters.timestamp_us {
        None if !request.work.is_counter() => Some(context.next_timestamp_us()),
        given => given,
    };
    QueryParameters {
        timestamp_us,
        ..parameters.clone()
    }
}

/// Returns the result of a request from those of its parts.
fn joined(request: &Request<'_>, results: Vec<Result<Outcome, CqlError>>) -> Result<Outcome, CqlError> {
    let mut warnings = Vec::new();
    let mut begun = false;
    let mut ended: Option<std::time::Instant> = None;
    let mut failed = None;
    for result in results {
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
            request.frame.parameters.consistency,
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
