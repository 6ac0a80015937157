//! The most frequent read: plain columns of one row by its whole primary key. Planning prepares everything for it, so that the read only
//! binds, looks up once, and writes.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};

use super::size::ResultSize;
use super::stored_row::{Live, View, clustering_values};
use crate::analysis::EvalContext;
use crate::analysis::consistency::require_replicas;
use crate::analysis::restrictions::bounds::{invalid_key, partition_key};
use crate::analysis::select::point_key::bind;
use crate::analysis::select::{PointKey, SelectPlan};
use crate::execution::rate_limits::count_read;
use crate::execution::sampling::SampledRead;
use crate::limits::scope::{self, LONG_ROW_BYTES};
use crate::measurement;
use crate::response::{Outcome, Response, Rows, RowsBuilder};
use crate::rows::{RowAt, RowView, StoredRow};
use crate::storage::ExecutionContext;
use crate::storage::row_reads::{read_header, read_stored_row_under, read_stored_static};
use crate::trace;

/// Reads the row.
pub(crate) async fn execute(
    context: &Arc<ExecutionContext>,
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
    require_replicas(&context.schema.load(), table, consistency)?;
    count_read(context, table, &partition)?;
    trace::step(|| format!("Executing single-partition query on {}", table.name));
    let sampled = SampledRead::begin(&context.metrics.sampling, table, &partition, true);
    let (live, tombstones) = measurement::rows_read();
    let header = read_header(context, table, &partition).await?;
    let row = read_stored_row_under(context, table, &partition, &clustering, header.as_ref()).await?;
    if let Some(row) = row {
        let bytes = row.packed.bytes().len();
        if bytes > LONG_ROW_BYTES {
            scope::step_aside().await;
            ResultSize::new(&context.limits).reserve(bytes).await?;
        }
        let statics = match plan.needs_static {
            true => read_stored_static(context, table, &partition, header.as_ref()).await?,
            false => None,
        };
        let found = RowAt { clustering, row };
        write(plan, &key, &found, statics.as_ref(), now_s, &mut out)?;
    } else {
        measurement::read(0, 0);
    }
    let (live_after, tombstones_after) = measurement::rows_read();
    sampled.end(
        &partition,
        live_after.saturating_sub(live),
        tombstones_after.saturating_sub(tombstones),
    );
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
        measurement::read(0, found.row.tombstones_of_dead(now_s)?);
        return Ok(());
    };
    measurement::read(1, row.dead_cells);
    let live_statics = statics.map_or(Ok(None), |stored| stored.live(now_s))?;
    let columns = plan.selection.plain_columns().unwrap_or_default();
    let is_clustering = |place: &usize| {
        (table.partition_key_count..table.partition_key_count + table.clustering_count).contains(place)
    };
    // The clustering values are shown as they were written. Their bytes may differ from those in the request.
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
