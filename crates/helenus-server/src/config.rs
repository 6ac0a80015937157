//! Settings of the transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::frame::MAX_BODY_LEN;

use crate::audit::AuditLog;
use crate::full_query_log::FullQueryLog;
use crate::spans::RequestSpans;
use crate::tls::ClientTls;

/// The conditions under which a waiting request is refused with OVERLOADED. All of them must hold.
#[derive(Clone, Debug)]
pub struct OverloadConfig {
    /// The request has waited for longer than this. `None`: no request is refused for waiting.
    pub wait_target: Option<Duration>,
    /// The queue of its connection has not been empty for this long.
    pub interval: Duration,
    /// More requests than this wait on the node.
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

/// Limits of the native transport, with Cassandra's names of settings in parentheses.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address for CQL clients.
    pub listen: SocketAddr,
    /// The greatest length of a request's body, in bytes (`native_transport_max_frame_size`).
    pub frame_bytes_max: usize,
    /// The greatest number of connections; others are closed at once (`native_transport_max_concurrent_connections`).
    pub connections_max: usize,
    /// Bytes of running requests of one connection
    /// (`native_transport_max_request_data_in_flight_per_ip`). Above it the connection is not read, or its requests
    /// are answered OVERLOADED if it asked for that in STARTUP.
    pub connection_in_flight_bytes: usize,
    /// Memory for the requests and responses of all connections: requests that are half read, waiting or running, and responses that
    /// were not received (`native_transport_max_request_data_in_flight`). Requests beyond it wait.
    pub node_in_flight_bytes: usize,
    /// Running requests of all connections; others wait (`native_transport_max_threads`). A few per connection are
    /// always permitted.
    pub requests_running_max: usize,
    /// The conditions under which waiting requests are refused.
    pub overload: OverloadConfig,
    /// The time after which an idle connection is closed (`native_transport_idle_timeout`).
    pub idle_timeout: Option<Duration>,
    /// The time after which a connection that has not logged in is closed.
    pub startup_timeout: Duration,
    /// The duration above which a request is logged, with the time of each stage (`slow_query_log_timeout`).
    pub slow_request_log_timeout: Option<Duration>,
    /// Whether those lines show the values that are written into statements.
    pub slow_request_log_values: bool,
    /// How many of the last such requests are kept in memory.
    pub slow_requests_kept: usize,
    /// The time for which requests may still run when the server stops.
    pub shutdown_timeout: Duration,
    /// The encryption of connections, if any.
    pub tls: Option<ClientTls>,
    /// Where requests and log-ins are noted (`audit_logging_options`).
    pub audit: Arc<AuditLog>,
    /// Where requests are noted with their values, to be replayed (`full_query_logging_options`).
    pub full_query_log: Arc<FullQueryLog>,
    /// Where spans of requests go, if anywhere.
    pub spans: Option<Arc<RequestSpans>>,
}

impl ServerConfig {
    /// Returns the greatest length of a body that is read: `frame_bytes_max`, but at most half of the memory for all requests.
    pub fn body_len_max(&self) -> usize {
        const LEAST: usize = 64 << 10;
        self.frame_bytes_max
            .min((self.node_in_flight_bytes / 2).max(LEAST))
    }

    /// Returns the defaults; some are shares of the memory that the process may use.
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
