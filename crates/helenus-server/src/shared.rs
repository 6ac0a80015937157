//! What the connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helenus_query::clock::{Clock, SystemClock, TimestampSource};
use uuid::Uuid;

use crate::config::ServerConfig;
use crate::events::EventHub;
use crate::metrics::Metrics;
use crate::slow::SlowLog;

pub(crate) struct Shared<B> {
    pub backend: B,
    pub config: ServerConfig,
    pub metrics: Arc<Metrics>,
    pub events: Arc<EventHub>,
    pub slow: SlowLog,
    in_flight_bytes: AtomicUsize,
    trace_ids: TraceIds,
}

impl<B> Shared<B> {
    pub fn new(backend: B, config: ServerConfig, metrics: Arc<Metrics>, events: Arc<EventHub>) -> Shared<B> {
        Shared {
            slow: SlowLog::new(config.slow_request_log_timeout),
            backend,
            config,
            metrics,
            events,
            in_flight_bytes: AtomicUsize::new(0),
            trace_ids: TraceIds::default(),
        }
    }

    /// True if another request may begin: one may overshoot the limit, so that any size of request gets its turn.
    pub fn has_room(&self) -> bool {
        self.in_flight_bytes.load(Ordering::Relaxed) < self.config.node_in_flight_bytes
    }

    pub fn acquire(&self, bytes: usize) {
        let before = self.in_flight_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.metrics.in_flight_bytes(before + bytes);
    }

    pub fn release(&self, bytes: usize) {
        let before = self.in_flight_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.metrics.in_flight_bytes(before.saturating_sub(bytes));
    }

    /// The id of a new trace: a time UUID.
    pub fn trace_id(&self) -> Uuid {
        self.trace_ids.next()
    }

    /// Microseconds since the Unix epoch.
    pub fn now_us(&self) -> i64 {
        self.trace_ids.clock.now_us()
    }
}

/// Makes time UUIDs that do not repeat within this process.
struct TraceIds {
    clock: SystemClock,
    timestamps: TimestampSource,
    node: [u8; 6],
}

/// 100 ns ticks between the start of the Gregorian calendar and that of Unix time.
const GREGORIAN_OFFSET_TICKS: u64 = 0x01B2_1DD2_1381_4000;

impl Default for TraceIds {
    fn default() -> TraceIds {
        let random = *Uuid::new_v4().as_bytes();
        let mut node = [0; 6];
        node.iter_mut().zip(random).for_each(|(to, from)| *to = from);
        // Multicast: not the address of a machine (RFC 9562, section 6.10).
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

/// The time UUID of an event in a trace; it tells it from the trace's other events only.
pub(crate) fn time_uuid(at_us: i64) -> Uuid {
    // Multicast, as above.
    uuid_at(at_us, &[1, 0, 0, 0, 0, 0])
}

fn uuid_at(at_us: i64, node: &[u8; 6]) -> Uuid {
    let ticks = u64::try_from(at_us)
        .unwrap_or(0)
        .saturating_mul(10)
        .saturating_add(GREGORIAN_OFFSET_TICKS);
    Uuid::new_v1(uuid::Timestamp::from_gregorian_time(ticks, 0), node)
}
