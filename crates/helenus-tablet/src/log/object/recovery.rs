//! Fences the log of another process, and reads it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use super::LogId;
use super::format::{Group, LogObject, decode, encode_fence, log_folder, log_path, number_of};
use crate::error::{StoreError, chain};

/// Objects that are read concurrently.
const READS: usize = 64;
/// Retries of a fence's PUT, and the pause between them.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A log to which nothing can be appended any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FencedLog {
    pub id: LogId,
    /// The number of the fence.
    pub end: u64,
}

/// Group commits of a log, each with the number of its object.
pub(crate) type LogObjects = Vec<(u64, Group)>;

fn unavailable(error: &Error) -> StoreError {
    StoreError::Unavailable(chain(error))
}

fn corrupt(id: LogId, number: u64, detail: &str) -> StoreError {
    StoreError::Corrupt {
        file: log_path(id, number).to_string(),
        detail: detail.to_owned(),
    }
}

/// Returns the numbers of a log's existing objects, ascending.
pub(crate) async fn numbers(store: &dyn ObjectStore, id: LogId) -> Result<Vec<u64>, StoreError> {
    let listed = store.list(Some(&log_folder(Some(id))));
    let found: Vec<_> = listed.try_collect().await.map_err(|error| unavailable(&error))?;
    let mut numbers: Vec<u64> = found
        .iter()
        .filter_map(|object| number_of(&object.location))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

async fn get(store: &dyn ObjectStore, id: LogId, number: u64) -> Result<LogObject, StoreError> {
    let bytes = match store.get(&log_path(id, number)).await {
        Ok(found) => found.bytes().await.map_err(|error| unavailable(&error))?,
        Err(Error::NotFound { .. }) => return Err(corrupt(id, number, "the object is missing")),
        Err(error) => return Err(unavailable(&error)),
    };
    decode_or_fail(&bytes, id, number)
}

fn decode_or_fail(bytes: &Bytes, id: LogId, number: u64) -> Result<LogObject, StoreError> {
    decode(bytes, id, number).ok_or_else(|| {
        corrupt(
            id,
            number,
            "the object does not match its checksum, or is not of this log",
        )
    })
}

/// Fences a log, so that nothing more can be appended to it.
///
/// # Errors
/// [`StoreError::Corrupt`] if the log has no objects.
pub(crate) async fn fence(
    store: &Arc<dyn ObjectStore>,
    id: LogId,
    time_ms: i64,
) -> Result<FencedLog, StoreError> {
    let Some(last) = numbers(store, id).await?.last().copied() else {
        return Err(corrupt(id, 1, "the log is missing"));
    };
    if is_fence(store, id, last).await? {
        return Ok(FencedLog { id, end: last });
    }
    let mut next = last + 1;
    let mut failures = 0;
    loop {
        let options = PutOptions::from(PutMode::Create);
        let path = log_path(id, next);
        match store
            .put_opts(&path, encode_fence(id, next, time_ms), options)
            .await
        {
            Ok(_) => return Ok(FencedLog { id, end: next }),
            // The existing object is a late group, or the fence of another node.
            Err(Error::AlreadyExists { .. }) => match get(store, id, next).await {
                Ok(LogObject::Fence) => return Ok(FencedLog { id, end: next }),
                Ok(LogObject::Group(_)) => {
                    next += 1;
                    continue;
                }
                // S3 may refuse both of two simultaneous PUTs, so the object may be missing. The PUT is retried.
                Err(StoreError::Corrupt { .. }) if failures < ATTEMPTS => {}
                Err(error) => return Err(error),
            },
            Err(error) if failures >= ATTEMPTS => return Err(unavailable(&error)),
            Err(_) => {}
        }
        failures += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns true if object `number` of a log is its fence.
pub(crate) async fn is_fence(store: &dyn ObjectStore, id: LogId, number: u64) -> Result<bool, StoreError> {
    Ok(get(store, id, number).await? == LogObject::Fence)
}

/// Returns the groups of a log from `from` to `up_to`. Groups that are not needed any more may be missing.
///
/// # Errors
/// [`StoreError::Corrupt`] if a needed group is missing or damaged.
pub(crate) async fn read(
    store: &Arc<dyn ObjectStore>,
    id: LogId,
    from: u64,
    up_to: u64,
) -> Result<LogObjects, StoreError> {
    if up_to < from {
        return Ok(Vec::new());
    }
    let there = numbers(store, id).await?;
    let wanted = there.iter().copied();
    let wanted = wanted.filter(|number| (from..=up_to).contains(number)).collect();
    let groups = read_some(store, id, wanted).await?;
    let of_these = groups.last().map_or(from, |(_, newest)| newest.first);
    // If the log continues after `up_to`, its front may have been deleted since.
    let later = first_needed(store, id, &there, up_to).await?.unwrap_or(from);
    check_all_there(id, from.max(of_these).max(later), up_to, &groups)?;
    Ok(groups)
}

/// Returns the oldest object that was needed when the newest group of a log was written. `None` if there is no group after `up_to`.
async fn first_needed(
    store: &Arc<dyn ObjectStore>,
    id: LogId,
    there: &[u64],
    up_to: u64,
) -> Result<Option<u64>, StoreError> {
    let later = there.iter().rev().take_while(|number| **number > up_to);
    // The last object may be a fence, so the group before it is needed.
    for number in later {
        if let LogObject::Group(group) = get(store, id, *number).await? {
            return Ok(Some(group.first));
        }
    }
    Ok(None)
}

/// Returns the groups in the given objects of a log.
///
/// # Errors
/// [`StoreError::Corrupt`] if one of the objects is missing or damaged.
pub(crate) async fn read_some(
    store: &Arc<dyn ObjectStore>,
    id: LogId,
    wanted: Vec<u64>,
) -> Result<LogObjects, StoreError> {
    let reads = futures::stream::iter(wanted).map(|number| async move {
        let object = get(store, id, number).await?;
        Ok::<_, StoreError>((number, object))
    });
    let objects: Vec<(u64, LogObject)> = reads.buffered(READS).try_collect().await?;
    let groups = objects.into_iter().filter_map(|(number, object)| match object {
        LogObject::Group(group) => Some((number, group)),
        LogObject::Fence => None,
    });
    Ok(groups.collect())
}

/// Checks that all objects from `first` to `up_to` were read.
fn check_all_there(id: LogId, first: u64, up_to: u64, groups: &LogObjects) -> Result<(), StoreError> {
    let mut there = groups.iter().map(|(number, _)| *number).peekable();
    for number in first..=up_to {
        while there.next_if(|found| *found < number).is_some() {}
        if there.next_if_eq(&number).is_none() {
            return Err(corrupt(
                id,
                number,
                "the object is missing, and those around it are there",
            ));
        }
    }
    Ok(())
}
