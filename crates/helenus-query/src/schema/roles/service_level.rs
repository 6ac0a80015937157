//! Service levels: limits for the requests of the roles that they are attached to.

use std::time::Duration;

use super::Roles;

/// The option that bounds the rate of a role's requests.
pub(crate) const RATE_OPTION: &str = "max_requests_per_second";
/// The option that bounds the time of a role's requests.
pub(crate) const TIMEOUT_OPTION: &str = "timeout";

/// A service level. What is none is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceLevel {
    pub name: String,
    /// Of each role, at each node.
    pub max_requests_per_second: Option<u32>,
    pub timeout: Option<Duration>,
}

/// A limit, and the level that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelLimit<T> {
    pub limit: T,
    pub level: String,
}

/// What holds for a role: of its own level and those of the roles that it is a member of, the least of each limit.
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

/// Puts a limit in the place of a greater one.
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
    /// What holds for a role.
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
