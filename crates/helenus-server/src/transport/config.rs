//! Settings of the transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::frame::MAX_BODY_LEN;

use crate::logs::audit::AuditLog;
use crate::logs::full_query_log::FullQueryLog;
use crate::spans::RequestSpans;
use crate::tls::ClientTls;

/// The conditions under which a waiting request is refused with OVERLOADED. All of them must be true.
#[derive(Clone, Debug)]
pub struct OverloadConfig {
    /// Minimum time that the request has waited. `None` if no request is ever refused for waiting.
    pub wait_target: Option<Duration>,
    /// Minimum time for which the queue of its connection has never been empty.
    pub interval: Duration,
    /// Minimum number of requests that wait on the whole node.
    pub waiting_min: usize,
}

impl Default for OverloadConfig {
    fn default() -> OverloadConfig {
        OverloadConfig {
            wait_target: Some(Duration::from_millis(50)),
            interval: Duration::from_millis(250),
            waiting_min: 1024,
        }
    }
}

/// Settings of the native transport, with Cassandra's names in parentheses.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address for CQL clients.
    pub listen: SocketAddr,
    /// Maximum length of a request's body, in bytes (`native_transport_max_frame_size`).
    pub frame_bytes_max: usize,
    /// Maximum number of connections (`native_transport_max_concurrent_connections`). Those beyond it are closed at once.
    pub connections_max: usize,
    /// Maximum bytes of running requests of one connection (`native_transport_max_request_data_in_flight_per_ip`). Above it the connection
    /// is not read. If its STARTUP has requested THROW_ON_OVERLOAD, its requests are answered OVERLOADED instead.
    pub connection_in_flight_bytes: usize,
    /// Maximum bytes for the requests and responses of all connections (`native_transport_max_request_data_in_flight`). These are requests
    /// that are partly read, waiting or running, and responses that clients have not received. Requests beyond it wait.
    pub node_in_flight_bytes: usize,
    /// Maximum number of running requests of all connections (`native_transport_max_threads`). Others wait. Each connection may always run
    /// a few.
    pub requests_running_max: usize,
    /// The conditions under which waiting requests are refused.
    pub overload: OverloadConfig,
    /// Time after which an idle connection is closed (`native_transport_idle_timeout`). `None` if idle connections stay open.
    pub idle_timeout: Option<Duration>,
    /// Time after which a connection that has not logged in is closed.
    pub startup_timeout: Duration,
    /// Duration above which a request is logged, with the time of each stage (`slow_query_log_timeout`). `None` if none is logged.
    pub slow_request_log_timeout: Option<Duration>,
    /// True if the log of slow requests shows literal values in statements.
    pub slow_request_log_values: bool,
    /// Number of the latest slow requests that are kept in memory.
    pub slow_requests_kept: usize,
    /// Maximum time for which requests may still run when the server stops.
    pub shutdown_timeout: Duration,
    /// Encryption of client connections. `None` if they are not encrypted.
    pub tls: Option<ClientTls>,
    /// The audit log of requests and log-ins (`audit_logging_options`).
    pub audit: Arc<AuditLog>,
    /// The log of requests with their values, for replay (`full_query_logging_options`).
    pub full_query_log: Arc<FullQueryLog>,
    /// The exporter of requests' spans. `None` if no spans are made.
    pub spans: Option<Arc<RequestSpans>>,
}

impl ServerConfig {
    /// Returns the maximum length of a body that is read: `frame_bytes_max`, but at most half of the memory for all requests.
    pub fn body_len_max(&self) -> usize {
        const LEAST: usize = 64 << 10;
        self.frame_bytes_max
            .min((self.node_in_flight_bytes / 2).max(LEAST))
    }

    /// Returns the default settings. Some are shares of the memory that the process may use.
    pub fn new(listen: SocketAddr, memory_bytes: u64) -> ServerConfig {
        let share = |part: u64, least: u64, most: u64| {
            usize::try_from((memory_bytes / part).clamp(least, most)).unwrap_or(usize::MAX)
        };
        const MIB: u64 = 1 << 20;
        ServerConfig {
            listen,
            frame_bytes_max: MAX_BODY_LEN,
            connections_max: 16_384,
            connection_in_flight_bytes: share(160, 16 * MIB, 256 * MIB),
            node_in_flight_bytes: share(16, 16 * MIB, 4096 * MIB),
            requests_running_max: 4096,
            overload: OverloadConfig::default(),
            idle_timeout: None,
            startup_timeout: Duration::from_secs(30),
            slow_request_log_timeout: Some(Duration::from_millis(500)),
            slow_request_log_values: false,
            slow_requests_kept: 200,
            shutdown_timeout: Duration::from_secs(10),
            tls: None,
            audit: Arc::default(),
            full_query_log: Arc::default(),
            spans: None,
        }
    }
}
