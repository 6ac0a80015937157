//! A slot: one request in flight at a time, with its own random numbers and reused buffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use rand::Rng;
use rand::rngs::SmallRng;
use scylla::response::query_result::QueryRowsResult;

use super::{OperationOutcome, ReadSummary};
use crate::data::fields::Generator;
use crate::data::keys::{KeyPicker, KeySpace};
use crate::data::value::{self, ValueFormat, ValueId};
use crate::db::OpError;

/// Keys and a counter that all slots of a thread share.
#[derive(Debug)]
pub struct ThreadKeys {
    picker: KeyPicker,
    /// Counter for workloads that cycle through something.
    count: AtomicU64,
}

impl ThreadKeys {
    /// Creates the keys of a thread, which `picker` chooses.
    pub fn new(picker: KeyPicker) -> Self {
        Self {
            picker,
            count: AtomicU64::new(0),
        }
    }
}

/// The state that an operation needs for its requests.
#[derive(Debug)]
pub struct Slot {
    pub rng: SmallRng,
    thread_keys: Arc<ThreadKeys>,
    key: String,
    value: Vec<u8>,
    version: u64,
    id: u64,
    micros: u64,
    sent: Instant,
    /// The slot's stage, for workloads in which each slot goes through stages.
    pub stage: u64,
}

impl Slot {
    /// Creates a slot. `id` is its number among all slots. The versions of its values begin after `version`.
    pub fn new(thread_keys: Arc<ThreadKeys>, id: u64, rng: SmallRng, version: u64) -> Self {
        Self {
            rng,
            thread_keys,
            key: String::new(),
            value: Vec::new(),
            version,
            id,
            micros: 0,
            sent: Instant::now(),
            stage: 0,
        }
    }

    /// Returns the next key of the thread's picker.
    pub fn pick(&mut self) -> u64 {
        self.thread_keys.picker.pick(&mut self.rng)
    }

    /// Returns the next number of the thread's counter, from 1.
    pub fn next_count(&self) -> u64 {
        self.thread_keys.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sets the slot's key to the text of `key`.
    pub fn set_key(&mut self, keys: &KeySpace, key: u64) {
        keys.text(key, &mut self.key);
    }

    /// Returns the text of the slot's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns microseconds since 1970. A slot never gets the same value twice.
    pub fn now_micros(&mut self) -> u64 {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        self.micros = self.micros.max(now.as_micros() as u64 - 1) + 1;
        self.micros
    }

    /// Returns a random number.
    pub fn random(&mut self) -> u64 {
        self.rng.random()
    }

    /// Returns the slot's number among all slots of the load.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the key for writing, for formats other than [`KeySpace`]'s.
    pub fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    /// Marks the start of the service time. The load calls it before each operation. An operation that generates large values calls it
    /// again.
    pub fn mark_sent(&mut self) {
        self.sent = Instant::now();
    }

    /// Returns the time when the operation was sent.
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// Fills the slot's value with a new version for the slot's key.
    pub fn fill(&mut self, generator: Generator, format: ValueFormat) {
        self.fill_part(generator, format, 0);
    }

    /// Fills the slot's value like [`Slot::fill`], for one of several values of a key.
    pub fn fill_part(&mut self, generator: Generator, format: ValueFormat, part: u64) {
        self.version += 1;
        let id = ValueId {
            key: self.key.as_bytes(),
            part,
        };
        generator.fill(&mut self.value, format, id, self.version, &mut self.rng);
    }

    /// Returns the value as text. Empty if it was filled as a blob.
    pub fn text(&self) -> &str {
        // Values in text format are always ASCII.
        std::str::from_utf8(&self.value).unwrap_or_default()
    }

    /// Returns the value's bytes.
    pub fn blob(&self) -> &[u8] {
        &self.value
    }

    /// Returns true if a value that was read is one that was written under the slot's key.
    pub fn is_sound(&self, format: ValueFormat, found: &[u8]) -> bool {
        self.is_sound_part(format, 0, found)
    }

    /// Returns true if a value is one that was written as this part of the slot's key.
    pub fn is_sound_part(&self, format: ValueFormat, part: u64, found: &[u8]) -> bool {
        let id = ValueId {
            key: self.key.as_bytes(),
            part,
        };
        value::check(format, id, found).is_ok()
    }

    /// Verifies rows of one text each. `expected` is the minimum number of rows, or `None` if it is not known.
    pub fn check_rows(
        &self,
        rows: &QueryRowsResult,
        format: ValueFormat,
        expected: Option<u64>,
    ) -> OperationOutcome {
        let mut check = Check::default();
        for row in rows.rows::<(&str,)>().map_err(OpError::unreadable)? {
            let (value,) = row.map_err(OpError::unreadable)?;
            check.add(self.is_sound(format, value.as_bytes()));
        }
        Ok(check.found(expected))
    }

    /// Verifies rows of a part's number and its text, like [`Slot::check_rows`].
    pub fn check_parts(
        &self,
        rows: &QueryRowsResult,
        format: ValueFormat,
        expected: Option<u64>,
    ) -> OperationOutcome {
        let mut check = Check::default();
        for row in rows.rows::<(i64, &str)>().map_err(OpError::unreadable)? {
            let (part, value) = row.map_err(OpError::unreadable)?;
            check.add(self.is_sound_part(format, part as u64, value.as_bytes()));
        }
        Ok(check.found(expected))
    }
}

/// Result of verifying the rows of one read.
#[derive(Clone, Copy, Debug, Default)]
struct Check {
    rows: u64,
    unsound: bool,
}

impl Check {
    fn add(&mut self, sound: bool) {
        self.rows += 1;
        self.unsound |= !sound;
    }

    /// Returns the summary of the read, which counts as one lookup.
    fn found(self, expected: Option<u64>) -> ReadSummary {
        let found = match expected {
            _ if self.unsound => ReadSummary::row(false),
            Some(expected) if self.rows < expected => ReadSummary::nothing(true),
            _ if self.rows == 0 => ReadSummary::nothing(false),
            _ => ReadSummary::row(true),
        };
        ReadSummary {
            rows: self.rows,
            ..found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_several_rows_is_one_lookup() {
        let check = |rows, unsound| Check { rows, unsound };
        let outcome = |found: ReadSummary| (found.hits, found.misses, found.missing, found.corrupt);
        assert_eq!(outcome(check(3, false).found(None)), (1, 0, 0, 0));
        assert_eq!(outcome(check(0, false).found(None)), (0, 1, 0, 0));
        assert_eq!(outcome(check(3, false).found(Some(4))), (0, 0, 1, 0));
        assert_eq!(
            outcome(check(3, true).found(Some(4))),
            (0, 0, 0, 1),
            "corrupt is said before missing"
        );
        assert_eq!(check(3, false).found(None).rows, 3);
    }
}
