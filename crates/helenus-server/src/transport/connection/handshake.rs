//! STARTUP: a connection before it is ready (Cassandra's `InitialConnectionHandler` and `StartupMessage`).

use std::time::Instant;

use helenus_cql::error::{CqlError, RATE_LIMITED_CODE};
use helenus_cql::frame::request::Startup;
use helenus_cql::frame::response::{Authenticate, Ready, Supported};
use helenus_cql::frame::{
    Compression, Envelope, Opcode, OutputEncoder, ProtocolVersion, Request, RequestMessage, Response,
};

use helenus_query::engine::clients::Session;

use super::Connection;
use super::state::{SessionState, StartupOptions};
use crate::transport::Backend;

impl<B: Backend> Connection<B> {
    /// Serves a request that arrives before a STARTUP was accepted.
    pub(super) fn start_up(&mut self, envelope: Envelope, startup_refused: bool) {
        let header = envelope.header;
        let version = header.version;
        if !matches!(header.opcode, Opcode::Startup | Opcode::Options) {
            let name = header.opcode.name();
            let message = format!("Unexpected message {name}, expecting STARTUP or OPTIONS");
            // Before the first STARTUP, Cassandra answers such a message on stream 0. After a refused STARTUP, it answers on the message's
            // stream.
            let stream = if startup_refused { header.stream } else { 0 };
            return self.send_error(version, stream, CqlError::Protocol(message));
        }
        let decoded = RequestMessage::decode(envelope);
        let response = match decoded.map(|message| message.request) {
            Ok(Request::Options(_)) => self.supported(),
            Ok(Request::Startup(startup)) => match agree(&startup, version) {
                Ok(options) => return self.started(header.stream, &startup, &options),
                Err(error) => return self.refused(version, header.stream, error),
            },
            Ok(request) => Response::Error(CqlError::Server(format!(
                "{} is not expected here",
                request.opcode().name()
            ))),
            Err(error) => Response::Error(error),
        };
        self.send(version, header.stream, &response.into());
    }

    pub(super) fn supported(&self) -> Response {
        let backend = &self.server.backend;
        let rate_limit_code = format!("ERROR_CODE={RATE_LIMITED_CODE}");
        let supported = Supported::served(backend.cql_version())
            .with_extension(Startup::SCYLLA_RATE_LIMIT_ERROR, &rate_limit_code);
        Response::Supported(match backend.has_tablets() {
            true => supported.with_extension(Startup::TABLETS_ROUTING_V1, ""),
            false => supported,
        })
    }

    /// Refuses a STARTUP. The following messages are framed by its version all the same, as after an accepted one.
    fn refused(&mut self, version: ProtocolVersion, stream: i16, error: CqlError) {
        self.send_error(version, stream, error);
        self.session.state = SessionState::Greeting {
            startup_refused: true,
        };
        self.input.decoder.start(version, None);
        self.output.encoder = OutputEncoder::started(version, None);
    }

    fn started(&mut self, stream: i16, startup: &Startup, options: &StartupOptions) {
        let version = options.version;
        // The response to STARTUP itself is sent without segments and uncompressed.
        let (response, state) = match self.server.backend.authenticator() {
            None => (Response::Ready(Ready), SessionState::Ready(*options)),
            Some(authenticator) => {
                let authenticator = authenticator.to_owned();
                let challenge = Response::Authenticate(Authenticate { authenticator });
                (challenge, SessionState::Authenticating(*options))
            }
        };
        self.send(version, stream, &response.into());
        self.session.state = state;
        self.input.decoder.start(version, options.compression);
        self.output.encoder = OutputEncoder::started(version, options.compression);
        self.await_requests();
        if let Some(connected) = &self.session.connected {
            connected.started(Session {
                options: startup.options.iter().cloned().collect(),
                protocol_version: version.number(),
                keyspace: None,
                user: None,
            });
        }
        tracing::debug!(
            peer = %self.peer,
            %version,
            driver = startup.get(Startup::DRIVER_NAME),
            driver_version = startup.get(Startup::DRIVER_VERSION),
            "connection started up"
        );
    }

    /// Applies the limits of a client that is ready: longer requests, and the idle timeout. Does nothing if the client has yet to log in.
    pub(super) fn await_requests(&mut self) {
        if !self.session.state.is_ready() {
            return;
        }
        self.input
            .decoder
            .set_max_body_len(self.server.config.body_len_max());
        if let Some(idle_timeout) = self.server.config.idle_timeout {
            let expires = Instant::now() + idle_timeout;
            self.timers.deadline.as_mut().reset(expires.into());
        }
    }
}

/// Checks the options of a STARTUP. Unknown options are ignored.
fn agree(startup: &Startup, version: ProtocolVersion) -> Result<StartupOptions, CqlError> {
    let protocol = |message: String| Err(CqlError::Protocol(message));
    let Some(cql_version) = startup.get(Startup::CQL_VERSION) else {
        return protocol("Missing value CQL_VERSION in STARTUP message".to_owned());
    };
    let mut numbers = cql_version.splitn(3, '.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(_))) = (numbers.next(), numbers.next()) else {
        return protocol(format!("Invalid version value: {cql_version}"));
    };
    if major < 3 {
        return protocol(format!(
            "CQL version {cql_version} is not supported by the binary protocol (supported version are >= 3.0.0)"
        ));
    }
    let compression = match startup.get(Startup::COMPRESSION) {
        None => None,
        Some(name) => match Compression::from_name(name) {
            Some(Compression::Snappy) if version.is_segmented() => {
                return protocol("Snappy compression is not supported in protocol V5".to_owned());
            }
            Some(compression) => Some(compression),
            None => return protocol(format!("Unknown compression algorithm: {name}")),
        },
    };
    let throw_on_overload = startup.get(Startup::THROW_ON_OVERLOAD) == Some("1");
    Ok(StartupOptions {
        version,
        compression,
        throw_on_overload,
        knows_rate_limits: startup.get(Startup::SCYLLA_RATE_LIMIT_ERROR).is_some(),
        knows_tablets: startup.get(Startup::TABLETS_ROUTING_V1).is_some() && version >= ProtocolVersion::V4,
    })
}
