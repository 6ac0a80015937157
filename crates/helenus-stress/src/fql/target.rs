//! A server on which statements are replayed: one connection, one request at a time.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{AuthResponse, Query, Startup};
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{
    Decoder, Direction, MAX_BODY_LEN, OutputEncoder, ProtocolVersion, QueryParameters, Request,
    RequestMessage, Response, ResponseMessage,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::cli::fql::TargetArgs;
use crate::db::tls;

const PORT: u16 = 9042;
const READ_BYTES: usize = 64 << 10;
/// Protocol versions in the order in which they are tried.
const VERSIONS: [ProtocolVersion; 2] = [ProtocolVersion::V5, ProtocolVersion::V4];

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// A connection that is ready for requests.
pub struct Target {
    stream: Box<dyn Stream>,
    version: ProtocolVersion,
    decoder: Decoder,
    encoder: OutputEncoder,
    input: BytesMut,
    /// Current keyspace. A USE of the log changes it too.
    keyspace: Option<String>,
}

impl Target {
    /// Connects to `HOST[:PORT]` and logs in.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or refuses the log-in.
    pub fn connect(address: &str, args: &TargetArgs) -> Result<Target> {
        let mut refusal = anyhow!("no version of the protocol is known to {address}");
        for version in VERSIONS {
            let mut target = Target::open(address, args, version)?;
            match target.start(args) {
                Ok(()) => return Ok(target),
                Err(error) if matches!(error.downcast_ref(), Some(CqlError::Protocol(_))) => refusal = error,
                Err(error) => return Err(error),
            }
        }
        Err(refusal)
    }

    fn open(address: &str, args: &TargetArgs, version: ProtocolVersion) -> Result<Target> {
        let unreachable = || format!("can't connect to {address}");
        let (host, port) = host_and_port(address);
        let mut resolved = (host, port).to_socket_addrs().with_context(unreachable)?;
        let resolved = resolved.next().with_context(unreachable)?;
        let tcp = TcpStream::connect_timeout(&resolved, Duration::from_secs(10)).with_context(unreachable)?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(args.timeout))?;
        tcp.set_write_timeout(Some(args.timeout))?;
        let stream: Box<dyn Stream> = match args.tls {
            false => Box::new(tcp),
            true => {
                let config = tls::client_config(args.tls_authority.as_deref())?;
                let name = ServerName::try_from(host.to_owned())?;
                Box::new(StreamOwned::new(ClientConnection::new(config, name)?, tcp))
            }
        };
        Ok(Target {
            stream,
            version,
            decoder: Decoder::new(Direction::Response, MAX_BODY_LEN),
            encoder: OutputEncoder::unstarted(),
            input: BytesMut::new(),
            keyspace: None,
        })
    }

    fn start(&mut self, args: &TargetArgs) -> Result<()> {
        let options = vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())];
        let mut answer = self.call(Request::Startup(Startup { options }))?;
        self.encoder = OutputEncoder::started(self.version, None);
        self.decoder.start(self.version, None);
        if let Response::Authenticate(_) = answer {
            let token = Bytes::from(format!("\0{}\0{}", args.username, args.password));
            answer = self.call(Request::AuthResponse(AuthResponse { token: Some(token) }))?;
        }
        match answer {
            Response::Ready(_) | Response::AuthSuccess(_) => Ok(()),
            other => bail!("STARTUP was answered with {:?}", other.opcode()),
        }
    }

    /// Uses a keyspace for the next requests.
    ///
    /// # Errors
    /// Fails if there is no such keyspace, or the connection is lost.
    pub fn use_keyspace(&mut self, keyspace: &str) -> Result<()> {
        if self.keyspace.as_deref() == Some(keyspace) {
            return Ok(());
        }
        self.call(Request::Query(Box::new(Query {
            query: format!("USE \"{}\"", keyspace.replace('"', "\"\"")),
            parameters: QueryParameters::default(),
        })))
        .map(drop)
    }

    /// Sends a request. [`Target::receive`] waits for its answer.
    ///
    /// # Errors
    /// Fails if the connection is lost.
    pub fn send(&mut self, request: Request) -> Result<()> {
        let mut envelope = BytesMut::new();
        self.encoder
            .request(self.version, 0, &RequestMessage::new(request), &mut envelope);
        let mut output = BytesMut::new();
        self.encoder.wrap(&envelope, &mut output);
        self.stream.write_all(&output)?;
        Ok(self.stream.flush()?)
    }

    /// Waits for the answer to the request.
    ///
    /// # Errors
    /// Returns the server's error as a [`CqlError`], or the error of the connection.
    pub fn receive(&mut self) -> Result<Response> {
        let mut chunk = vec![0; READ_BYTES];
        loop {
            let decoded = self.decoder.decode(&mut self.input);
            if let Some(envelope) = decoded.map_err(|refused| refused.error)? {
                return match ResponseMessage::decode(envelope)?.response {
                    Response::Error(error) => Err(error.into()),
                    Response::Result(QueryResult::SetKeyspace(keyspace)) => {
                        self.keyspace = Some(keyspace);
                        Ok(Response::Result(QueryResult::Void))
                    }
                    response => Ok(response),
                };
            }
            let len = self.stream.read(&mut chunk)?;
            ensure!(len > 0, "the server closed the connection");
            self.input.extend_from_slice(chunk.get(..len).unwrap_or_default());
        }
    }

    fn call(&mut self, request: Request) -> Result<Response> {
        self.send(request)?;
        self.receive()
    }
}

/// Returns true if the server refused a request. The connection can still be used then.
pub fn is_refusal(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CqlError>().is_some()
}

/// Splits `HOST[:PORT]`. An IPv6 address is in brackets if a port follows.
fn host_and_port(address: &str) -> (&str, u16) {
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, port.parse().ok()),
        _ => (address, None),
    };
    let host = if port.is_some() { host } else { address };
    (host.trim_matches(['[', ']']), port.unwrap_or(PORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_may_carry_a_port() {
        assert_eq!(host_and_port("db"), ("db", 9042));
        assert_eq!(host_and_port("10.0.0.7:9043"), ("10.0.0.7", 9043));
        assert_eq!(host_and_port("::1"), ("::1", 9042));
        assert_eq!(host_and_port("[::1]:9043"), ("::1", 9043));
    }
}
