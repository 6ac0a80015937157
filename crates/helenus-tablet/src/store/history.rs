//! What a store keeps of the past ([`crate::history`]): how far its logs are at a moment, and what they have from there on until a time.
//!
//! A log is read where it is: its newest part in the log itself, and what came before in chunks. A part is only deleted from the log when its chunk is
//! there, so the log is listed first.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use uuid::Uuid;

use super::pinned::TabletFiles;
use super::{Store, StoreKind};
use crate::error::{StoreError, chain};
use crate::history::{self, Frame, HistoryPosition, Segments, archive};
use crate::log::LogPosition;
use crate::log::object::{Group, LogObjects};
use crate::operation::Op;
use crate::store::local::maintenance::archived_segment;

/// Chunks and documents that are read at a time, and logs that are listed.
const READS: usize = 8;
/// How often a log is read again that was cut meanwhile.
const ATTEMPTS: u32 = 3;

/// Operations that were written from a moment on.
#[derive(Debug, Default)]
pub struct HistoryOps {
    pub ops: Vec<Op>,
    /// The commits that have been read.
    pub frames: u64,
}

impl Store {
    /// Whether the log is kept.
    pub fn keeps_history(&self) -> bool {
        match &self.kind {
            StoreKind::Local(local) => local.databases.config.keeps_history,
            StoreKind::Remote(remote) => remote.databases().config.keeps_history,
            StoreKind::Pinned(_) => false,
        }
    }

    /// How far all logs of a store in a bucket are, those of former processes too; without what is just being written.
    ///
    /// # Errors
    /// The bucket can't be read.
    pub async fn history_positions(&self) -> Result<Vec<HistoryPosition>, StoreError> {
        match &self.kind {
            StoreKind::Remote(remote) => remote.log_positions().await,
            StoreKind::Local(_) | StoreKind::Pinned(_) => Ok(Vec::new()),
        }
    }

    /// What all logs have of some tables that is not before these positions and was committed up to that time, in the order of each log. A log that
    /// is not among the positions has begun after them.
    ///
    /// # Errors
    /// A part is missing or damaged.
    pub async fn history_since(
        &self,
        positions: &[HistoryPosition],
        until_ms: i64,
        tables: &BTreeSet<u32>,
    ) -> Result<HistoryOps, StoreError> {
        let from: BTreeMap<Uuid, LogPosition> = positions
            .iter()
            .map(|position| (position.log, position.at()))
            .collect();
        let mut found = HistoryOps::default();
        for log in self.logs_of_history().await? {
            let span = Span {
                log,
                from: from.get(&log).copied().unwrap_or_default(),
                until_ms,
            };
            let mut failures = 0;
            let of_log = loop {
                match self.ops_of_log(&span, tables).await {
                    Ok(found) => break found,
                    // A segment may be cut off the log between the look at it and the reading, and is in a chunk then.
                    Err(error) if failures >= ATTEMPTS => return Err(error),
                    Err(_) => failures += 1,
                }
            };
            found.frames += of_log.frames;
            found.ops.extend(of_log.ops);
        }
        Ok(found)
    }

    async fn logs_of_history(&self) -> Result<BTreeSet<Uuid>, StoreError> {
        let files = self.files()?;
        let mut logs: BTreeSet<Uuid> = match &self.kind {
            StoreKind::Remote(remote) => remote.all_logs().await?.into_iter().collect(),
            StoreKind::Local(_) | StoreKind::Pinned(_) => BTreeSet::from([self.store_id]),
        };
        logs.extend(archive::logs(files.objects.as_ref()).await?);
        Ok(logs)
    }

    async fn ops_of_log(&self, span: &Span, tables: &BTreeSet<u32>) -> Result<HistoryOps, StoreError> {
        let TabletFiles {
            objects, databases, ..
        } = self.files()?;
        let wants = |op: &Op| tables.contains(&databases.model.table_of(&op.key));
        let Span { log, from, until_ms } = *span;
        // Before the chunks are listed: what is deleted meanwhile is in one.
        let listed = self.segments_in_log(log, from).await?;
        let mut chunks = archive::chunks(objects.as_ref(), log).await?;
        chunks.retain(|(name, _)| name.last >= from.segment);
        let archived = chunks.iter().map(|(name, _)| name.last).max().unwrap_or_default();
        // A clock may have been set back in between, so a chunk that begins later does not end the search.
        let wanted = chunks.iter().rposition(|(name, _)| name.earliest_ms <= until_ms);
        let is_whole = wanted.is_none_or(|last| last + 1 == chunks.len());
        chunks.truncate(wanted.map_or(0, |last| last + 1));
        let mut ops = SpanOps::new(span);
        let reading = chunks
            .iter()
            .map(|(_, path)| archive::read(objects.as_ref(), path));
        let reading: Vec<_> = reading.collect();
        let mut parts = futures::stream::iter(reading).buffered(READS);
        while let Some(part) = parts.next().await {
            ops.add(part?, &wants)?;
        }
        if is_whole {
            for part in self.read_in_log(log, listed, archived).await? {
                ops.add(part, &wants)?;
            }
        }
        Ok(ops.found)
    }

    /// The segments or objects that are in a log, each with where it ends.
    async fn segments_in_log(&self, log: Uuid, from: LogPosition) -> Result<Vec<(u64, u64)>, StoreError> {
        match &self.kind {
            StoreKind::Local(local) if log == self.store_id => {
                let segments = local.log.ledger.segments.lock();
                let segments = segments.iter().map(|segment| (segment.number, segment.bytes));
                Ok(segments.filter(|(number, _)| *number >= from.segment).collect())
            }
            StoreKind::Remote(remote) => {
                let mut numbers = remote.log_numbers(log).await?;
                numbers.retain(|number| *number >= from.segment);
                Ok(numbers.into_iter().map(|number| (number, u64::MAX)).collect())
            }
            StoreKind::Local(_) | StoreKind::Pinned(_) => Ok(Vec::new()),
        }
    }

