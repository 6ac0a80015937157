//! The requests of a client (spec v5, section 4.1).

mod auth_response;
mod batch;
mod execute;
mod options;
mod prepare;
mod query;
mod register;
mod startup;

use bytes::{Bytes, BytesMut};

pub use auth_response::AuthResponse;
pub use batch::{Batch, BatchKind, BatchStatement, StatementRef};
pub use execute::Execute;
pub use options::Options;
pub use prepare::Prepare;
pub use query::Query;
pub use register::Register;
pub use startup::Startup;

use super::CustomPayload;
use super::envelope::{Envelope, Flags};
use super::opcode::Opcode;
use super::primitive::{Reader, put_bytes_map};
use super::version::ProtocolVersion;
use crate::error::CqlError;

/// A request of any opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Startup(Startup),
    Options(Options),
    Query(Box<Query>),
    Prepare(Prepare),
    Execute(Box<Execute>),
    Register(Register),
    Batch(Box<Batch>),
    AuthResponse(AuthResponse),
}

impl Request {
    pub fn opcode(&self) -> Opcode {
        match self {
            Request::Startup(_) => Opcode::Startup,
            Request::Options(_) => Opcode::Options,
            Request::Query(_) => Opcode::Query,
            Request::Prepare(_) => Opcode::Prepare,
            Request::Execute(_) => Opcode::Execute,
            Request::Register(_) => Opcode::Register,
            Request::Batch(_) => Opcode::Batch,
            Request::AuthResponse(_) => Opcode::AuthResponse,
        }
    }

    /// Appends the body of the request, without a custom payload.
    pub fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        match self {
            Request::Startup(startup) => startup.encode(out),
            Request::Options(Options) => {}
            Request::Query(query) => query.encode(version, out),
            Request::Prepare(prepare) => prepare.encode(version, out),
            Request::Execute(execute) => execute.encode(version, out),
            Request::Register(register) => register.encode(out),
            Request::Batch(batch) => batch.encode(version, out),
            Request::AuthResponse(response) => response.encode(out),
        }
    }
}

/// A request, with the other contents of its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMessage {
    /// True if the client requests a trace.
    pub tracing: bool,
    pub custom_payload: Option<CustomPayload>,
    pub request: Request,
}

impl RequestMessage {
    pub fn new(request: Request) -> RequestMessage {
        RequestMessage {
            tracing: false,
            custom_payload: None,
            request,
        }
    }

    /// Reads the body of a request. Bytes behind the message are ignored, as Cassandra does.
    pub fn decode(envelope: Envelope) -> Result<RequestMessage, CqlError> {
        RequestMessage::decode_with_body(envelope).map(|(message, _)| message)
    }

    /// Reads the body of a request, and also returns the body itself, without the custom payload.
    pub fn decode_with_body(envelope: Envelope) -> Result<(RequestMessage, Bytes), CqlError> {
        let header = envelope.header;
        let version = header.version;
        let mut reader = Reader::new(envelope.body);
        let custom_payload = decode_custom_payload(&mut reader, header.flags, version)?;
        let body = reader.clone().into_rest();
        let reader = &mut reader;
        let request = match header.opcode {
            Opcode::Startup => Request::Startup(Startup::decode(reader)?),
            Opcode::Options => Request::Options(Options),
            Opcode::Query => Request::Query(Box::new(Query::decode(reader, version)?)),
            Opcode::Prepare => Request::Prepare(Prepare::decode(reader, version)?),
            Opcode::Execute => Request::Execute(Box::new(Execute::decode(reader, version)?)),
            Opcode::Register => Request::Register(Register::decode(reader, version)?),
            Opcode::Batch => Request::Batch(Box::new(Batch::decode(reader, version)?)),
            Opcode::AuthResponse => Request::AuthResponse(AuthResponse::decode(reader)?),
            Opcode::Credentials => return Err(CqlError::Protocol("Unsupported message".to_owned())),
            Opcode::Error
            | Opcode::Ready
            | Opcode::Authenticate
            | Opcode::Supported
            | Opcode::Result
            | Opcode::Event
            | Opcode::AuthChallenge
            | Opcode::AuthSuccess => {
                let name = header.opcode.name();
                return Err(CqlError::Protocol(format!("{name} is not a request")));
            }
        };
        let message = RequestMessage {
            tracing: header.flags.contains(Flags::TRACING),
            custom_payload,
            request,
        };
        Ok((message, body))
    }

    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags::default();
        if self.tracing {
            flags = flags.with(Flags::TRACING);
        }
        if self.custom_payload.is_some() {
            flags = flags.with(Flags::CUSTOM_PAYLOAD);
        }
        flags
    }

    pub(crate) fn encode_body(&self, version: ProtocolVersion, out: &mut BytesMut) {
        if let Some(payload) = &self.custom_payload {
            put_bytes_map(out, payload);
        }
        self.request.encode(version, out);
    }
}

fn decode_custom_payload(
    reader: &mut Reader,
    flags: Flags,
    version: ProtocolVersion,
) -> Result<Option<CustomPayload>, CqlError> {
    if !flags.contains(Flags::CUSTOM_PAYLOAD) {
        return Ok(None);
    }
    if version < ProtocolVersion::V4 {
        return Err(CqlError::Protocol(
            "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4".to_owned(),
        ));
    }
    reader.bytes_map().map(Some)
}
