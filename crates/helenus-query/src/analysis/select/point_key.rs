//! Primary keys that are given by `=` alone.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use smallvec::SmallVec;

use crate::analysis::EvalContext;
use crate::analysis::restrictions::StatementRestrictions;
use crate::analysis::restrictions::bounds::partition_key;
use crate::analysis::restrictions::restriction::{Restriction, Test, Tuple, null_column, unset_column};
use crate::analysis::restrictions::restriction_set::RestrictionSet;
use crate::analysis::terms::Term;
use crate::request::BoundValue;
use crate::rows::PartitionKey;
use crate::schema::Table;

/// The values of a primary key, all given by `=`.
#[derive(Debug)]
pub struct PointKey {
    pub(crate) partition: Terms,
    pub(crate) clustering: Terms,
}

pub(crate) type Terms = SmallVec<[Term; 1]>;

impl PointKey {
    /// Returns the terms of the key. `None` unless each key column has a term of its own.
    pub fn of(restrictions: &StatementRestrictions) -> Option<PointKey> {
        let table = &restrictions.table;
        let clustering = match restrictions.may_name_prefix() {
            true => restrictions.clustering.len(),
            false => table.clustering_count,
        };
        Some(PointKey {
            partition: terms(&restrictions.partition.set, table.partition_key_count)?,
            clustering: terms(&restrictions.clustering, clustering)?,
        })
    }
}

impl PointKey {
    /// Returns the partition key and the clustering values.
    ///
    /// # Errors
    /// A value is null, unset, empty or too long.
    pub fn bind(&self, table: &Table, ctx: &EvalContext<'_>) -> Result<(PartitionKey, Vec<Bytes>), CqlError> {
        let partition = partition_key(&bind(table, &self.partition, 0, ctx)?)?;
        let clustering = bind(table, &self.clustering, table.partition_key_count, ctx)?;
        Ok((partition, clustering))
    }
}

pub(crate) fn terms(set: &RestrictionSet, count: usize) -> Option<Terms> {
    let term = |restriction: &Restriction| match &restriction.test {
        Test::Eq(Tuple::Value(term)) if !restriction.is_multi => Some(term.clone()),
        _ => None,
    };
    let terms = set.iter().map(term).collect::<Option<Terms>>()?;
    (terms.len() == count).then_some(terms)
}

/// Binds the values of key columns. The first column has the index `place`.
pub(crate) fn bind(
    table: &Table,
    terms: &[Term],
    place: usize,
    ctx: &EvalContext<'_>,
) -> Result<Vec<Bytes>, CqlError> {
    let mut values = Vec::with_capacity(terms.len());
    for (at, term) in terms.iter().enumerate() {
        match term.bind(ctx)? {
            BoundValue::Set(value) => values.push(value),
            BoundValue::Null => return Err(null_column(table, &[place + at])),
            BoundValue::Unset => return Err(unset_column(table, &[place + at])),
        }
    }
    Ok(values)
}
