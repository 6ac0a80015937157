//! What a compaction may forget.

use bytes::Bytes;

use crate::error::RowError;
use crate::key::TableId;

/// What is known of a table when a compaction meets its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// Alive. Tombstones younger than this are kept even at the last run, so that a write which is still under way
    /// with an older timestamp stays deleted.
    Live { purge_grace_s: i64 },
    /// Dropped or truncated: all its keys may go.
    Gone,
}

/// A compaction job, as its filter is told.
#[derive(Clone, Copy, Debug)]
pub struct CompactionContext {
    /// The output is the oldest run, and every older run takes part: nothing older lies below.
    pub is_last_run: bool,
    pub now_s: i64,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Keep,
    Drop,
    Replace(Bytes),
}

/// The filter of one compaction job (or of one part of it): entries come in key order.
pub struct RowFilter<T> {
    context: CompactionContext,
    tables: T,
}

impl<T: FnMut(TableId) -> TableState> RowFilter<T> {
    pub fn new(context: CompactionContext, tables: T) -> Self {
        RowFilter { context, tables }
    }

    /// The header key that must be looked up (a point read of the tablet, whose current state still holds the job's
    /// inputs) and given to [`RowFilter::set_header`] before `key` is filtered. Asked for at most once, when
    /// the job or its resumed part starts in the middle of a partition.
    pub fn needs_header(&self, _key: &[u8]) -> Option<Bytes> {
        unimplemented!()
    }

    /// Answers [`RowFilter::needs_header`].
    pub fn set_header(&mut self, _header_key: &[u8], _value: Option<&[u8]>) -> Result<(), RowError> {
        unimplemented!()
    }

    /// Decides on one entry; a merge operand and a whole value are treated alike.
    pub fn filter(&mut self, _key: &[u8], _value: &Bytes) -> Result<Decision, RowError> {
        let _ = (&self.context, &mut self.tables);
        unimplemented!()
    }
}
