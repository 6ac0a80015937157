//! Raises a node's store clock to the last timestamp of a tablet's former owner.
//!
//! SlateDB stamps its entries and refuses timestamps that go back. Clocks of nodes differ. The new owner of a tablet therefore raises its
//! clock to the last timestamp in the manifest or in the newest object of the log.

use std::sync::Arc;

use object_store::ObjectStore;
use slatedb::manifest::VersionedManifest;
use slatedb::wal::{SlateDbWalReaderBuilder, WalFileRange, WalReader};

use crate::bucket::log_listing_cache::LogNumber;
use crate::clock::StoreClock;
use crate::error::{StoreError, from_slatedb};
use crate::metadata::slatedb_layout::tablet_path;

/// Raises the clock to the last stamp of a tablet that has just been opened, and has not been written to since. `newest` is the newest object
/// of its log that holds anything.
pub(crate) async fn raise(
    clock: &StoreClock,
    log: &Arc<dyn ObjectStore>,
    id: u32,
    manifest: &VersionedManifest,
    newest: Option<LogNumber>,
) -> Result<(), StoreError> {
    clock.raise(manifest.last_l0_clock_tick());
    let Some(newest) = newest else {
        return Ok(());
    };
    let reader = SlateDbWalReaderBuilder::new()
        .with_path(tablet_path(id))
        .with_object_store(log.clone())
        .build()
        .map_err(|error| from_slatedb(&error))?;
    let failed = |error: slatedb::wal::WalError| StoreError::Unavailable(error.to_string());
    let mut rows = reader
        .iterator(WalFileRange::from(newest..newest + 1))
        .await
        .map_err(failed)?;
    while let Some(rows) = rows.next().await.map_err(failed)? {
        if let Some(tick) = rows.rows.iter().filter_map(|row| row.create_ts).max() {
            clock.raise(tick);
        }
    }
    Ok(())
}
