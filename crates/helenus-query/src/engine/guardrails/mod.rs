//! Checks of requests and statements against the guardrails ([`crate::limits::guardrails`]).
//!
//! Superusers are exempt, as in Cassandra. Without authentication there are no superusers, and all clients are guarded. Cassandra guards no
//! client then.

pub(crate) mod partitions;
pub(crate) mod requests;
pub(crate) mod schema_changes;
mod written_values;

use std::sync::Arc;

use helenus_cql::error::CqlError;

use crate::limits::guardrails::{Guard, Guardrails};
use crate::request::User;
use crate::response::Outcome;
use crate::schema::Schema;

/// Returns the guard of a user's requests. `None` if no guardrail is set, or if the user is a superuser.
pub(crate) fn guard_of(guardrails: &Arc<Guardrails>, schema: &Schema, user: Option<&User>) -> Option<Guard> {
    if guardrails.is_empty() || user.is_some_and(|user| schema.access.is_superuser(&user.name)) {
        return None;
    }
    Some(Guard::new(guardrails))
}

/// Returns the answer with the guardrails' warnings before its own.
pub(crate) fn with_warnings(
    mut warnings: Vec<String>,
    answer: Result<Outcome, CqlError>,
) -> Result<Outcome, CqlError> {
    if warnings.is_empty() {
        return answer;
    }
    match answer {
        Ok(mut outcome) => {
            warnings.append(&mut outcome.warnings);
            outcome.warnings = warnings;
            Ok(outcome)
        }
        Err(error) => {
            let (error, mut own) = error.split();
            warnings.append(&mut own);
            Err(error.warned(warnings))
        }
    }
}

/// Converts a length to a figure that guardrails check.
fn count(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}
