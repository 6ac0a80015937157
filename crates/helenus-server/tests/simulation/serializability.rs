//! The check that operations on several keys are strictly serializable.
//!
//! Every write to a key replaces its version by the next one, so the order of the versions of each key is known (Kingsbury and Alvaro, "Elle").
//! An operation comes before another one in three cases. It wrote the version that the other one read or replaced. It read the version that
//! the other one replaced. Or it had ended before the other one began. The operations are strictly serializable if there is no cycle.

use std::collections::BTreeMap;
use std::time::Duration;

/// The access of an operation to a key.
#[derive(Clone, Debug)]
pub struct Access {
    pub key: u64,
    /// The version that was read. `None` if there was no answer.
    version: Option<u64>,
    is_write: bool,
}

impl Access {
    pub fn read(key: u64, version: u64) -> Access {
        Access {
            key,
            version: Some(version),
            is_write: false,
        }
    }

    /// Returns the access of a write that replaced a version by the next one.
    pub fn replaced(key: u64, version: u64) -> Access {
        Access {
            is_write: true,
            ..Access::read(key, version)
        }
    }

    /// Returns the access of a write without an answer.
    pub fn unknown(key: u64) -> Access {
        Access {
            key,
            version: None,
            is_write: true,
        }
    }
}

/// An operation on some keys, which takes effect at one time.
#[derive(Clone, Debug)]
pub struct Operation {
    text: String,
    begin: Duration,
    /// Time of the answer. `None` if there was none, so that the operation may take effect at any later time.
    end: Option<Duration>,
    accesses: Vec<Access>,
    /// The id of the write. `None` for reads.
    id: Option<u64>,
    /// True if the write has certainly taken effect, and false if it certainly has not. `None` if that is not known.
    is_applied: Option<bool>,
    /// The reason why the answer alone is impossible.
    impossible: Option<String>,
}

impl Operation {
    pub fn new(text: String, begin: Duration, end: Option<Duration>, accesses: Vec<Access>) -> Operation {
        Operation {
            text,
            begin,
            end,
            accesses,
            id: None,
            is_applied: Some(false),
            impossible: None,
        }
    }

    /// Returns an operation whose answer no order explains.
    pub fn impossible(why: String) -> Operation {
        Operation {
            impossible: Some(why),
            ..Operation::new(String::new(), Duration::ZERO, None, Vec::new())
        }
    }

    /// Returns the operation as the write with this id.
    pub fn written_by(self, id: u64, is_applied: Option<bool>) -> Operation {
        Operation {
            id: Some(id),
            is_applied,
            ..self
        }
    }
}

/// The notes of each key: ids of writes, with the versions that they replaced.
pub type Notes = BTreeMap<u64, BTreeMap<u64, u64>>;

/// Checks that all operations are strictly serializable, and that the notes in the end are those of the writes that took effect.
pub fn check(operations: &[Operation], notes: &Notes) -> Result<(), String> {
    if let Some(why) = operations.iter().find_map(|one| one.impossible.as_ref()) {
        return Err(why.clone());
    }
    let operations = completed(operations, notes)?;
    let mut graph = Graph::new(operations.len());
    let writers = writers(&operations, notes)?;
    for (at, operation) in operations.iter().enumerate() {
        for access in &operation.accesses {
            let Some(version) = access.version else { continue };
            let writer = |version| writers.get(&(access.key, version)).copied();
            match (version.checked_sub(1), writer(version)) {
                (Some(_), None) => {
                    return Err(format!(
                        "no write has made version {version} of {}: {operation:?}",
                        access.key
                    ));
                }
                (_, Some(writer)) => graph.add(writer, at),
                (None, None) => {}
            }
            if let Some(next) = writer(version + 1) {
                graph.add(at, next);
            }
        }
    }
    graph.add_times(&operations);
    match graph.cycle() {
        None => Ok(()),
        Some(cycle) => {
            let lines: Vec<String> = cycle
                .into_iter()
                .filter_map(|at| operations.get(at))
                .map(|operation| format!("{}\n  {operation:?}", operation.text))
                .collect();
            Err(format!("these operations have no order:\n{}", lines.join("\n")))
        }
    }
}

