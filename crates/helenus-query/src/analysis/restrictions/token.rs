//! Restrictions on the token of the partition key (Cassandra's `TokenRestriction`).

use std::ops::Bound;

use helenus_cql::error::CqlError;

use super::restriction::names;
use crate::analysis::EvalContext;
use crate::analysis::terms::Term;
use crate::request::BoundValue;
use crate::schema::Table;

/// `token(k) = term`, or bounds.
#[derive(Clone, Debug)]
pub enum TokenRestriction {
    Eq(Term),
    Slice {
        start: Option<(Term, bool)>,
        end: Option<(Term, bool)>,
        /// True for BETWEEN: the bounds may be in any order.
        is_between: bool,
    },
}

/// The tokens from the first bound to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBounds {
    pub start: Bound<i64>,
    pub end: Bound<i64>,
}

impl TokenBounds {
    /// All tokens.
    pub const ALL: TokenBounds = TokenBounds {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    };

    /// Returns the bounds that a scan uses. The least token belongs to no partition: as a bound, it means that there is no bound.
    pub fn scanned(self) -> TokenBounds {
        let open = |bound| match bound {
            Bound::Included(i64::MIN) | Bound::Excluded(i64::MIN) => Bound::Unbounded,
            bound => bound,
        };
        TokenBounds {
            start: open(self.start),
            end: open(self.end),
        }
    }

    pub fn contains(&self, token: i64) -> bool {
        std::ops::RangeBounds::contains(&(self.start, self.end), &token)
    }
}

impl TokenRestriction {
    pub fn is_slice(&self) -> bool {
        matches!(self, TokenRestriction::Slice { .. })
    }

    /// Merges two restrictions into one.
    pub fn merge(&self, other: &TokenRestriction, table: &Table) -> Result<TokenRestriction, CqlError> {
        let columns: Vec<usize> = (0..table.partition_key_count).collect();
        let columns = names(table, &columns, ", ");
        let (start, end) = match self {
            TokenRestriction::Eq(_) => {
                return Err(CqlError::invalid(format!(
                    "{columns} cannot be restricted by more than one relation if it includes an Equal"
                )));
            }
            TokenRestriction::Slice { start, end, .. } => (start, end),
        };
        let TokenRestriction::Slice {
            start: other_start,
            end: other_end,
            ..
        } = other
        else {
            return Err(CqlError::invalid(format!(
                "Columns \"{columns}\" cannot be restricted by both an equality and an inequality relation"
            )));
        };
        let twice = |side: &str| {
            Err(CqlError::invalid(format!(
                "More than one restriction was found for the {side} bound on {columns}"
            )))
        };
        if start.is_some() && other_start.is_some() {
            return twice("start");
        }
        if end.is_some() && other_end.is_some() {
            return twice("end");
        }
        Ok(TokenRestriction::Slice {
            start: start.clone().or_else(|| other_start.clone()),
            end: end.clone().or_else(|| other_end.clone()),
            // BETWEEN has both bounds, so no other slice can be merged with it.
            is_between: false,
        })
    }

    /// Returns the bounds for one request.
    ///
    /// # Errors
    /// `Invalid null token value`.
    pub fn bounds(&self, ctx: &EvalContext<'_>) -> Result<TokenBounds, CqlError> {
        Ok(match self {
            TokenRestriction::Eq(term) => {
                let token = bind_token(term, ctx)?;
                TokenBounds {
                    start: Bound::Included(token),
                    end: Bound::Included(token),
                }
            }
            TokenRestriction::Slice {
                start: Some((first, _)),
                end: Some((second, _)),
                is_between: true,
            } => {
                let (first, second) = (bind_token(first, ctx)?, bind_token(second, ctx)?);
                TokenBounds {
                    start: Bound::Included(first.min(second)),
                    end: Bound::Included(first.max(second)),
                }
            }
            TokenRestriction::Slice { start, end, .. } => TokenBounds {
                start: bind_bound(start.as_ref(), ctx)?,
                end: bind_bound(end.as_ref(), ctx)?,
            },
        })
    }
}

fn bind_bound(bound: Option<&(Term, bool)>, ctx: &EvalContext<'_>) -> Result<Bound<i64>, CqlError> {
    let Some((term, is_inclusive)) = bound else {
        return Ok(Bound::Unbounded);
    };
    let token = bind_token(term, ctx)?;
    Ok(match is_inclusive {
        true => Bound::Included(token),
        false => Bound::Excluded(token),
    })
}

fn bind_token(term: &Term, ctx: &EvalContext<'_>) -> Result<i64, CqlError> {
    let BoundValue::Set(bytes) = term.bind(ctx)? else {
        return Err(CqlError::invalid("Invalid null token value"));
    };
    let bytes: [u8; 8] = bytes
        .as_ref()
        .try_into()
        .map_err(|_| CqlError::invalid("Invalid token: expected 8 bytes"))?;
    Ok(i64::from_be_bytes(bytes))
}
