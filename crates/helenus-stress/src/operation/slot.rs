//! A slot: one request in flight at a time, with its own random numbers and buffers, which are used again and again.

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

/// Keys and the running count that all slots of one thread share.
#[derive(Debug)]
pub struct ThreadKeys {
    picker: KeyPicker,
    /// For workloads that go round something.
    count: AtomicU64,
}

impl ThreadKeys {
    /// Returns the keys that `picker` chooses from.
    pub fn new(picker: KeyPicker) -> Self {
        Self {
            picker,
            count: AtomicU64::new(0),
        }
    }
}

/// The state from which an operation makes its requests.
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
    /// For workloads that go through stages, slot by slot.
    pub stage: u64,
}

impl Slot {
    /// Returns a slot of a thread, and its number among all. Versions of the values it writes count from `version` on.
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

    /// Returns the next key, as its thread's picker says.
    pub fn pick(&mut self) -> u64 {
        self.thread_keys.picker.pick(&mut self.rng)
    }

    /// Returns the next number of its thread's running count, from 1.
    pub fn next_count(&self) -> u64 {
        self.thread_keys.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes `key` the slot's key.
    pub fn set_key(&mut self, keys: &KeySpace, key: u64) {
        keys.text(key, &mut self.key);
    }

    /// Returns the text of the slot's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Microseconds since 1970, not twice the same for a slot.
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

    /// Returns the slot's number among all of the load.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// For keys of another format than [`KeySpace`]'s.
    pub fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    /// Service time counts from this call. The load calls it before each operation; an operation that makes large values calls it again.
    pub fn mark_sent(&mut self) {
        self.sent = Instant::now();
    }

    /// When the operation was sent.
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// Fills the slot's value with a new version for the slot's key.
    pub fn fill(&mut self, generator: Generator, format: ValueFormat) {
        self.fill_part(generator, format, 0);
    }

    /// Likewise, where a key has several values.
    pub fn fill_part(&mut self, generator: Generator, format: ValueFormat, part: u64) {
        self.version += 1;
        let id = ValueId {
            key: self.key.as_bytes(),
            part,
        };
        generator.fill(&mut self.value, format, id, self.version, &mut self.rng);
    }

    /// Returns the value, where it was filled as text.
    pub fn text(&self) -> &str {
        // Generators of text make ASCII only.
        std::str::from_utf8(&self.value).unwrap_or_default()
    }

    /// Returns the value's bytes.
    pub fn blob(&self) -> &[u8] {
        &self.value
    }

    /// Whether a value that was read is one that was written under the slot's key.
    pub fn is_sound(&self, format: ValueFormat, found: &[u8]) -> bool {
        self.is_sound_part(format, 0, found)
    }

    /// Likewise, where a key has several values.
    pub fn is_sound_part(&self, format: ValueFormat, part: u64, found: &[u8]) -> bool {
        let id = ValueId {
            key: self.key.as_bytes(),
            part,
        };
        value::check(format, id, found).is_ok()
    }

    /// Checks rows of a single text each; `expected` is how many there must be at least, where that is known.
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

    /// Likewise, of rows of a part's number and its text.
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

/// Rows of one read.
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

    /// Returns the read as one lookup.
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
