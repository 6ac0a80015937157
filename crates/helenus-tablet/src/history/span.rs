//! The operations of a log in a span of time.
//!
//! The order of commits is the order of their positions in the log. Their times only determine the end of the span. A clock that was set
//! back makes times repeat, so the caller states on which side of the requested time that happened ([`SetBack`]).

use bytes::Bytes;
use uuid::Uuid;

use super::{Frame, HistoryPosition, Segments};
use crate::error::StoreError;
use crate::log::LogPosition;
use crate::operation::Op;

/// Clock step in a part of the logs, relative to the requested time: the end of the span that is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SetBack {
    /// The clock was not set back. A log with a commit that contradicts this is refused.
    #[default]
    Nowhere,
    /// The clock was set back before the requested time. The span ends at the first commit whose time is after the requested time and
    /// before `from_ms`. Times from `from_ms` on were shown before the clock was set back.
    Before { from_ms: i64 },
    /// The clock was set back after the requested time. The span ends at the first commit with a later time, or at the first one after a
    /// step back.
    After,
}

/// End of the span that is read from the logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryUntil {
    pub time_ms: i64,
    pub set_back: SetBack,
    /// Positions from which on every commit is later than `time_ms`. A log without a position began after that time, so nothing of it is
    /// read. `None` if no such positions are known.
    pub before: Option<Vec<HistoryPosition>>,
}

impl HistoryUntil {
    /// Returns the end of a span with all commits up to that time, by clocks that were not set back.
    pub fn time(time_ms: i64) -> HistoryUntil {
        HistoryUntil {
            time_ms,
            ..HistoryUntil::default()
        }
    }
}

/// The part of a log that is read.
pub(crate) struct Span {
    pub log: Uuid,
    /// Start of the span. Frames that begin before this position are left out.
    pub from: LogPosition,
    /// End of the span. Frames that begin at or behind this position are left out. `None` if no such position is known.
    to: Option<LogPosition>,
    pub until_ms: i64,
    set_back: SetBack,
}

impl Span {
    /// Returns the span of a log that begins at its position in `positions`. A log without a position began later, and is read from its
    /// beginning.
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

    /// Returns true if a part of the log lies entirely behind the span. The part begins with segment `segment`, and its first commit has
    /// the time `earliest_ms`.
    pub fn is_beyond(&self, segment: u64, earliest_ms: i64) -> bool {
        // Frames before `from` say nothing: the clock may have been set back since.
        let is_late =
            segment > self.from.segment && self.latest_ms().is_some_and(|latest_ms| earliest_ms > latest_ms);
        is_late || self.to.is_some_and(|to| segment > to.segment)
    }

    /// Returns the time after which no commit belongs to the span, in ms. `None` if the clock was set back before the requested time, so
    /// that a later time may belong to it.
    pub fn latest_ms(&self) -> Option<i64> {
        match self.set_back {
            SetBack::Before { .. } => None,
            SetBack::Nowhere | SetBack::After => Some(self.until_ms.saturating_add(STEP_MAX_MS)),
        }
    }
}

/// Collects the operations of a log's span.
pub(crate) struct SpanOps<'s> {
    span: &'s Span,
    /// Number of the last segment that was read.
    read: u64,
    /// Position of the last frame that was read.
    last: Option<LogPosition>,
    /// Latest time of the frames read so far, in ms.
    latest_ms: i64,
    /// True if all following frames lie behind the span.
    is_past: bool,
    /// Spans of time that the clock has shown twice in the part that was read: from and to, in ms.
    pub steps_back: Vec<(i64, i64)>,
    pub found: Vec<Op>,
}

/// Maximum step back of a clock that is ignored, because a running node does not notice it, in ms.
const STEP_MAX_MS: i64 = 2_000;

impl<'s> SpanOps<'s> {
    pub fn new(span: &'s Span) -> SpanOps<'s> {
        SpanOps {
            span,
            // The first object of a log in a bucket has no records, and may be missing.
            read: span.from.segment.max(1),
            last: None,
            latest_ms: i64::MIN,
            is_past: false,
            steps_back: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns true if all following frames of the log lie behind the span.
    pub fn is_past(&self) -> bool {
        let is_late = self
            .span
            .latest_ms()
            .is_some_and(|latest_ms| self.latest_ms > latest_ms);
        self.is_past || is_late
    }

    /// Adds segments, in the order of their numbers. Frames that were added already are skipped.
    ///
    /// # Errors
    /// Earlier segments are missing. [`StoreError::HistoryUncertain`] if the clock was set back although the caller stated otherwise.
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
                return Err(StoreError::HistoryUncertain {
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
        // Operations are copied, because slices would keep the whole chunk in memory.
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
