//! Spans of requests for an OpenTelemetry collector (OTLP over HTTP): one for each request that is sampled, with the time of its stages.
//!
//! A request is sampled if its client says so in a W3C trace context (`traceparent` in the custom payload), and one in so many of those
//! without a context. Spans wait in a bounded queue for a task that sends them; a collector that is slow or gone costs spans, not requests.

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

use crate::log_rate_limit::LogRateLimiter;

pub(crate) use self::request_span::RequestSpan;
pub(crate) use self::trace_context::SpanParent;

/// Spans that wait to be sent; more are dropped.
const QUEUE_LEN: usize = 4096;
/// Spans of one message, and how long the first of them waits for others.
const BATCH_MAX: usize = 512;
const BATCH_PAUSE: Duration = Duration::from_millis(500);
/// How long a collector has for a message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What tells the collector where requests are counted.
const TRACES_PATH: &str = "/v1/traces";
const SPANS: &str = "helenus_spans_total";

/// Where spans go, and which requests have one.
#[derive(Clone, Debug)]
pub struct SpanOptions {
    /// The collector's URL for OTLP over HTTP, without a path.
    pub endpoint: String,
    /// The part of the requests without a trace context that are sampled, from 0 to 1.
    pub sample_ratio: f64,
    /// What tells this node from others (`service.instance.id`).
    pub instance: String,
}

/// Samples requests, and has their spans sent.
#[derive(Debug)]
pub struct RequestSpans {
    queue: mpsc::Sender<SpanData>,
    scope: InstrumentationScope,
    sample_ratio: f64,
    dropped: Counter,
}

impl RequestSpans {
    /// Begins to send spans. Call it within a runtime.
    ///
    /// # Errors
    /// If the endpoint is no URL.
    pub fn start(options: SpanOptions) -> Result<RequestSpans, ExporterBuildError> {
        // The certificates of a collector are checked by the library that checks all others.
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

    /// Where the span of a request with that payload belongs, if the request is sampled.
    pub(crate) fn sample(&self, payload: Option<&CustomPayload>) -> Option<SpanParent> {
        match payload.and_then(trace_context::of_payload) {
            Some(context) => context.is_sampled.then_some(context.parent),
            None => (rand::random::<f64>() < self.sample_ratio).then(SpanParent::none),
        }
    }

    /// Has the span of a request sent whose answer has left.
    pub(crate) fn record(&self, span: RequestSpan<'_>) {
        if self.queue.try_send(span.data(self.scope.clone())).is_err() {
            self.dropped.increment(1);
        }
    }
}

/// Sends the spans that come, until there will be no more.
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

/// Returns the spans of the next message; empty if there will be no more.
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
