//! Snapshots of tables. Operators take, restore and clear them, and expired ones are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::{HistoryPosition, PinnedTablet, TableOrigin};
use uuid::Uuid;

use super::Engine;
use super::access;
use super::adoption;
use super::as_of::time_of;
use super::ddl::{self, difference, snapshots};
use crate::boxed;
use crate::cluster::PinnedCut;
use crate::execution::backfill::{self, SchemaChanges};
use crate::schema::Schema;
use crate::storage::agreement::add_header_table;

pub use snapshots::{Clear, Restore, Restored, Take};

/// Interval at which expired snapshots are removed.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(10);
/// Time after which the snapshot made by a restore to a point in time expires, if the node ends before it clears the snapshot.
const TIME_SNAPSHOT_TTL: Duration = Duration::from_secs(3600);
/// Interval at which pinned tablets without a snapshot are unpinned.
const UNPIN_INTERVAL: Duration = Duration::from_secs(3600);

/// The consistent cut of a snapshot.
pub(super) struct TakenCut {
    /// Positions of the logs at the cut. Empty if they are unknown, or if the snapshot is of a time in history.
    pub positions: Vec<HistoryPosition>,
    pub tablets: Arc<[PinnedTablet]>,
    /// Version of the schema that the tables of the cut have.
    pub schema_version: Uuid,
    /// The document that keeps the tablets pinned ([`Engine::trim_released`]). `None` if the snapshot does.
    pub hold: Option<String>,
}

impl Engine {
    /// Takes a snapshot of tables in use. It contains all writes that were acknowledged before the call, and all of a batch or nothing.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] if there are no such tables, if the snapshot exists already, or if the node is read-only. Otherwise no
    /// consistent cut was possible, or the snapshot could not be written. No snapshot is left in any of these cases.
    #[boxed]
    pub async fn take_snapshot(&self, take: &Take) -> Result<(), CqlError> {
        self.take_cut(take, false).await.map(|_| ())
    }

    /// Takes a snapshot of tables in use, also for a backup. With `holds_all`, the tablets stay pinned even if there is no table.
    ///
    /// # Errors
    /// See [`Engine::take_snapshot`].
    pub(super) async fn take_cut(&self, take: &Take, holds_all: bool) -> Result<TakenCut, CqlError> {
        if self.context.store.is_read_only() {
            return Err(CqlError::invalid("a read-only node takes no snapshots"));
        }
        // The lock prevents others from unpinning the tablets before the schema names them.
        let _taking = self.cuts.pinning.lock().await;
        let (keyspaces, taken_ms, pinned, positions, schema_version) = {
            // No change of the schema may come between the choice of the tables and the pin.
            let _changing = self.schema_updates.changing.lock().await;
            let schema = self.schema();
            let checked = |of: &Schema| {
                let keyspaces = snapshots::to_take(of, take)?;
                snapshots::check_new(&schema, take, &keyspaces)?;
                Ok::<_, String>(keyspaces)
            };
            match &take.as_of {
                None => {
                    let keyspaces = checked(&schema).map_err(CqlError::invalid)?;
                    let taken_ms = self.now_ms();
                    let PinnedCut { tablets, positions } = self.pin(take.skip_flush).await?;
                    let pinned: Arc<[PinnedTablet]> = tablets.into();
                    (keyspaces, taken_ms, pinned, positions, schema.version)
                }
                Some(literal) => {
                    let time_ms = time_of(literal)?;
                    let of = self.schema_as_of(time_ms).await?;
                    let keyspaces = checked(&of.schema).map_err(CqlError::invalid)?;
                    let earlier = self.tables_as_of(of, &keyspaces).await?;
                    let pinned = self.pin_as_of(&earlier).await?;
                    (keyspaces, time_ms, pinned, Vec::new(), schema.version)
                }
            }
        };
        let mut cut = TakenCut {
            positions,
            tablets: pinned.clone(),
            schema_version,
            hold: None,
        };
        if holds_all && keyspaces.is_empty() {
            match self.keep_released(vec![pinned.clone()]).await {
                Ok(hold) => cut.hold = Some(hold),
                Err(error) => {
                    self.unpin().await;
                    return Err(error);
                }
            }
        }
        let taken = ddl::change(self, |before| {
            let taken = snapshots::take(before, take, &keyspaces, &pinned, taken_ms);
            Ok(Some((taken.map_err(CqlError::invalid)?, ())))
        });
        match taken.await {
            Ok(_) => {
                tracing::info!(snapshot = take.tag, "a snapshot was taken");
                Ok(cut)
            }
            Err(error) => {
                self.unpin().await;
                Err(error)
            }
        }
    }

