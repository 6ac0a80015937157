//! What a connection takes in, and when it begins.

use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use tokio::task::coop;

use super::in_flight::InFlight;
use super::memory::{STRANGERS_BODY_LEN_MAX, overloaded};
use super::waiting::{Last, Waiting};
use super::{Connection, OUTPUT_LEN_MAX, Phase};
use crate::backend::Backend;
use crate::listener::Stopping;

/// Bytes of answers after which the socket is tried before more requests are begun.
const FLUSH_LEN: usize = 64 * 1024;
/// How long a connection serves requests before others get their turn.
const SLICE: Duration = Duration::from_millis(1);
/// Requests that a connection may always run, however many others run.
const RUNNING_ALWAYS: usize = 32;
/// Requests that compute for long, on the whole node, above which a connection begins no second one: they would only take the
/// threads from each other.
const BUSY_MAX: usize = 128;

impl<B: Backend> Connection<B> {
    /// Takes in what has arrived, and begins what may begin.
    pub(super) fn serve_input(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut progress = self.take_in(cx)?;
        while !self.ending && self.output_len() < OUTPUT_LEN_MAX {
            let now = Instant::now();
            if self.slice_end.is_some_and(|end| now >= end) || !coop::has_budget_remaining() {
                self.slice_is_over = true;
                break;
            }
            let on_node = || self.shared.waiting_requests();
            let is_stale = self
                .waiting
                .is_next_stale(&self.shared.config.overload, on_node, now);
            let turns_away = self.stopping == Stopping::Now;
            let may_go_on = is_stale || turns_away || self.waiting.is_empty() || self.may_begin(cx);
            if !may_go_on {
                break;
            }
            match self.waiting.pop() {
                Some(waiting) if turns_away => self.turn_away(&waiting),
                Some(waiting) if is_stale => self.shed(&waiting),
                Some(waiting) => self.serve(waiting, now, cx),
                None => {
                    progress |= self.end();
                    break;
                }
            }
            progress = true;
            self.slice_end.get_or_insert(now + SLICE);
            if self.output_len() >= FLUSH_LEN {
                break;
            }
        }
        Ok(progress)
    }

    /// Reads and decodes what there is. True if anything came, be it the end.
    fn take_in(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut progress = false;
        while self.may_take_in() {
            match self.decoder.decode_as_sent(&mut self.input) {
                Ok(Some(envelope)) => {
                    progress = true;
                    self.waiting.push(Waiting {
                        envelope,
                        first_byte: self.partial_since.take().unwrap_or(self.last_read),
                        last_byte: self.last_read,
                    });
                }
                Ok(None) if !self.may_grow(cx) => break,
                Ok(None) => match self.read_more(cx)? {
                    Poll::Ready(0) => {
                        progress = true;
                        self.waiting.last = Some(Last::Closed);
                    }
                    Poll::Ready(_) => progress = true,
                    Poll::Pending => {
                        // Without budget left, the socket was not even asked.
                        if coop::has_budget_remaining() {
                            self.waiting.has_all();
                        }
                        break;
                    }
                },
                Err(error) if self.may_skip(error.len) => {
                    progress = true;
                    self.refuse_one(error);
                }
                Err(error) => {
                    progress = true;
                    self.waiting.last = Some(Last::Garbage(error));
                }
            }
        }
        Ok(progress)
    }

    fn may_take_in(&self) -> bool {
        // How the bytes behind STARTUP are to be read is known when it has been served, and a stranger's requests come one by one.
        let is_patient = self.waiting.is_empty()
            || (matches!(self.phase, Phase::Started(_))
                && !self.waiting.is_full()
                && self.shared.may_hold(0));
        !self.ending && self.waiting.last.is_none() && is_patient && self.output_len() < self.output_len_max()
    }

    /// Whether what is no request may be skipped, if it is so long.
    fn may_skip(&self, len: Option<usize>) -> bool {
        let is_started = matches!(self.phase, Phase::Started(_));
        len.is_some_and(|len| is_started || len <= STRANGERS_BODY_LEN_MAX)
    }

    /// False while requests have to wait for others to finish. One that asked to be told of a lack of room is not held back for it.
    fn may_begin(&mut self, cx: &mut Context<'_>) -> bool {
        let has_room = self.throw_on_overload || {
            let needed = self.waiting.front().map_or(0, |next| self.needed(&next.envelope));
            self.has_room(needed)
        };
        let own = self.in_flight.len();
        let may_run = own < RUNNING_ALWAYS || self.shared.may_run_more();
        let may_compute = own == 0 || self.shared.aside.busy_count() < BUSY_MAX;
        if has_room && may_run && may_compute {
            return true;
        }
        // What waits becomes stale too.
        self.wait_for_room(cx);
        false
    }

    /// Refuses a request that has waited for too long.
    fn shed(&mut self, waiting: &Waiting) {
        let header = &waiting.envelope.header;
        self.shared.metrics.shed();
        self.send_error(header.version, header.stream, overloaded());
    }

    /// Refuses a request so that the driver asks another node.
    fn turn_away(&mut self, waiting: &Waiting) {
        let header = &waiting.envelope.header;
        let stopping = CqlError::IsBootstrapping("This node is being stopped".to_owned());
        self.send_error(header.version, header.stream, stopping);
    }

    /// Does what comes behind the last request, if that has come.
    fn end(&mut self) -> bool {
        match self.waiting.last.take() {
            Some(Last::Garbage(error)) => self.refuse(error),
            Some(Last::Closed) => {
                self.ending = true;
                self.in_flight.iter_mut().for_each(InFlight::abandon);
            }
            None => return false,
        }
        true
    }
}
