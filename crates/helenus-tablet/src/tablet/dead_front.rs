//! The dead rows at the beginning of a scan of a partition, up to the first row that is alive. Later scans skip them
//! ([`crate::stage::dead_ranges`]).

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::stage::dead_ranges::{Bounds, KeyRange};
use crate::stage::{DeadRows, ReadPoint, Stage};

/// Minimum number of dead rows. Fewer are not worth the lock of the stage.
const ROWS_MIN: u64 = 8;

/// The dead front of one scan. It hands its dead rows to the stage when it is dropped: after the first row that is not dead, or with the
/// scan.
pub(crate) struct DeadFront {
    stage: Arc<Stage>,
    read_point: ReadPoint,
    partition: Bytes,
    reversed: bool,
    /// The bound at which the scan begins: the least key, or in reverse the successor of the greatest.
    begin: Bytes,
    /// The last row's key, and whether that row is dead. `None` before the first row.
    last: Option<Bytes>,
    is_dead: bool,
    count: u64,
}

impl DeadFront {
    /// Creates the dead front of a scan that sees the writes of `read_point`. `None` if the scan has no bound at its beginning.
    pub fn new(
        stage: Arc<Stage>,
        read_point: ReadPoint,
        partition: Bytes,
        bounds: &Bounds,
        reversed: bool,
    ) -> Option<Box<DeadFront>> {
        let begin = match (reversed, &bounds.0, &bounds.1) {
            (false, Bound::Included(start), _) => start.clone(),
            (false, Bound::Excluded(start), _) => behind(start),
            (true, _, Bound::Excluded(end)) => end.clone(),
            (true, _, Bound::Included(end)) => behind(end),
            (false, Bound::Unbounded, _) | (true, _, Bound::Unbounded) => return None,
        };
        Some(Box::new(DeadFront {
            stage,
            read_point,
            partition,
            reversed,
            begin,
            last: None,
            is_dead: true,
            count: 0,
        }))
    }

    /// Records that the scan yields the row at `key`. Returns false if the row before was not dead, which ends the front.
    pub fn pass(&mut self, key: &Bytes) -> bool {
        if !self.is_dead {
            return false;
        }
        self.last = Some(key.clone());
        self.is_dead = false;
        true
    }

    /// Marks the last row as dead.
    pub fn mark(&mut self) {
        self.count += u64::from(!self.is_dead);
        self.is_dead = true;
    }

    /// Returns the keys from the beginning of the scan to the last row. The last row is included only if it is dead.
    fn keys(&self, last: &Bytes) -> KeyRange {
        let inner = match self.reversed == self.is_dead {
            true => last.clone(),
            false => behind(last),
        };
        match self.reversed {
            false => KeyRange {
                start: self.begin.clone(),
                end: inner,
            },
            true => KeyRange {
                start: inner,
                end: self.begin.clone(),
            },
        }
    }
}

impl Drop for DeadFront {
    fn drop(&mut self) {
        if self.count < ROWS_MIN {
            return;
        }
        if let Some(last) = &self.last {
            let rows = DeadRows {
                partition: self.partition.clone(),
                keys: self.keys(last),
                count: self.count,
            };
            self.stage.add_dead(rows, self.read_point);
        }
    }
}

/// Returns the least key above `key`.
fn behind(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}
