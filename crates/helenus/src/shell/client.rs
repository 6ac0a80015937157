//! A blocking client of the native protocol. It sends one request at a time, or many concurrently. Ctrl-C cancels them.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{AuthResponse, Prepare, Query, Startup};
use helenus_cql::frame::response::{Prepared, QueryResult};
use helenus_cql::frame::{
    Decoder, Direction, MAX_BODY_LEN, OutputEncoder, ProtocolVersion, QueryParameters, Request,
    RequestMessage, Response, ResponseMessage,
};

use rustls::ClientConfig;

use super::interrupt::Interrupt;
use super::tls::Stream;

/// Protocol version that every server supports, and that has no segments.
const VERSION: ProtocolVersion = ProtocolVersion::V4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time between two checks for Ctrl-C while the shell waits for bytes.
const INTERRUPT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Reason why a statement has no result.
pub enum StatementError {
    /// Error in the server's answer.
    Server(CqlError),
    /// Ctrl-C was pressed. The server may still complete the statement.
    Cancelled,
    /// Loss of the connection.
    Disconnected(anyhow::Error),
    /// Failure of the shell's own input or output.
    Output(anyhow::Error),
}

/// Returns the error of a command that Ctrl-C ended.
pub fn interrupted() -> anyhow::Error {
    anyhow!("interrupted by Ctrl-C; run the command again")
}

/// Returns the error of a statement that can't be tried again.
pub fn in_words(error: StatementError) -> anyhow::Error {
    match error {
        StatementError::Server(error) => anyhow!("{error}"),
        StatementError::Cancelled => interrupted(),
        StatementError::Disconnected(error) | StatementError::Output(error) => error,
    }
}

impl From<std::io::Error> for StatementError {
    fn from(error: std::io::Error) -> StatementError {
        StatementError::Output(error.into())
    }
}

impl From<anyhow::Error> for StatementError {
    fn from(error: anyhow::Error) -> StatementError {
        StatementError::Output(error)
    }
}

/// A connection that is ready for requests.
pub struct Client {
    stream: Stream,
    decoder: Decoder,
    input: BytesMut,
    interrupt: Interrupt,
    last_stream_id: i16,
    /// Stream ids of requests whose answer is awaited.
    awaited: HashSet<i16>,
    /// Stream ids of cancelled requests, whose answers are ignored.
    abandoned: HashSet<i16>,
    /// Maximum time between two answers. `None` if there is no limit.
    answer_time_max: Option<Duration>,
}

/// Credentials for a server that requires authentication.
#[derive(Clone, Debug, Default)]
pub struct Login {
    pub username: Option<String>,
    pub password: Option<String>,
}

impl Login {
    /// Returns the token of SASL's PLAIN. The password is read from the terminal if it was not given, and kept.
    fn token(&mut self) -> Result<Bytes> {
        let Some(username) = &self.username else {
            bail!(
                "the server requires a log-in: give --username (the shell prompts for the password unless --password is given)"
            );
        };
        let password = match &self.password {
            Some(password) => password.clone(),
            None => rpassword::prompt_password(format!("Password of {username}: "))
                .context("can't prompt for the password; give --password")?,
        };
        let token = format!("\0{username}\0{password}").into();
        self.password = Some(password);
        Ok(token)
    }
}

/// Address of the server, and the encryption of the connection.
#[derive(Clone)]
pub struct Server {
    /// Address as `host:port`.
    pub address: String,
    pub encryption: Option<Arc<ClientConfig>>,
    pub interrupt: Interrupt,
}

impl Server {
    /// Connects, and logs in if the server requires it.
    pub fn connect(&self, login: &mut Login) -> Result<Client> {
        let address = &self.address;
        let socket = connect_any(address)
            .with_context(|| format!("no server answers on {address}; start one with `helenus serve`"))?;
        socket.set_nodelay(true)?;
        let timeouts = socket.try_clone()?;
        let stream = match &self.encryption {
            Some(config) => {
                let host = address
                    .rsplit_once(':')
                    .map_or(address.as_str(), |(host, _)| host);
                Stream::encrypt(socket, host, Arc::clone(config))?
            }
            None => Stream::Plain(socket),
        };
        timeouts.set_read_timeout(Some(INTERRUPT_CHECK_INTERVAL))?;
        let mut client = Client {
            stream,
            decoder: Decoder::new(Direction::Response, MAX_BODY_LEN),
            input: BytesMut::new(),
            interrupt: self.interrupt.clone(),
            last_stream_id: 0,
            awaited: HashSet::new(),
            abandoned: HashSet::new(),
            answer_time_max: None,
        };
        client.start_up(login)?;
        Ok(client)
    }
}

impl Client {
    fn start_up(&mut self, login: &mut Login) -> Result<()> {
        let options = vec![
            ("CQL_VERSION".to_owned(), "3.4.7".to_owned()),
            ("DRIVER_NAME".to_owned(), "helenus shell".to_owned()),
        ];
        match self.start_up_request(Request::Startup(Startup { options }))? {
            Response::Ready(_) => Ok(()),
            Response::Authenticate(_) => {
                let token = Some(login.token()?);
                match self.start_up_request(Request::AuthResponse(AuthResponse { token }))? {
                    Response::AuthSuccess(_) => Ok(()),
                    Response::Error(error) => bail!("the log-in was refused: {error}"),
                    other => bail!("the server answered the password with {:?}", other.opcode()),
                }
            }
            Response::Error(error) => bail!("the server refused the connection: {error}"),
            other => bail!("the server answered STARTUP with {:?}", other.opcode()),
        }
    }

