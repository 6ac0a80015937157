//! Rewrites tablets that contain many rows of tables that no longer exist: tables that were dropped or truncated, or were in a cleared
//! snapshot. Compactions sweep such rows too, but without writes there are no compactions.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;

use super::Engine;

/// Interval at which dropped tables are looked for.
const INTERVAL: Duration = Duration::from_secs(10);
/// Minimum percentage of such rows, by bytes, for which a tablet is rewritten.
const DROPPED_PERCENT: u64 = 20;
/// Minimum number of bytes of such rows for which a tablet is rewritten.
const DROPPED_BYTES_MIN: u64 = 1 << 20;

/// Starts to look for dropped tables in the background, as long as the engine exists.
pub(super) fn begin(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(engine) = engine.upgrade() else { return };
            if !engine.context.hooks.live_tables.take_gone() {
                continue;
            }
            if let Err(error) = sweep(&engine).await {
                tracing::warn!(%error, "rows of dropped tables could not be searched for");
            }
        }
    });
}

async fn sweep(engine: &Engine) -> Result<(), CqlError> {
    let live_tables = &engine.context.hooks.live_tables;
    let tablets = engine.bytes_by_tablet(|table| live_tables.is_gone(table)).await?;
    for (tablet, gone, all) in tablets {
        if gone >= DROPPED_BYTES_MIN && gone > all / 100 * DROPPED_PERCENT {
            tracing::info!(
                tablet = tablet.id(),
                gone_bytes = gone,
                all_bytes = all,
                "a tablet is rewritten without the rows of dropped tables"
            );
            tablet.rewrite();
        }
    }
    Ok(())
}
