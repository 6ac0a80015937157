//! Reads of merged rows by encoded key and by range of keys, on any node. The deletions of partitions and ranges are not applied;
//! [`super::row_reads`] applies them.

use std::collections::HashMap;
use std::ops::Bound;

use bytes::Bytes;
use futures::future::join_all;
use helenus_cql::error::{Consistency, CqlError};
use helenus_row::{ByteRange, TableId, key};
use helenus_tablet::{CachedRead, Scan, Tablet, TokenRange, Visit};
use tokio::time::Instant;
use uuid::Uuid;

use crate::cluster::{Backoff, Cluster, Owner, RemoteError, RemoteScan, ScanRange};
use crate::failure::{ExecutionError, read_timeout};
use crate::storage::ExecutionContext;

/// A scan of one tablet.
#[allow(clippy::large_enum_variant, reason = "one for a whole read")]
pub(crate) enum TabletScan {
    Local(Scan),
    Remote(Box<dyn RemoteScan>),
}

impl TabletScan {
    /// Returns the next key and merged row. `None` if there is none.
    ///
    /// # Errors
    /// [`ExecutionError::NotOwned`] also in the middle of the scan, if the tablet has moved to another node.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ExecutionError> {
        match self {
            TabletScan::Local(scan) => Ok(scan.next().await?),
            TabletScan::Remote(scan) => scan.next().await.map_err(read_error),
        }
    }

    /// Passes rows that need no waiting to `visit`. See [`Scan::visit_at_hand`].
    pub fn visit_at_hand(&mut self, visit: &mut dyn FnMut(&[u8], &[u8]) -> Visit) -> Option<Bytes> {
        match self {
            TabletScan::Local(scan) => scan.visit_at_hand(visit),
            TabletScan::Remote(_) => None,
        }
    }

    /// Returns true as long as [`TabletScan::mark_dead`] has an effect. See [`Scan::is_at_dead_front`].
    pub fn is_at_dead_front(&self) -> bool {
        match self {
            TabletScan::Local(scan) => scan.is_at_dead_front(),
            TabletScan::Remote(_) => false,
        }
    }

    /// Marks the last row as dead, whatever the time. See [`Scan::mark_dead`].
    pub fn mark_dead(&mut self) {
        match self {
            TabletScan::Local(scan) => scan.mark_dead(),
            TabletScan::Remote(_) => {}
        }
    }
}

/// Maps the error of a read on another node. Reads can always be tried again.
fn read_error(error: RemoteError) -> ExecutionError {
    match error {
        RemoteError::Failed(error) => ExecutionError::Failed(error),
        RemoteError::NotOwned | RemoteError::Unreachable(_) | RemoteError::NoAnswer(_) => {
            ExecutionError::NotOwned
        }
    }
}

/// The relation of a read to undecided transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// The read waits until no undecided transaction writes to the partition.
    Awaited,
    /// The partition is locked alone, so no other transaction can be undecided there.
    LockedOut,
}

/// Returns the merged row of a key, from any node. `None` if it does not exist.
pub(crate) async fn get(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    token: i64,
    key: &[u8],
    undecided: Undecided,
) -> Result<Option<Bytes>, CqlError> {
    if cluster.owner(token) == Owner::Here
        && let Ok(tablet) = context.store.tablet(token)
        && (context.writing.undecided.is_empty() || is_readable(context, token, key, undecided).await)
    {
        let read = match tablet.get_cached(key) {
            CachedRead::Hit(row) => return Ok(row),
            CachedRead::Miss(miss) => tablet.get_missed(key, miss).await,
        };
        match read.map_err(ExecutionError::from) {
            Err(ExecutionError::NotOwned) => {}
            read => return read.map_err(ExecutionError::into_client_error),
        }
    }
    // The path of a row of another node is boxed, so that the futures of other reads stay small.
    Box::pin(get_anywhere(context, cluster, token, key, undecided)).await
}

/// Waits until the partition of a key can be read here. Returns false if its tablet was closed meanwhile.
async fn is_readable(context: &ExecutionContext, token: i64, key: &[u8], undecided: Undecided) -> bool {
    undecided == Undecided::LockedOut || context.await_readable(key, TokenRange::of(token)).await.is_ok()
}

async fn get_anywhere(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    token: i64,
    key: &[u8],
    undecided: Undecided,
) -> Result<Option<Bytes>, CqlError> {
    let deadline = context.deadline();
    let mut backoff = Backoff::until(deadline, cluster);
    loop {
        let tried = match cluster.owner(token) {
            Owner::Here => get_here_if(context, token, key, undecided).await,
            Owner::Peer(node) => {
                let keys = [(token, Bytes::copy_from_slice(key))];
                let rows = cluster.get(node, &keys, deadline).await;
                rows.map(|mut rows| rows.pop().flatten()).map_err(read_error)
            }
            Owner::Unowned => Err(ExecutionError::NotOwned),
        };
        match tried {
            Err(ExecutionError::NotOwned) => {
                if !backoff.wait(cluster).await {
                    return Err(read_timeout(Consistency::One));
                }
            }
            Err(ExecutionError::Failed(error)) => return Err(error),
            Ok(row) => return Ok(row),
        }
    }
}

