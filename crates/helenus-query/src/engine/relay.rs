//! The short path of a prepared statement whose only partition belongs to another node: the request is relayed to that node, and no future
//! waits for the answer.
//!
//! Only plain requests are relayed. Requests that may need more than the checks made here run by [`Engine::execute`]. An answer that is
//! neither a result nor an error for the client leads to further attempts ([`Engine::resume`]), as for any request.

use std::sync::Arc;

use futures::future::BoxFuture;
use helenus_cql::error::{Consistency, CqlError};
use uuid::Uuid;

use super::Engine;
use crate::analysis::{Plan, Planned, Prepared, consistency};
use crate::cluster::{
    Cluster, Owner, RelayAnswer, RemoteError, Request, RequestWork, ReturnAddress, Sent, Source,
};
use crate::execution::routing::coordinate::{self, Attempts, client_error};
use crate::execution::timing::Timing;
use crate::measurement;
use crate::metrics::Side;
use crate::metrics::running::{RunningPlace, StatementText};
use crate::request::{BoundValue, ClientFrame, ClientState};
use crate::response::{Outcome, PassedOn};
use crate::storage::WriteEpoch;

/// A relayed request that waits for its answer. [`Engine::settle`] ends it.
pub struct Relayed {
    prepared: Arc<Prepared>,
    planned: Arc<Planned>,
    /// True if masked columns are shown masked.
    masks: bool,
    node: Uuid,
    token: i64,
    consistency: Consistency,
    attempts: Attempts,
    timing: Timing,
    running: Option<RunningPlace>,
    /// The epoch of a write. `None` for reads.
    _epoch: Option<WriteEpoch>,
}

/// A relayed request, and the reason why its owner did not execute it, or may not have. [`Engine::resume`] goes on with it.
pub struct Unsettled {
    relayed: Relayed,
    error: RemoteError,
}

impl Engine {
    /// Queues a request for the owner of its only partition. The answer goes to the address that `back` returns. `None` if nothing was done,
    /// because the request must run by [`Engine::execute`].
    pub fn relay(
        &self,
        client: &ClientState,
        prepared: &Arc<Prepared>,
        frame: ClientFrame<'_>,
        back: impl FnOnce() -> ReturnAddress,
    ) -> Option<(Relayed, Sent)> {
        let cluster = self.cluster()?.as_ref();
        let epoch = prepared.is_write.then(|| self.context.writing.epochs.enter());
        let planned = self.current_plan(prepared).ok()?;
        let values = planned.markers.bind(&frame.parameters.values).ok()?;
        let (node, token) = destination(cluster, &planned, &values)?;
        if !self.may_relay(client, prepared, &planned, frame) {
            return None;
        }
        let (_, masks) = self.masked_for(client, &planned);
        let timing = Timing::begin(None);
        let attempts = Attempts::until(self.context.deadline(), cluster);
        let request = self.relayed_request(prepared, &planned, &values, frame, (token, masks));
        let sent = cluster.relay(node, &request, attempts.deadline(), back())?;
        let text = StatementText::Prepared(prepared.query.clone());
        let running = self.context.running.enter(text, timing.began);
        drop(values);
        let relayed = Relayed {
            prepared: prepared.clone(),
            planned,
            masks,
            node,
            token,
            consistency: frame.parameters.consistency,
            attempts,
            timing,
            running,
            _epoch: epoch,
        };
        Some((relayed, sent))
    }

    /// Returns true if the client may run the statement, and the request needs nothing that only [`Engine::execute`] does. Errors are left to
    /// that path.
    fn may_relay(
        &self,
        client: &ClientState,
        prepared: &Prepared,
        planned: &Planned,
        frame: ClientFrame<'_>,
    ) -> bool {
        let parameters = frame.parameters;
        let is_plain = match &planned.plan {
            Plan::Select(plan) => plan.timeout().is_none(),
            Plan::Modification(_) => parameters.paging_state.is_none(),
            Plan::InsertRows(_) | Plan::Batch(_) | Plan::Transaction(_) | Plan::Direct(_) => false,
        };
        is_plain
            && planned.as_of.is_none()
            && !self.context.store.is_read_only()
            && consistency::check_request(parameters.consistency).is_ok()
            && !self.has_service_level(client)
            && self.guard_of(client).is_none()
            && self
                .authorize(client, prepared.keyspace.as_deref(), planned)
                .is_ok()
    }