/// Returns the operations that took effect, with the versions that their notes have.
fn completed(operations: &[Operation], notes: &Notes) -> Result<Vec<Operation>, String> {
    let mut done = Vec::new();
    for operation in operations {
        let Some(id) = operation.id else {
            done.push(operation.clone());
            continue;
        };
        let written = operation.accesses.iter().filter(|access| access.is_write);
        let found = |access: &Access| notes.get(&access.key).and_then(|notes| notes.get(&id)).copied();
        let found: Vec<Option<u64>> = written.map(found).collect();
        let count = found.iter().flatten().count();
        let has_stray = notes.iter().any(|(key, notes)| {
            notes.contains_key(&id)
                && !operation
                    .accesses
                    .iter()
                    .any(|access| access.is_write && access.key == *key)
        });
        if has_stray || count != 0 && count != found.len() {
            return Err(format!(
                "a write took effect in part, or against its answer: {found:?} of {operation:?}"
            ));
        }
        match operation.is_applied {
            Some(true) if count == 0 => return Err(format!("a write was lost: {operation:?}")),
            Some(false) if count > 0 => {
                return Err(format!("a write took effect that was said not to: {operation:?}"));
            }
            // A write without effect and without an answer says nothing.
            None | Some(false) if count == 0 && operation.end.is_none() => continue,
            _ => {}
        }
        let mut operation = operation.clone();
        for access in operation
            .accesses
            .iter_mut()
            .filter(|access| access.is_write && count > 0)
        {
            let noted = notes.get(&access.key).and_then(|notes| notes.get(&id)).copied();
            if access.version.is_some() && access.version != noted {
                return Err(format!("a write has replaced version {noted:?}: {operation:?}"));
            }
            access.version = noted;
        }
        done.push(operation);
    }
    Ok(done)
}

/// Returns the operation that wrote each version of each key.
fn writers(operations: &[Operation], notes: &Notes) -> Result<BTreeMap<(u64, u64), usize>, String> {
    let mut writers = BTreeMap::new();
    for (at, operation) in operations.iter().enumerate() {
        for access in operation.accesses.iter().filter(|access| access.is_write) {
            let Some(version) = access.version else { continue };
            if let Some(other) = writers.insert((access.key, version + 1), at) {
                return Err(format!(
                    "two writes have replaced version {version} of {}:\n{:?}\n{operation:?}",
                    access.key, operations[other]
                ));
            }
        }
    }
    for (key, notes) in notes {
        if let Some((id, version)) = notes
            .iter()
            .find(|(_, version)| !writers.contains_key(&(*key, **version + 1)))
        {
            return Err(format!(
                "nobody made write {id}, which has replaced version {version} of {key}"
            ));
        }
    }
    Ok(writers)
}

/// Operations, and behind them their ends in the order of time. An edge means that one comes before the other.
struct Graph {
    edges: Vec<Vec<usize>>,
}

impl Graph {
    fn new(len: usize) -> Graph {
        Graph {
            edges: vec![Vec::new(); len],
        }
    }

    fn add(&mut self, from: usize, to: usize) {
        if from != to {
            self.edges[from].push(to);
        }
    }

    /// Adds that operations which had ended come before those that began later.
    fn add_times(&mut self, operations: &[Operation]) {
        let mut ends: Vec<(Duration, usize)> = operations
            .iter()
            .enumerate()
            .filter_map(|(at, operation)| Some((operation.end?, at)))
            .collect();
        ends.sort_unstable();
        let first = self.edges.len();
        self.edges.resize(first + ends.len(), Vec::new());
        for (place, (_, at)) in ends.iter().enumerate() {
            self.add(*at, first + place);
            if place + 1 < ends.len() {
                self.add(first + place, first + place + 1);
            }
        }
        for (at, operation) in operations.iter().enumerate() {
            let ended = ends.partition_point(|(end, _)| *end < operation.begin);
            if let Some(place) = ended.checked_sub(1) {
                self.add(first + place, at);
            }
        }
    }