    /// Unpins all tablets that no snapshot, branch or history needs. Must be called while `pinning` is held.
    pub(super) async fn unpin(&self) {
        let of_history = match self.pinned_by_history().await {
            Ok(of_history) => of_history,
            Err(error) => {
                tracing::warn!(%error, "unused tablets stay pinned: the tablets that history needs are not known");
                return;
            }
        };
        let schema = self.schema();
        let kept = pinned_by(&schema).chain(&of_history);
        let kept: BTreeSet<Uuid> = kept.map(|of| of.checkpoint).collect();
        match self.context.store.unpin_others(&kept).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "tablets of former snapshots were unpinned"),
            Err(error) => tracing::warn!(%error, "tablets of former snapshots could not be unpinned"),
        }
    }

    /// Unpins the tablets that snapshots and branches of a former schema have pinned, if today's schema and history do not need them.
    async fn unpin_cleared(&self, before: &Schema) {
        let _taking = self.cuts.pinning.lock().await;
        let today = self.schema();
        self.close_cleared_snapshots(&today);
        let released = match self.pinned_by_released().await {
            Ok(released) => released,
            Err(error) => {
                tracing::warn!(%error, "unused tablets stay pinned: the tablets that history needs are not known");
                return;
            }
        };
        let kept = pinned_by(&today).chain(&released);
        let kept: BTreeSet<Uuid> = kept.map(|of| of.checkpoint).collect();
        let gone = pinned_by(before).filter(|of| !kept.contains(&of.checkpoint));
        let gone: BTreeMap<Uuid, &PinnedTablet> = gone.map(|of| (of.checkpoint, of)).collect();
        let gone: Vec<PinnedTablet> = gone.into_values().cloned().collect();
        if gone.is_empty() {
            return;
        }
        match self.context.store.unpin(&gone).await {
            Ok(()) => tracing::info!(count = gone.len(), "tablets of former snapshots were unpinned"),
            Err(error) => tracing::warn!(%error, "tablets of former snapshots could not be unpinned"),
        }
    }

    /// Closes the snapshots that the schema no longer has.
    fn close_cleared_snapshots(&self, schema: &Schema) {
        self.cuts.open_history.close_cleared(schema);
        self.file_sizes.forget_pinned();
    }

    /// Returns true on the one node of a cluster that does the common housekeeping.
    pub(super) fn is_housekeeper(&self) -> bool {
        self.context.owns(i64::MIN)
    }

    /// Unpins tablets of snapshots that were never written down, because their nodes ended before.
    async fn unpin_unknown(&self) {
        let _taking = self.cuts.pinning.lock().await;
        self.unpin().await;
    }

    /// Restores tables from a snapshot, on all nodes. This takes no longer than a change of the schema. A snapshot left behind by TRUNCATE,
    /// DROP or a restore still has its rows in place, and they are not touched. Pinned rows of a snapshot of tables in use become the
    /// origin of the restored tables, and are copied to them in the background.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] if there is no such snapshot, or if the restored tables conflict with the present content of the keyspace.
    /// Otherwise the schema can't be written.
    pub async fn restore_snapshot(self: &Arc<Self>, wanted: &Restore) -> Result<Restored, CqlError> {
        if let Some(literal) = &wanted.as_of {
            return Box::pin(self.restore_time(wanted, literal)).await;
        }
        let now_ms = self.now_ms();
        let begun = ddl::change(self, |schema| {
            snapshots::begin_adoption(schema, wanted, now_ms).map_err(CqlError::invalid)
        });
        let Some(adoption) = begun.await? else {
            return self.apply_restore(wanted).await;
        };
        let adopted = Restore {
            tag: Some(adoption.tag),
            ..Restore::default()
        };
        let restored = match self.know_headers(&adoption.numbers).await {
            Ok(()) => self.apply_restore(&adopted).await,
            Err(error) => Err(error),
        };
        match restored {
            Ok(restored) => Ok(Restored {
                tag: wanted.tag.clone().unwrap_or(restored.tag),
                ..restored
            }),
            Err(error) => {
                let which = Clear {
                    tag: adopted.tag,
                    ..Clear::default()
                };
                self.clear_snapshots(&which).await?;
                Err(error)
            }
        }
    }

    /// Restores tables to a point in time: takes a snapshot of that time, and restores the snapshot.
    async fn restore_time(self: &Arc<Self>, wanted: &Restore, literal: &str) -> Result<Restored, CqlError> {
        let (None, Some(keyspace)) = (&wanted.tag, &wanted.keyspace) else {
            return Err(CqlError::invalid(
                "to restore a time, name a keyspace or a table, and no snapshot",
            ));
        };
        let table = wanted.table.as_ref().map(|table| format!("{keyspace}.{table}"));
        let take = Take {
            tag: format!("as-of-{}-{}", time_of(literal)?, Uuid::new_v4().simple()),
            keyspaces: match table {
                Some(_) => Vec::new(),
                None => vec![keyspace.clone()],
            },
            tables: table.into_iter().collect(),
            ttl_ms: Some(TIME_SNAPSHOT_TTL.as_millis() as u64),
            skip_flush: false,
            as_of: wanted.as_of.clone(),
        };
        self.take_snapshot(&take).await?;
        let of_snapshot = Restore {
            tag: Some(take.tag.clone()),
            as_of: None,
            ..wanted.clone()
        };
        let restored = self.restore_snapshot(&of_snapshot).await;
        let which = Clear {
            tag: Some(take.tag),
            ..Clear::default()
        };
        // A snapshot that cannot be cleared expires.
        if let Err(error) = self.clear_snapshots(&which).await {
            tracing::warn!(%error, "the snapshot of a restored time could not be cleared");
        }
        Ok(Restored {
            tag: literal.to_owned(),
            ..restored?
        })
    }

    /// Registers tables as having partition headers if their origins have them. `numbers` are pairs of an origin and the table that begins
    /// with its rows.
    pub(super) async fn know_headers(&self, numbers: &[(TableId, TableId)]) -> Result<(), CqlError> {
        for (origin, number) in numbers {
            if self.context.hooks.headers.contains(*origin) {
                add_header_table(&self.context, *number).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn apply_restore(self: &Arc<Self>, wanted: &Restore) -> Result<Restored, CqlError> {
        let now_ms = self.now_ms();
        let ttl = self.limits().auto_snapshot.ttl;
        let restore = |schema: &_| {
            let restored = snapshots::restore(schema, wanted, now_ms, ttl);
            let (mut next, restored) = restored.map_err(CqlError::invalid)?;
            next.access = Arc::new(access::kept(schema, &next));
            let events = difference::events(schema, &next);
            Ok(Some((next, (restored, events))))
        };
        let Some((restored, events)) = ddl::change(self, restore).await? else {
            return Err(CqlError::Server("no table was restored".to_owned()));
        };
        self.schema_updates.announce(events);
        tracing::info!(
            snapshot = restored.tag,
            keyspace = restored.keyspace,
            tables = restored.tables.join(" "),
            replaced = restored.replaced,
            "tables were restored from a snapshot"
        );
        let schemas: Arc<dyn SchemaChanges> = self.clone();
        backfill::resume(&self.context, &schemas);
        adoption::resume(self);
        Ok(restored)
    }

    /// Clears snapshots, and returns their tags. Compaction later sweeps their rows.
    ///
    /// # Errors
    /// The schema can't be written.
    #[boxed]
    pub async fn clear_snapshots(&self, which: &Clear) -> Result<Vec<String>, CqlError> {
        let before = self.schema();
        let cleared = ddl::change(self, |schema| Ok(snapshots::clear(schema, which))).await?;
        let tags = cleared.unwrap_or_default();
        if !tags.is_empty() {
            tracing::info!(snapshots = tags.join(" "), "snapshots were cleared");
            self.unpin_cleared(&before).await;
        }
        Ok(tags)
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.context.clock.now_us().div_euclid(1000)
    }
}

/// Returns the tablets that snapshots and branches have pinned.
pub(super) fn pinned_by(schema: &Schema) -> impl Iterator<Item = &PinnedTablet> {
    let snapshots = schema.snapshots.values();
    let of_snapshots = snapshots.filter_map(|snapshot| snapshot.pinned.as_deref());
    let origins = schema.branches().filter_map(|table| table.origin.as_deref());
    of_snapshots
        .flatten()
        .chain(origins.flat_map(TableOrigin::all_pinned))
}

/// Removes expired snapshots in the background, as long as the engine exists.
pub(super) fn begin_expiry(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        if let Some(engine) = engine.upgrade()
            && let Err(error) = engine.clear_left_backups().await
        {
            tracing::warn!(%error, "the snapshot of an interrupted backup could not be removed yet");
        }
        let mut unpinned: Option<Instant> = None;
        let mut known = engine.upgrade().map(|engine| engine.schema());
        loop {
            let Some(engine) = engine.upgrade() else { return };
            if unpinned.is_none_or(|at| at.elapsed() >= UNPIN_INTERVAL) && engine.is_housekeeper() {
                unpinned = Some(Instant::now());
                engine.unpin_unknown().await;
                adoption::resume(&engine);
            }
            // Branches may have been dropped or truncated, or may have copied all rows. Their pinned tablets are then no longer needed.
            let schema = engine.schema();
            if let Some(before) = known.replace(schema.clone())
                && !Arc::ptr_eq(&before, &schema)
            {
                engine.close_cleared_snapshots(&schema);
                if engine.is_housekeeper() {
                    engine.unpin_cleared(&before).await;
                }
            }
            if let Err(error) = expire(&engine).await {
                tracing::warn!(%error, "expired snapshots could not be removed");
            }
            drop(engine);
            tokio::time::sleep(EXPIRY_INTERVAL).await;
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
        engine.unpin_cleared(&schema).await;
    }
    Ok(())
}

#[cfg(test)]
#[path = "snapshots_tests.rs"]
mod tests;
