//! A client that uses only the codec.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use helenus_cql::frame::request::{Execute, Query, Startup};
use helenus_cql::frame::response::Ready;
use helenus_cql::frame::{
    Compression, Decoder, Direction, MAX_BODY_LEN, OutputEncoder, ProtocolVersion, QueryParameters, Request,
    RequestMessage, Response, ResponseMessage,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Client {
    pub socket: TcpStream,
    pub version: ProtocolVersion,
    pub encoder: OutputEncoder,
    decoder: Decoder,
    input: BytesMut,
}

pub fn query(text: &str) -> Request {
    Request::Query(Box::new(Query {
        query: text.to_owned(),
        parameters: QueryParameters::default(),
    }))
}

pub fn execute(id: &str, result_metadata_id: Option<Vec<u8>>, skip_metadata: bool) -> Request {
    Request::Execute(Box::new(Execute {
        id: id.as_bytes().to_vec().into(),
        result_metadata_id: result_metadata_id.map(Into::into),
        parameters: QueryParameters {
            skip_metadata,
            ..QueryParameters::default()
        },
    }))
}

pub fn startup(options: &[(&str, &str)]) -> Request {
    let mut all = vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())];
    all.extend(
        options
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string())),
    );
    Request::Startup(Startup { options: all })
}

impl Client {
    /// Returns a connection that has not sent STARTUP.
    pub async fn open(address: SocketAddr, version: ProtocolVersion) -> Client {
        Client {
            socket: TcpStream::connect(address).await.unwrap(),
            version,
            encoder: OutputEncoder::unstarted(),
            decoder: Decoder::new(Direction::Response, MAX_BODY_LEN),
            input: BytesMut::new(),
        }
    }

    pub async fn connect(
        address: SocketAddr,
        version: ProtocolVersion,
        compression: Option<Compression>,
        options: &[(&str, &str)],
    ) -> Client {
        let mut client = Client::open(address, version).await;
        let mut options = options.to_vec();
        if let Some(compression) = compression {
            options.push(("COMPRESSION", compression.name()));
        }
        assert_eq!(client.request(startup(&options)).await, Response::Ready(Ready));
        client.decoder.start(version, compression);
        client.encoder = OutputEncoder::started(version, compression);
        client
    }

    pub fn encode(&self, stream: i16, request: Request) -> BytesMut {
        let mut envelopes = BytesMut::new();
        self.encoder.request(
            self.version,
            stream,
            &RequestMessage::new(request),
            &mut envelopes,
        );
        let mut out = BytesMut::new();
        self.encoder.wrap(&envelopes, &mut out);
        out
    }

    pub async fn send(&mut self, stream: i16, request: Request) {
        let bytes = self.encode(stream, request);
        self.socket.write_all(&bytes).await.unwrap();
    }

    /// Returns the next message. `None` if the server has closed the connection.
    pub async fn receive(&mut self) -> Option<(i16, ResponseMessage)> {
        tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                if let Some(envelope) = self.decoder.decode(&mut self.input).unwrap() {
                    let stream = envelope.header.stream;
                    return Some((stream, ResponseMessage::decode(envelope).unwrap()));
                }
                if self.socket.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                    return None;
                }
            }
        })
        .await
        .expect("no answer")
    }

    pub async fn request(&mut self, request: Request) -> Response {
        self.send(1, request).await;
        let (stream, message) = self.receive().await.expect("closed");
        assert_eq!(stream, 1);
        message.response
    }
}
