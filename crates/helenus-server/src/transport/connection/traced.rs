//! The trace of a request, if its client has requested one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use helenus_cql::error::Consistency;
use helenus_cql::frame::request::StatementRef;
use helenus_cql::frame::{QueryParameters, Request};
use helenus_query::measurement::RequestMeasurement;
use helenus_query::trace::{Deleted, Step, Trace, TraceEvent, TraceRecorder, parameter};
use uuid::Uuid;

use crate::metrics::stage_times::Arrival;
use crate::transport::Backend;
use crate::transport::server_state::{ServerState, time_uuid};

/// The trace of a running request.
pub(super) struct RequestTrace {
    trace: Trace,
    recording: TraceRecorder,
    first_byte: Instant,
    description: Arc<OnceLock<Description>>,
}

/// Description of a traced request in Cassandra's words, and its parameters.
pub(super) struct Description {
    request: &'static str,
    parameters: BTreeMap<String, String>,
}

/// The trace of a request whose response is about to be sent.
#[derive(Clone, Copy)]
pub(super) struct ResponseTrace {
    pub id: Uuid,
    first_byte: Instant,
    started_at_us: i64,
    /// Time of the trace's last event, in microseconds since the first byte of the request.
    last_us: i64,
}

impl RequestTrace {
    /// Begins the trace of a request. All steps done for `measurement` are recorded from now on. The description is set through
    /// [`RequestTrace::description`] once the request has been decoded.
    pub fn begin<B: Backend>(
        server: &ServerState<B>,
        client: SocketAddr,
        request_len: usize,
        arrival: &Arrival,
        measurement: &mut RequestMeasurement,
    ) -> Box<RequestTrace> {
        let since_first = arrival.begun.saturating_duration_since(arrival.first_byte);
        let received = TraceEvent {
            id: Uuid::nil(),
            activity: format!("Received a request of {request_len} bytes"),
            elapsed: arrival.last_byte.saturating_duration_since(arrival.first_byte),
            thread: thread_name(),
        };
        let trace = Trace {
            id: server.trace_id(),
            client: client.ip(),
            command: "QUERY",
            request: UNREAD,
            parameters: BTreeMap::new(),
            started_at_us: server.now_us() - micros(since_first),
            duration: Duration::ZERO,
            events: vec![received],
            deleted: Deleted::default(),
        };
        Box::new(RequestTrace {
            trace,
            recording: TraceRecorder::begin(&mut measurement.store),
            first_byte: arrival.first_byte,
            description: Arc::default(),
        })
    }

    /// Returns the cell into which the request's description must be set.
    pub fn description(&self) -> Arc<OnceLock<Description>> {
        self.description.clone()
    }

    /// Ends the trace when the response is ready, and stores it.
    pub fn finish<B: Backend>(self, server: &ServerState<B>, answered: Instant) -> ResponseTrace {
        let RequestTrace {
            mut trace,
            recording,
            first_byte,
            description,
        } = self;
        if let Some(description) = description.get() {
            trace.request = description.request;
            trace.parameters.clone_from(&description.parameters);
        }
        let event = |step: Step| TraceEvent {
            id: Uuid::nil(),
            activity: step.what.into_owned(),
            elapsed: step.at.saturating_duration_since(first_byte),
            thread: step.thread.into(),
        };
        trace.events.extend(recording.finish().into_iter().map(event));
        trace.duration = answered.saturating_duration_since(first_byte);
        let mut last_us = -1;
        for event in &mut trace.events {
            last_us = micros(event.elapsed).max(last_us + 1);
            event.id = time_uuid(trace.started_at_us + last_us);
        }
        let answer = ResponseTrace {
            id: trace.id,
            first_byte,
            started_at_us: trace.started_at_us,
            last_us,
        };
        server.backend.record_trace(trace);
        answer
    }
}

impl ResponseTrace {
    /// Returns the event to add to the trace when the response has been sent.
    pub fn sent(&self, answer_len: usize, now: Instant) -> TraceEvent {
        let elapsed = now.saturating_duration_since(self.first_byte);
        TraceEvent {
            id: time_uuid(self.started_at_us + micros(elapsed).max(self.last_us + 1)),
            activity: format!("Sent an answer of {answer_len} bytes"),
            elapsed,
            thread: thread_name(),
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Description of a request that could not be decoded.
const UNREAD: &str = "Request";

/// Describes a request.
pub(super) fn describe<B: Backend>(server: &ServerState<B>, request: &Request) -> Description {
    let mut shown = BTreeMap::new();
    let mut show = |name: &str, value: String| shown.insert(name.to_owned(), value);
    let (request, parameters) = match request {
        Request::Query(query) => {
            show("query", parameter(&query.query));
            ("Execute CQL3 query", Some(&query.parameters))
        }
        Request::Execute(execute) => {
            if let Ok(prepared) = server.backend.prepared(&execute.id) {
                show("query", parameter(server.backend.statement(&prepared)));
                let values = &execute.parameters.values;
                for (name, value) in server.backend.bound_variables(&prepared, values) {
                    show(&name, value);
                }
            }
            ("Execute CQL3 prepared query", Some(&execute.parameters))
        }
        Request::Batch(batch) => {
            for (at, statement) in batch.statements.iter().take(BATCH_SHOWN).enumerate() {
                let text = match &statement.statement {
                    StatementRef::Query(text) => parameter(text),
                    StatementRef::Prepared(id) => match server.backend.prepared(id) {
                        Ok(prepared) => parameter(server.backend.statement(&prepared)),
                        Err(_) => continue,
                    },
                };
                show(&format!("query_{at}"), text);
            }
            ("Execute batch of CQL3 queries", Some(&batch.parameters))
        }
        Request::Prepare(prepare) => {
            show("query", parameter(&prepare.query));
            ("Preparing CQL3 query", None)
        }
        _ => (UNREAD, None),
    };
    if let Some(parameters) = parameters {
        show_levels(parameters, &mut shown);
    }
    Description {
        request,
        parameters: shown,
    }
}

/// Maximum number of statements of a batch that its trace shows.
const BATCH_SHOWN: usize = 10;

fn show_levels(parameters: &QueryParameters, shown: &mut BTreeMap<String, String>) {
    let mut show = |name: &str, value: String| shown.insert(name.to_owned(), value);
    let serial = parameters.serial_consistency.unwrap_or(Consistency::Serial);
    show("consistency_level", parameters.consistency.to_string());
    show("serial_consistency_level", serial.to_string());
    if let Some(page_size) = parameters.page_size {
        show("page_size", page_size.to_string());
    }
}
