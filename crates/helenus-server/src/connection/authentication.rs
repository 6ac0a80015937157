//! A client that is asked who it is (Cassandra's `AuthResponse` and the state of its `ServerConnection`).

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

use super::in_flight::Ticket;
use super::requests::{Accepted, Ran};
use super::subject::Subject;
use super::{Connection, Phase, REQUEST_OVERHEAD_BYTES};
use crate::backend::Backend;
use crate::breakdown::Arrival;
use crate::log_limit::shown;
use crate::metrics::RequestKind;
use crate::shared::Shared;

impl<B: Backend> Connection<B> {
    /// Serves a request of a client that has not said who it is yet.
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
        if !self.in_flight.is_empty() {
            // Looking at a password takes long, and others wait for theirs.
            let message = "Unexpected message SASL_RESPONSE, the one before is not answered yet".to_owned();
            return self.send_error(version, header.stream, CqlError::Protocol(message));
        }
        let envelope = match self.decoder.decompress(envelope) {
            Ok(envelope) => envelope,
            Err(error) => return self.refuse_one(error),
        };
        let cost_bytes = envelope.body.len() + REQUEST_OVERHEAD_BYTES;
        let token = match RequestMessage::decode(envelope).map(|message| message.request) {
            Ok(Request::AuthResponse(response)) => response.token.unwrap_or_default(),
            Ok(_) => return,
            Err(error) => return self.send_error(version, header.stream, error),
        };
        let accepted = Accepted::untraced(Ticket {
            version,
            stream: header.stream,
            kind: RequestKind::of(header.opcode),
            cost_bytes,
            arrival,
        });
        self.log_in(accepted, token, cx);
    }

    /// Looks at a client's credentials; another task does what takes long of it.
    pub(super) fn log_in(&mut self, accepted: Accepted, token: Bytes, cx: &mut Context<'_>) {
        let (found, logging_in) = oneshot::channel();
        self.logging_in = Some(logging_in);
        let peer = self.peer;
        let limit = self.shared.clone();
        let logged_in = run_log_in(self.shared.clone(), peer.ip(), token, found);
        let told = async move {
            let ran = logged_in.await;
            if let Err(error) = &ran.result
                && let Some(suppressed) = limit.refusals.take()
            {
                let error = shown(&error.to_string());
                tracing::info!(%peer, %error, suppressed, "a client was not let in");
            }
            ran
        };
        self.run_request(accepted, told, cx);
    }

    /// The client is who it says.
    pub(super) fn logged_in(&mut self, version: ProtocolVersion) {
        let user = self.logging_in.take().and_then(|mut user| user.try_recv().ok());
        let Some(user) = user else { return };
        if let Some(connected) = &self.connected {
            connected.logged_in(&user.name);
        }
        // The role may have gone while its password was looked at, when nobody knew of this connection.
        self.ending |= !self.shared.backend.may_stay(&user);
        self.client = Arc::new(ClientState {
            keyspace: self.client.keyspace.clone(),
            user: Some(user),
        });
        self.phase = Phase::Started(version);
        self.await_requests();
    }
}

async fn run_log_in<B: Backend>(
    shared: Arc<Shared<B>>,
    address: IpAddr,
    token: Bytes,
    found: oneshot::Sender<Arc<User>>,
) -> Ran<B::Prepared> {
    let result = shared.backend.log_in(address, token).await.map(|user| {
        // The connection may be gone.
        let _ = found.send(user);
        Response::AuthSuccess(AuthSuccess::default()).into()
    });
    Ran {
        subject: Subject::Unknown,
        result,
    }
}