    fn relayed_request<'r>(
        &self,
        prepared: &'r Prepared,
        planned: &'r Arc<Planned>,
        values: &'r [BoundValue],
        frame: ClientFrame<'r>,
        (token, masks): (i64, bool),
    ) -> Request<'r> {
        let planned = planned.masked.as_ref().filter(|_| masks).unwrap_or(planned);
        let work = RequestWork::Statement { planned, values };
        let schema_version = self.context.schema.load().document_version;
        let (source, keyspace) = (Source::Prepared(prepared), prepared.keyspace.as_deref());
        Request {
            masks,
            token: Some(token),
            ..Request::new(frame, source, work, keyspace, schema_version)
        }
    }

    /// Ends a relayed request. Its measurement must be that of the thread.
    ///
    /// # Errors
    /// The request, if it is to be resumed. Otherwise, the inner error is for the client.
    pub fn settle(
        &self,
        relayed: Relayed,
        answer: RelayAnswer,
    ) -> Result<Result<Outcome, CqlError>, Box<Unsettled>> {
        let ended = Some(measurement::waited_for_owner(relayed.node, relayed.timing.began));
        let cluster = self.cluster();
        if let Some(cluster) = cluster {
            cluster.count_relayed(&answer);
        }
        let result = match answer {
            Ok(outcome) => Ok(Outcome {
                passed_on: cluster.map(|cluster| {
                    let tokens = cluster.tablet(relayed.token);
                    let node = relayed.node;
                    Box::new(PassedOn { tokens, node })
                }),
                ended,
                ..outcome
            }),
            Err(RemoteError::Failed(error)) if !matches!(error, CqlError::Unprepared(_)) => {
                let work = RequestWork::Statement {
                    planned: &relayed.planned,
                    values: &[],
                };
                Err(client_error(error, relayed.consistency, work.write_type()))
            }
            Err(error) => return Err(Box::new(Unsettled { relayed, error })),
        };
        self.end_relayed(&relayed, &result);
        Ok(result)
    }

    /// Records the end of a relayed request.
    fn end_relayed(&self, relayed: &Relayed, result: &Result<Outcome, CqlError>) {
        let source = Source::Prepared(&relayed.prepared);
        let ended = Timing::ended(result);
        let (timing, planned) = (relayed.timing, &relayed.planned);
        timing.end(&self.context, Side::Coordinator, planned, &source, ended);
        if let Some(place) = relayed.running {
            self.context.running.leave(place);
        }
    }

    /// Goes on with a request that was relayed without success. `frame` is that of the request. The caller must run the future to its end.
    pub fn resume<'s>(
        self: &'s Arc<Self>,
        unsettled: Unsettled,
        frame: ClientFrame<'s>,
    ) -> BoxFuture<'s, Result<Outcome, CqlError>> {
        Box::pin(async move {
            let Unsettled { relayed, error } = unsettled;
            let result = self.run_again(&relayed, frame, error).await;
            self.end_relayed(&relayed, &result);
            result
        })
    }

    async fn run_again(
        self: &Arc<Self>,
        relayed: &Relayed,
        frame: ClientFrame<'_>,
        error: RemoteError,
    ) -> Result<Outcome, CqlError> {
        let Relayed {
            prepared,
            planned,
            attempts,
            ..
        } = relayed;
        let Some(cluster) = self.cluster() else {
            return Err(CqlError::Server("the node is in no cluster any more".to_owned()));
        };
        let values = planned.markers.bind(&frame.parameters.values)?;
        let to = (relayed.token, relayed.masks);
        let request = self.relayed_request(prepared, planned, &values, frame, to);
        let failed = (relayed.node, error);
        coordinate::resume(&self.context, cluster.as_ref(), request, attempts.clone(), failed).await
    }
}

/// Returns the owner of the only partition that a request is about, and the partition's token. `None` if this node owns it, no node does, or
/// the token is only known once all values are bound.
fn destination(cluster: &dyn Cluster, planned: &Planned, values: &[BoundValue]) -> Option<(Uuid, i64)> {
    let token = planned.key.as_ref()?.token(values)?;
    match cluster.owner(token) {
        Owner::Peer(node) => Some((node, token)),
        Owner::Here | Owner::Unowned => None,
    }
}
