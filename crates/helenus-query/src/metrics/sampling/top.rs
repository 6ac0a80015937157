//! The greatest of many keys, in bounded memory, by count or by the greatest value of each key. Counts use the space-saving algorithm
//! (Metwally and others 2005), as in Cassandra's `StreamSummary`.
//!
//! A new key, once all places are taken, displaces the key with the least count. Its count begins with the displaced count, which is
//! therefore the maximum error.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// One of the greatest keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    pub key: Arc<[u8]>,
    pub count: u64,
    /// Maximum error: the true count may be lower by this much.
    pub error: u64,
}

/// The greatest keys.
#[derive(Debug)]
pub(crate) struct Top {
    capacity: usize,
    entries: Vec<Counted>,
    /// Index of each key in `entries`.
    places: HashMap<Arc<[u8]>, usize>,
    /// Counts with the indexes of their entries, the least first.
    by_count: BTreeSet<(u64, usize)>,
}

impl Top {
    /// Creates a set of at most `capacity` keys, but at least one.
    pub fn new(capacity: usize) -> Top {
        Top {
            capacity: capacity.max(1),
            entries: Vec::new(),
            places: HashMap::new(),
            by_count: BTreeSet::new(),
        }
    }

    /// Adds to the count of a key.
    pub fn add(&mut self, key: &[u8], more: u64) {
        let Some(place) = self.places.get(key).copied() else {
            let least = self.least_if_full();
            let (count, error) = least.map_or((more, 0), |least| (least.saturating_add(more), least));
            return self.enter(key, count, error);
        };
        let count = self.entries.get(place).map_or(0, |entry| entry.count);
        self.set(place, count.saturating_add(more));
    }

    /// Raises the value of a key to `value` if that is greater.
    pub fn raise(&mut self, key: &[u8], value: u64) {
        match self.places.get(key).copied() {
            Some(place) if self.entries.get(place).is_some_and(|entry| entry.count < value) => {
                self.set(place, value);
            }
            Some(_) => {}
            None if self.least_if_full().is_some_and(|least| least >= value) => {}
            None => self.enter(key, value, 0),
        }
    }

    /// Returns the count that a new key displaces. `None` if there is room for it.
    fn least_if_full(&self) -> Option<u64> {
        let is_full = self.entries.len() >= self.capacity;
        self.by_count.first().filter(|_| is_full).map(|(count, _)| *count)
    }

    fn set(&mut self, place: usize, count: u64) {
        if let Some(entry) = self.entries.get_mut(place) {
            self.by_count.remove(&(entry.count, place));
            entry.count = count;
            self.by_count.insert((count, place));
        }
    }

    fn enter(&mut self, key: &[u8], count: u64, error: u64) {
        let key: Arc<[u8]> = key.into();
        let entry = Counted {
            key: key.clone(),
            count,
            error,
        };
        let place = match self.entries.len() < self.capacity {
            true => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
            false => {
                let Some((_, place)) = self.by_count.pop_first() else {
                    return;
                };
                if let Some(displaced) = self.entries.get_mut(place) {
                    let displaced = std::mem::replace(displaced, entry);
                    self.places.remove(&displaced.key);
                }
                place
            }
        };
        self.places.insert(key, place);
        self.by_count.insert((count, place));
    }

    /// Returns the keys, in no particular order.
    pub fn entries(&self) -> &[Counted] {
        &self.entries
    }

    /// Returns the greatest keys, at most `most`, in descending order.
    pub fn greatest(&self, most: usize) -> Vec<Counted> {
        let places = self.by_count.iter().rev().take(most);
        places
            .filter_map(|(_, place)| self.entries.get(*place).cloned())
            .collect()
    }
}

#[cfg(test)]
#[path = "top_tests.rs"]
mod tests;
