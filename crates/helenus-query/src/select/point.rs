//! The commonest read: one row by its whole primary key, plain columns of it.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;

use super::plan::SelectPlan;
use super::row_view::RowView;
use super::run::{builder, clustering_values};
use super::view::{Live, View};
use crate::engine::Engine;
use crate::response::{Outcome, Response, Rows};
use crate::storage::read::{
    PartitionKey, RowAt, RowsWanted, StoredRow, read_header, read_stored_row_under, read_stored_static,
};
use crate::term::EvalContext;

/// Reads the row, if its key can be one.
pub(super) async fn execute(
    engine: &Arc<Engine>,
    plan: &SelectPlan,
    ctx: &EvalContext<'_>,
    now_s: i64,
) -> Result<Outcome, CqlError> {
    let table = &plan.table;
    let mut out = builder(plan);
    let keys = plan.restrictions.partition_keys(ctx)?;
    let wanted = plan.restrictions.rows_wanted(ctx)?;
    if let ([partition], RowsWanted::Names(names)) = (keys.as_slice(), &wanted)
        && let Some(clustering) = names.first()
    {
        let header = read_header(engine, table, partition).await?;
        let row = read_stored_row_under(engine, table, partition, clustering, header.as_ref()).await?;
        if let Some(row) = row {
            let statics = match plan.needs_static {
                true => read_stored_static(engine, table, partition, header.as_ref()).await?,
                false => None,
            };
            write(
                plan,
                partition,
                RowAt {
                    clustering: clustering.clone(),
                    row,
                },
                statics.as_ref(),
                now_s,
                &mut out,
            )?;
        }
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
    partition: &PartitionKey,
    found: RowAt,
    statics: Option<&StoredRow>,
    now_s: i64,
    out: &mut crate::response::RowsBuilder,
) -> Result<(), CqlError> {
    let table = &plan.table;
    let Some(row) = found.row.live(now_s)? else {
        return Ok(());
    };
    let live_statics = statics.map_or(Ok(None), |stored| stored.live(now_s))?;
    let columns = plan.selection.plain_columns().unwrap_or_default();
    let shows = |end: usize| columns.iter().any(|place| *place < end);
    let key: Vec<Bytes> = match shows(table.partition_key_count) {
        true => helenus_row::key::split_partition_key(&partition.bytes, table.partition_key_count)
            .map_err(crate::storage::read::corrupt_key)?,
        false => Vec::new(),
    };
    let clustering = match shows(table.partition_key_count + table.clustering_count) {
        true => clustering_values(table, &found)?,
        false => Vec::new(),
    };
    let view = View {
        table,
        key: &key,
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
