//! Authentication of a client (Cassandra's `AuthResponse` and the state of its `ServerConnection`).

use std::net::IpAddr;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::response::AuthSuccess;
use helenus_cql::frame::{Envelope, Opcode, ProtocolVersion, Request, RequestMessage, Response};
use helenus_query::request::ClientState;
use helenus_query::request::User;
use tokio::sync::oneshot;

use super::in_flight::{AdmittedRequest, RequestInfo};
use super::statement_summary::StatementSummary;
use super::statements::StatementOutcome;
use super::{Connection, REQUEST_OVERHEAD_BYTES};
use crate::logs::rate_limit::shown;
use crate::metrics::RequestKind;
use crate::metrics::stage_times::Arrival;
use crate::transport::Backend;
use crate::transport::server_state::ServerState;

impl<B: Backend> Connection<B> {
    /// Serves a request of a client that has not logged in yet.
    pub(super) fn authenticate(
        &mut self,
        version: ProtocolVersion,
        envelope: Envelope,
        arrival: Arrival,
        cx: &mut Context<'_>,
    ) {
        let header = envelope.header;
        if header.opcode != Opcode::AuthResponse {
            let name = header.opcode.name();
            let message = format!("Unexpected message {name}, expecting SASL_RESPONSE");
            return self.send_error(version, header.stream, CqlError::Protocol(message));
        }
        if !self.running.requests.is_empty() {
            // Only one log-in at a time is allowed, because checking a password takes long and other clients wait for theirs.
            let message = "Unexpected message SASL_RESPONSE, the one before is not answered yet".to_owned();
            return self.send_error(version, header.stream, CqlError::Protocol(message));
        }
        let envelope = match self.input.decoder.decompress(envelope) {
            Ok(envelope) => envelope,
            Err(error) => return self.refuse_one(error),
        };
        let cost_bytes = envelope.body.len() + REQUEST_OVERHEAD_BYTES;
        let token = match RequestMessage::decode(envelope).map(|message| message.request) {
            Ok(Request::AuthResponse(response)) => response.token.unwrap_or_default(),
            Ok(_) => return,
            Err(error) => return self.send_error(version, header.stream, error),
        };
        let accepted = AdmittedRequest::untraced(RequestInfo {
            version,
            stream: header.stream,
            kind: RequestKind::of(header.opcode),
            cost_bytes,
            arrival,
        });
        self.log_in(accepted, token, cx);
    }

    /// Checks a client's credentials. The slow part of the check moves to another task.
    pub(super) fn log_in(&mut self, accepted: AdmittedRequest, token: Bytes, cx: &mut Context<'_>) {
        let (found, logging_in) = oneshot::channel();
        self.session.logging_in = Some(logging_in);
        let peer = self.peer;
        let limit = self.server.clone();
        let logged_in = run_log_in(self.server.clone(), peer.ip(), token, found);
        let reported = async move {
            let ran = logged_in.await;
            if let Err(error) = &ran.result
                && let Some(suppressed) = limit.refusals.take()
            {
                let error = shown(&error.to_string());
                tracing::info!(%peer, %error, suppressed, "login failed");
            }
            ran
        };
        self.run_request(accepted, reported, cx);
    }

    /// Makes the connection ready if its client has logged in.
    pub(super) fn logged_in(&mut self) {
        let user = self
            .session
            .logging_in
            .take()
            .and_then(|mut user| user.try_recv().ok());
        let Some(user) = user else { return };
        if let Some(connected) = &self.session.connected {
            connected.logged_in(&user.name);
        }
        // The role may have been dropped during the check of its password. At that time the connection was not yet listed under this role.
        if !self.server.backend.may_stay(&user) {
            self.lifecycle.close();
        }
        self.session.client = Arc::new(ClientState {
            user: Some(user),
            ..ClientState::clone(&self.session.client)
        });
        self.session.state = self.session.state.authenticated();
        self.await_requests();
    }
}

async fn run_log_in<B: Backend>(
    server: Arc<ServerState<B>>,
    address: IpAddr,
    token: Bytes,
    found: oneshot::Sender<Arc<User>>,
) -> StatementOutcome<B::Prepared> {
    let user = given_name(&token);
    let result = server.backend.log_in(address, token).await.map(|user| {
        // The error is ignored, because the connection may be closed.
        let _ = found.send(user);
        Response::AuthSuccess(AuthSuccess::default()).into()
    });
    StatementOutcome {
        summary: StatementSummary::Login { user },
        result,
    }
}

/// Returns the name in a SASL PLAIN token. The token has an authorisation identity, the name and the password, separated by zero bytes.
fn given_name(token: &[u8]) -> String {
    let name = token.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}