    /// Returns a cycle. `None` if there is none.
    fn cycle(&self) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            Not,
            Open,
            Done,
        }
        let mut visits = vec![Visit::Not; self.edges.len()];
        for start in 0..self.edges.len() {
            if visits[start] != Visit::Not {
                continue;
            }
            visits[start] = Visit::Open;
            let mut path = vec![(start, 0)];
            while let Some((at, next)) = path.last_mut() {
                let Some(to) = self.edges[*at].get(*next).copied() else {
                    visits[*at] = Visit::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match visits[to] {
                    Visit::Done => {}
                    Visit::Not => {
                        visits[to] = Visit::Open;
                        path.push((to, 0));
                    }
                    Visit::Open => {
                        let cycle = path.iter().map(|(at, _)| *at);
                        return Some(cycle.skip_while(|at| *at != to).collect());
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(begin: u64, end: u64, accesses: Vec<Access>) -> Operation {
        let s = Duration::from_secs;
        Operation::new(String::new(), s(begin), (end > 0).then(|| s(end)), accesses)
    }

    fn write(id: u64, begin: u64, end: u64, accesses: Vec<Access>) -> Operation {
        let is_applied = (end > 0).then_some(true);
        operation(begin, end, accesses).written_by(id, is_applied)
    }

    fn notes(of: &[(u64, &[(u64, u64)])]) -> Notes {
        let notes = |(key, notes): &(u64, &[(u64, u64)])| (*key, notes.iter().copied().collect());
        of.iter().map(notes).collect()
    }

    fn both(version: u64) -> Vec<Access> {
        vec![Access::replaced(1, version), Access::replaced(2, version)]
    }

    #[test]
    fn possible_histories_pass() {
        let ended = notes(&[(1, &[(7, 0), (8, 1)]), (2, &[(7, 0), (8, 1)])]);
        let unanswered = write(8, 2, 0, vec![Access::unknown(1), Access::unknown(2)]);
        for history in [
            vec![write(7, 1, 5, both(0)), write(8, 2, 6, both(1))],
            vec![
                write(7, 1, 3, both(0)),
                unanswered,
                operation(9, 10, vec![Access::read(1, 1)]),
            ],
        ] {
            assert_eq!(check(&history, &ended), Ok(()));
        }
    }

    #[test]
    fn impossible_histories_are_found() {
        let one = notes(&[(1, &[(7, 0)]), (2, &[(7, 0)])]);
        let written = write(7, 1, 5, both(0));
        for (history, ended) in [
            // Half a transaction, a lost one, and one that was said to have failed.
            (vec![written.clone()], notes(&[(1, &[(7, 0)])])),
            (vec![written.clone()], notes(&[])),
            (
                vec![operation(1, 0, both(0)).written_by(7, Some(false))],
                one.clone(),
            ),
            // Two writes that replaced the same version.
            (
                vec![written.clone(), write(8, 1, 5, vec![Access::replaced(1, 0)])],
                notes(&[(1, &[(7, 0), (8, 0)]), (2, &[(7, 0)])]),
            ),
            // A read of a part, a stale read, and a part that is seen too late by one reader after another.
            (
                vec![
                    written.clone(),
                    operation(2, 3, vec![Access::read(1, 1), Access::read(2, 0)]),
                ],
                one.clone(),
            ),
            (
                vec![written.clone(), operation(6, 7, vec![Access::read(1, 0)])],
                one.clone(),
            ),
            (
                vec![
                    written.clone(),
                    operation(2, 3, vec![Access::read(1, 1)]),
                    operation(4, 6, vec![Access::read(2, 0)]),
                ],
                one.clone(),
            ),
            // Two transactions of which each read what the other one has replaced.
            (
                vec![
                    write(7, 1, 5, vec![Access::read(1, 0), Access::replaced(2, 0)]),
                    write(8, 1, 5, vec![Access::read(2, 0), Access::replaced(1, 0)]),
                ],
                notes(&[(1, &[(8, 0)]), (2, &[(7, 0)])]),
            ),
        ] {
            assert!(check(&history, &ended).is_err(), "{history:?}");
        }
    }
}
