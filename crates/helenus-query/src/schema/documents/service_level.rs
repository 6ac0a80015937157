//! Documents for service levels.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::schema::roles::ServiceLevel;

#[derive(Serialize, Deserialize)]
pub(crate) struct ServiceLevelDoc {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_requests_per_second: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

impl From<&ServiceLevel> for ServiceLevelDoc {
    fn from(level: &ServiceLevel) -> ServiceLevelDoc {
        let millis = |timeout: Duration| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        ServiceLevelDoc {
            name: level.name.clone(),
            max_requests_per_second: level.max_requests_per_second,
            timeout_ms: level.timeout.map(millis),
        }
    }
}

impl From<ServiceLevelDoc> for ServiceLevel {
    fn from(level: ServiceLevelDoc) -> ServiceLevel {
        ServiceLevel {
            name: level.name,
            max_requests_per_second: level.max_requests_per_second,
            timeout: level.timeout_ms.map(Duration::from_millis),
        }
    }
}

/// Returns the levels, keyed by name.
pub(crate) fn by_name(levels: Vec<ServiceLevelDoc>) -> std::collections::BTreeMap<String, ServiceLevel> {
    levels
        .into_iter()
        .map(|level| (level.name.clone(), level.into()))
        .collect()
}
