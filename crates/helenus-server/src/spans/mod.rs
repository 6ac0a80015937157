//! Spans of requests for an OpenTelemetry collector (OTLP over HTTP). Each sampled request has one, with the time of its stages.
//!
//! A request is sampled if its client says so in a W3C trace context (`traceparent` in the custom payload). Of the requests without a
//! context, a random part is sampled. Spans wait in a bounded queue for a task that sends them. If the collector is slow or unreachable,
//! spans are lost, but requests do not wait.

mod request_span;
mod trace_context;

use std::time::Duration;

use helenus_cql::frame::CustomPayload;
use metrics::{Counter, counter};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::logs::rate_limit::LogRateLimiter;

pub(crate) use self::request_span::RequestSpan;
pub(crate) use self::trace_context::SpanParent;

/// Maximum number of spans that wait to be sent. Further ones are dropped.
const QUEUE_LEN: usize = 4096;
/// Maximum number of spans in a message, and maximum time that the first of them waits for others.
const BATCH_MAX: usize = 512;
const BATCH_PAUSE: Duration = Duration::from_millis(500);
/// Maximum time until the collector has accepted a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Path of the collector's requests for spans.
const TRACES_PATH: &str = "/v1/traces";
const SPANS: &str = "helenus_spans_total";

/// Settings of spans: their destination, and which requests have one.
#[derive(Clone, Debug)]
pub struct SpanOptions {
    /// The collector's URL for OTLP over HTTP, without a path.
    pub endpoint: String,
    /// Share of the requests without a trace context that is sampled, from 0 to 1.
    pub sample_ratio: f64,
    /// Name of this node, which distinguishes it from others (`service.instance.id`).
    pub instance: String,
}

/// Samples requests and sends their spans.
#[derive(Debug)]
pub struct RequestSpans {
    queue: mpsc::Sender<SpanData>,
    scope: InstrumentationScope,
    sample_ratio: f64,
    dropped: Counter,
}

impl RequestSpans {
    /// Starts the task that sends spans. Call it within a runtime.
    ///
    /// # Errors
    /// The endpoint is not a valid URL.
    pub fn start(options: SpanOptions) -> Result<RequestSpans, ExporterBuildError> {
        // Collectors' certificates are verified by the library that verifies all others. The call fails if it is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let endpoint = format!("{}{TRACES_PATH}", options.endpoint.trim_end_matches('/'));
        let mut exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_endpoint(endpoint)
            .with_timeout(TIMEOUT)
            .build()?;
        let resource = Resource::builder()
            .with_service_name("helenus")
            .with_attribute(KeyValue::new("service.instance.id", options.instance))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        exporter.set_resource(&resource);
        let (queue, waiting) = mpsc::channel(QUEUE_LEN);
        tokio::spawn(export(waiting, exporter));
        Ok(RequestSpans {
            queue,
            scope: InstrumentationScope::builder("helenus").build(),
            sample_ratio: options.sample_ratio,
            dropped: counter!(SPANS, "outcome" => "dropped"),
        })
    }

    /// Returns the parent of the span of a request with this payload. `None` if the request is not sampled.
    pub(crate) fn sample(&self, payload: Option<&CustomPayload>) -> Option<SpanParent> {
        match payload.and_then(trace_context::of_payload) {
            Some(context) => context.is_sampled.then_some(context.parent),
            None => (rand::random::<f64>() < self.sample_ratio).then(SpanParent::none),
        }
    }

    /// Queues the span of a request whose response was sent. The span is dropped if the queue is full.
    pub(crate) fn record(&self, span: RequestSpan<'_>) {
        if self.queue.try_send(span.data(self.scope.clone())).is_err() {
            self.dropped.increment(1);
        }
    }
}

/// Sends queued spans until the queue is closed.
async fn export(mut waiting: mpsc::Receiver<SpanData>, exporter: impl SpanExporter) {
    let [exported, failed] = ["exported", "failed"].map(|outcome| counter!(SPANS, "outcome" => outcome));
    let warnings = LogRateLimiter::default();
    loop {
        let batch = next_batch(&mut waiting).await;
        let spans = batch.len() as u64;
        if spans == 0 {
            return;
        }
        match exporter.export(batch).await {
            Ok(()) => exported.increment(spans),
            Err(error) => {
                failed.increment(spans);
                if let Some(suppressed) = warnings.take() {
                    tracing::warn!(%error, spans, suppressed, "spans were not taken by the collector at otlp_endpoint");
                }
            }
        }
    }
}

/// Waits for the spans of the next message. Empty if the queue is closed.
async fn next_batch(waiting: &mut mpsc::Receiver<SpanData>) -> Vec<SpanData> {
    let mut batch = Vec::new();
    batch.extend(waiting.recv().await);
    let deadline = Instant::now() + BATCH_PAUSE;
    while !batch.is_empty() && batch.len() < BATCH_MAX {
        let room = BATCH_MAX - batch.len();
        match timeout_at(deadline, waiting.recv_many(&mut batch, room)).await {
            Ok(received) if received > 0 => {}
            Ok(_) | Err(_) => break,
        }
    }
    batch
}
