//! The attributes of a request's span. OpenTelemetry's conventions for databases are used where they have a name.

use std::time::{Duration, Instant, SystemTime};

use helenus_query::statement_shape::without_values;
use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::SpanParent;
use crate::logs::slow::FinishedRequest;

/// A request whose response was sent.
pub(crate) struct RequestSpan<'r> {
    pub parent: SpanParent,
    pub request: &'r FinishedRequest,
    /// Times at which its first byte was read, and the last byte of its response was sent.
    pub began: Instant,
    pub ended: Instant,
    pub sending: Duration,
    /// Code of the error response. `None` if the request succeeded.
    pub error: Option<i32>,
}

impl RequestSpan<'_> {
    /// Returns the span for the exporter.
    pub(super) fn data(self, instrumentation_scope: InstrumentationScope) -> SpanData {
        let now = (SystemTime::now(), Instant::now());
        let at = |instant: Instant| now.0 - now.1.saturating_duration_since(instant);
        let operation = operation(&self.request.statement);
        let name = match &self.request.table {
            Some((keyspace, table)) => format!("{operation} {keyspace}.{table}"),
            None => operation.clone(),
        };
        let status = match &self.error {
            // The message is left out, because it may contain values.
            Some(code) => Status::error(status_code(*code)),
            None => Status::Unset,
        };
        SpanData {
            span_context: SpanContext::new(
                self.parent.trace,
                SpanId::from_bytes(rand::random()),
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
            parent_span_id: self.parent.span.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: self.parent.span.is_some(),
            span_kind: SpanKind::Server,
            name: name.into(),
            start_time: at(self.began),
            end_time: at(self.ended),
            attributes: self.attributes(operation),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope,
        }
    }

    fn attributes(self, operation: String) -> Vec<KeyValue> {
        let request = self.request;
        let measurement = &request.measurement.statement;
        let mut attributes = vec![
            KeyValue::new("db.system.name", "cassandra"),
            KeyValue::new("db.operation.name", operation),
            KeyValue::new("db.query.text", without_values(&request.statement)),
            KeyValue::new("client.address", request.client.ip().to_string()),
            KeyValue::new("client.port", i64::from(request.client.port())),
            KeyValue::new("helenus.rows_read", number(measurement.live_rows)),
            KeyValue::new("helenus.tombstones_read", number(measurement.tombstones)),
        ];
        if let Some((keyspace, table)) = &request.table {
            attributes.push(KeyValue::new("db.namespace", keyspace.clone()));
            attributes.push(KeyValue::new("db.collection.name", table.clone()));
        }
        // Only a request that was forwarded to another node has an owner.
        if let Some(owner) = measurement.owner {
            attributes.push(KeyValue::new("helenus.owner", owner.to_string()));
        }
        if let Some(code) = self.error {
            attributes.push(KeyValue::new("db.response.status_code", status_code(code)));
        }
        let stages = request
            .stage_times
            .stages()
            .map(|(stage, took)| (stage.name(), took));
        for (stage, took) in stages.chain([("send", self.sending)]) {
            let micros = number(took.as_micros().try_into().unwrap_or(u64::MAX));
            if micros > 0 {
                attributes.push(KeyValue::new(format!("helenus.stage.{stage}_us"), micros));
            }
        }
        attributes
    }
}

/// Returns an error code in the notation of the protocol's specification.
fn status_code(code: i32) -> String {
    format!("0x{code:04X}")
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the operation of a statement, which is its first word.
fn operation(statement: &str) -> String {
    let word = statement.split_whitespace().next().unwrap_or_default();
    match word.to_uppercase() {
        word if word.is_empty() => "REQUEST".to_owned(),
        word if word == "BEGIN" => "BATCH".to_owned(),
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_names_the_operation() {
        for (statement, expected) in [
            ("select * from t", "SELECT"),
            ("  BEGIN UNLOGGED BATCH INSERT", "BATCH"),
            ("BATCH of 3 statements: INSERT", "BATCH"),
            ("", "REQUEST"),
        ] {
            assert_eq!(operation(statement), expected);
        }
    }
}
