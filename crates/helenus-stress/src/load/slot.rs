//! A slot: one request in flight at a time, with its own random numbers and buffers, which are used again and again.

use std::sync::Arc;

use rand::rngs::SmallRng;

use super::lane::Lane;
use crate::data::fields::Generator;
use crate::data::keys::KeySpace;
use crate::data::value::{self, Form};

/// What an operation needs to make its requests.
#[derive(Debug)]
pub struct Slot {
    pub rng: SmallRng,
    /// The thread that the slot belongs to.
    pub lane: Arc<Lane>,
    key: String,
    value: Vec<u8>,
    version: u64,
}

impl Slot {
    /// A slot of a thread. Versions of the values it writes count from `version` on.
    pub fn new(lane: Arc<Lane>, rng: SmallRng, version: u64) -> Self {
        Self {
            rng,
            lane,
            key: String::new(),
            value: Vec::new(),
            version,
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

    /// For keys of another form than [`KeySpace`]'s.
    pub fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    /// Fills the slot's value with a new version for the slot's key.
    pub fn fill(&mut self, generator: Generator, form: Form) {
        self.version += 1;
        generator.fill(
            &mut self.value,
            form,
            self.key.as_bytes(),
            self.version,
            &mut self.rng,
        );
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
        value::check(form, self.key.as_bytes(), found).is_ok()
    }
}
