//! Record of a log's objects that are in the history.

use std::collections::BTreeSet;
use std::ops::Range;

use parking_lot::Mutex;

/// The numbers of a log's objects that are in the history.
#[derive(Default)]
pub(super) struct Archived(Mutex<BTreeSet<u64>>);

impl Archived {
    pub fn add(&self, numbers: impl Iterator<Item = u64>) {
        self.0.lock().extend(numbers);
    }

    /// Returns those of the oldest objects that are not in the history. Forgets the numbers before the end of the range, since they are not
    /// requested again.
    pub fn missing(&self, numbers: Range<u64>) -> Vec<u64> {
        let mut archived = self.0.lock();
        let later = archived.split_off(&numbers.end);
        let there = std::mem::replace(&mut *archived, later);
        numbers.filter(|number| !there.contains(number)).collect()
    }
}
