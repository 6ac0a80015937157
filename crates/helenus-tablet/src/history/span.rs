//! The operations that a log has in a span of time.

use bytes::Bytes;
use uuid::Uuid;

use super::{HistoryPosition, Segments};
use crate::error::StoreError;
use crate::log::LogPosition;
use crate::operation::Op;

/// What is read of a log.
pub(crate) struct Span {
    pub log: Uuid,
    /// Frames that begin before are left out.
    pub from: LogPosition,
    pub until_ms: i64,
}

impl Span {
    /// What a log has from its place among positions on; all of one that has none, since it has begun after them.
    pub fn new(log: Uuid, positions: &[HistoryPosition], until_ms: i64) -> Span {
        let from = positions.iter().find(|position| position.log == log);
        Span {
            log,
            from: from.map_or_else(LogPosition::default, HistoryPosition::at),
            until_ms,
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
    /// By how much the newest frame is later than the span, in ms.
    beyond_ms: i64,
    pub found: Vec<Op>,
}

/// A clock is not set back by more while a log is written.
pub(crate) const SET_BACK_MAX_MS: i64 = 2_000;

impl<'s> SpanOps<'s> {
    pub fn new(span: &'s Span) -> SpanOps<'s> {
        SpanOps {
            span,
            // The first object of a log in a bucket has no records, and need not be there.
            read: span.from.segment.max(1),
            last: None,
            beyond_ms: i64::MIN,
            found: Vec::new(),
        }
    }

    /// True if nothing that follows in the log is of the span.
    pub fn is_past(&self) -> bool {
        self.beyond_ms > SET_BACK_MAX_MS
    }

    /// Adds segments, in the order of their numbers. Those that were added already are left out.
    ///
    /// # Errors
    /// Others are missing before them.
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
            self.beyond_ms = frame.time_ms.saturating_sub(self.span.until_ms);
            if self.beyond_ms > 0 {
                continue;
            }
            let ops = frame.records.iter().flat_map(|record| &record.ops);
            // Copies, which do not keep the whole chunk in memory.
            let copy = |op: &Op| Op {
                token: op.token,
                key: Bytes::copy_from_slice(&op.key),
                operand: Bytes::copy_from_slice(&op.operand),
            };
            self.found.extend(ops.filter(|op| wants(op)).map(copy));
        }
        Ok(())
    }
}