/// Returns the merged rows of several keys. Keys whose first attempt fails are missing in the result.
pub(crate) async fn get_many(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    keys: &[(i64, Bytes)],
) -> HashMap<Bytes, Option<Bytes>> {
    let deadline = context.deadline();
    let mut far: HashMap<Uuid, Vec<(i64, Bytes)>> = HashMap::new();
    let mut rows = HashMap::new();
    for (token, key) in keys {
        match cluster.owner(*token) {
            Owner::Peer(node) => far.entry(node).or_default().push((*token, key.clone())),
            Owner::Here => {
                if let Ok(row) = get_here(context, *token, key).await {
                    rows.insert(key.clone(), row);
                }
            }
            Owner::Unowned => {}
        }
    }
    let requested = far
        .iter()
        .map(|(node, keys)| async move { (keys, cluster.get(*node, keys, deadline).await) });
    for (keys, answer) in join_all(requested).await {
        let keys = keys.iter().map(|(_, key)| key.clone());
        rows.extend(keys.zip(answer.unwrap_or_default()));
    }
    rows
}

/// Returns the merged row of a key, from a tablet of this node.
pub(crate) async fn get_here(
    context: &ExecutionContext,
    token: i64,
    key: &[u8],
) -> Result<Option<Bytes>, ExecutionError> {
    get_here_if(context, token, key, Undecided::Awaited).await
}

async fn get_here_if(
    context: &ExecutionContext,
    token: i64,
    key: &[u8],
    undecided: Undecided,
) -> Result<Option<Bytes>, ExecutionError> {
    let tablet = context.store.tablet(token)?;
    if undecided == Undecided::Awaited {
        context.await_readable(key, TokenRange::of(token)).await?;
    }
    match tablet.get_cached(key) {
        CachedRead::Hit(row) => Ok(row),
        CachedRead::Miss(miss) => Ok(tablet.get_missed(key, miss).await?),
    }
}

/// Returns the merged row of a key on a read-only node, after it has refreshed its list of tablets. Called if the tablet is gone that the
/// node knew.
pub(crate) async fn get_refreshed(
    context: &ExecutionContext,
    token: i64,
    key: &[u8],
) -> Result<Option<Bytes>, CqlError> {
    context.store.refreshed().await;
    let found = get_here(context, token, key).await;
    found.map_err(ExecutionError::into_client_error)
}

/// Begins a scan of keys within one tablet. `None` if the tablet was split since the range was computed, so that the keys lie in several
/// tablets.
pub(crate) async fn scan(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    range: &ScanRange,
    undecided: Undecided,
) -> Result<Option<TabletScan>, CqlError> {
    let deadline = context.deadline();
    let mut backoff = Backoff::until(deadline, cluster);
    while cluster.tablet(range.tokens.first).contains(range.tokens.last) {
        match try_scan(context, cluster, range, undecided, deadline).await {
            Err(ExecutionError::NotOwned) => {
                if !backoff.wait(cluster).await {
                    return Err(read_timeout(Consistency::One));
                }
            }
            Err(ExecutionError::Failed(error)) => return Err(error),
            Ok(scan) => return Ok(Some(scan)),
        }
    }
    Ok(None)
}

async fn try_scan(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    range: &ScanRange,
    undecided: Undecided,
    deadline: Instant,
) -> Result<TabletScan, ExecutionError> {
    match cluster.owner(range.tokens.first) {
        Owner::Here => scan_here(context, range, undecided).await.map(TabletScan::Local),
        Owner::Peer(node) => {
            let scan = cluster.scan(node, range, deadline).await.map_err(read_error)?;
            Ok(TabletScan::Remote(scan))
        }
        Owner::Unowned => Err(ExecutionError::NotOwned),
    }
}

/// Begins a scan of keys within one tablet of this node.
pub(crate) async fn scan_here(
    context: &ExecutionContext,
    range: &ScanRange,
    undecided: Undecided,
) -> Result<Scan, ExecutionError> {
    let tablet = context.store.tablet(range.tokens.first)?;
    if !tablet.token_range().contains(range.tokens.last) {
        return Err(ExecutionError::NotOwned);
    }
    if undecided == Undecided::Awaited {
        context.await_readable(&range.start, range.tokens).await?;
    }
    let keys = ByteRange {
        start: range.start.clone(),
        end: range.end.clone(),
    };
    scan_tablet(&tablet, keys, range.reversed).await
}

/// Returns the tokens of the tablet in which the key `start` lies.
pub(crate) fn tokens_of(cluster: &dyn Cluster, start: &[u8]) -> TokenRange {
    cluster.tablet(first_token(start))
}

/// Returns the least token of possible keys from `start` on, in the table with which `start` begins.
fn first_token(start: &[u8]) -> i64 {
    let mut token = [0; 8];
    let given = start.get(4..).unwrap_or_default();
    token.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    i64::from_be_bytes(token) ^ i64::MIN
}

/// Returns the keys of a table with these tokens. After a split, a tablet may still hold keys with other tokens, which belong to its
/// sibling.
pub(crate) fn keys_of(table: TableId, tokens: TokenRange) -> ByteRange {
    key::token_range(table, Bound::Included(tokens.first), Bound::Included(tokens.last))
}

/// Begins a scan of a table's rows in an open tablet.
pub(crate) async fn scan_table(tablet: &Tablet, table: TableId) -> Result<Scan, ExecutionError> {
    scan_tablet(tablet, keys_of(table, tablet.token_range()), false).await
}

/// Begins a scan of keys in an open tablet.
pub(crate) async fn scan_tablet(
    tablet: &Tablet,
    range: ByteRange,
    reversed: bool,
) -> Result<Scan, ExecutionError> {
    let end = range.end.map_or(Bound::Unbounded, Bound::Excluded);
    Ok(tablet.scan((Bound::Included(range.start), end), reversed).await?)
}
