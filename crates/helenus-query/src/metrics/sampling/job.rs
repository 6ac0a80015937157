//! One sampling job, which runs until the operator ends it.

use std::collections::HashSet;

use parking_lot::Mutex;
use uuid::Uuid;

use super::{Sample, SamplerKind, Top, samples};

/// The samples of one sampler, the greatest first.
pub type Samples = Vec<Sample>;

/// The tables that are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampledTables {
    All,
    These(HashSet<Uuid>),
}

/// Settings of a sampling job.
#[derive(Clone, Debug)]
pub struct SamplingPlan {
    pub tables: SampledTables,
    /// Maximum number of keys that each sampler counts at a time.
    pub capacity: usize,
    pub kinds: Vec<SamplerKind>,
}

#[derive(Debug)]
pub(super) struct Job {
    tables: SampledTables,
    samplers: Vec<(SamplerKind, Mutex<Top>)>,
}

impl Job {
    pub fn new(plan: SamplingPlan) -> Job {
        let SamplingPlan {
            tables,
            capacity,
            kinds,
        } = plan;
        let sampler = |kind| (kind, Mutex::new(Top::new(capacity)));
        let distinct = SamplerKind::ALL.into_iter().filter(|kind| kinds.contains(kind));
        Job {
            tables,
            samplers: distinct.map(sampler).collect(),
        }
    }

    pub fn bits(&self) -> u32 {
        self.samplers.iter().fold(0, |bits, (kind, _)| bits | kind.bit())
    }

    pub fn record(&self, kind: SamplerKind, table: Uuid, key: &[u8], value: u64) {
        if let SampledTables::These(tables) = &self.tables
            && !tables.contains(&table)
        {
            return;
        }
        let Some((_, top)) = self.samplers.iter().find(|(known, _)| *known == kind) else {
            return;
        };
        let mut top = top.lock();
        match kind.is_sum() {
            true => top.add(key, value),
            false => top.raise(key, value),
        }
    }

    pub fn greatest(&self, most: usize) -> Vec<(SamplerKind, Samples)> {
        let samplers = self.samplers.iter();
        samplers
            .map(|(kind, top)| (*kind, samples(&top.lock(), most)))
            .collect()
    }
}
