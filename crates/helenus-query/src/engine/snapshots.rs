//! Snapshots of tables: put back and cleared by operators, and removed when their time has passed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;

use super::Engine;
use super::ddl::{self, difference, snapshots};
use crate::execution::backfill::{self, SchemaChanges};

pub use snapshots::{Clear, Restore, Restored};

/// How often expired snapshots are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(10);

impl Engine {
    /// Puts tables back as they are in a snapshot, on all nodes. Rows are not touched, so it takes as long as any change of the schema.
    ///
    /// # Errors
    /// There is no such snapshot, or what the keyspace has now stands in the way ([`CqlError::Invalid`]); or the schema can't be written.
    pub async fn restore_snapshot(self: &Arc<Self>, wanted: &Restore) -> Result<Restored, CqlError> {
        let now_ms = self.now_ms();
        let ttl = self.limits().auto_snapshot.ttl;
        let restore = |schema: &_| {
            let restored = snapshots::restore(schema, wanted, now_ms, ttl);
            let (next, restored) = restored.map_err(CqlError::invalid)?;
            let events = difference::events(schema, &next);
            Ok(Some((next, (restored, events))))
        };
        let Some((restored, events)) = ddl::change(self, restore).await? else {
            return Err(CqlError::Server("nothing was put back".to_owned()));
        };
        ddl::announce(self, events);
        tracing::info!(
            snapshot = restored.tag,
            keyspace = restored.keyspace,
            tables = restored.tables.join(" "),
            replaced = restored.replaced,
            "tables were put back from a snapshot"
        );
        let schemas: Arc<dyn SchemaChanges> = self.clone();
        backfill::resume(&self.context, &schemas);
        Ok(restored)
    }

    /// Clears snapshots, whose rows compaction then sweeps; their tags.
    ///
    /// # Errors
    /// The schema can't be written.
    pub async fn clear_snapshots(&self, which: &Clear) -> Result<Vec<String>, CqlError> {
        let cleared = ddl::change(self, |schema| Ok(snapshots::clear(schema, which))).await?;
        let tags = cleared.unwrap_or_default();
        if !tags.is_empty() {
            tracing::info!(snapshots = tags.join(" "), "snapshots were cleared");
        }
        Ok(tags)
    }

    fn now_ms(&self) -> i64 {
        self.context.clock.now_us().div_euclid(1000)
    }
}

/// Removes snapshots whose time has passed, as long as the engine is there.
pub(super) fn begin_expiry(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(EXPIRY_INTERVAL).await;
            let Some(engine) = engine.upgrade() else { return };
            if let Err(error) = expire(&engine).await {
                tracing::warn!(%error, "expired snapshots could not be removed");
            }
        }
    });
}

async fn expire(engine: &Engine) -> Result<(), CqlError> {
    let now_ms = engine.now_ms();
    let schema = engine.schema();
    let mut snapshots = schema.snapshots.values();
    if !snapshots.any(|snapshot| snapshot.is_expired(now_ms)) {
        return Ok(());
    }
    let expired = ddl::change(engine, |schema| Ok(snapshots::expire(schema, now_ms))).await?;
    if let Some(expired) = expired {
        tracing::info!(snapshots = expired.join(" "), "snapshots have expired");
    }
    Ok(())
}
