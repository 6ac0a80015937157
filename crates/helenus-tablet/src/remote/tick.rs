//! How far the clock of a tablet's former owner had come.
//!
//! SlateDB stamps what it stores and refuses to go back in time. Nodes' clocks differ, so a tablet's new owner holds its own at the
//! last stamp that it finds, in the manifest or in the newest object of the log.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::ObjectStore;
use slatedb::admin::Admin;
use slatedb::wal::{SlateDbWalReaderBuilder, WalFileRange, WalReader};

use crate::clock::StoreClock;
use crate::database::tablet_path;
use crate::error::{StoreError, chain};

/// The number of the last object of a tablet's log, or `after` if there is none behind that. One listing tells it.
async fn last_object(log: &Arc<dyn ObjectStore>, id: u32, after: u64) -> Result<u64, StoreError> {
    let folder = tablet_path(id).join("wal");
    let begin = folder.clone().join(format!("{after:020}.sst"));
    let found: Vec<_> = log
        .list_with_offset(Some(&folder), &begin)
        .try_collect()
        .await
        .map_err(|error| StoreError::Unavailable(chain(&error)))?;
    let number =
        |object: &object_store::ObjectMeta| object.location.filename()?.strip_suffix(".sst")?.parse().ok();
    let last = found.iter().filter_map(number).max();
    Ok(last.unwrap_or(after).max(after))
}

/// Raises the clock to the last stamp of a tablet. What its owner stamps meanwhile is ahead by less than a read takes.
pub(super) async fn raise(
    clock: &StoreClock,
    store: &Arc<dyn ObjectStore>,
    log: &Arc<dyn ObjectStore>,
    id: u32,
) -> Result<(), StoreError> {
    let admin = Admin::builder(tablet_path(id), store.clone()).build();
    let manifest = admin
        .read_manifest(None)
        .await
        .map_err(|error| crate::error::from_slatedb(&error))?;
    let Some(manifest) = manifest else {
        return Ok(());
    };
    clock.raise(manifest.last_l0_clock_tick());
    let after = manifest.replay_after_wal_id();
    let reader = SlateDbWalReaderBuilder::new()
        .with_path(tablet_path(id))
        .with_object_store(store.clone())
        .with_wal_object_store(log.clone())
        .build()
        .map_err(|error| crate::error::from_slatedb(&error))?;
    let failed = |error: slatedb::wal::WalError| StoreError::Unavailable(error.to_string());
    let last = last_object(log, id, after).await?;
    // The last one may be a fence, which holds nothing.
    let from = last.saturating_sub(2).max(after) + 1;
    if from > last {
        return Ok(());
    }
    let mut rows = reader
        .iterator(WalFileRange::from(from..last + 1))
        .await
        .map_err(failed)?;
    while let Some(rows) = rows.next().await.map_err(failed)? {
        if let Some(tick) = rows.rows.iter().filter_map(|row| row.create_ts).max() {
            clock.raise(tick);
        }
    }
    Ok(())
}
