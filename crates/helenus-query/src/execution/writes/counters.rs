//! Counters that a request has changed.

use std::collections::HashMap;

use bytes::Bytes;
use helenus_row::{ColumnId, KeyKind};

/// The table, partition, kind of row, clustering and column of a counter.
pub(crate) type CounterKey = (u32, Bytes, KeyKind, Bytes, ColumnId);

/// The states of the counters that a request has changed.
pub(crate) type Counters = HashMap<CounterKey, CounterState>;

/// The state of a counter.
#[derive(Clone, Copy)]
pub enum CounterState {
    /// The counter never existed, or was deleted with its row.
    Absent,
    Total {
        total: i64,
        timestamp_us: i64,
    },
    /// The counter was deleted by itself. Such a counter cannot be used again.
    Deleted,
}