    fn start_up_request(&mut self, request: Request) -> Result<Response> {
        match self.request(request, false) {
            Ok(message) => Ok(message.response),
            Err(StatementError::Server(error)) => Ok(Response::Error(error)),
            Err(StatementError::Cancelled) => {
                bail!("interrupted by Ctrl-C before the connection was established: start the shell again")
            }
            Err(StatementError::Disconnected(error) | StatementError::Output(error)) => Err(error),
        }
    }

    /// Runs a statement and waits for its answer.
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
        self.request(request, tracing)
    }

    /// Prepares a statement and waits for its answer.
    pub fn prepare(&mut self, text: &str) -> Result<Prepared, StatementError> {
        let prepare = Prepare {
            query: text.to_owned(),
            keyspace: None,
        };
        match self.request(Request::Prepare(prepare), false)?.response {
            Response::Result(QueryResult::Prepared(prepared)) => Ok(prepared),
            other => Err(StatementError::Disconnected(anyhow!(
                "the server answered PREPARE with {:?}",
                other.opcode()
            ))),
        }
    }

    fn request(&mut self, request: Request, tracing: bool) -> Result<ResponseMessage, StatementError> {
        self.send(request, tracing)?;
        let (_, message) = self.receive()?;
        match message.response {
            Response::Error(error) => Err(StatementError::Server(error)),
            _ => Ok(message),
        }
    }

    /// Sends a request without waiting. Returns its id, under which [`Client::receive`] returns the answer.
    pub fn send(&mut self, request: Request, tracing: bool) -> Result<i16, StatementError> {
        let id = self.next_stream_id();
        let mut out = BytesMut::new();
        let message = RequestMessage {
            tracing,
            ..RequestMessage::new(request)
        };
        OutputEncoder::unstarted().request(VERSION, id, &message, &mut out);
        let sent = self.stream.write_all(&out).and_then(|()| self.stream.flush());
        sent.context("the connection is lost")
            .map_err(StatementError::Disconnected)?;
        self.awaited.insert(id);
        Ok(id)
    }

    fn next_stream_id(&mut self) -> i16 {
        loop {
            self.last_stream_id = self.last_stream_id.checked_add(1).unwrap_or(0);
            let id = self.last_stream_id;
            if !self.awaited.contains(&id) && !self.abandoned.contains(&id) {
                return id;
            }
        }
    }

    /// Gives the connection up if an answer takes longer than this.
    pub fn limit_answers(&mut self, time_max: Duration) {
        self.answer_time_max = Some(time_max);
    }

    /// Waits for the answer to any awaited request. Ctrl-C cancels all of them.
    pub fn receive(&mut self) -> Result<(i16, ResponseMessage), StatementError> {
        let started = Instant::now();
        loop {
            if let Some((id, message)) = self.decode().map_err(StatementError::Disconnected)? {
                if self.awaited.remove(&id) {
                    return Ok((id, message));
                }
                if let (false, Response::Error(error)) = (self.abandoned.remove(&id), message.response) {
                    // An error without a request concerns the whole connection.
                    let refused = anyhow!("the server refused the connection: {error}");
                    return Err(StatementError::Disconnected(refused));
                }
                continue;
            }
            if self.interrupt.is_set() {
                self.abandon();
                return Err(StatementError::Cancelled);
            }
            if let Some(time_max) = self
                .answer_time_max
                .filter(|time_max| started.elapsed() > *time_max)
            {
                let late = anyhow!("the server has not answered for {} s", time_max.as_secs());
                return Err(StatementError::Disconnected(late));
            }
            self.fill().map_err(StatementError::Disconnected)?;
        }
    }

    /// Cancels all awaited requests.
    pub fn abandon(&mut self) {
        self.abandoned.extend(self.awaited.drain());
    }

    fn decode(&mut self) -> Result<Option<(i16, ResponseMessage)>> {
        let envelope = self
            .decoder
            .decode(&mut self.input)
            .map_err(|refused| refused.error)?;
        let Some(envelope) = envelope else {
            return Ok(None);
        };
        Ok(Some((envelope.header.stream, ResponseMessage::decode(envelope)?)))
    }

    /// Reads available bytes. Returns without any after the interval of checks for Ctrl-C.
    fn fill(&mut self) -> Result<()> {
        let mut chunk = [0; 64 * 1024];
        let read = match self.stream.read(&mut chunk) {
            Ok(0) => bail!("the server closed the connection: connect again"),
            Ok(read) => read,
            Err(error) if is_pause(error.kind()) => return Ok(()),
            Err(error) => return Err(error).context("the connection is lost"),
        };
        self.input
            .extend_from_slice(chunk.get(..read).unwrap_or_default());
        Ok(())
    }
}

fn is_pause(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
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
