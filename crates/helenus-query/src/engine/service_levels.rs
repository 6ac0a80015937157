//! Rate limits and timeouts of service levels.
//!
//! Each node counts by itself: a role has a token bucket on each node.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use parking_lot::RwLock;

use super::Engine;
use crate::analysis::Plan;
use crate::limits::token_bucket;
use crate::metrics::rate_limits::RateLimitKind;
use crate::request::{ClientState, User};
use crate::schema::roles::EffectiveLevel;
use crate::schema::{Schema, TableKind};

/// Service level of a role, and the state of its token bucket.
struct RoleService {
    /// Generation of the schema that the level comes from.
    generation: u64,
    level: EffectiveLevel,
    /// Time at which the token bucket is full, in nanoseconds since [`RoleServices`] began.
    full_at_ns: AtomicU64,
}

/// The roles that this node has served under service levels, by the ids of their users.
pub(crate) struct RoleServices {
    services: RwLock<HashMap<u64, Arc<RoleService>>>,
    began: Instant,
}

impl Default for RoleServices {
    fn default() -> RoleServices {
        RoleServices {
            services: RwLock::default(),
            began: Instant::now(),
        }
    }
}

impl RoleServices {
    /// Returns the service level and token bucket of a user. The level is looked up once for each schema.
    fn of(&self, schema: &Schema, user: &User) -> Arc<RoleService> {
        let known = self.services.read().get(&user.id()).cloned();
        if let Some(known) = &known
            && known.generation == schema.generation
        {
            return known.clone();
        }
        let full_at_ns = known.map_or(0, |known| known.full_at_ns.load(Ordering::Relaxed));
        let service = Arc::new(RoleService {
            generation: schema.generation,
            level: schema.access.effective_level(&user.name),
            full_at_ns: AtomicU64::new(full_at_ns),
        });
        self.services.write().insert(user.id(), service.clone());
        service
    }

    /// Counts a request of a user. Returns the maximum time for the request, or `None` if the level has no timeout.
    ///
    /// # Errors
    /// [`CqlError::Overloaded`] if the request exceeds the rate.
    fn count(&self, schema: &Schema, user: &User) -> Result<Option<Duration>, CqlError> {
        self.count_at(schema, user, helenus_tablet::nanos(self.began.elapsed()))
    }

    fn count_at(&self, schema: &Schema, user: &User, now_ns: u64) -> Result<Option<Duration>, CqlError> {
        let service = self.of(schema, user);
        let EffectiveLevel {
            max_requests_per_second: rate,
            timeout,
        } = &service.level;
        if let Some(rate) = rate {
            let take = |full_at_ns| token_bucket::take(full_at_ns, rate.limit, now_ns);
            let taken = service
                .full_at_ns
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            if taken.is_err() {
                return Err(CqlError::Overloaded(format!(
                    "Role {} has exceeded {} requests per second at this node, the limit of its service level {}",
                    user.name, rate.limit, rate.level
                )));
            }
        }
        Ok(timeout.as_ref().map(|timeout| timeout.limit))
    }
}

/// Returns true for statements that are not counted: reads of virtual tables, by which drivers discover nodes and the schema, and USE.
fn is_free(plan: &Plan) -> bool {
    match plan {
        Plan::Select(plan) => plan.table().kind == TableKind::Virtual,
        Plan::Direct(plan) => matches!(plan.statement, ast::Statement::Use(_)),
        Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) | Plan::Transaction(_) => false,
    }
}

impl Engine {
    /// Counts a statement of a client against the service level of its role. Returns the level's timeout, or `None` if there is none.
    ///
    /// # Errors
    /// [`CqlError::Overloaded`] if the request exceeds the role's rate.
    pub(super) fn count_statement(
        &self,
        client: &ClientState,
        plan: &Plan,
    ) -> Result<Option<Duration>, CqlError> {
        match is_free(plan) {
            true => Ok(None),
            false => self.count_request(client),
        }
    }

    /// Returns true if the client's role may have a service level.
    pub(super) fn has_service_level(&self, client: &ClientState) -> bool {
        client.user.is_some() && !self.context.schema.load().access.service_levels.is_empty()
    }

    /// Counts a request of a client, as [`Engine::count_statement`] does.
    ///
    /// # Errors
    /// [`CqlError::Overloaded`] if the request exceeds the role's rate.
    pub(super) fn count_request(&self, client: &ClientState) -> Result<Option<Duration>, CqlError> {
        let Some(user) = client.user.as_deref() else {
            return Ok(None);
        };
        let schema = self.context.schema.load();
        if schema.access.service_levels.is_empty() {
            return Ok(None);
        }
        let counted = self.access.role_services.count(&schema, user);
        if counted.is_err() {
            self.metrics().rate_limits.refused(RateLimitKind::Role);
        }
        counted
    }
}

#[cfg(test)]
#[path = "service_levels_tests.rs"]
mod tests;
