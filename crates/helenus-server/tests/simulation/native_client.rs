//! A client's connection of the native protocol, over the simulated network.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use helenus_cql::frame::request::{Query, Startup};
use helenus_cql::frame::{
    Decoder, Direction, MAX_BODY_LEN, OutputEncoder, ProtocolVersion, QueryParameters, Request,
    RequestMessage, Response, ResponseMessage,
};
use helenus_server::network::{Connection, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::network::SimulatedNetwork;

const VERSION: ProtocolVersion = ProtocolVersion::V5;

/// An open connection, which has one request in flight at most.
pub struct NativeClient {
    stream: Connection,
    encoder: OutputEncoder,
    decoder: Decoder,
    input: BytesMut,
}

impl NativeClient {
    /// Connects to a node and sends STARTUP.
    ///
    /// # Errors
    /// No node listens at the address, or the node refuses the client.
    pub async fn connect(network: &SimulatedNetwork, address: SocketAddr) -> io::Result<NativeClient> {
        let mut client = NativeClient {
            stream: network.connect(&address.to_string()).await?,
            encoder: OutputEncoder::unstarted(),
            decoder: Decoder::new(Direction::Response, MAX_BODY_LEN),
            input: BytesMut::new(),
        };
        let options = vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())];
        match client.request(Request::Startup(Startup { options })).await? {
            Response::Ready(_) => {}
            other => return Err(io::Error::other(format!("{other:?}"))),
        }
        client.decoder.start(VERSION, None);
        client.encoder = OutputEncoder::started(VERSION, None);
        Ok(client)
    }

    /// Runs a statement. `page` has the maximum rows of the page and the state of the page before. `None` if all rows are wanted.
    ///
    /// # Errors
    /// The connection ended before the response arrived.
    pub async fn query(&mut self, text: &str, page: Option<(i32, Option<Bytes>)>) -> io::Result<Response> {
        let (page_size, paging_state) = page.map_or((None, None), |(size, state)| (Some(size), state));
        let parameters = QueryParameters {
            version: VERSION,
            page_size,
            paging_state,
            ..QueryParameters::default()
        };
        let query = text.to_owned();
        self.request(Request::Query(Box::new(Query { query, parameters })))
            .await
    }

    async fn request(&mut self, request: Request) -> io::Result<Response> {
        let (mut envelopes, mut out) = (BytesMut::new(), BytesMut::new());
        self.encoder
            .request(VERSION, 1, &RequestMessage::new(request), &mut envelopes);
        self.encoder.wrap(&envelopes, &mut out);
        self.stream.write_all(&out).await?;
        loop {
            if let Some(envelope) = self.decoder.decode(&mut self.input).unwrap() {
                return Ok(ResponseMessage::decode(envelope).unwrap().response);
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
