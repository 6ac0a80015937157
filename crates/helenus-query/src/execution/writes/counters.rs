//! What a request has made of counters.

use std::collections::HashMap;

use bytes::Bytes;
use helenus_row::{ColumnId, KeyKind};

/// Table, partition, kind, clustering and column of a counter.
pub(crate) type CounterKey = (u32, Bytes, KeyKind, Bytes, ColumnId);

/// What a request has made of counters.
pub(crate) type Counters = HashMap<CounterKey, CounterState>;

/// What there is of a counter.
#[derive(Clone, Copy)]
pub enum CounterState {
    /// It was never there, or went with its row.
    Absent,
    Total {
        total: i64,
        timestamp_us: i64,
    },
    /// A counter that was deleted by itself can't be used again.
    Deleted,
}
