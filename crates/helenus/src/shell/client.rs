//! A blocking client of the native protocol, as much as a shell needs: one request at a time.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{AuthResponse, Query, Startup};
use helenus_cql::frame::{
    Decoder, Direction, MAX_BODY_LEN, OutputEncoder, ProtocolVersion, QueryParameters, Request,
    RequestMessage, Response, ResponseMessage,
};

use rustls::ClientConfig;

use super::tls::Stream;

/// Old enough for any server, and without segments.
const VERSION: ProtocolVersion = ProtocolVersion::V4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a statement has no result.
pub enum StatementError {
    /// The server's answer is an error.
    Server(CqlError),
    /// The shell cannot go on: the connection is lost, or its own input or output.
    Fatal(anyhow::Error),
}

impl From<std::io::Error> for StatementError {
    fn from(error: std::io::Error) -> StatementError {
        StatementError::Fatal(error.into())
    }
}

impl From<anyhow::Error> for StatementError {
    fn from(error: anyhow::Error) -> StatementError {
        StatementError::Fatal(error)
    }
}

/// A connection that has started up.
pub struct Client {
    stream: Stream,
    address: String,
    decoder: Decoder,
    input: BytesMut,
}

/// Who to be for a server that asks.
pub struct Login {
    pub username: Option<String>,
    pub password: Option<String>,
}

impl Login {
    /// What SASL's PLAIN sends. The password is asked for at the terminal if it was not given.
    fn token(&self) -> Result<Bytes> {
        let Some(username) = &self.username else {
            bail!(
                "the server requires a log-in: give --username (the password is asked for unless --password is given)"
            );
        };
        let password = match &self.password {
            Some(password) => password.clone(),
            None => rpassword::prompt_password(format!("Password of {username}: "))
                .context("can't ask for the password; give --password")?,
        };
        Ok(format!("\0{username}\0{password}").into())
    }
}

impl Client {
    /// Connects, starts up and logs in if the server asks; `address` is `host:port`.
    pub fn connect(address: &str, login: &Login, encryption: Option<Arc<ClientConfig>>) -> Result<Client> {
        let socket = connect_any(address)
            .with_context(|| format!("no server answers on {address}; start one with `helenus serve`"))?;
        socket.set_nodelay(true)?;
        let stream = match encryption {
            Some(config) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                Stream::encrypt(socket, host, config)?
            }
            None => Stream::Plain(socket),
        };
        let mut client = Client {
            stream,
            address: address.to_owned(),
            decoder: Decoder::new(Direction::Response, MAX_BODY_LEN),
            input: BytesMut::new(),
        };
        let options = vec![
            ("CQL_VERSION".to_owned(), "3.4.7".to_owned()),
            ("DRIVER_NAME".to_owned(), "helenus shell".to_owned()),
        ];
        match client
            .request(Request::Startup(Startup { options }), false)?
            .response
        {
            Response::Ready(_) => Ok(client),
            Response::Authenticate(_) => {
                let token = Some(login.token()?);
                let answer = client.request(Request::AuthResponse(AuthResponse { token }), false)?;
                match answer.response {
                    Response::AuthSuccess(_) => Ok(client),
                    Response::Error(error) => bail!("the log-in was refused: {error}"),
                    other => bail!("the server answered the password with {:?}", other.opcode()),
                }
            }
            Response::Error(error) => bail!("the server refused the connection: {error}"),
            other => bail!("the server answered STARTUP with {:?}", other.opcode()),
        }
    }

    /// Where this is connected to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Runs a statement.
    pub fn query(
        &mut self,
        text: &str,
        parameters: QueryParameters,
        tracing: bool,
    ) -> Result<ResponseMessage, StatementError> {
        let request = Request::Query(Box::new(Query {
            query: text.to_owned(),
            parameters,
        }));
        let message = self.request(request, tracing).map_err(StatementError::Fatal)?;
        match message.response {
            Response::Error(error) => Err(StatementError::Server(error)),
            _ => Ok(message),
        }
    }

    fn request(&mut self, request: Request, tracing: bool) -> Result<ResponseMessage> {
        let mut out = BytesMut::new();
        let message = RequestMessage {
            tracing,
            ..RequestMessage::new(request)
        };
        OutputEncoder::unstarted().request(VERSION, 0, &message, &mut out);
        let sent = self.stream.write_all(&out).and_then(|()| self.stream.flush());
        sent.context("the connection is lost")?;
        loop {
            let envelope = self
                .decoder
                .decode(&mut self.input)
                .map_err(|refused| refused.error)?;
            if let Some(envelope) = envelope {
                return Ok(ResponseMessage::decode(envelope)?);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<()> {
        let mut chunk = [0; 64 * 1024];
        let read = self.stream.read(&mut chunk).context("the connection is lost")?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        self.input
            .extend_from_slice(chunk.get(..read).unwrap_or_default());
        Ok(())
    }
}

fn connect_any(address: &str) -> Result<TcpStream> {
    let mut last = None;
    for candidate in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) => Err(error.into()),
        None => bail!("{address} has no address"),
    }
}
