//! Copies a store from a local folder into a bucket.
//!
//! Tablets keep their numbers and ranges. Each is read back from the bucket and compared with its source. The object that marks the bucket
//! as a store is written last, so that an incomplete copy is not a store.

use std::sync::Arc;

use crc_fast::{CrcAlgorithm, Digest};
use helenus_row::TokenRange;

use super::open::{LogPlaces, assemble};
use crate::bucket::connection::Bucket;
use crate::bucket::{check, format};
use crate::config::{StoreConfig, StoreUrl};
use crate::data_model::DataModel;
use crate::error::{StoreError, from_slatedb};
use crate::metadata::documents::MetaExpect;
use crate::metadata::format::Format;
use crate::store::Store;
use crate::tablet::{NodeLog, Tablet};

/// Count and checksum of a tablet's rows, which are equal in source and bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    pub tablet: u32,
    pub tokens: TokenRange,
    pub rows: u64,
    /// Bytes of keys and merged rows.
    pub bytes: u64,
    /// CRC-64 of the keys and rows in order.
    pub checksum: u64,
}

/// Copies the local store of `from` into the bucket of `to`. No process may have the source open, and the bucket must be empty below the
/// URL's prefix. `progress` is called for each tablet that was copied and compared.
pub async fn migrate(
    from: StoreConfig,
    to: StoreConfig,
    model: Arc<dyn DataModel>,
    mut progress: impl FnMut(Copied),
) -> Result<(), StoreError> {
    let refuse = |text: String| Err(StoreError::InvalidConfig(text));
    let (StoreUrl::File(folder), StoreUrl::Remote(url)) = (&from.url, &to.url) else {
        return refuse(format!(
            "from {} to {}: a store is copied from a local folder into a bucket",
            from.url, to.url
        ));
    };
    if !folder.join("FORMAT").exists() {
        return refuse(format!("there is no store in {}", folder.display()));
    }
    let bucket = Bucket::connect(url)?;
    check::check(&bucket).await?;
    if format::load(&bucket).await?.is_some() {
        return refuse(format!("{url} holds a store already"));
    }
    format::refuse_remains(&bucket).await?;

    let source = Store::open(from, model.clone()).await?;
    let ranges: Vec<(u32, TokenRange)> = source
        .tablets()
        .iter()
        .map(|tablet| (tablet.id(), tablet.token_range()))
        .collect();
    let format = Format::of(ranges).in_bucket();
    let target = assemble(
        &bucket,
        LogPlaces::default(),
        None,
        to,
        model,
        &format,
        format.store_id,
    )?;
    let copied = copy(&source, &target, &mut progress).await;
    let closed = source.close().await;
    copied.and(closed)?;
    format::create(&bucket, &format).await?;
    target.close().await
}

async fn copy(
    source: &Arc<Store>,
    target: &Arc<Store>,
    progress: &mut impl FnMut(Copied),
) -> Result<(), StoreError> {
    let remote = target.remote()?;
    for tablet in source.tablets().iter() {
        let (id, tokens) = (tablet.id(), tablet.token_range());
        remote.copy(std::slice::from_ref(tablet), id, tokens).await?;
        let expected = summed(tablet).await?;
        // A reopened tablet has only the data that is in the bucket.
        let (there, _) = remote.build(id, tokens, 1, NodeLog::new()).await?;
        let found = summed(&there).await;
        there.stage.close();
        let closed = there.db.owned()?.close().await;
        let closed = closed.map_err(|error| from_slatedb(&error));
        let found = found?;
        closed?;
        if found != expected {
            return Err(StoreError::Corrupt {
                file: format!("tablets/{id}"),
                detail: format!(
                    "the copy has {} rows with checksum {:016x}, the source {} with {:016x}",
                    found.rows, found.checksum, expected.rows, expected.checksum
                ),
            });
        }
        progress(found);
    }
    for name in source.meta_list().await? {
        if let Some(document) = source.meta_get(&name).await? {
            target.meta_put(&name, &document.content, MetaExpect::Any).await?;
        }
    }
    Ok(())
}

async fn summed(tablet: &Tablet) -> Result<Copied, StoreError> {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    let mut copied = Copied {
        tablet: tablet.id(),
        tokens: tablet.token_range(),
        rows: 0,
        bytes: 0,
        checksum: 0,
    };
    let mut rows = tablet.scan(.., false).await?;
    while let Some((key, row)) = rows.next().await? {
        // The copy has archived the tombstones of rows in memory, as a flush would have.
        if tablet.model.is_archive(&key) {
            continue;
        }
        copied.rows += 1;
        copied.bytes += (key.len() + row.len()) as u64;
        for part in [&key, &row] {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    copied.checksum = digest.finalize();
    Ok(copied)
}
