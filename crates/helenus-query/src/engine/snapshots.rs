//! Snapshots of tables: taken, put back and cleared by operators, and removed when their time has passed.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_tablet::PinnedTablet;

use super::Engine;
use super::ddl::{self, difference, snapshots};
use crate::engine::copying;
use crate::execution::backfill::{self, SchemaChanges};
use crate::failure::store_error;
use snapshots::Copies;

pub use snapshots::{Clear, Restore, Restored, Take};

/// How often expired snapshots are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(10);

impl Engine {
    /// Takes a snapshot of tables in use: of all that was acknowledged before the call, and of each batch all or nothing.
    ///
    /// # Errors
    /// There are no such tables, there is such a snapshot, or the store is in a bucket ([`CqlError::Invalid`]); or it can't be written down, and
    /// then there is none.
    pub async fn take_snapshot(&self, take: &Take) -> Result<(), CqlError> {
        if !self.context.store.can_pin() {
            return Err(CqlError::invalid(
                "snapshots of tables in use are taken on a store in a folder alone so far; docs/operations.md says how a store in a bucket is copied",
            ));
        }
        // Nothing that is not written down yet may be let go meanwhile.
        let _taking = self.pinning.lock().await;
        let (keyspaces, taken_ms, pinned) = {
            // The tables are those of the moment that is pinned.
            let _changing = self.ddl.lock().await;
            let keyspaces = snapshots::to_take(&self.schema(), take).map_err(CqlError::invalid)?;
            let taken_ms = self.now_ms();
            (keyspaces, taken_ms, self.pin(take.skip_flush).await?)
        };
        let taken = ddl::change(self, |before| {
            let taken = snapshots::take(before, take, &keyspaces, &pinned, taken_ms);
            Ok(Some((taken.map_err(CqlError::invalid)?, ())))
        });
        match taken.await {
            Ok(_) => {
                tracing::info!(snapshot = take.tag, "a snapshot was taken");
                Ok(())
            }
            Err(error) => {
                self.unpin().await;
                Err(error)
            }
        }
    }

    async fn pin(&self, skip_flush: bool) -> Result<Arc<[PinnedTablet]>, CqlError> {
        let store = &self.context.store;
        let pinned = match skip_flush {
            true => store.pin_flushed().await,
            false => store.pin().await,
        };
        match pinned {
            Ok(pinned) => Ok(pinned.into()),
            Err(error) => {
                self.unpin().await;
                Err(store_error(error))
            }
        }
    }

    /// Lets go what no snapshot has pinned. Call it while `pinning` is held.
    async fn unpin(&self) {
        let schema = self.schema();
        let pinned = schema
            .snapshots
            .values()
            .filter_map(|snapshot| snapshot.pinned.as_ref());
        let kept: BTreeSet<_> = pinned
            .flat_map(|pinned| pinned.iter().map(|of| of.checkpoint))
            .collect();
        match self.context.store.unpin_others(&kept).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "tablets that were kept for snapshots were let go"),
            Err(error) => tracing::warn!(%error, "tablets that were kept for snapshots could not be let go"),
        }
    }

    /// The same, where tablets may be pinned at all.
    pub(super) async fn unpin_unneeded(&self) {
        if self.context.store.can_pin() {
            let _taking = self.pinning.lock().await;
            self.pasts.forget_gone(&self.schema());
            self.file_sizes.forget_pinned();
            self.unpin().await;
        }
    }

    /// Puts tables back as they are in a snapshot, on all nodes. Rows that TRUNCATE, DROP or a restore have left behind are not touched, which
    /// takes as long as any change of the schema; those of tables in use are copied first.
    ///
    /// # Errors
    /// There is no such snapshot, or what the keyspace has now stands in the way ([`CqlError::Invalid`]); or the schema or the rows can't be
    /// written.
    pub async fn restore_snapshot(self: &Arc<Self>, wanted: &Restore) -> Result<Restored, CqlError> {
        let now_ms = self.now_ms();
        let begun = ddl::change(self, |schema| {
            snapshots::begin_copy(schema, wanted, now_ms).map_err(CqlError::invalid)
        });
        let Some(copies) = begun.await? else {
            return self.put_back(wanted).await;
        };
        let copied = Restore {
            tag: Some(copies.tag.clone()),
            keyspace: None,
            table: None,
        };
        let restored = match self.copy(&copies).await {
            Ok(()) => self.put_back(&copied).await,
            Err(error) => Err(error),
        };
        match restored {
            Ok(restored) => Ok(Restored {
                tag: wanted.tag.clone().unwrap_or(restored.tag),
                ..restored
            }),
            Err(error) => {
                // What was copied is swept.
                let which = Clear {
                    tag: copied.tag,
                    ..Clear::default()
                };
                self.clear_snapshots(&which).await?;
                Err(error)
            }
        }
    }

    async fn copy(&self, copies: &Copies) -> Result<(), CqlError> {
        let from = self.context.store.open_pinned(&copies.pinned).await;
        let from = from.map_err(store_error)?;
        for (table, to) in &copies.numbers {
            let has_headers = self.context.headers.contains(*table);
            let rows = copying::copy(&self.context, &from, *table, *to, has_headers).await?;
            tracing::info!(
                snapshot = copies.tag,
                table = table.0,
                to = to.0,
                rows,
                "rows were copied"
            );
        }
        Ok(())
    }

    pub(super) async fn put_back(self: &Arc<Self>, wanted: &Restore) -> Result<Restored, CqlError> {
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
            self.unpin_unneeded().await;
        }
        Ok(tags)
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.context.clock.now_us().div_euclid(1000)
    }
}

/// Removes snapshots whose time has passed, as long as the engine is there.
pub(super) fn begin_expiry(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        if let Some(engine) = engine.upgrade() {
            if let Err(error) = engine.clear_left_backups().await {
                tracing::warn!(%error, "the snapshot of a backup that was cut off stays for now");
            }
            // Of a snapshot that was being taken when the node ended.
            engine.unpin_unneeded().await;
        }
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
        engine.unpin_unneeded().await;
    }
    Ok(())
}
