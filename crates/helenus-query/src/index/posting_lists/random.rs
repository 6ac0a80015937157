//! Numbers that look random and are the same for the same seed.

/// A generator (SplitMix64).
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// Nearly a standard normal number: the sum of twelve uniform ones.
    #[cfg(test)]
    #[allow(clippy::cast_precision_loss, reason = "24 bits")]
    pub fn gaussian(&mut self) -> f32 {
        let uniform = |random: &mut Random| (random.next() >> 40) as f32 / (1_u32 << 24) as f32;
        (0..12).map(|_| uniform(self)).sum::<f32>() - 6.0
    }
}
