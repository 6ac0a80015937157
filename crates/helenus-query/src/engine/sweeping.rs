//! Has tablets written anew when much of them are rows of tables that are gone: dropped, truncated, or of a snapshot that was cleared. Compactions
//! sweep such rows whenever they meet them; but where nothing is written, nothing is compacted.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;

use super::Engine;

/// How often it is looked whether tables have gone.
const INTERVAL: Duration = Duration::from_secs(10);
/// Of a tablet's bytes, those of such rows from which on it is written anew.
const GONE_PERCENT: u64 = 20;
/// With fewer bytes of them, a tablet is left alone.
const GONE_BYTES_MIN: u64 = 1 << 20;

/// Begins to look, as long as the engine is there.
pub(super) fn begin(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(engine) = engine.upgrade() else { return };
            if !engine.context.live_tables.take_gone() {
                continue;
            }
            if let Err(error) = sweep(&engine).await {
                tracing::warn!(%error, "it could not be looked for rows of tables that are gone");
            }
        }
    });
}

async fn sweep(engine: &Engine) -> Result<(), CqlError> {
    let live_tables = &engine.context.live_tables;
    let tablets = engine.bytes_by_tablet(|table| live_tables.is_gone(table)).await?;
    for (tablet, gone, all) in tablets {
        if gone >= GONE_BYTES_MIN && gone > all / 100 * GONE_PERCENT {
            tracing::info!(
                tablet = tablet.id(),
                gone_bytes = gone,
                all_bytes = all,
                "a tablet is written anew without the rows of tables that are gone"
            );
            tablet.rewrite();
        }
    }
    Ok(())
}
