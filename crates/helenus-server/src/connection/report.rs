//! What is told of requests when their answers have left: slow ones to the log, traced ones to their traces.

use std::time::Instant;

use super::Connection;
use super::in_flight::{Done, Remarks};
use super::traced::TracedAnswer;
use crate::backend::Backend;
use crate::breakdown::Breakdown;
use crate::slow::SlowRequest;

/// One request in so many is measured stage by stage.
const SAMPLE_INTERVAL: u32 = 16;

/// A request whose answer is on its way, and of which there is something to tell.
pub(super) struct Unsent {
    slow: Option<SlowRequest>,
    traced: Option<TracedAnswer>,
    first_byte: Instant,
    answered: Instant,
    answer_len: usize,
}

impl<B: Backend> Connection<B> {
    /// Enters an answered request into the metrics.
    pub(super) fn measure(&mut self, done: &Done) {
        let arrival = &done.ticket.arrival;
        let metrics = &self.shared.metrics;
        let answered = done.answered.at;
        metrics.answered(
            done.ticket.kind,
            answered.saturating_duration_since(arrival.last_byte),
        );
        self.answered = self.answered.wrapping_add(1);
        if self.answered.is_multiple_of(SAMPLE_INTERVAL) {
            metrics.stages(&Breakdown::new(arrival, &done.work, answered));
        }
    }

    /// Keeps what is to be told until the answer has left.
    pub(super) fn remember(&mut self, remarks: Remarks, done: &Done, answer_len: usize) {
        let Done {
            ticket,
            answered,
            work,
        } = done;
        let slow = remarks.slow.map(|(statement, values)| SlowRequest {
            statement,
            values,
            client: self.peer,
            work: *work,
            breakdown: Breakdown::new(&ticket.arrival, work, answered.at),
        });
        self.unsent.push(Unsent {
            slow,
            traced: remarks.traced,
            first_byte: ticket.arrival.first_byte,
            answered: answered.at,
            answer_len,
        });
    }

    /// Tells of the answers that have left. Call it when there is nothing left to send.
    pub(super) fn tell_sent(&mut self) {
        let now = Instant::now();
        for unsent in self.unsent.drain(..) {
            if let Some(traced) = unsent.traced {
                let event = traced.sent(unsent.answer_len, now);
                self.shared.backend.add_to_trace(traced.id, event);
            }
            if let Some(slow) = unsent.slow {
                let total = now.saturating_duration_since(unsent.first_byte);
                let sending = now.saturating_duration_since(unsent.answered);
                self.shared.metrics.slow();
                self.shared.slow.log(&slow, total, sending);
            }
        }
    }
}
