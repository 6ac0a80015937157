//! The node's log as the WAL of one tablet's database: its "files" are log records, which are on disk before a batch is applied.
//!
//! A WAL file id is a log sequence number, and so is SlateDB's sequence number of a batch (that of the last record in it). A frozen
//! memtable therefore holds exactly the records up to the id in its manifest entry. Later records are replayed into the tablet's own memory
//! ([`crate::store::local`]); SlateDB has nothing to replay.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use slatedb::RowEntry;
use slatedb::manifest::VersionedManifest;
use slatedb::wal::{
    WalError, WalEvent, WalFlushResult, WalIterator, WalObserver, WalRows, WalStatus, WalStatusListener,
    WalWriter, WriterInit, WriterInitResult, WriterManifest,
};

use crate::clock::StoreClock;

struct WalState {
    status: WalStatus,
    listeners: Vec<WalStatusListener>,
}

/// A tablet's position in the log.
#[derive(Clone)]
pub(crate) struct TabletWal(Arc<Mutex<WalState>>);

impl TabletWal {
    pub fn new() -> Self {
        TabletWal(Arc::new(Mutex::new(WalState {
            status: WalStatus {
                closed_reason: None,
                estimated_bytes: 0,
                last_flushed_wal_id: 0,
                last_flushed_seq: None,
                buffered_wal_entries_count: 0,
            },
            listeners: Vec::new(),
        })))
    }

    /// Returns the highest record number that this tablet has applied, or reserved in its manifest.
    pub fn last_lsn(&self) -> u64 {
        self.0.lock().status.last_flushed_wal_id
    }

    fn raise(&self, lsn: u64) {
        let mut state = self.0.lock();
        state.status.last_flushed_wal_id = state.status.last_flushed_wal_id.max(lsn);
    }

    fn status(&self) -> Result<WalStatus, WalStatus> {
        let status = self.0.lock().status.clone();
        match status.closed_reason {
            None => Ok(status),
            Some(_) => Err(status),
        }
    }

    fn change(&self, change: impl FnOnce(&mut WalStatus), event: impl FnOnce(WalStatus) -> WalEvent) {
        let (status, listeners) = {
            let mut state = self.0.lock();
            change(&mut state.status);
            (state.status.clone(), state.listeners.clone())
        };
        let event = event(status);
        for listener in listeners {
            listener(event.clone());
        }
    }
}

impl WalObserver for TabletWal {
    fn status(&self) -> Result<WalStatus, WalStatus> {
        TabletWal::status(self)
    }

    fn subscribe(&self, listener: WalStatusListener) -> Result<(), WalError> {
        self.0.lock().listeners.push(listener);
        Ok(())
    }
}

struct Writer(TabletWal);

#[async_trait]
impl WalWriter for Writer {
    async fn append(&mut self, rows: &[RowEntry]) -> Result<(), WalError> {
        let Some(lsn) = rows.last().map(|row| row.seq) else {
            return Ok(());
        };
        self.0.change(
            |status| {
                status.last_flushed_wal_id = lsn;
                status.last_flushed_seq = Some(lsn);
            },
            WalEvent::WalFlushed,
        );
        Ok(())
    }

    async fn flush(&mut self) -> Result<WalFlushResult, WalError> {
        let status = self.0.status().map_err(WalError::from)?;
        Ok(WalFlushResult {
            wal_id: status.last_flushed_wal_id,
            completion: Box::pin(async { Ok(()) }),
        })
    }

    fn observer(&self) -> Box<dyn WalObserver> {
        Box::new(self.0.clone())
    }

    fn status(&self) -> Result<WalStatus, WalStatus> {
        self.0.status()
    }

    async fn close(&mut self) -> Result<(), WalError> {
        if self.0.status().is_ok() {
            self.0.change(
                |status| status.closed_reason = Some(WalError::Closed),
                WalEvent::WalClosed,
            );
        }
        Ok(())
    }
}

struct EmptyReplay;

#[async_trait]
impl WalIterator for EmptyReplay {
    async fn next(&mut self) -> Result<Option<WalRows>, WalError> {
        Ok(None)
    }
}

/// Returns the latest time among the identifiers of a manifest's files, in milliseconds since the Unix epoch. 0 if there is none.
fn newest_id_ms(manifest: &VersionedManifest) -> i64 {
    let ids = manifest
        .all_sst_views()
        .flat_map(|view| [view.id, view.sst.id.value()]);
    let newest = ids.chain(manifest.last_compacted_l0_sst_view_id()).max();
    newest.map_or(0, |id| i64::try_from(id.timestamp_ms()).unwrap_or(i64::MAX))
}

/// Opens the log for one tablet.
pub(crate) struct TabletWalInit {
    pub wal: TabletWal,
    pub clock: Arc<StoreClock>,
}

#[async_trait]
impl WriterInit for TabletWalInit {
    /// Opens the log without fencing. The lock on the folder keeps other writers out, so no fence is needed.
    async fn fence_and_init(&self, manifest: &mut WriterManifest) -> Result<WriterInitResult, WalError> {
        let after = manifest.replay_after_wal_id();
        let versioned = manifest.manifest();
        self.clock.raise(versioned.last_l0_clock_tick());
        // SlateDB refuses a file whose identifier is older than those in the manifest. They are made after the entries of their files.
        self.clock.raise(newest_id_ms(&versioned));
        let reserved = versioned.next_wal_sst_id().saturating_sub(1);
        self.wal.raise(after.max(reserved).max(versioned.last_l0_seq()));
        Ok(WriterInitResult {
            replay_iterator: Box::new(EmptyReplay),
            wal_writer: Box::new(Writer(self.wal.clone())),
        })
    }
}
