//! Reports requests whose responses have been sent: slow ones to the log, sampled ones as spans, traced ones to their traces.

use std::time::Instant;

use helenus_cql::frame::Response;

use super::Connection;
use super::in_flight::{CompletedRequest, ResponseNotes};
use super::traced::ResponseTrace;
use crate::logs::slow::FinishedRequest;
use crate::metrics::stage_times::StageTimes;
use crate::spans::{RequestSpan, SpanParent};
use crate::transport::Backend;

/// One of this many requests is measured by stage.
const SAMPLE_INTERVAL: u32 = 16;

/// A request that will be reported when its response has been sent.
pub(super) struct PendingReport {
    /// Facts about the request. `None` if it was neither slow nor sampled.
    request: Option<FinishedRequest>,
    is_slow: bool,
    span: Option<SpanParent>,
    /// Code of the error response. `None` if the request succeeded.
    error: Option<i32>,
    traced: Option<ResponseTrace>,
    first_byte: Instant,
    answered: Instant,
    answer_len: usize,
}

impl<B: Backend> Connection<B> {
    /// Counts an answered request in the metrics.
    pub(super) fn measure(&mut self, done: &CompletedRequest) {
        let arrival = &done.info.arrival;
        let metrics = &self.server.metrics;
        let answered = done.answered.at;
        metrics.answered(
            done.info.kind,
            answered.saturating_duration_since(arrival.last_byte),
        );
        self.output.answered = self.output.answered.wrapping_add(1);
        if self.output.answered.is_multiple_of(SAMPLE_INTERVAL) {
            metrics.stages(&StageTimes::new(arrival, &done.measurement, answered));
        }
    }

    /// Keeps the facts to report until the response has been sent.
    pub(super) fn remember(&mut self, notes: ResponseNotes, done: &CompletedRequest, answer_len: usize) {
        let CompletedRequest {
            info,
            answered,
            measurement,
        } = done;
        let request = notes.statement.map(|(statement, values)| FinishedRequest {
            statement,
            values,
            client: self.peer,
            table: measurement
                .statement
                .table
                .and_then(|id| self.server.backend.table_name(id)),
            measurement: *measurement,
            stage_times: StageTimes::new(&info.arrival, measurement, answered.at),
        });
        self.output.pending_reports.push(PendingReport {
            request,
            is_slow: notes.is_slow,
            span: notes.span,
            error: match &answered.message.response {
                Response::Error(error) => Some(error.code()),
                _ => None,
            },
            traced: notes.traced,
            first_byte: info.arrival.first_byte,
            answered: answered.at,
            answer_len,
        });
    }

    /// Reports the requests whose responses have been sent. Call it when nothing is left to send.
    pub(super) fn report_sent(&mut self) {
        let now = Instant::now();
        for report in self.output.pending_reports.drain(..) {
            if let Some(traced) = report.traced {
                let event = traced.sent(report.answer_len, now);
                self.server.backend.add_to_trace(traced.id, event);
            }
            let Some(request) = report.request else {
                continue;
            };
            let sending = now.saturating_duration_since(report.answered);
            if let (Some(spans), Some(parent)) = (&self.server.config.spans, report.span) {
                spans.record(RequestSpan {
                    parent,
                    request: &request,
                    began: report.first_byte,
                    ended: now,
                    sending,
                    error: report.error,
                });
            }
            if report.is_slow {
                let total = now.saturating_duration_since(report.first_byte);
                self.server.metrics.slow();
                self.server.slow.enter(request, total, sending);
            }
        }
    }
}
