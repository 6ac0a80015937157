//! The tablets' files and documents, and their invariant: no acknowledged write is lost, and no refused one reappears.
//!
//! Requests to them take a while, but do not fail, because such failures are simulated elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::dice::Dice;
use crate::log::object::LogId;
use crate::log::topic::format::LogPlace;

/// Frames of a log that may hold records of a tablet. `last` is `None` while the log's owner may append more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub place: LogPlace,
    pub first: u64,
    pub last: Option<u64>,
}

/// Stored state of a tablet.
#[derive(Debug, Clone, Default)]
pub(super) struct Stored {
    /// Number of openings. Only the latest opener may write files.
    pub opener: u64,
    /// All values in files, and the number of the last record among them.
    pub values: Vec<u64>,
    pub lsn: u64,
    /// The logs that the tablet's document names, and the version of the document.
    pub spans: Vec<Span>,
    pub version: u64,
}

/// Values that an owner of a tablet has found, sent and acknowledged.
#[derive(Default)]
struct Tenure {
    number: u64,
    found: Vec<u64>,
    sent: Vec<u64>,
    acknowledged: BTreeSet<u64>,
}

/// Content of a log as read by new owners: its end, and the values by frame.
type Reading = (u64, BTreeMap<u64, Vec<u64>>);

#[derive(Default)]
struct State {
    stored: Vec<Stored>,
    tenures: Vec<Tenure>,
    readings: BTreeMap<LogId, Reading>,
    values: u64,
    violations: Vec<String>,
    counts: Counts,
}

/// Number of events in a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub acknowledged: u64,
    pub taken_over: u64,
    pub refused: u64,
    pub epoch_max: u64,
}

pub(super) struct Tablets {
    dice: Dice,
    state: Mutex<State>,
}

impl Tablets {
    pub fn new(dice: Dice, count: usize) -> Tablets {
        let state = State {
            stored: vec![Stored::default(); count],
            tenures: (0..count).map(|_| Tenure::default()).collect(),
            ..State::default()
        };
        Tablets {
            dice,
            state: Mutex::new(state),
        }
    }

    async fn request<T>(&self, effect: impl FnOnce(&mut State) -> T) -> T {
        self.dice.pause(1..4).await;
        let result = effect(&mut self.state.lock());
        self.dice.pause(1..4).await;
        result
    }

    pub fn count(&self) -> usize {
        self.state.lock().stored.len()
    }

    pub fn counts(&self) -> Counts {
        self.state.lock().counts
    }

    pub fn violation(&self) -> Option<String> {
        self.state.lock().violations.first().cloned()
    }

    pub async fn open(&self, tablet: usize) -> Stored {
        let open = |state: &mut State| {
            state.stored[tablet].opener += 1;
            state.stored[tablet].clone()
        };
        self.request(open).await
    }

    /// Returns the logs that tablets name.
    pub async fn needed_logs(&self) -> BTreeSet<LogId> {
        let mut needed = BTreeSet::new();
        for tablet in 0..self.count() {
            let spans = self.request(|state| state.stored[tablet].spans.clone()).await;
            needed.extend(spans.into_iter().map(|span| span.place.id()));
        }
        needed
    }

    /// Replaces the named logs. Returns false if the document is not at `version` any more.
    pub async fn name(&self, tablet: usize, version: u64, spans: Vec<Span>) -> bool {
        self.request(|state| state.name(tablet, version, spans)).await
    }

    /// Takes over a tablet with the values that were found. Returns the number of the new tenure. `None` if another process was faster.
    pub async fn take_over(
        &self,
        tablet: usize,
        version: u64,
        spans: Vec<Span>,
        found: Vec<u64>,
    ) -> Option<u64> {
        let take_over = |state: &mut State| {
            let is_first = state.name(tablet, version, spans);
            is_first.then(|| state.begin_tenure(tablet, found))
        };
        self.request(take_over).await
    }

