//! The work of a load: a mix of operations, or one operation for every key.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use parking_lot::Mutex;
use rand::Rng;

use crate::operation::{Class, Operation};

/// Random choice of operations by their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Sums of the weights of each operation and all operations before it.
    cumulative: Vec<f64>,
}

impl Mix {
    /// Creates a mix with the operations' own weights. `reads` and `deletes` replace the shares of these classes.
    pub fn new(operations: &[Operation], reads: Option<f64>, deletes: Option<f64>) -> Result<Self> {
        let own = [Class::Read, Class::Write, Class::Delete].map(|class| class_weight(operations, class));
        let all: f64 = own.iter().sum();
        let [own_reads, own_writes, own_deletes] = own.map(|weight| weight / all);
        let reads_part = reads.unwrap_or(own_reads);
        let rest = 1.0 - reads_part;
        let deletes_part = match deletes {
            Some(part) => part,
            None if own_writes + own_deletes > 0.0 => rest * own_deletes / (own_writes + own_deletes),
            None => 0.0,
        };
        if reads_part + deletes_part > 1.0 + 1e-9 {
            bail!("the parts of reads ({reads_part}) and deletions ({deletes_part}) are more than all");
        }
        let parts = [
            (Class::Read, reads_part),
            (Class::Write, (rest - deletes_part).max(0.0)),
            (Class::Delete, deletes_part),
        ];
        Self::of_parts(operations, &parts)
    }

    /// Creates a mix of only the named operations, in proportion to their weights.
    pub fn named(operations: &[Operation], names: &[String]) -> Result<Self> {
        for name in names {
            if !operations.iter().any(|operation| operation.name == name) {
                let known: Vec<&str> = operations.iter().map(|operation| operation.name).collect();
                bail!("no operation {name:?} here; there are {}", known.join(", "));
            }
        }
        let chosen = |operation: &&Operation| names.iter().any(|name| name == operation.name);
        let all: f64 = operations
            .iter()
            .filter(chosen)
            .map(|operation| operation.weight)
            .sum();
        let weight = |operation: &Operation| match (chosen(&operation), all > 0.0) {
            (false, _) => 0.0,
            (true, true) => operation.weight,
            (true, false) => 1.0,
        };
        Ok(Self::of_weights(operations.iter().map(weight)))
    }

    /// Creates a mix of the operations of one class.
    pub fn only(operations: &[Operation], class: Class) -> Result<Self> {
        Self::of_parts(operations, &[(class, 1.0)])
    }

    fn of_parts(operations: &[Operation], parts: &[(Class, f64)]) -> Result<Self> {
        let mut weights = vec![0.0; operations.len()];
        for &(class, part) in parts.iter().filter(|(_, part)| *part > 1e-9) {
            let of_class = operations
                .iter()
                .filter(|operation| operation.class == class)
                .count();
            if of_class == 0 {
                bail!("this workload has no operations of class {class:?}, so their part can't be {part}");
            }
            let own = class_weight(operations, class);
            for (weight, operation) in weights.iter_mut().zip(operations) {
                if operation.class == class {
                    let share = if own > 0.0 {
                        operation.weight / own
                    } else {
                        1.0 / of_class as f64
                    };
                    *weight = part * share;
                }
            }
        }
        Ok(Self::of_weights(weights))
    }

    fn of_weights(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let cumulative = weights
            .into_iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        Self { cumulative }
    }

    /// Returns the index of a randomly chosen operation.
    pub fn pick(&self, rng: &mut impl Rng) -> usize {
        let all = self.cumulative.last().copied().unwrap_or_default();
        let at = rng.random::<f64>() * all;
        self.cumulative
            .partition_point(|&sum| sum <= at)
            .min(self.cumulative.len().saturating_sub(1))
    }
}

fn class_weight(operations: &[Operation], class: Class) -> f64 {
    operations
        .iter()
        .filter(|operation| operation.class == class)
        .map(|operation| operation.weight)
        .sum()
}

/// A range of keys that is divided into pieces. It records which of them are unfinished.
#[derive(Debug)]
pub struct Keys {
    range: Range<u64>,
    piece: u64,
    next: AtomicU64,
    unfinished: Mutex<BTreeSet<u64>>,
}

impl Keys {
    /// Divides `range` for a number of takers.
    pub fn new(range: Range<u64>, takers: u64) -> Self {
        let count = range.end.saturating_sub(range.start);
        let piece = (count / takers.max(1) / 8).clamp(1, 256);
        let next = AtomicU64::new(range.start);
        Self {
            range,
            piece,
            next,
            unfinished: Mutex::new(BTreeSet::new()),
        }
    }

