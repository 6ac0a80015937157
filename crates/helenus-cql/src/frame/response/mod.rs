//! The responses of the server (spec v5, section 4.2).

mod authentication;
mod error;
mod event;
mod prepared;
mod ready;
mod result;
mod rows;
mod schema_change;
mod supported;

use bytes::BytesMut;
use uuid::Uuid;

pub use authentication::{AuthChallenge, AuthSuccess, Authenticate};
pub use event::{Event, EventType, StatusChange, TopologyChange};
pub use prepared::Prepared;
pub use ready::Ready;
pub use result::QueryResult;
pub use rows::{Rows, RowsBuilder, RowsContent};
pub use schema_change::{ChangeKind, SchemaChange, SchemaTarget};
pub use supported::Supported;

pub use super::metadata::PageMetadata;

use super::CustomPayload;
use super::envelope::{Envelope, Flags};
use super::opcode::Opcode;
use super::primitive::{Reader, put_bytes_map, put_string_list};
use super::version::ProtocolVersion;
use crate::error::CqlError;
use bytes::BufMut;

/// A response of any opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    Error(CqlError),
    Ready(Ready),
    Authenticate(Authenticate),
    Supported(Supported),
    Result(QueryResult),
    Event(Event),
    AuthChallenge(AuthChallenge),
    AuthSuccess(AuthSuccess),
}

impl Response {
    pub fn opcode(&self) -> Opcode {
        match self {
            Response::Error(_) => Opcode::Error,
            Response::Ready(_) => Opcode::Ready,
            Response::Authenticate(_) => Opcode::Authenticate,
            Response::Supported(_) => Opcode::Supported,
            Response::Result(_) => Opcode::Result,
            Response::Event(_) => Opcode::Event,
            Response::AuthChallenge(_) => Opcode::AuthChallenge,
            Response::AuthSuccess(_) => Opcode::AuthSuccess,
        }
    }

    /// Appends the body of the response, without a tracing id, warnings and a custom payload.
    pub fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        match self {
            Response::Error(error) => error::encode_error(error, version, out),
            Response::Ready(Ready) => {}
            Response::Authenticate(authenticate) => authenticate.encode(out),
            Response::Supported(supported) => supported.encode(out),
            Response::Result(result) => result.encode(version, out),
            Response::Event(event) => event.encode(version, out),
            Response::AuthChallenge(challenge) => challenge.encode(out),
            Response::AuthSuccess(success) => success.encode(out),
        }
    }
}

/// A response, with the other contents of its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseMessage {
    /// The id of the request's trace. `None` if the request was not traced.
    pub tracing_id: Option<Uuid>,
    /// Warnings, which are not sent before v4.
    pub warnings: Vec<String>,
    /// The custom payload, which is not sent before v4.
    pub custom_payload: Option<CustomPayload>,
    pub response: Response,
}

impl From<Response> for ResponseMessage {
    fn from(response: Response) -> ResponseMessage {
        ResponseMessage {
            tracing_id: None,
            warnings: Vec::new(),
            custom_payload: None,
            response,
        }
    }
}

impl ResponseMessage {
    /// Returns the response for an error, with the error's warnings.
    pub fn error(error: CqlError) -> ResponseMessage {
        let (error, warnings) = error.split();
        ResponseMessage {
            warnings,
            ..Response::Error(error).into()
        }
    }

    pub(crate) fn flags(&self, version: ProtocolVersion) -> Flags {
        let v4 = version >= ProtocolVersion::V4;
        let mut flags = Flags::default();
        if self.tracing_id.is_some() {
            flags = flags.with(Flags::TRACING);
        }
        if v4 && !self.warnings.is_empty() {
            flags = flags.with(Flags::WARNING);
        }
        if v4 && self.custom_payload.is_some() {
            flags = flags.with(Flags::CUSTOM_PAYLOAD);
        }
        if version.is_beta() {
            flags = flags.with(Flags::USE_BETA);
        }
        flags
    }

    pub(crate) fn encode_body(&self, version: ProtocolVersion, out: &mut BytesMut) {
        let flags = self.flags(version);
        if let Some(id) = self.tracing_id {
            out.put_slice(id.as_bytes());
        }
        if flags.contains(Flags::WARNING) {
            put_string_list(out, &self.warnings);
        }
        if let Some(payload) = self
            .custom_payload
            .as_ref()
            .filter(|_| flags.contains(Flags::CUSTOM_PAYLOAD))
        {
            put_bytes_map(out, payload);
        }
        self.response.encode(version, out);
    }

    /// Reads the body of a response.
    pub fn decode(envelope: Envelope) -> Result<ResponseMessage, CqlError> {
        let header = envelope.header;
        let version = header.version;
        let reader = &mut Reader::new(envelope.body);
        let has = |flag| header.flags.contains(flag);
        let tracing_id = if has(Flags::TRACING) {
            Some(reader.uuid()?)
        } else {
            None
        };
        let warnings = if has(Flags::WARNING) {
            reader.string_list()?
        } else {
            Vec::new()
        };
        let custom_payload = if has(Flags::CUSTOM_PAYLOAD) {
            Some(reader.bytes_map()?)
        } else {
            None
        };
        let response = match header.opcode {
            Opcode::Error => Response::Error(error::decode_error(reader, version)?),
            Opcode::Ready => Response::Ready(Ready),
            Opcode::Authenticate => Response::Authenticate(Authenticate::decode(reader)?),
            Opcode::Supported => Response::Supported(Supported::decode(reader)?),
            Opcode::Result => Response::Result(QueryResult::decode(reader, version)?),
            Opcode::Event => Response::Event(Event::decode(reader)?),
            Opcode::AuthChallenge => Response::AuthChallenge(AuthChallenge::decode(reader)?),
            Opcode::AuthSuccess => Response::AuthSuccess(AuthSuccess::decode(reader)?),
            Opcode::Startup
            | Opcode::Credentials
            | Opcode::Options
            | Opcode::Query
            | Opcode::Prepare
            | Opcode::Execute
            | Opcode::Register
            | Opcode::Batch
            | Opcode::AuthResponse => {
                let name = header.opcode.name();
                return Err(CqlError::Protocol(format!("{name} is not a response")));
            }
        };
        Ok(ResponseMessage {
            tracing_id,
            warnings,
            custom_payload,
            response,
        })
    }
}