    /// Writes all values to files. Returns false if another process has opened the tablet since.
    pub async fn flush(&self, tablet: usize, opener: u64, values: Vec<u64>, lsn: u64) -> bool {
        let flush = |state: &mut State| {
            let stored = &mut state.stored[tablet];
            let is_latest = stored.opener == opener;
            if is_latest {
                (stored.values, stored.lsn) = (values, lsn);
            }
            is_latest
        };
        self.request(flush).await
    }

    /// Returns a value that was never sent.
    pub fn new_value(&self, tablet: usize, tenure: u64) -> u64 {
        let state = &mut *self.state.lock();
        state.values += 1;
        let own = &mut state.tenures[tablet];
        if own.number == tenure {
            own.sent.push(state.values);
        }
        state.values
    }

    pub fn acknowledged(&self, tablet: usize, tenure: u64, value: u64) {
        let state = &mut *self.state.lock();
        state.counts.acknowledged += 1;
        let own = &mut state.tenures[tablet];
        if own.number == tenure {
            own.acknowledged.insert(value);
        } else if !own.found.contains(&value) {
            state.violations.push(format!(
                "tablet {tablet}: {value} was acknowledged by its owner {tenure} after owner {} had begun without it",
                own.number
            ));
        }
    }

    pub fn begun(&self, place: LogPlace) {
        let counts = &mut self.state.lock().counts;
        counts.epoch_max = counts.epoch_max.max(place.epoch);
    }

    pub fn refused(&self) {
        self.state.lock().counts.refused += 1;
    }

    /// Records what a new owner has read of a log up to its end, and compares it with earlier readings.
    pub fn read(&self, place: LogPlace, end: u64, frames: BTreeMap<u64, Vec<u64>>) {
        let state = &mut *self.state.lock();
        let first = state
            .readings
            .entry(place.id())
            .or_insert_with(|| (end, frames.clone()));
        // An end of 1 means that the log was deleted in between, when none of it was needed.
        let is_deleted = end == 1;
        let differs =
            |(number, values): (&u64, &Vec<u64>)| first.1.get(number).is_some_and(|before| before != values);
        if !is_deleted && (first.0 != end || frames.iter().any(differs)) {
            state.violations.push(format!(
                "{place:?}: one heir has read {:?} up to {}, another {frames:?} up to {end}",
                first.1, first.0
            ));
        }
    }

    /// Reports a log that cannot be read, as found by a process that read that version of the tablet's document. The report is a violation
    /// only if the document is still at that version.
    pub fn unreadable(&self, tablet: usize, version: u64, error: &str) {
        let state = &mut *self.state.lock();
        if state.stored[tablet].version == version {
            state.violations.push(format!(
                "tablet {tablet} needs a log that cannot be read: {error}"
            ));
        }
    }
}

impl State {
    fn name(&mut self, tablet: usize, version: u64, spans: Vec<Span>) -> bool {
        let stored = &mut self.stored[tablet];
        let is_first = stored.version == version;
        if is_first {
            stored.version += 1;
            stored.spans = spans;
        }
        is_first
    }

    /// Checks the values that the next owner has found. The values must be all that the former owner had found, then a prefix of what it
    /// sent, including all that it acknowledged.
    fn begin_tenure(&mut self, tablet: usize, found: Vec<u64>) -> u64 {
        let before = &self.tenures[tablet];
        let added = found.strip_prefix(before.found.as_slice());
        let is_right = added.is_some_and(|added| {
            before.sent.starts_with(added) && before.acknowledged.iter().all(|value| added.contains(value))
        });
        if !is_right {
            self.violations.push(format!(
                "tablet {tablet}: owner {} had {:?}, sent {:?} and acknowledged {:?}; the next one has {found:?}",
                before.number, before.found, before.sent, before.acknowledged
            ));
        }
        self.counts.taken_over += 1;
        let number = before.number + 1;
        self.tenures[tablet] = Tenure {
            number,
            found,
            ..Tenure::default()
        };
        number
    }
}
