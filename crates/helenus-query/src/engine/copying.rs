//! Copies the rows of a table as of a consistent cut to another table number.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use helenus_cql::error::CqlError;
use helenus_row::{TableId, key};
use helenus_tablet::{Op, Store, Tablet};
use tokio::time::Instant;

use crate::failure::{ExecutionError, store_error};
use crate::storage::ExecutionContext;
use crate::storage::key_reads::scan_table;
use crate::storage::writes::write_anywhere;

/// Number of tablets that are copied at a time.
const TABLETS: usize = 2;
/// Bytes of rows from which on a batch is written.
const BATCH_BYTES: usize = 256 << 10;

/// Maximum time for which a batch of rows is sent to the owners of its tablets.
const PATIENCE: Duration = Duration::from_secs(60);

/// Copies all rows of table `from` in a store of pinned tablets to table `to`. Returns the number of rows. Copied rows merge with existing
/// ones. If `to` may have partition headers, the caller must have registered that before.
///
/// # Errors
/// The rows can't be read or written.
pub(super) async fn copy(
    context: &ExecutionContext,
    pinned: &Arc<Store>,
    from: TableId,
    to: TableId,
) -> Result<u64, CqlError> {
    let tablets = Vec::clone(&pinned.tablets());
    let copies = tablets
        .into_iter()
        .map(|tablet| async move { copy_tablet(context, &tablet, from, to).await });
    let copies = futures::stream::iter(copies).buffer_unordered(TABLETS);
    let counts: Vec<u64> = copies.try_collect().await?;
    Ok(counts.into_iter().sum())
}

async fn copy_tablet(
    context: &ExecutionContext,
    tablet: &Tablet,
    from: TableId,
    to: TableId,
) -> Result<u64, CqlError> {
    // After a split, a tablet may still contain rows of its sibling.
    let scan = scan_table(tablet, from).await;
    let mut scan = scan.map_err(ExecutionError::into_client_error)?;
    let mut rows = 0;
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some((key, row)) = scan.next().await.map_err(store_error)? {
        let token = key::token_of(&key)
            .ok_or_else(|| CqlError::Server(format!("a key of table {} is damaged", from.0)))?;
        let mut copied = to.0.to_be_bytes().to_vec();
        copied.extend_from_slice(key.get(copied.len()..).unwrap_or_default());
        bytes += copied.len() + row.len();
        batch.push(Op {
            token,
            key: copied.into(),
            operand: row,
        });
        rows += 1;
        if bytes >= BATCH_BYTES {
            write_anywhere(context, std::mem::take(&mut batch), Instant::now() + PATIENCE).await?;
            bytes = 0;
        }
    }
    write_anywhere(context, batch, Instant::now() + PATIENCE).await?;
    Ok(rows)
}
