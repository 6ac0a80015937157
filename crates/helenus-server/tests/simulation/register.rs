//! The check that a register explains all operations on one key.

use std::collections::HashSet;
use std::time::Duration;

/// The value of a key that has no row, and of a deletion. All other writes have a greater value.
pub const ABSENT: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A read, and the value that it returned.
    Read(u64),
    Write(u64),
    /// A search for rows with the value by an index, which found the row or not.
    Search {
        value: u64,
        is_found: bool,
    },
    /// A conditional write: `new` if the value is `expected`. `found` is the value that kept it from being written, `None` if it was written
    /// or if its outcome is unknown.
    Swap {
        expected: u64,
        new: u64,
        found: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub key: u64,
    pub call: Call,
    pub begin: Duration,
    /// Time of the answer. `None` if the operation may have taken effect, or may take effect later.
    pub end: Option<Duration>,
}

impl Operation {
    /// Returns the value after the operation if its outcome is possible at `value`.
    fn apply(&self, value: u64) -> Option<u64> {
        match self.call {
            Call::Read(read) => (read == value).then_some(value),
            Call::Write(new) => Some(new),
            Call::Search {
                value: searched,
                is_found,
            } => (is_found == (searched == value)).then_some(value),
            Call::Swap {
                found: Some(found),
                expected,
                ..
            } => (found == value && found != expected).then_some(value),
            Call::Swap { expected, new, .. } if value == expected => Some(new),
            // Without an answer, the condition may not have held.
            Call::Swap { .. } => self.end.is_none().then_some(value),
        }
    }
}

/// Maximum number of operations on a key.
pub const OPERATIONS_MAX: usize = 128;

/// Returns true if a register explains the operations in some order, in which each takes effect between its begin and its end.
///
/// The search is that of Wing and Gong ("Testing and verifying concurrent objects"), with Lowe's memory of visited states.
pub fn explains(operations: &[Operation]) -> bool {
    assert!(
        operations.len() <= OPERATIONS_MAX,
        "{} operations",
        operations.len()
    );
    let answered = (0..operations.len())
        .filter(|at| operations[*at].end.is_some())
        .fold(0, |mask, at| mask | 1 << at);
    let mut visited = HashSet::new();
    let mut open = vec![(0u128, ABSENT)];
    while let Some((done, value)) = open.pop() {
        if done & answered == answered {
            return true;
        }
        let waiting = || (0..operations.len()).filter(|at| done & (1 << at) == 0);
        let first_end = waiting().filter_map(|at| operations[at].end).min();
        for at in waiting() {
            let operation = &operations[at];
            if first_end.is_some_and(|end| operation.begin > end) {
                continue;
            }
            if let Some(value) = operation.apply(value) {
                let next = (done | 1 << at, value);
                if visited.insert(next) {
                    open.push(next);
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(call: Call, begin: u64, end: u64) -> Operation {
        Operation {
            key: 1,
            call,
            begin: Duration::from_secs(begin),
            end: (end > 0).then(|| Duration::from_secs(end)),
        }
    }

    fn swap(expected: u64, new: u64, found: Option<u64>) -> Call {
        Call::Swap { expected, new, found }
    }

    fn search(value: u64, is_found: bool) -> Call {
        Call::Search { value, is_found }
    }

    #[test]
    fn possible_histories_pass() {
        for history in [
            vec![
                operation(Call::Read(ABSENT), 1, 2),
                operation(Call::Write(1), 3, 4),
                operation(Call::Read(1), 5, 6),
            ],
            vec![
                operation(Call::Write(1), 1, 5),
                operation(Call::Read(ABSENT), 2, 3),
                operation(Call::Read(1), 4, 6),
            ],
            vec![
                operation(Call::Write(9), 1, 0),
                operation(Call::Read(ABSENT), 4, 5),
                operation(Call::Read(9), 6, 7),
            ],
            vec![
                operation(swap(ABSENT, 1, None), 1, 4),
                operation(swap(ABSENT, 2, Some(1)), 2, 3),
            ],
            vec![
                operation(swap(3, 4, None), 1, 0),
                operation(Call::Read(ABSENT), 2, 3),
            ],
        ] {
            assert!(explains(&history), "{history:?}");
        }
    }

    #[test]
    fn impossible_histories_are_found() {
        for history in [
            // A lost write, a write that is undone, and two winners of a condition.
            vec![
                operation(Call::Write(1), 1, 2),
                operation(Call::Read(ABSENT), 3, 4),
            ],
            vec![
                operation(Call::Write(1), 1, 10),
                operation(Call::Read(1), 2, 3),
                operation(Call::Read(ABSENT), 4, 5),
            ],
            vec![
                operation(swap(ABSENT, 1, None), 1, 4),
                operation(swap(ABSENT, 2, None), 2, 3),
            ],
            // A condition that held and was said not to.
            vec![operation(swap(ABSENT, 1, Some(ABSENT)), 1, 2)],
            // A search that misses the row, and one that finds a deleted one.
            vec![operation(Call::Write(1), 1, 2), operation(search(1, false), 3, 4)],
            vec![
                operation(Call::Write(1), 1, 2),
                operation(Call::Write(ABSENT), 3, 4),
                operation(search(1, true), 5, 6),
            ],
            // A value that was never written.
            vec![operation(Call::Read(5), 1, 2)],
        ] {
            assert!(!explains(&history), "{history:?}");
        }
    }
}
