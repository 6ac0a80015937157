//! The state that the connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use helenus_query::clock::{Clock, SystemClock, TimestampSource};
use helenus_query::limits::client_memory::ClientMemory;
use uuid::Uuid;

use super::backend::Backend;
use super::config::ServerConfig;
use super::events::EventBroadcaster;
use super::working_memory::WorkingMemory;
use crate::logs::audit::AuditLog;
use crate::logs::full_query_log::FullQueryLog;
use crate::logs::rate_limit::LogRateLimiter;
use crate::logs::slow::SlowLog;
use crate::metrics::Metrics;
use crate::threads::long_requests::LongRequestPool;

/// The stages of stopping a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stopping {
    No,
    /// No new connection is accepted. A connection closes when nothing runs on it.
    WhenIdle,
    /// Requests that arrive are refused, too.
    Now,
}

/// The number and the bytes of waiting requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueSize {
    pub requests: usize,
    pub bytes: usize,
}

pub(crate) struct ServerState<B> {
    pub backend: B,
    pub config: ServerConfig,
    pub metrics: Arc<Metrics>,
    pub events: Arc<EventBroadcaster>,
    pub slow: Arc<SlowLog>,
    pub audit: Arc<AuditLog>,
    pub full_query_log: Arc<FullQueryLog>,
    /// Rate limit for log lines about refused clients.
    pub refusals: LogRateLimiter,
    pub long_requests: Arc<LongRequestPool>,
    in_flight: InFlightCounters,
    waiting_requests: AtomicUsize,
    /// Memory of waiting requests, partly read requests, and responses that clients have not received.
    pub memory: Arc<ClientMemory>,
    /// Memory that long requests take beyond their own bytes while they run.
    pub working_memory: WorkingMemory,
    trace_ids: TraceIds,
}

impl<B: Backend> ServerState<B> {
    pub fn new(
        backend: B,
        config: ServerConfig,
        metrics: Arc<Metrics>,
        events: Arc<EventBroadcaster>,
        long_requests: LongRequestPool,
    ) -> ServerState<B> {
        let memory = backend.client_memory();
        backend.show_running_max(config.requests_running_max);
        let slow = Arc::new(SlowLog::new(
            config.slow_request_log_timeout,
            config.slow_request_log_values,
            config.slow_requests_kept,
        ));
        backend.show_slow_statements(slow.clone());
        ServerState {
            memory: memory.unwrap_or_else(|| ClientMemory::new(config.node_in_flight_bytes)),
            working_memory: WorkingMemory::new(config.node_in_flight_bytes),
            slow,
            audit: config.audit.clone(),
            full_query_log: config.full_query_log.clone(),
            refusals: LogRateLimiter::default(),
            backend,
            config,
            metrics,
            events,
            long_requests: Arc::new(long_requests),
            in_flight: InFlightCounters::default(),
            waiting_requests: AtomicUsize::new(0),
            trace_ids: TraceIds::default(),
        }
    }

    /// Returns the bytes of requests that are partly read, waiting or running, and of responses that clients have not received.
    fn held_bytes(&self) -> usize {
        self.in_flight.load().1.saturating_add(self.memory.held())
    }

    /// Returns true if there is memory for `needed` more bytes of running requests.
    pub fn has_room(&self, needed: usize) -> bool {
        self.held_bytes().saturating_add(needed) < self.config.node_in_flight_bytes
    }

    /// Returns true if `more` bytes may be held for requests that do not run yet. A part of the memory is reserved for running requests.
    pub fn may_hold(&self, more: usize) -> bool {
        self.held_bytes().saturating_add(more) < self.memory.limit_of_waiting()
    }

    /// Returns true if no request runs.
    pub fn is_idle(&self) -> bool {
        self.in_flight.load().0 == 0
    }

    /// Returns true if fewer requests run than may run.
    pub fn may_run_more(&self) -> bool {
        self.in_flight.load().0 < self.config.requests_running_max
    }

    /// Returns the number of requests that wait on the node, as last reported by their connections.
    pub fn waiting_requests(&self) -> usize {
        self.waiting_requests.load(Ordering::Relaxed)
    }

