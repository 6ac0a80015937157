//! A frequency sketch of written keys.

/// Finds keys that are written repeatedly, with little memory: each slot has one counter, for the key that currently dominates the slot.
pub(crate) struct HotKeySketch(Box<[(u8, u8)]>);

impl HotKeySketch {
    const SLOTS: usize = 1 << 15;
    const THRESHOLD: u8 = 32;

    pub fn new() -> Self {
        HotKeySketch(vec![(0, 0); Self::SLOTS].into_boxed_slice())
    }

    /// Counts a write. Returns true each time that a key leads the other keys of its slot by `THRESHOLD` writes.
    pub fn count(&mut self, hash: u64) -> bool {
        let tag = (hash >> 56) as u8;
        let Some((owner, count)) = self.0.get_mut((hash >> 16) as usize % Self::SLOTS) else {
            return false;
        };
        if *owner == tag {
            *count += 1;
            if *count >= Self::THRESHOLD {
                *count = 0;
                return true;
            }
        } else if *count > 1 {
            *count -= 1;
        } else {
            (*owner, *count) = (tag, 1);
        }
        false
    }
}
