//! Encodes and decodes the bodies of frames.

use bytes::{Bytes, BytesMut};
use prost::Message;

use super::failure::CallError;
use super::frame::Kind;
use super::proto::{
    GetRequest, GreetRequest, HoldRequest, LoadRequest, PartRequest, PinRequest, ReleaseRequest,
    RemoveStaleRequest, ScanRequest, SearchListsRequest, TellRequest, TransactRequest, WriteRequest,
};

/// Returns the body of a message.
pub(super) fn encoded(message: &impl Message) -> BytesMut {
    let mut out = BytesMut::with_capacity(message.encoded_len());
    // Encoding fails only if a buffer is full, and this buffer grows.
    let _ = message.encode(&mut out);
    out
}

/// Decodes the body of an answer.
///
/// # Errors
/// The body is invalid.
pub(super) fn answer<M: Message + Default>(body: Bytes) -> Result<M, CallError> {
    M::decode(body).map_err(|error| CallError::NoAnswer(format!("the node's answer is invalid: {error}")))
}

/// A request of another node.
pub(super) enum Request {
    Greet(GreetRequest),
    Tell(TellRequest),
    Release(ReleaseRequest),
    RemoveStale(RemoveStaleRequest),
    Hold(HoldRequest),
    Pin(PinRequest),
    Load(LoadRequest),
    Rows(RowRequest),
    Scan(ScanRequest),
}

/// A request about rows, which runs within a scope.
pub(super) enum RowRequest {
    /// The body of a statement.
    Execute(Bytes),
    Part(PartRequest),
    Get(GetRequest),
    Write(WriteRequest),
    SearchLists(SearchListsRequest),
    Transact(TransactRequest),
}

impl Request {
    /// Decodes a request.
    ///
    /// # Errors
    /// The body is invalid, or the frame is no request.
    pub fn decode(kind: Kind, body: Bytes) -> Result<Request, String> {
        let decoded = match kind {
            Kind::Greet => GreetRequest::decode(body).map(Request::Greet),
            Kind::Tell => TellRequest::decode(body).map(Request::Tell),
            Kind::Release => ReleaseRequest::decode(body).map(Request::Release),
            Kind::RemoveStale => RemoveStaleRequest::decode(body).map(Request::RemoveStale),
            Kind::Hold => HoldRequest::decode(body).map(Request::Hold),
            Kind::Pin => PinRequest::decode(body).map(Request::Pin),
            Kind::Load => LoadRequest::decode(body).map(Request::Load),
            Kind::Execute => Ok(Request::Rows(RowRequest::Execute(body))),
            Kind::Part => PartRequest::decode(body).map(|part| Request::Rows(RowRequest::Part(part))),
            Kind::Get => GetRequest::decode(body).map(|get| Request::Rows(RowRequest::Get(get))),
            Kind::Write => {
                // The store keeps operands for long. They must not keep the whole read buffer of the connection with them.
                let own = Bytes::copy_from_slice(&body);
                WriteRequest::decode(own).map(|write| Request::Rows(RowRequest::Write(write)))
            }
            Kind::SearchLists => {
                SearchListsRequest::decode(body).map(|search| Request::Rows(RowRequest::SearchLists(search)))
            }
            Kind::Transact => {
                TransactRequest::decode(body).map(|step| Request::Rows(RowRequest::Transact(step)))
            }
            Kind::Scan => ScanRequest::decode(body).map(Request::Scan),
            Kind::Next | Kind::GiveUp | Kind::Ping | Kind::Answer | Kind::Failure | Kind::Pong => {
                return Err(format!("a frame of kind {kind:?} is no request"));
            }
        };
        decoded.map_err(|error| format!("a request of kind {kind:?} is invalid: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_decoded_by_their_kinds() {
        let load = LoadRequest {
            schema_version: 3,
            ..LoadRequest::default()
        };
        let decoded = Request::decode(Kind::Load, encoded(&load).freeze());
        assert!(matches!(decoded, Ok(Request::Load(decoded)) if decoded == load));
        let statement = Bytes::from_static(b"any bytes");
        let decoded = Request::decode(Kind::Execute, statement.clone());
        assert!(matches!(decoded, Ok(Request::Rows(RowRequest::Execute(body))) if body == statement));
        assert!(Request::decode(Kind::Load, Bytes::from_static(b"\xff\xff")).is_err());
        assert!(Request::decode(Kind::Answer, Bytes::new()).is_err());
    }
}
