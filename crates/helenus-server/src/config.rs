//! Settings of the transport.

use std::net::SocketAddr;
use std::time::Duration;

use helenus_cql::frame::MAX_BODY_LEN;

use crate::tls::ClientTls;

/// When a request that waits for its turn is refused with OVERLOADED instead of being run.
#[derive(Clone, Debug)]
pub struct OverloadConfig {
    /// It has waited for longer than this. None: no request is refused for having waited.
    pub wait_target: Option<Duration>,
    /// And the queue of its connection has not been empty for that long.
    pub interval: Duration,
    /// And more requests than this wait on the node.
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

/// Limits of the native transport. What Cassandra calls a setting is named beside it.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where CQL is served.
    pub listen: SocketAddr,
    /// The longest body of a request, in bytes (`native_transport_max_frame_size`).
    pub frame_bytes_max: usize,
    /// Connections at a time; more are closed at once (`native_transport_max_concurrent_connections`).
    pub connections_max: usize,
    /// Bytes of requests being run for one connection
    /// (`native_transport_max_request_data_in_flight_per_ip`). Above it the connection is not read, or, if it asked
    /// for that in STARTUP, is answered OVERLOADED.
    pub connection_in_flight_bytes: usize,
    /// The memory that clients' requests and answers may take, of all connections together: requests that are half read, wait or run, and
    /// answers that were not taken (`native_transport_max_request_data_in_flight`). Whatever would go beyond waits.
    pub node_in_flight_bytes: usize,
    /// Requests running at a time, of all connections together; more wait (`native_transport_max_threads`). Each
    /// connection may always have a few.
    pub requests_running_max: usize,
    /// When requests that wait are refused.
    pub overload: OverloadConfig,
    /// A connection without a request for that long is closed (`native_transport_idle_timeout`).
    pub idle_timeout: Option<Duration>,
    /// A connection whose client has not started up and logged in after that long is closed.
    pub startup_timeout: Duration,
    /// A request that takes longer is logged, with where its time went (`slow_query_log_timeout`).
    pub slow_request_log_timeout: Option<Duration>,
    /// How long requests may still run when the server stops.
    pub shutdown_timeout: Duration,
    /// How connections are encrypted, if they are.
    pub tls: Option<ClientTls>,
}

impl ServerConfig {
    /// The longest body that is read: as long as may be, but no more than half of what all requests may take.
    pub fn body_len_max(&self) -> usize {
        const LEAST: usize = 64 << 10;
        self.frame_bytes_max
            .min((self.node_in_flight_bytes / 2).max(LEAST))
    }

    /// The defaults, with shares of the memory that the process may take.
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
            shutdown_timeout: Duration::from_secs(10),
            tls: None,
        }
    }
}
