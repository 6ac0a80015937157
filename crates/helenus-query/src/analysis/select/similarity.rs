//! ORDER BY … ANN OF: the rows with the nearest vectors.

use std::cmp::Ordering;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::types::{CqlType, NativeType};

use crate::analysis::restrictions::require_column;
use crate::analysis::terms::Term;
use crate::analysis::{EvalContext, PlanContext, column_spec};
use crate::index::kinds::registered;
use crate::index::similarity::{SimilarityFunction, floats};
use crate::request::BoundValue;
use crate::schema::{Index, Table};

/// Maximum number of ranked rows (Cassandra's `VectorQueryContext`).
const ROWS_MAX: u32 = 1000;

/// An ordering by the distance of a column's vectors from a given vector.
#[derive(Debug)]
pub(crate) struct AnnOrdering {
    pub column: usize,
    /// The column's name, for messages.
    name: String,
    term: Term,
    measure: SimilarityFunction,
}

/// An ANN ordering whose column and vector are known.
#[derive(Debug)]
pub(crate) struct BoundAnnOrdering {
    column: usize,
    term: Term,
}

impl BoundAnnOrdering {
    /// Returns the ANN ordering. `None` if `ordering` is another one.
    pub fn resolve(
        ctx: &mut PlanContext<'_>,
        table: &Table,
        ordering: &ast::Ordering,
    ) -> Result<Option<BoundAnnOrdering>, CqlError> {
        let Some(term) = &ordering.ann_of else {
            return Ok(None);
        };
        let (place, column) = require_column(table, &ordering.column)?;
        let term = Term::prepare(ctx, term, &column_spec(table, column))?;
        Ok(Some(BoundAnnOrdering { column: place, term }))
    }

    /// Returns the mistake in the ANN orderings of a statement. It is reported after the mistakes in the relations.
    pub fn mistake(
        table: &Table,
        orders: &[BoundAnnOrdering],
        order_by: &[ast::Ordering],
    ) -> Option<&'static str> {
        let first = orders.first()?;
        if orders.len() > 1 {
            return Some("Cannot specify more than one ANN ordering");
        }
        if order_by.len() > 1 {
            return Some("ANN ordering does not support any other ordering");
        }
        if order_by.iter().any(|ordering| ordering.descending) {
            return Some("Descending ANN ordering is not supported");
        }
        let is_float = |element: &CqlType| *element == CqlType::Native(NativeType::Float);
        match table.columns.get(first.column).map(|column| &column.ty) {
            Some(CqlType::Vector { element, .. }) if is_float(element) => None,
            _ => Some("ANN ordering is only supported on float vector indexes"),
        }
    }
}

impl AnnOrdering {
    /// Returns the ANN ordering of a statement: the first of `orders`, which come from [`resolve`](NearestOrder::resolve). `None` if
    /// `orders` is empty.
    pub fn plan(table: &Table, orders: Vec<BoundAnnOrdering>) -> Option<AnnOrdering> {
        let BoundAnnOrdering { column: place, term } = orders.into_iter().next()?;
        let column = table.columns.get(place)?;
        let is_on_it = |index: &&Arc<Index>| index.target.column == column.name;
        let on_it = || table.indexes.iter().filter(is_on_it);
        // The existence of an index is checked with the restrictions.
        let index = on_it()
            .find(|index| registered(index).ranks_vectors)
            .or_else(|| on_it().next());
        Some(AnnOrdering {
            name: column.name.clone(),
            column: place,
            term,
            measure: index.map_or(SimilarityFunction::Cosine, |index| SimilarityFunction::of(index)),
        })
    }

    /// Returns the vector that rows must be near to. Cassandra compares the rows of given partitions one by one. In that case, the vector
    /// may be one that an index can't measure.
    ///
    /// # Errors
    /// The value is null or unset, or the index can't measure it.
    pub fn bind(&self, ctx: &EvalContext<'_>, is_measured_by_index: bool) -> Result<Vec<f32>, CqlError> {
        let unsupported = |what: &str| {
            Err(CqlError::invalid(format!(
                "Unsupported {what} value for column {}",
                self.name
            )))
        };
        match self.term.bind(ctx)? {
            BoundValue::Set(bytes) => {
                let wanted = floats(&bytes);
                if is_measured_by_index {
                    self.measure.check(&wanted)?;
                }
                Ok(wanted)
            }
            BoundValue::Null => unsupported("null"),
            BoundValue::Unset => unsupported("unset"),
        }
    }

    /// Returns the index whose posting lists give the order.
    pub fn posting_lists<'t>(&self, table: &'t Table) -> Option<&'t Arc<Index>> {
        let is_usable = |index: &&Arc<Index>| {
            index.has_posting_lists && index.is_complete && index.target.column == self.name
        };
        table.indexes.iter().find(is_usable)
    }

    /// Returns the score of the stored vector; a greater score is nearer.
    pub fn score(&self, wanted: &[f32], stored: &[u8]) -> f32 {
        self.measure.score(wanted, &floats(stored))
    }

    /// Checks what an ANN query is combined with, and returns the warning for such a query.
    pub fn check(
        &self,
        limit: u32,
        per_partition: u32,
        page_size: Option<u32>,
        consistency: Consistency,
    ) -> Result<Vec<String>, CqlError> {
        let mut warnings = Vec::new();
        if consistency.is_serial() {
            return Err(CqlError::invalid(format!(
                "Top-K queries can only be run with consistency level ONE/LOCAL_ONE. Consistency level {consistency} was used."
            )));
        }
        let downgrade = match consistency {
            Consistency::LocalQuorum => Some(Consistency::LocalOne),
            Consistency::Quorum
            | Consistency::All
            | Consistency::EachQuorum
            | Consistency::Two
            | Consistency::Three => Some(Consistency::One),
            _ => None,
        };
        if let Some(downgrade) = downgrade {
            warnings.push(format!(
                "Top-K queries can only be run with consistency level ONE / LOCAL_ONE / NODE_LOCAL. Consistency level {consistency} was requested. Downgrading the consistency level to {downgrade}."
            ));
        }
        if per_partition != super::limits::NO_LIMIT {
            return Err(CqlError::invalid(
                "Top-K queries do not support per-partition limits",
            ));
        }
        if limit == super::limits::NO_LIMIT {
            return Err(CqlError::invalid(
                "Top-K queries must have a limit specified and the limit must be less than the query page size",
            ));
        }
        if let Some(page_size) = page_size.filter(|page_size| *page_size < limit) {
            warnings.push(format!(
                "Top-K queries do not support paging and the page size is set to {page_size}, which is less than LIMIT {limit}. The page size has been set to {limit} to match the LIMIT."
            ));
        }
        Ok(warnings)
    }

    /// Checks the requested number of rows. Cassandra does so after it has bound all values.
    pub fn check_limit(limit: u32) -> Result<(), CqlError> {
        match limit > ROWS_MAX {
            true => Err(CqlError::invalid(format!(
                "Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {ROWS_MAX}. LIMIT was {limit}"
            ))),
            false => Ok(()),
        }
    }
}

/// Orders scores from the nearest to the farthest.
pub(crate) fn nearest_first(a: f32, b: f32) -> Ordering {
    b.total_cmp(&a)
}
