//! The commonest read: one row by its whole primary key, plain columns of it. What it needs is laid out when the
//! statement is planned, so that a read is: bind, one look-up, write.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use smallvec::SmallVec;

use super::bounds::{invalid_key, partition_key};
use super::plan::SelectPlan;
use super::restriction::{Test, Tuple, null_column, unset_column};
use super::restriction_set::RestrictionSet;
use super::restrictions::StatementRestrictions;
use super::row_view::RowView;
use super::run::clustering_values;
use super::size::AnswerSize;
use super::view::{Live, View};
use crate::consistency::require_replicas;
use crate::engine::Engine;
use crate::request::BoundValue;
use crate::response::{Outcome, Response, Rows, RowsBuilder};
use crate::schema::Table;
use crate::scope::{self, LONG_ROW_BYTES};
use crate::storage::read::{
    PartitionKey, RowAt, StoredRow, read_header, read_stored_row_under, read_stored_static,
};
use crate::term::{EvalContext, Term};
use crate::trace;

/// The values of a primary key, all given by `=`.
#[derive(Debug)]
pub struct PointKey {
    partition: Terms,
    clustering: Terms,
}

type Terms = SmallVec<[Term; 1]>;

impl PointKey {
    /// The terms of the key, if each column has one of its own.
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
    /// The partition key and the clustering values.
    ///
    /// # Errors
    /// For values that are null, unset, empty or too long.
    pub fn bind(&self, table: &Table, ctx: &EvalContext<'_>) -> Result<(PartitionKey, Vec<Bytes>), CqlError> {
        let partition = partition_key(&bind(table, &self.partition, 0, ctx)?)?;
        let clustering = bind(table, &self.clustering, table.partition_key_count, ctx)?;
        Ok((partition, clustering))
    }
}

fn terms(set: &RestrictionSet, count: usize) -> Option<Terms> {
    let term = |restriction: &super::restriction::Restriction| match &restriction.test {
        Test::Eq(Tuple::Value(term)) if !restriction.is_multi => Some(term.clone()),
        _ => None,
    };
    let terms = set.iter().map(term).collect::<Option<Terms>>()?;
    (terms.len() == count).then_some(terms)
}

/// Binds the values of key columns, the first of which is at `place`.
fn bind(table: &Table, terms: &[Term], place: usize, ctx: &EvalContext<'_>) -> Result<Vec<Bytes>, CqlError> {
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

/// Reads the row.
pub(super) async fn execute(
    engine: &Arc<Engine>,
    plan: &SelectPlan,
    point: &PointKey,
    ctx: &EvalContext<'_>,
    now_s: i64,
    consistency: Consistency,
) -> Result<Outcome, CqlError> {
    let table = &plan.table;
    let columns = plan.selection.plain_columns().unwrap_or_default();
    let mut out = RowsBuilder::new(columns.len());
    let key = bind(table, &point.partition, 0, ctx)?;
    let values = bind(table, &point.clustering, table.partition_key_count, ctx)?;
    let partition = partition_key(&key)?;
    let clustering = match values.is_empty() {
        true => Bytes::new(),
        false => {
            table
                .layout
                .encode_clustering(&values)
                .map_err(invalid_key)?
                .bytes
        }
    };
    require_replicas(engine, table, consistency)?;
    trace::step(|| format!("Executing single-partition query on {}", table.name));
    let header = read_header(engine, table, &partition).await?;
    let row = read_stored_row_under(engine, table, &partition, &clustering, header.as_ref()).await?;
    if let Some(row) = row {
        let bytes = row.packed.bytes().len();
        if bytes > LONG_ROW_BYTES {
            scope::step_aside().await;
            AnswerSize::new(engine).reserve(bytes).await?;
        }
        let statics = match plan.needs_static {
            true => read_stored_static(engine, table, &partition, header.as_ref()).await?,
            false => None,
        };
        let found = RowAt { clustering, row };
        write(plan, &key, &found, statics.as_ref(), now_s, &mut out)?;
    } else {
        trace::read(0, 0);
    }
    let rows = Rows {
        metadata: plan.metadata().clone(),
        content: out.finish(),
        paging_state: None,
    };
    Ok(Response::Rows(rows).into())
}

fn write(
    plan: &SelectPlan,
    key: &[Bytes],
    found: &RowAt,
    statics: Option<&StoredRow>,
    now_s: i64,
    out: &mut RowsBuilder,
) -> Result<(), CqlError> {
    let table = &plan.table;
    let Some(row) = found.row.live(now_s)? else {
        trace::read(0, found.row.tombstones_of_dead(now_s)?);
        return Ok(());
    };
    trace::read(1, row.dead_cells);
    let live_statics = statics.map_or(Ok(None), |stored| stored.live(now_s))?;
    let columns = plan.selection.plain_columns().unwrap_or_default();
    let is_clustering = |place: &usize| {
        (table.partition_key_count..table.partition_key_count + table.clustering_count).contains(place)
    };
    // As the writer gave them, which may differ from the bytes that were asked for.
    let clustering = match columns.iter().any(is_clustering) {
        true => clustering_values(table, found)?,
        false => Vec::new(),
    };
    let view = View {
        table,
        key,
        clustering: &clustering,
        row: Some(Live {
            packed: &found.row.packed,
            row: &row,
        }),
        statics: statics.zip(live_statics.as_ref()).map(|(stored, row)| Live {
            packed: &stored.packed,
            row,
        }),
        now_s,
    };
    columns.iter().for_each(|place| view.write(*place, out));
    Ok(())
}
