//! A client of the native protocol.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use helenus_cql::frame::request::{Execute, Prepare, Query, Startup};
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{
    BoundValue, Decoder, Direction, Envelope, MAX_BODY_LEN, Opcode, OutputEncoder, ProtocolVersion,
    QueryParameters, Request, RequestMessage, Response, ResponseMessage,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection to one node.
pub struct Client {
    socket: TcpStream,
    pub version: ProtocolVersion,
    encoder: OutputEncoder,
    decoder: Decoder,
    input: BytesMut,
}

impl Client {
    pub async fn connect(address: SocketAddr, version: ProtocolVersion) -> Client {
        let mut client = Client {
            socket: TcpStream::connect(address).await.unwrap(),
            version,
            encoder: OutputEncoder::unstarted(),
            decoder: Decoder::new(Direction::Response, MAX_BODY_LEN),
            input: BytesMut::new(),
        };
        let options = vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())];
        let ready = client.ask(Request::Startup(Startup { options })).await;
        assert_eq!(ready.header.opcode, Opcode::Ready);
        client.decoder.start(version, None);
        client.encoder = OutputEncoder::started(version, None);
        client
    }

    pub async fn ask(&mut self, request: Request) -> Envelope {
        self.send(RequestMessage::new(request)).await
    }

    pub async fn send(&mut self, message: RequestMessage) -> Envelope {
        self.begin(message).await;
        self.answer().await
    }

    /// Sends a request without waiting for the response.
    pub async fn begin(&mut self, message: RequestMessage) {
        let (mut envelopes, mut out) = (BytesMut::new(), BytesMut::new());
        self.encoder.request(self.version, 1, &message, &mut envelopes);
        self.encoder.wrap(&envelopes, &mut out);
        self.socket.write_all(&out).await.unwrap();
    }

    /// Reads a response.
    async fn answer(&mut self) -> Envelope {
        let answer = async {
            loop {
                if let Some(envelope) = self.decoder.decode(&mut self.input).unwrap() {
                    return envelope;
                }
                let len = self.socket.read_buf(&mut self.input).await.unwrap();
                assert!(len > 0, "the node has closed the connection");
            }
        };
        tokio::time::timeout(Duration::from_secs(20), answer)
            .await
            .unwrap()
    }

    pub async fn query(&mut self, text: &str) -> Envelope {
        self.ask(query(text, QueryParameters::default())).await
    }

    pub async fn prepare(&mut self, text: &str) -> (Bytes, Bytes) {
        let request = Request::Prepare(Prepare {
            query: text.to_owned(),
            keyspace: None,
        });
        let prepared = ResponseMessage::decode(self.ask(request).await).unwrap().response;
        let Response::Result(QueryResult::Prepared(prepared)) = prepared else {
            panic!("{text}: {prepared:?}");
        };
        (prepared.id, prepared.result_metadata_id)
    }
}

pub fn query(text: &str, parameters: QueryParameters) -> Request {
    Request::Query(Box::new(Query {
        query: text.to_owned(),
        parameters,
    }))
}

pub fn execute((id, known): &(Bytes, Bytes), parameters: QueryParameters) -> Request {
    Request::Execute(Box::new(Execute {
        id: id.clone(),
        result_metadata_id: Some(known.clone()),
        parameters,
    }))
}

pub fn ints(values: &[i32]) -> Vec<BoundValue> {
    let set = |value: &i32| BoundValue::Set(Bytes::copy_from_slice(&value.to_be_bytes()));
    values.iter().map(set).collect()
}

pub fn with(values: &[i32], skip_metadata: bool) -> QueryParameters {
    QueryParameters {
        values: ints(values).into(),
        skip_metadata,
        ..QueryParameters::default()
    }
}
