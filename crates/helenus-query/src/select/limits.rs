//! LIMIT and PER PARTITION LIMIT.

use helenus_cql::error::CqlError;

use super::plan::SelectPlan;
use crate::request::BoundValue;
use crate::term::{EvalContext, Term};

/// What a statement without LIMIT has.
pub(super) const NO_LIMIT: u32 = i32::MAX as u32;

/// The limits of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub rows: u32,
    pub per_partition: u32,
}

impl Limits {
    /// # Errors
    /// `Invalid null value of limit`, `LIMIT must be strictly positive`
    pub fn bind(plan: &SelectPlan, ctx: &EvalContext<'_>) -> Result<Limits, CqlError> {
        Ok(Limits {
            rows: bind_limit(plan.limit.as_ref(), ctx)?,
            per_partition: bind_limit(plan.per_partition_limit.as_ref(), ctx)?,
        })
    }
}

fn bind_limit(limit: Option<&Term>, ctx: &EvalContext<'_>) -> Result<u32, CqlError> {
    let Some(term) = limit else { return Ok(NO_LIMIT) };
    let bytes = match term.bind(ctx)? {
        BoundValue::Set(bytes) => bytes,
        BoundValue::Null => return Err(CqlError::invalid("Invalid null value of limit")),
        BoundValue::Unset => return Ok(NO_LIMIT),
    };
    let limit = bytes.as_ref().try_into().map(i32::from_be_bytes);
    let limit = limit.map_err(|_| CqlError::invalid("Invalid limit value"))?;
    match u32::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(CqlError::invalid("LIMIT must be strictly positive")),
    }
}
