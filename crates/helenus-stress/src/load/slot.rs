//! A slot: one request in flight at a time, with its own random numbers and buffers, which are used again and again.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rand::Rng;
use rand::rngs::SmallRng;
use scylla::response::query_result::QueryRowsResult;

use super::lane::Lane;
use crate::data::fields::Generator;
use crate::data::keys::KeySpace;
use crate::data::value::{self, Form, Place};
use crate::db::OpError;
use crate::workloads::{Found, Outcome};

/// What an operation needs to make its requests.
#[derive(Debug)]
pub struct Slot {
    pub rng: SmallRng,
    /// The thread that the slot belongs to.
    pub lane: Arc<Lane>,
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
    /// A slot of a thread, and its number among all. Versions of the values it writes count from `version` on.
    pub fn new(lane: Arc<Lane>, id: u64, rng: SmallRng, version: u64) -> Self {
        Self {
            rng,
            lane,
            key: String::new(),
            value: Vec::new(),
            version,
            id,
            micros: 0,
            sent: Instant::now(),
            stage: 0,
        }
    }

    /// The next key, as its thread's picker says.
    pub fn pick(&mut self) -> u64 {
        self.lane.picker.pick(&mut self.rng)
    }

    /// Makes `key` the slot's key.
    pub fn set_key(&mut self, keys: &KeySpace, key: u64) {
        keys.text(key, &mut self.key);
    }

    /// The text of the slot's key.
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

    /// A random number.
    pub fn random(&mut self) -> u64 {
        self.rng.random()
    }

    /// The slot's number among all of the load.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// For keys of another form than [`KeySpace`]'s.
    pub fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    /// The operation is sent only now: what was done for it before was making its values. Called before it begins in any case.
    pub fn mark_sent(&mut self) {
        self.sent = Instant::now();
    }

    /// When the operation was sent.
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// Fills the slot's value with a new version for the slot's key.
    pub fn fill(&mut self, generator: Generator, form: Form) {
        self.fill_part(generator, form, 0);
    }

    /// Likewise, where a key has several values.
    pub fn fill_part(&mut self, generator: Generator, form: Form, part: u64) {
        self.version += 1;
        let place = Place {
            key: self.key.as_bytes(),
            part,
        };
        generator.fill(&mut self.value, form, place, self.version, &mut self.rng);
    }

    /// The value, where it was filled as text.
    pub fn text(&self) -> &str {
        // Generators of text make ASCII only.
        std::str::from_utf8(&self.value).unwrap_or_default()
    }

    /// The value's bytes.
    pub fn blob(&self) -> &[u8] {
        &self.value
    }

    /// Whether a value that was read is one that was written under the slot's key.
    pub fn is_sound(&self, form: Form, found: &[u8]) -> bool {
        self.is_sound_part(form, 0, found)
    }

    /// Likewise, where a key has several values.
    pub fn is_sound_part(&self, form: Form, part: u64, found: &[u8]) -> bool {
        let place = Place {
            key: self.key.as_bytes(),
            part,
        };
        value::check(form, place, found).is_ok()
    }

    /// Checks rows of a single text each; `expected` is how many there must be at least, where that is known.
    pub fn check_rows(&self, rows: &QueryRowsResult, form: Form, expected: Option<u64>) -> Outcome {
        let mut check = Check::default();
        for row in rows.rows::<(&str,)>().map_err(OpError::unreadable)? {
            let (value,) = row.map_err(OpError::unreadable)?;
            check.add(self.is_sound(form, value.as_bytes()));
        }
        Ok(check.found(expected))
    }

    /// Likewise, of rows of a part's number and its text.
    pub fn check_parts(&self, rows: &QueryRowsResult, form: Form, expected: Option<u64>) -> Outcome {
        let mut check = Check::default();
        for row in rows.rows::<(i64, &str)>().map_err(OpError::unreadable)? {
            let (part, value) = row.map_err(OpError::unreadable)?;
            check.add(self.is_sound_part(form, part as u64, value.as_bytes()));
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

    /// What the read found, as one lookup.
    fn found(self, expected: Option<u64>) -> Found {
        let found = match expected {
            _ if self.unsound => Found::row(false),
            Some(expected) if self.rows < expected => Found::nothing(true),
            _ if self.rows == 0 => Found::nothing(false),
            _ => Found::row(true),
        };
        Found {
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
        let outcome = |found: Found| (found.hits, found.misses, found.missing, found.corrupt);
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
