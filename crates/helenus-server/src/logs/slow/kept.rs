//! The latest slow requests of a node, in memory.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helenus_cql::value::timestamp;
use helenus_query::measurement::RequestMeasurement;
use helenus_query::metrics::slow_statements::SlowStatement;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A slow request whose response was sent.
#[derive(Clone, Debug)]
pub(crate) struct KeptRequest {
    /// Time at which its response had been sent, in milliseconds since 1970.
    pub at_ms: i64,
    pub total: Duration,
    /// Time by stage, with the names of the stages.
    pub stages: Vec<(&'static str, Duration)>,
    pub client: SocketAddr,
    pub keyspace: String,
    pub table: String,
    /// The node to which the request was forwarded. `None` if it ran here.
    pub owner: Option<Uuid>,
    /// The shortened statement. Literal values are left out unless the settings allow them.
    pub statement: String,
    /// Number of values that are bound to its markers.
    pub values: usize,
    pub measurement: RequestMeasurement,
}

impl KeptRequest {
    /// Returns the facts that `system_views.slow_queries` shows.
    pub fn into_statement(self) -> SlowStatement {
        SlowStatement {
            keyspace: self.keyspace,
            table: self.table,
            at_ms: self.at_ms,
            text: self.statement,
            took: self.total,
            was_forwarded: self.owner.is_some(),
        }
    }

    /// Returns the request as JSON, with times in milliseconds.
    pub fn report(&self) -> Value {
        let RequestMeasurement { statement, store } = &self.measurement;
        let stages = self
            .stages
            .iter()
            .map(|(name, took)| ((*name).to_owned(), ms(*took)));
        json!({
            "at": timestamp::to_json_text(self.at_ms),
            "total_ms": ms(self.total),
            "stages_ms": stages.collect::<Map<String, Value>>(),
            "client": self.client.to_string(),
            "keyspace": self.keyspace,
            "table": self.table,
            "owner": self.owner.map(|owner| owner.to_string()),
            "statement": self.statement,
            "values": self.values,
            "live_rows": statement.live_rows,
            "tombstones": statement.tombstones,
            "row_cache_hits": store.row_cache_hits,
            "row_cache_misses": store.row_cache_misses,
            "scans": store.scans,
            "rows_written": store.operands,
        })
    }
}

/// Returns milliseconds, rounded to a tenth.
fn ms(time: Duration) -> Value {
    super::rounded_ms(time).into()
}

/// The latest slow requests.
#[derive(Debug)]
pub(super) struct KeptRequests {
    most: AtomicUsize,
    kept: Mutex<VecDeque<KeptRequest>>,
}

impl KeptRequests {
    /// Returns an empty list that keeps at most `most` requests.
    pub fn new(most: usize) -> KeptRequests {
        KeptRequests {
            most: AtomicUsize::new(most),
            kept: Mutex::default(),
        }
    }

    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
        let mut kept = self.kept.lock();
        kept.truncate(most);
        kept.shrink_to_fit();
    }

    pub fn is_on(&self) -> bool {
        self.most.load(Ordering::Relaxed) > 0
    }

    pub fn add(&self, request: KeptRequest) {
        let most = self.most.load(Ordering::Relaxed);
        if most == 0 {
            return;
        }
        let mut kept = self.kept.lock();
        kept.truncate(most - 1);
        kept.push_front(request);
    }

    /// Returns the kept requests, the newest first.
    pub fn all(&self) -> Vec<KeptRequest> {
        self.kept.lock().iter().cloned().collect()
    }
}
