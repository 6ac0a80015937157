//! LIMIT and PER PARTITION LIMIT.

use helenus_cql::error::CqlError;

use crate::analysis::EvalContext;
use crate::analysis::terms::Term;
use crate::request::{BoundValue, QueryParameters};

/// The limit of a statement without LIMIT.
pub(crate) const NO_LIMIT: u32 = i32::MAX as u32;

/// The limits of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub rows: u32,
    pub per_partition: u32,
}

impl Limits {
    /// Binds the limits.
    ///
    /// # Errors
    /// `Invalid null value of limit`, `LIMIT must be strictly positive`
    pub fn bind(
        rows: Option<&Term>,
        per_partition: Option<&Term>,
        ctx: &EvalContext<'_>,
    ) -> Result<Limits, CqlError> {
        Ok(Limits {
            rows: bind_limit(rows, ctx)?,
            per_partition: bind_limit(per_partition, ctx)?,
        })
    }

    /// Returns true if the rows come in pages. Without pages, a client's paging state is ignored, and reading begins at the first row. This
    /// happens if the client requests all rows, or no more than fit a page.
    pub fn are_paged(self, is_aggregated: bool, parameters: &QueryParameters) -> bool {
        let page_size = parameters.page_size.and_then(|size| u32::try_from(size).ok());
        is_aggregated || page_size.is_some_and(|page_size| page_size > 0 && self.rows > page_size)
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
