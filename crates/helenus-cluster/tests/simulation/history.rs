//! The operations of clients, and a check whether one register per key explains them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bucket::Key;

/// The value of a key that was never written. Every write has a unique, greater value.
pub const NOTHING: u64 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub key: Key,
    pub kind: Kind,
    pub value: u64,
    pub begin: Duration,
    /// Time of the answer. `None` if there was none: the operation may have taken effect at any time since, or never.
    pub end: Option<Duration>,
}

/// All operations on one value, as clients saw them: its write and all its reads.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    write_begin: Duration,
    /// The earliest end of all operations. The value was there by then.
    first_end: Duration,
    /// The latest begin of all operations. The value was still there.
    last_begin: Duration,
}

impl Cluster {
    fn is_forward(&self) -> bool {
        self.first_end < self.last_begin
    }

    /// Returns the time during all of which the value must have been there (forward), or at some point of which it must have been there
    /// (backward).
    fn zone(&self) -> (Duration, Duration) {
        let (a, b) = (self.first_end, self.last_begin);
        (a.min(b), a.max(b))
    }
}

/// Checks that registers explain the operations. Returns a description of those that they do not explain.
///
/// Each value of a register is written once, which makes this easy (Gibbons and Korach, "Testing shared memories"). Two values must never be
/// required at the same time. The only possible time of a value must not lie within a time that requires another.
pub fn check(operations: &[Operation]) -> Result<(), String> {
    let mut keys: BTreeMap<Key, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        keys.entry(operation.key).or_default().push(operation);
    }
    keys.into_iter().try_for_each(|(key, operations)| {
        check_key(&operations).map_err(|error| format!("key {key}: {error}"))
    })
}

fn check_key(operations: &[&Operation]) -> Result<(), String> {
    let clusters = clusters(operations)?;
    let (forward, backward): (Vec<_>, Vec<_>) = clusters.into_iter().partition(Cluster::is_forward);
    let mut forward = forward;
    forward.sort_by_key(Cluster::zone);
    for pair in forward.windows(2) {
        if pair[1].zone().0 < pair[0].zone().1 {
            return Err(format!("two values at one time: {:?} and {:?}", pair[0], pair[1]));
        }
    }
    for inner in &backward {
        let (begin, end) = inner.zone();
        let around = |outer: &&Cluster| outer.zone().0 < begin && end < outer.zone().1;
        if let Some(outer) = forward.iter().find(around) {
            return Err(format!("{inner:?} can only have been within {outer:?}"));
        }
    }
    Ok(())
}

fn clusters(operations: &[&Operation]) -> Result<Vec<Cluster>, String> {
    let mut clusters = BTreeMap::from([(
        NOTHING,
        Cluster {
            write_begin: Duration::ZERO,
            first_end: Duration::ZERO,
            last_begin: Duration::ZERO,
        },
    )]);
    for write in operations
        .iter()
        .filter(|operation| operation.kind == Kind::Write)
    {
        let cluster = Cluster {
            write_begin: write.begin,
            first_end: write.end.unwrap_or(Duration::MAX),
            last_begin: write.begin,
        };
        clusters.insert(write.value, cluster);
    }
    for read in operations.iter().filter(|operation| operation.kind == Kind::Read) {
        // An unanswered read gives no information.
        let Some(end) = read.end else { continue };
        let cluster = clusters
            .get_mut(&read.value)
            .ok_or_else(|| format!("value {} was read and never written", read.value))?;
        if end < cluster.write_begin {
            return Err(format!("value {} was read before it was written", read.value));
        }
        cluster.first_end = cluster.first_end.min(end);
        cluster.last_begin = cluster.last_begin.max(read.begin);
    }
    // A write that was never acknowledged and never read need not have taken effect.
    Ok(clusters
        .into_values()
        .filter(|cluster| cluster.first_end != Duration::MAX)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: Kind, value: u64, begin: u64, end: Option<u64>) -> Operation {
        Operation {
            key: 1,
            kind,
            value,
            begin: Duration::from_secs(begin),
            end: end.map(Duration::from_secs),
        }
    }

    fn write(value: u64, begin: u64, end: u64) -> Operation {
        operation(Kind::Write, value, begin, Some(end))
    }

    fn read(value: u64, begin: u64, end: u64) -> Operation {
        operation(Kind::Read, value, begin, Some(end))
    }

    #[test]
    fn what_one_register_explains_passes() {
        let unknown = operation(Kind::Write, 9, 1, None);
        for history in [
            vec![read(NOTHING, 1, 2), write(1, 3, 4), read(1, 5, 6)],
            vec![write(1, 1, 10), write(2, 1, 10), read(2, 2, 3), read(1, 4, 5)],
            vec![write(1, 1, 5), read(NOTHING, 2, 3), read(1, 3, 4), read(1, 6, 7)],
            vec![unknown, write(1, 2, 3), read(1, 4, 5), read(9, 6, 7)],
            vec![unknown, write(1, 2, 3), read(1, 4, 5)],
        ] {
            check(&history).unwrap();
        }
    }

    #[test]
    fn what_no_register_explains_is_found() {
        let unknown = operation(Kind::Write, 9, 1, None);
        for history in [
            // A lost write, in two histories.
            vec![write(1, 1, 2), read(NOTHING, 3, 4)],
            vec![write(1, 1, 2), write(2, 3, 4), read(1, 5, 6)],
            // A write that is undone, in two histories.
            vec![write(1, 1, 2), unknown, read(9, 3, 4), read(1, 5, 6)],
            vec![write(1, 1, 10), read(1, 2, 3), read(NOTHING, 4, 5)],
            // A value that was never written, and one that is read before its write.
            vec![read(5, 1, 2)],
            vec![read(1, 1, 2), write(1, 3, 4)],
        ] {
            check(&history).unwrap_err();
        }
    }
}
