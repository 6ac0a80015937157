//! Splits and merges tablets, and deletes their remains.
//!
//! A split copies no data. Each child begins as a clone: a manifest that names the parent's SSTables, which a checkpoint in the parent's
//! manifest protects. A key begins with its table, so the tokens of a child are no range of keys, and its clone has its sibling's rows too.
//! No request reads them from it, and its compactions drop them (`only` of [`crate::database::Database`]). When compactions have replaced
//! the last of the parent's SSTables, the checkpoint is removed, and then the parent can be deleted.
//!
//! A merge has to copy, for the same reason: SlateDB joins databases of disjoint key ranges only. Only small tablets are merged.
//!
//! Remains of children are deleted before new ones are created, since they may belong to an attempt after which the parent was written to.
//! The caller must ensure that only the children of the last attempt are ever opened.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt;
use helenus_row::TokenRange;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use slatedb::WriteBatch;
use slatedb::admin::{Admin, CloneSourceSpec};
use slatedb::config::WriteOptions;

use super::Remote;
use super::tablet_logs::TabletLogs;
use crate::boxed;
use crate::bucket::subfolders::subfolders;
use crate::error::{StoreError, chain, from_slatedb};
use crate::metadata::slatedb_layout::tablet_path;
use crate::store::Store;
use crate::tablet::{NodeLog, Tablet};

/// Bytes of rows that a merge copies in one batch.
const COPY_BYTES: usize = 1 << 20;

impl Store {
    /// Splits an open tablet in two. The parent is closed, and the children exist durably and are not open. They must have the parent's
    /// tokens between them. Rows are not copied.
    ///
    /// # Errors
    /// The parent is open as before, if that is possible, and no child may be opened.
    pub async fn split_tablet(
        self: &Arc<Self>,
        parent: u32,
        children: [(u32, TokenRange); 2],
    ) -> Result<(), StoreError> {
        let remote = self.remote()?;
        let tablet = self.open_tablet_of(parent)?;
        let tokens = tablet.token_range();
        let [(left, lower), (right, upper)] = children;
        let fits = lower.first == tokens.first
            && lower.last >= lower.first
            && lower.last.checked_add(1) == Some(upper.first)
            && upper.last >= upper.first
            && upper.last == tokens.last;
        if !fits {
            return Err(StoreError::InvalidConfig(format!(
                "tablets {left} and {right} do not have the tokens of tablet {parent} between them"
            )));
        }
        let made = async {
            tablet.flush().await?;
            self.close_tablet(parent).await?;
            remote.check_flushed(parent).await?;
            for child in [left, right] {
                remote.delete(child).await?;
                remote.clone_tablet(parent, child).await?;
            }
            Ok(())
        };
        self.or_open_again(made.await, &[(parent, tokens)]).await
    }

    /// Merges open neighbours, given in the order of their tokens, into one tablet. The neighbours are closed, and the child exists durably
    /// and is not open. No request is served while its rows are copied, so only small tablets should be merged.
    ///
    /// # Errors
    /// The parents are opened again, if possible, and no child may be opened.
    pub async fn merge_tablets(
        self: &Arc<Self>,
        parents: &[u32],
        child: (u32, TokenRange),
    ) -> Result<(), StoreError> {
        let remote = self.remote()?;
        let (id, tokens) = child;
        let mut sources = Vec::new();
        let mut next = Some(tokens.first);
        for parent in parents {
            let tablet = self.open_tablet_of(*parent)?;
            if next != Some(tablet.token_range().first) {
                next = None;
                break;
            }
            next = tablet.token_range().last.checked_add(1);
            sources.push(tablet);
        }
        if sources.is_empty() || next != tokens.last.checked_add(1) || sources.len() != parents.len() {
            return Err(StoreError::InvalidConfig(format!(
                "tablet {id} would not have the tokens of tablets {parents:?}"
            )));
        }
        let ranges: Vec<(u32, TokenRange)> = sources
            .iter()
            .map(|tablet| (tablet.id(), tablet.token_range()))
            .collect();
        let made = async {
            remote.delete(id).await?;
            for source in &sources {
                source.stop_writes().await;
            }
            let copied = remote.copy(&sources, id, tokens).await;
            for source in &sources {
                self.close_tablet(source.id()).await?;
            }
            copied
        };
        self.or_open_again(made.await, &ranges).await
    }

    /// Deletes the remains of a tablet that was split, merged, or partly created. Returns false if other tablets still read from it. A
    /// tablet that does not exist is no error, but an open one is.
    #[boxed]
    pub async fn remove_tablet(&self, id: u32) -> Result<bool, StoreError> {
        if self.open_tablet_of(id).is_ok() {
            return Err(StoreError::InvalidConfig(format!("tablet {id} is open")));
        }
        let remote = self.remote()?;
        let admin = remote.admin(id);
        let manifest = admin
            .read_manifest(None)
            .await
            .map_err(|error| from_slatedb(&error))?;
        let now = slatedb_common::clock::SystemClock::now(remote.databases.clock.as_ref());
        let is_needed = manifest.is_some_and(|manifest| {
            let mut checkpoints = manifest.checkpoints().iter();
            checkpoints.any(|checkpoint| checkpoint.expire_time.is_none_or(|expires| expires > now))
        });
        if is_needed {
            return Ok(false);
        }
        remote.delete(id).await.map(|()| true)
    }

