//! Where requests and statements meet the guardrails ([`crate::limits::guardrails`]).
//!
//! Superusers are exempt, as in Cassandra. Without authentication there are no superusers, and everybody is guarded; Cassandra guards
//! nobody then.

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

/// Returns the guard of a user's requests; none if nothing is guarded, or not from that user.
pub(crate) fn guard_of(guardrails: &Arc<Guardrails>, schema: &Schema, user: Option<&User>) -> Option<Guard> {
    if guardrails.is_empty() || user.is_some_and(|user| schema.access.is_superuser(&user.name)) {
        return None;
    }
    Some(Guard::new(guardrails))
}

/// Returns the answer with the warnings of the guardrails before its own.
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

/// Returns a number of something as a figure to check.
fn count(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}
