//! ScyllaDB's option `per_partition_rate_limit`, which limits the rates of reads and writes of each partition.

use helenus_cql::error::CqlError;
use serde::{Deserialize, Serialize};

use super::values::config;
use crate::properties::Options;

/// The option's name.
pub(crate) const NAME: &str = "per_partition_rate_limit";
const READS: &str = "max_reads_per_second";
const WRITES: &str = "max_writes_per_second";

/// Maximum rates of a partition's requests. `None` if there is no limit. 0 refuses every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRateLimit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_per_second: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_per_second: Option<u32>,
}

/// Returns the declared limit. `None` if the map is empty.
pub(super) fn partition_rate_limit(declared: &Options) -> Result<Option<PartitionRateLimit>, CqlError> {
    if let Some(unknown) = declared
        .keys()
        .find(|name| ![READS, WRITES].contains(&name.as_str()))
    {
        return config(format!(
            "Unknown sub-option '{unknown}' of {NAME}: only '{READS}' and '{WRITES}' are allowed"
        ));
    }
    let limit = PartitionRateLimit {
        reads_per_second: rate(declared, READS)?,
        writes_per_second: rate(declared, WRITES)?,
    };
    Ok((!declared.is_empty()).then_some(limit))
}

fn rate(declared: &Options, name: &str) -> Result<Option<u32>, CqlError> {
    let Some(text) = declared.get(name) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(rate) => Ok(Some(rate)),
        Err(_) => config(format!(
            "Invalid value '{text}' for sub-option '{name}' of {NAME}: it must be a whole number from 0 to {}",
            u32::MAX
        )),
    }
}

impl PartitionRateLimit {
    /// Returns the limit as in a WITH clause: `{'max_reads_per_second': 10}`.
    pub(crate) fn literal(&self) -> String {
        let rates = [(READS, self.reads_per_second), (WRITES, self.writes_per_second)];
        let entries: Vec<String> = rates
            .iter()
            .filter_map(|(name, rate)| rate.map(|rate| format!("'{name}': {rate}")))
            .collect();
        format!("{{{}}}", entries.join(", "))
    }
}

#[cfg(test)]
#[path = "partition_rate_limit_tests.rs"]
mod tests;