    /// Returns the next piece. `None` at the end of the range.
    pub fn take(&self) -> Option<Range<u64>> {
        let mut unfinished = self.unfinished.lock();
        let start = self.next.fetch_add(self.piece, Ordering::Relaxed);
        if start >= self.range.end {
            return None;
        }
        unfinished.insert(start);
        Some(start..(start + self.piece).min(self.range.end))
    }

    /// Marks the piece that begins at `start` as finished.
    pub fn finish(&self, start: u64) {
        self.unfinished.lock().remove(&start);
    }

    /// Returns the first key that may be unfinished. All keys before it are finished.
    pub fn done_to(&self) -> u64 {
        let unfinished = self.unfinished.lock();
        let next = self.next.load(Ordering::Relaxed).min(self.range.end);
        unfinished.first().copied().unwrap_or(next)
    }

    /// Returns the whole range.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    const OPERATIONS: &[Operation] = &[
        Operation {
            name: "get",
            class: Class::Read,
            weight: 3.0,
            about: "",
        },
        Operation {
            name: "list",
            class: Class::Read,
            weight: 1.0,
            about: "",
        },
        Operation {
            name: "put",
            class: Class::Write,
            weight: 1.0,
            about: "",
        },
        Operation {
            name: "remove",
            class: Class::Delete,
            weight: 3.0,
            about: "",
        },
    ];

    fn parts(mix: &Mix) -> Vec<f64> {
        let mut before = 0.0;
        mix.cumulative
            .iter()
            .map(|sum| {
                let part = ((sum - before) * 1000.0).round() / 1000.0;
                before = *sum;
                part
            })
            .collect()
    }

    #[test]
    fn explicit_parts_scale_class_and_keep_proportions() {
        let mix = |reads, deletes| Mix::new(OPERATIONS, reads, deletes);
        assert_eq!(parts(&mix(None, None).unwrap()), [0.375, 0.125, 0.125, 0.375]);
        assert_eq!(parts(&mix(Some(0.2), None).unwrap()), [0.15, 0.05, 0.2, 0.6]);
        assert_eq!(parts(&mix(Some(0.2), Some(0.1)).unwrap()), [0.15, 0.05, 0.7, 0.1]);
        assert_eq!(parts(&mix(Some(1.0), None).unwrap()), [0.75, 0.25, 0.0, 0.0]);
        assert!(mix(Some(0.9), Some(0.2)).is_err());
        assert!(
            Mix::new(&OPERATIONS[..3], None, Some(0.1)).is_err(),
            "nothing to delete with"
        );
        assert_eq!(
            parts(&Mix::only(OPERATIONS, Class::Read).unwrap()),
            [0.75, 0.25, 0.0, 0.0]
        );
        let named = |names: &[&str]| {
            Mix::named(
                OPERATIONS,
                &names.iter().map(|&name| name.into()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(parts(&named(&["put", "get"]).unwrap()), [3.0, 0.0, 1.0, 0.0]);
        assert!(named(&["fly"]).is_err());
    }

    #[test]
    fn operations_come_as_often_as_their_parts_say() {
        let mix = Mix::new(OPERATIONS, Some(0.2), Some(0.0)).unwrap();
        let mut rng = SmallRng::seed_from_u64(1);
        let mut seen = [0; 4];
        for _ in 0..10_000 {
            seen[mix.pick(&mut rng)] += 1;
        }
        assert!(
            (1400..1600).contains(&seen[0]) && (430..570).contains(&seen[1]),
            "{seen:?}"
        );
        assert_eq!(seen[3], 0);
    }

    #[test]
    fn every_key_is_dealt_out_once_and_the_rest_can_be_resumed() {
        let keys = Keys::new(100..1103, 4);
        let first = keys.take().unwrap();
        let second = keys.take().unwrap();
        keys.finish(second.start);
        assert_eq!(keys.done_to(), 100, "the first piece is not done");
        keys.finish(first.start);
        assert_eq!(keys.done_to(), second.end);
        let mut dealt = vec![first, second];
        while let Some(piece) = keys.take() {
            keys.finish(piece.start);
            dealt.push(piece);
        }
        let all: Vec<u64> = dealt.into_iter().flatten().collect();
        assert_eq!(all, (100..1103).collect::<Vec<_>>());
        assert_eq!(keys.done_to(), 1103);
    }
}