    /// Counts a request of `bytes` bytes that begins.
    pub fn acquire(&self, bytes: usize) {
        self.in_flight.add(1, bytes);
    }

    /// Subtracts requests that have ended. `bytes` is the sum of their bytes.
    pub fn release(&self, requests: usize, bytes: usize) {
        self.in_flight.sub(requests, bytes);
    }

    /// Sets the gauges of running requests. This is not done for each request, because all threads would contend for the gauges.
    pub fn show_in_flight(&self) {
        let (requests, bytes) = self.in_flight.load();
        self.metrics.in_flight(requests, bytes);
    }

    /// Replaces a connection's part of the waiting requests, which was `before`.
    pub fn now_waiting(&self, before: QueueSize, now: QueueSize) {
        let requests = change(&self.waiting_requests, before.requests, now.requests);
        self.memory.change(before.bytes, now.bytes);
        self.backend.show_waiting(requests);
    }

    /// Returns the id of a new trace, which is a time UUID.
    pub fn trace_id(&self) -> Uuid {
        self.trace_ids.next()
    }

    /// Returns the current time in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.trace_ids.clock.now_us()
    }
}

/// The number and the bytes of running requests, packed into one word, so that a request needs only one atomic operation.
#[derive(Default)]
struct InFlightCounters(AtomicU64);

/// Number of low bits that count bytes: enough for 16 TiB.
const BYTES_BITS: u32 = 44;

impl InFlightCounters {
    fn load(&self) -> (usize, usize) {
        unpack(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, requests: usize, bytes: usize) {
        self.0.fetch_add(pack(requests, bytes), Ordering::Relaxed);
    }

    /// Subtracts what was added before. Otherwise the packed counts would underflow.
    fn sub(&self, requests: usize, bytes: usize) {
        self.0.fetch_sub(pack(requests, bytes), Ordering::Relaxed);
    }
}

fn pack(requests: usize, bytes: usize) -> u64 {
    ((requests as u64) << BYTES_BITS) + bytes as u64
}

fn unpack(packed: u64) -> (usize, usize) {
    let bytes = packed & ((1 << BYTES_BITS) - 1);
    ((packed >> BYTES_BITS) as usize, bytes as usize)
}

/// Replaces one part of a sum, which was `before`, and returns the new sum.
fn change(sum: &AtomicUsize, before: usize, now: usize) -> usize {
    let difference = now.wrapping_sub(before);
    sum.fetch_add(difference, Ordering::Relaxed)
        .wrapping_add(difference)
}

/// Generates time UUIDs that do not repeat within this process.
struct TraceIds {
    clock: SystemClock,
    timestamps: TimestampSource,
    node: [u8; 6],
}

/// Number of 100 ns ticks between the start of the Gregorian calendar and 1970.
const GREGORIAN_OFFSET_TICKS: u64 = 0x01B2_1DD2_1381_4000;

impl Default for TraceIds {
    fn default() -> TraceIds {
        let random = *Uuid::new_v4().as_bytes();
        let mut node = [0; 6];
        node.iter_mut().zip(random).for_each(|(to, from)| *to = from);
        // Sets the multicast bit, so that the random id is not the address of a machine (RFC 9562, section 6.10).
        node[0] |= 1;
        TraceIds {
            clock: SystemClock,
            timestamps: TimestampSource::default(),
            node,
        }
    }
}

impl TraceIds {
    fn next(&self) -> Uuid {
        uuid_at(self.timestamps.next_us(&self.clock as &dyn Clock), &self.node)
    }
}

/// Returns the time UUID of an event in a trace. It is unique only among the events of that trace.
pub(crate) fn time_uuid(at_us: i64) -> Uuid {
    // The first byte has the multicast bit, as in [`TraceIds`].
    uuid_at(at_us, &[1, 0, 0, 0, 0, 0])
}

fn uuid_at(at_us: i64, node: &[u8; 6]) -> Uuid {
    let ticks = u64::try_from(at_us)
        .unwrap_or(0)
        .saturating_mul(10)
        .saturating_add(GREGORIAN_OFFSET_TICKS);
    Uuid::new_v1(uuid::Timestamp::from_gregorian_time(ticks, 0), node)
}
