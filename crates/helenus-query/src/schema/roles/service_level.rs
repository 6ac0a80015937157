//! Service levels: limits for the requests of roles.

use std::time::Duration;

use super::Roles;

/// The option that limits the rate of a role's requests.
pub(crate) const RATE_OPTION: &str = "max_requests_per_second";
/// The option that limits the time of a role's requests.
pub(crate) const TIMEOUT_OPTION: &str = "timeout";

/// A service level. A limit that is `None` does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceLevel {
    pub name: String,
    /// Maximum rate of each role at each node.
    pub max_requests_per_second: Option<u32>,
    pub timeout: Option<Duration>,
}

/// A limit, and the name of the level that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelLimit<T> {
    pub limit: T,
    pub level: String,
}

/// The limits that apply to a role: the lowest among its own level and the levels of the roles that it is a member of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveLevel {
    pub max_requests_per_second: Option<LevelLimit<u32>>,
    pub timeout: Option<LevelLimit<Duration>>,
}

impl EffectiveLevel {
    fn add(&mut self, level: &ServiceLevel) {
        lower(
            &mut self.max_requests_per_second,
            level.max_requests_per_second,
            &level.name,
        );
        lower(&mut self.timeout, level.timeout, &level.name);
    }
}

/// Replaces a limit by a lower one.
fn lower<T: Ord>(least: &mut Option<LevelLimit<T>>, limit: Option<T>, level: &str) {
    let Some(limit) = limit else { return };
    if least.as_ref().is_none_or(|least| limit < least.limit) {
        *least = Some(LevelLimit {
            limit,
            level: level.to_owned(),
        });
    }
}

impl Roles {
    /// Returns the limits that apply to a role.
    pub fn effective_level(&self, role: &str) -> EffectiveLevel {
        let mut effective = EffectiveLevel::default();
        for role in self.all_of(role) {
            let level = role.service_level.as_ref();
            if let Some(level) = level.and_then(|name| self.service_levels.get(name)) {
                effective.add(level);
            }
        }
        effective
    }
}

#[cfg(test)]
#[path = "service_level_tests.rs"]
mod tests;
