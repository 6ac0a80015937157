//! The operations that a log has in a span of time.
//!
//! The order of commits is that of their places in the log; their times only say where to cut. A clock that was set back makes times repeat, so
//! the caller says on which side of the time that happened ([`SetBack`]).

use bytes::Bytes;
use uuid::Uuid;

use super::{Frame, HistoryPosition, Segments};
use crate::error::StoreError;
use crate::log::LogPosition;
use crate::operation::Op;

/// Where a clock was set back in a part of the logs, relative to a time that is read from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SetBack {
    /// Nowhere. A log with a commit that contradicts this is refused.
    #[default]
    Nowhere,
    /// Before the time: commits are later from the first one on that has a later time before `from_ms`. Times from there on are those of the clock before it
    /// was set back.
    Before { from_ms: i64 },
    /// After the time: commits are later from the first one on whose time is, or that follows a step back.
    After,
}

/// The end of what is read of logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryUntil {
    pub time_ms: i64,
    pub set_back: SetBack,
    /// Places from which on nothing is that early. A log without a place has begun after them. `None` if nothing is known.
    pub before: Option<Vec<HistoryPosition>>,
}

impl HistoryUntil {
    /// Returns all commits up to that time, by clocks that were not set back.
    pub fn time(time_ms: i64) -> HistoryUntil {
        HistoryUntil {
            time_ms,
            ..HistoryUntil::default()
        }
    }
}

/// What is read of a log.
pub(crate) struct Span {
    pub log: Uuid,
    /// Frames that begin before are left out.
    pub from: LogPosition,
    /// Frames that begin there or later are left out. `None` if there is no such place.
    to: Option<LogPosition>,
    pub until_ms: i64,
    set_back: SetBack,
}

impl Span {
    /// What a log has from its place among positions on; all of one that has none, since it has begun after them.
    pub fn new(log: Uuid, positions: &[HistoryPosition], until: &HistoryUntil) -> Span {
        let place = |positions: &[HistoryPosition]| {
            let found = positions.iter().find(|position| position.log == log);
            found.map_or_else(LogPosition::default, HistoryPosition::at)
        };
        Span {
            log,
            from: place(positions),
            to: until.before.as_deref().map(place),
            until_ms: until.time_ms,
            set_back: until.set_back,
        }
    }

    /// Returns true if no part of the log can be of the span that begins with that segment, and whose first commit has that time.
    pub fn is_beyond(&self, segment: u64, earliest_ms: i64) -> bool {
        let is_late = self.latest_ms().is_some_and(|latest_ms| earliest_ms > latest_ms);
        is_late || self.to.is_some_and(|to| segment > to.segment)
    }

    /// Time after which no commit is of the span, in ms. `None` if a later commit may be, since the clock was set back.
    pub fn latest_ms(&self) -> Option<i64> {
        match self.set_back {
            SetBack::Before { .. } => None,
            SetBack::Nowhere | SetBack::After => Some(self.until_ms.saturating_add(STEP_MAX_MS)),
        }
    }
}

/// Gathers the operations of a log.
pub(crate) struct SpanOps<'s> {
    span: &'s Span,
    /// All segments up to this one have been read.
    read: u64,
    /// The last frame that was read.
    last: Option<LogPosition>,
    /// Time of the latest frame so far, in ms.
    latest_ms: i64,
    /// Nothing that follows is of the span.
    is_past: bool,
    /// The times that a clock has shown twice, as far as it was read: from and to, in ms.
    pub steps_back: Vec<(i64, i64)>,
    pub found: Vec<Op>,
}

/// A smaller step back of a clock is not noticed while it runs.
const STEP_MAX_MS: i64 = 2_000;

impl<'s> SpanOps<'s> {
    pub fn new(span: &'s Span) -> SpanOps<'s> {
        SpanOps {
            span,
            // The first object of a log in a bucket has no records, and need not be there.
            read: span.from.segment.max(1),
            last: None,
            latest_ms: i64::MIN,
            is_past: false,
            steps_back: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns true if nothing that follows in the log is of the span.
    pub fn is_past(&self) -> bool {
        let is_late = self
            .span
            .latest_ms()
            .is_some_and(|latest_ms| self.latest_ms > latest_ms);
        self.is_past || is_late
    }

    /// Adds segments, in the order of their numbers. Those that were added already are left out.
    ///
    /// # Errors
    /// Others are missing before them; or the clock was set back where that was not known ([`StoreError::PastUncertain`]).
    pub fn add(&mut self, part: Segments, wants: &impl Fn(&Op) -> bool) -> Result<(), StoreError> {
        if part.previous > self.read {
            return Err(StoreError::FileGone(format!(
                "segments {} to {} of the history of log {}, which a node has not kept",
                self.read + 1,
                part.previous,
                self.span.log
            )));
        }
        self.read = self.read.max(part.last);
        for (at, frame) in part.frames {
            if at < self.span.from || self.last.is_some_and(|last| at <= last) {
                continue;
            }
            self.last = Some(at);
            self.is_past |= self.span.to.is_some_and(|to| at >= to);
            self.add_frame(&frame, wants)?;
        }
        Ok(())
    }

    fn add_frame(&mut self, frame: &Frame, wants: &impl Fn(&Op) -> bool) -> Result<(), StoreError> {
        let (time_ms, until_ms) = (frame.time_ms, self.span.until_ms);
        let is_step = time_ms.saturating_add(STEP_MAX_MS) < self.latest_ms;
        let was_later = self.latest_ms > until_ms;
        match self.span.set_back {
            SetBack::Nowhere if is_step && was_later && time_ms <= until_ms && !self.is_past => {
                return Err(StoreError::PastUncertain {
                    from_ms: time_ms,
                    to_ms: self.latest_ms,
                });
            }
            SetBack::After => self.is_past |= is_step,
            SetBack::Before { from_ms } => self.is_past |= time_ms > until_ms && time_ms < from_ms,
            SetBack::Nowhere => {}
        }
        if is_step {
            self.steps_back.push((time_ms, self.latest_ms));
        }
        self.latest_ms = self.latest_ms.max(time_ms);
        let is_left_out = match self.span.set_back {
            SetBack::Before { .. } => false,
            SetBack::Nowhere | SetBack::After => self.latest_ms > until_ms,
        };
        if self.is_past || is_left_out {
            return Ok(());
        }
        let ops = frame.records.iter().flat_map(|record| &record.ops);
        // Copies, which do not keep the whole chunk in memory.
        let copy = |op: &Op| Op {
            token: op.token,
            key: Bytes::copy_from_slice(&op.key),
            operand: Bytes::copy_from_slice(&op.operand),
        };
        self.found.extend(ops.filter(|op| wants(op)).map(copy));
        Ok(())
    }

    /// Returns the number of the last segment that was read.
    pub fn reached(&self) -> u64 {
        self.read
    }
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
