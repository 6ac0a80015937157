//! Tables that were put back from pinned tablets adopt their rows: these are copied under the tables' own numbers while the tables are in use,
//! after which the tables need the pinned tablets no more.
//!
//! Until then the rows are read from the pinned tablets, below what has been written since ([`crate::schema::Table::origin`]). A row that was
//! copied merges with itself, whatever was written to it meanwhile; so the copy needs no lock, and may begin anew after the node has ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_row::TableId;

use super::Engine;
use super::copying;
use super::ddl::{self, snapshots};
use crate::failure::store_error;
use crate::schema::Table;

/// How long after a failure the copy is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Has all tables adopt their rows that are to, in the background.
pub(super) fn resume(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        while let Some(engine) = engine.upgrade() {
            match adopt_next(&engine).await {
                Ok(true) => continue,
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "rows that were put back could not be copied yet"),
            }
            drop(engine);
            tokio::time::sleep(RETRY).await;
        }
    });
}

/// Returns false if no table is left.
async fn adopt_next(engine: &Arc<Engine>) -> Result<bool, CqlError> {
    let _adopting = engine.adopting.lock().await;
    let schema = engine.schema();
    let found = schema.stored_tables().find(|table| table.adopts_origin);
    match found {
        Some(table) => adopt(engine, table).await.map(|()| true),
        None => Ok(false),
    }
}

async fn adopt(engine: &Arc<Engine>, table: &Arc<Table>) -> Result<(), CqlError> {
    let store = &engine.context.store;
    let mut rows = 0;
    for (number, origin) in table.origins() {
        let below = origin.below.iter().map(|below| (origin.table, below.clone()));
        let from = store.open_pinned_with(&origin.pinned, below.collect()).await;
        let from = from.map_err(store_error)?;
        rows += copying::copy(&engine.context, &from, TableId(origin.table), TableId(number)).await?;
    }
    ddl::change(engine, |schema| {
        Ok(snapshots::end_adoption(schema, table).map(|schema| (schema, ())))
    })
    .await?;
    tracing::info!(
        table = table.full_name(),
        rows,
        "rows that were put back have been copied"
    );
    Ok(())
}
