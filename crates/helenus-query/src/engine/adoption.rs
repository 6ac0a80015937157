//! Copies the rows of restored tables. A table restored from pinned tablets *adopts* their rows: they are copied under the table's own
//! numbers while it is in use. After that, the table no longer needs the pinned tablets.
//!
//! Until then, its rows are read from the pinned tablets and merged with newer writes ([`crate::schema::Table::origin`]). A copied row
//! merges with itself, whatever has been written to it since. The copy therefore needs no lock, and can begin again after the node has
//! ended.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_row::TableId;

use super::Engine;
use super::copying;
use super::ddl::{self, snapshots};
use crate::failure::store_error;
use crate::schema::Table;

/// Time between a failed copy and the next try.
const RETRY: Duration = Duration::from_secs(10);

/// Starts to copy the rows of all tables that adopt rows, in the background.
pub(super) fn resume(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        while let Some(engine) = engine.upgrade() {
            match adopt_next(&engine).await {
                Ok(true) => continue,
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "restored rows could not be copied yet"),
            }
            drop(engine);
            tokio::time::sleep(RETRY).await;
        }
    });
}

/// Copies the rows of one table. Returns false if no table is left.
async fn adopt_next(engine: &Arc<Engine>) -> Result<bool, CqlError> {
    let _adopting = engine.cuts.adopting.lock().await;
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
    // Reported before the change of the schema: a node that is killed in between copies and reports them again.
    tracing::info!(table = table.full_name(), rows, "restored rows have been copied");
    ddl::change(engine, |schema| {
        Ok(snapshots::end_adoption(schema, table).map(|schema| (schema, ())))
    })
    .await?;
    Ok(())
}