    /// Reads segments that were listed, those after `archived`.
    async fn read_in_log(
        &self,
        log: Uuid,
        mut listed: Vec<(u64, u64)>,
        archived: u64,
    ) -> Result<Vec<Segments>, StoreError> {
        listed.retain(|(number, _)| *number > archived);
        match &self.kind {
            StoreKind::Local(local) => {
                let folder = local.maintenance.folder.path.clone();
                let reading = tokio::task::spawn_blocking(move || {
                    let read = |(number, end)| archived_segment(&folder, number, end);
                    listed
                        .into_iter()
                        .map(read)
                        .collect::<Result<Vec<Segments>, StoreError>>()
                });
                reading
                    .await
                    .map_err(|error| StoreError::Unavailable(error.to_string()))?
            }
            StoreKind::Remote(remote) => {
                let numbers = listed.into_iter().map(|(number, _)| number).collect();
                Ok(remote.read_for_history(log, numbers).await?.into_iter().collect())
            }
            StoreKind::Pinned(_) => Ok(Vec::new()),
        }
    }

    /// Deletes what is kept of logs from before that time; how many chunks.
    ///
    /// # Errors
    /// The store can't be written to.
    pub async fn trim_history(&self, before_ms: i64) -> Result<usize, StoreError> {
        archive::delete_before(&self.files()?.objects, before_ms).await
    }

    /// The bytes of what is kept of logs.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn history_bytes(&self) -> Result<u64, StoreError> {
        archive::bytes(self.files()?.objects.as_ref()).await
    }

    /// Writes a document of the history.
    ///
    /// # Errors
    /// The store can't be written to.
    pub async fn put_history(&self, folder: &str, name: &str, content: Vec<u8>) -> Result<(), StoreError> {
        let put = self
            .files()?
            .objects
            .put(&document(folder, name), content.into())
            .await;
        put.map(|_| ()).map_err(|error| failed(&error))
    }

    /// The names of the documents of a folder of the history, in order.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn list_history(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let objects = self.files()?.objects;
        let listed = objects.list(Some(&Path::from(history::FOLDER).join(folder)));
        let found: Vec<_> = listed.try_collect().await.map_err(|error| failed(&error))?;
        let names = found.iter().filter_map(|object| object.location.filename());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// A document of the history; none if it is gone.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn get_history(&self, folder: &str, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let found = match self.files()?.objects.get(&document(folder, name)).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| failed(&error))?,
        };
        let bytes = found.bytes().await.map_err(|error| failed(&error))?;
        Ok(Some(bytes.into()))
    }

    /// Deletes a document of the history, if it is there.
    ///
    /// # Errors
    /// The store can't be written to.
    pub async fn delete_history(&self, folder: &str, name: &str) -> Result<(), StoreError> {
        match self.files()?.objects.delete(&document(folder, name)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn document(folder: &str, name: &str) -> Path {
    Path::from(history::FOLDER).join(folder).join(name)
}

fn failed(error: &Error) -> StoreError {
    StoreError::Unavailable(chain(error))
}

/// What is read of a log.
struct Span {
    log: Uuid,
    /// Frames that begin before are left out.
    from: LogPosition,
    until_ms: i64,
}

/// Gathers the operations of a log.
struct SpanOps<'s> {
    span: &'s Span,
    /// All segments up to this one have been read.
    read: u64,
    /// The last frame that was read.
    last: Option<LogPosition>,
    found: HistoryOps,
}

impl<'s> SpanOps<'s> {
    fn new(span: &'s Span) -> SpanOps<'s> {
        SpanOps {
            span,
            read: span.from.segment,
            last: None,
            found: HistoryOps::default(),
        }
    }

    /// Adds segments, in the order of their numbers. Those that were added already are left out.
    ///
    /// # Errors
    /// Others are missing before them.
    fn add(&mut self, part: Segments, wants: &impl Fn(&Op) -> bool) -> Result<(), StoreError> {
        if part.previous > self.read {
            return Err(StoreError::FileGone(format!(
                "segments {} to {} of the history of log {}, which a node has not kept",
                self.read + 1,
                part.previous,
                self.span.log
            )));
        }
        self.read = self.read.max(part.last);
        for (at, frame) in part.frames {
            if at < self.span.from || self.last.is_some_and(|last| at <= last) {
                continue;
            }
            self.last = Some(at);
            if frame.time_ms > self.span.until_ms {
                continue;
            }
            self.found.frames += 1;
            let ops = frame.records.iter().flat_map(|record| &record.ops);
            // Copies, which do not keep the whole chunk in memory.
            let copy = |op: &Op| Op {
                token: op.token,
                key: Bytes::copy_from_slice(&op.key),
                operand: Bytes::copy_from_slice(&op.operand),
            };
            self.found.ops.extend(ops.filter(|op| wants(op)).map(copy));
        }
        Ok(())
    }
}

/// The segments of consecutive objects of a log; none without any.
pub(super) fn segments_of(objects: LogObjects) -> Option<Segments> {
    let first = objects.first()?.0;
    let last = objects.last()?.0;
    let frame = |(number, group): (u64, Group)| {
        let at = LogPosition {
            segment: number,
            offset: 0,
        };
        let frame = Frame {
            time_ms: group.machine_ms,
            records: group.records,
        };
        (at, frame)
    };
    Some(Segments {
        previous: first.saturating_sub(1),
        first,
        last,
        frames: objects.into_iter().map(frame).collect(),
    })
}