    /// Returns the tablets that have any objects in the bucket.
    #[boxed]
    pub async fn stored_tablets(&self) -> Result<Vec<u32>, StoreError> {
        let store = self.remote()?.store.as_ref();
        let mut ids: Vec<u32> = subfolders(store, &Path::from("tablets")).await?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// Stops serving a tablet, whatever its state, without waiting for the object store. Writes in progress fail with an unknown outcome,
    /// or take effect. A tablet that is being opened will not be served.
    pub fn abandon_tablet(&self, id: u32) -> Result<(), StoreError> {
        let mut times = self.remote()?.abandoned.lock();
        *times.entry(id).or_default() += 1;
        if let Ok(tablet) = self.open_tablet_of(id) {
            tablet.accepts_writes.store(false, Ordering::Release);
            self.remove(&tablet);
            let remote = self.remote()?;
            remote.logs_of.lock().remove(&id);
            remote.serving.spawn(tablet.close_unserved());
        }
        Ok(())
    }

    fn open_tablet_of(&self, id: u32) -> Result<Arc<Tablet>, StoreError> {
        let tablets = self.tablets.load();
        let found = tablets.iter().find(|tablet| tablet.id() == id);
        found
            .cloned()
            .ok_or_else(|| StoreError::InvalidConfig(format!("tablet {id} is not open")))
    }

    async fn or_open_again(
        self: &Arc<Self>,
        made: Result<(), StoreError>,
        parents: &[(u32, TokenRange)],
    ) -> Result<(), StoreError> {
        if made.is_err() {
            for (id, tokens) in parents {
                self.open_tablet(*id, *tokens).await?;
            }
        }
        made
    }
}

impl Remote {
    fn admin(&self, id: u32) -> Admin {
        Admin::builder(tablet_path(id), self.store.clone()).build()
    }

    /// Deletes a tablet, even if only single objects of it are left. A process that was paused during an earlier deletion may have written
    /// such objects. Without a manifest, SlateDB deletes only a folder with a marker.
    async fn delete(&self, id: u32) -> Result<(), StoreError> {
        TabletLogs::delete(&self.store, id).await?;
        let admin = self.admin(id);
        let failed = |error: slatedb::Error| from_slatedb(&error);
        if admin.read_manifest(None).await.map_err(failed)?.is_none() && self.is_stored(id).await? {
            let marker = tablet_path(id).join(".deleting");
            let marked = self.store.put(&marker, PutPayload::new()).await;
            marked.map_err(|error| StoreError::Unavailable(chain(&error)))?;
        }
        admin.delete_db(true).await.map(|_| ()).map_err(failed)
    }

    async fn is_stored(&self, id: u32) -> Result<bool, StoreError> {
        let found = self.store.list(Some(&tablet_path(id))).next().await.transpose();
        let found = found.map_err(|error| StoreError::Unavailable(chain(&error)))?;
        Ok(found.is_some())
    }

    async fn clone_tablet(&self, parent: u32, child: u32) -> Result<(), StoreError> {
        let source = CloneSourceSpec::new(tablet_path(parent));
        let clone = self.admin(child).create_clone_builder_from_source(source);
        clone
            .with_object_store(self.store.clone())
            .with_system_clock(self.databases.clock.clone())
            .build()
            .await
            .map_err(|error| from_slatedb(&error))
    }

    /// Refuses a tablet whose log has records that are in no SSTable, because a clone would lack them.
    async fn check_flushed(&self, id: u32) -> Result<(), StoreError> {
        match TabletLogs::read(&self.store, id).await?.logs.is_empty() {
            true => Ok(()),
            false => Err(StoreError::Unavailable(format!(
                "tablet {id} could not be flushed"
            ))),
        }
    }

    /// Copies the rows of tablets that take no more writes into a new one.
    pub(super) async fn copy(
        &self,
        sources: &[Arc<Tablet>],
        id: u32,
        tokens: TokenRange,
    ) -> Result<(), StoreError> {
        let (target, _) = self.build(id, tokens, self.initial.len(), NodeLog::new()).await?;
        // Rows are copied after the header that deletes them. That header must not be purged before all of them are copied.
        target.compactions.write_times.end();
        let copied = copy_rows(sources, &target).await;
        let written = match copied {
            Ok(()) => target.write_memtable().await,
            Err(error) => Err(error),
        };
        target.stage.close();
        let closed = target.db.owned()?.close().await;
        written.and(closed.map_err(|error| from_slatedb(&error)))
    }
}

/// Writes the rows of `sources` to the database of `target`, bypassing its log and its memory.
async fn copy_rows(sources: &[Arc<Tablet>], target: &Tablet) -> Result<(), StoreError> {
    let mut seqnum = 0;
    let mut batch = WriteBatch::new();
    let mut bytes = 0;
    for source in sources {
        let mut rows = source.scan(.., false).await?;
        while let Some((key, row)) = rows.next().await? {
            // Other rows belong to a sibling, and the tablet's compactions have not dropped them yet.
            let token = source.model.token_of(&key);
            if !token.is_some_and(|token| source.token_range().contains(token)) {
                continue;
            }
            bytes += key.len() + row.len();
            if let Some((key, tombstones)) = source.model.archive(&key, &row)? {
                batch.merge(key, tombstones);
            }
            batch.merge(&key, &row);
            if bytes >= COPY_BYTES {
                seqnum += 1;
                write(target, std::mem::take(&mut batch), seqnum).await?;
                bytes = 0;
            }
        }
    }
    match bytes {
        0 => Ok(()),
        _ => write(target, batch, seqnum + 1).await,
    }
}

async fn write(target: &Tablet, batch: WriteBatch, seqnum: u64) -> Result<(), StoreError> {
    let db = target.db.owned()?;
    let written = db.write_with_options(batch, &WriteOptions { seqnum }).await;
    written.map(|_| ()).map_err(|error| from_slatedb(&error))
}
