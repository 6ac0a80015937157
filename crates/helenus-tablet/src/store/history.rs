//! The history of a store's logs ([`crate::history`]): the positions of the logs at a cut, and their operations from there until a time.
//!
//! A log is read where it is: its newest part in the log itself, and earlier parts in chunks. A part is deleted from the log only after its
//! chunk is written. So the log is listed before the chunks.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use uuid::Uuid;

use super::{Store, StoreKind};
use crate::boxed;
use crate::error::{StoreError, chain};
use crate::history::archive::TrimmedHistory;
use crate::history::span::{HistoryUntil, Span, SpanOps};
use crate::history::{self, Frame, HistoryPosition, Segments, archive};
use crate::log::LogPosition;
use crate::log::object::{Group, LogObjects};
use crate::operation::Op;
use crate::store::local::maintenance::archived_segment;

/// Maximum number of parts that are read at the same time.
const READS: usize = 8;
/// Maximum number of a log's segments or objects that are read as one part.
const SEGMENTS: usize = 256;
/// Maximum number of logs that are listed at the same time.
const LISTS: usize = 16;
/// Distance before a segment at which the listing of chunks begins. Chunks mostly have fewer segments.
const CHUNK_SEGMENTS: u64 = 4096;
/// Maximum number of times that a log is read again after it was trimmed during the read.
const ATTEMPTS: u32 = 3;
/// Minimum of the bytes of logs that may be read for a time. The memory of memtables counts if it is larger.
const PAST_BYTES_MIN: u64 = 256 << 20;

/// Consecutive segments of a log, and the place where they are read.
struct LogPart {
    first: u64,
    /// Time of the part's first frame in ms. `i64::MIN` if it is not known.
    earliest_ms: i64,
    place: PartPlace,
}

enum PartPlace {
    /// The path of the chunk with the segments.
    Chunk(Path),
    /// Numbers of segments or objects in the log, each with the offset at which it ends.
    Log(Vec<(u64, u64)>),
}

/// The parts of a log that a backup needs.
pub(crate) struct LogToCopy {
    pub log: Uuid,
    /// The paths of the log's chunks.
    pub chunks: Vec<Path>,
    /// The segments that are in no chunk yet.
    pub newest: Vec<Segments>,
}

impl Store {
    /// Returns true if the history of the log is kept.
    pub fn keeps_history(&self) -> bool {
        match &self.kind {
            StoreKind::Local(local) => local.databases.config.keeps_history,
            StoreKind::Remote(remote) => remote.databases().config.keeps_history,
            StoreKind::Pinned(_) => false,
        }
    }

    /// Returns the positions of the ends of all logs of a store in a bucket, including those of former processes. Writes in progress are
    /// not included.
    ///
    /// # Errors
    /// The bucket cannot be read.
    #[boxed]
    pub async fn history_positions(&self) -> Result<Vec<HistoryPosition>, StoreError> {
        match &self.kind {
            StoreKind::Remote(remote) => {
                let mut positions = remote.log_positions().await?;
                let there: BTreeSet<Uuid> = positions.iter().map(|position| position.log).collect();
                let kept = archive::logs(self.files()?.objects.as_ref()).await?;
                // A log that is no longer in its former place exists in chunks only.
                let gone = kept.into_iter().filter(|log| !there.contains(log));
                positions.extend(gone.map(HistoryPosition::end));
                Ok(positions)
            }
            StoreKind::Local(_) | StoreKind::Pinned(_) => Ok(Vec::new()),
        }
    }

    /// Returns the maximum bytes of logs that may be read for a time.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] for a store of pinned tablets.
    pub fn history_bytes_max(&self) -> Result<u64, StoreError> {
        Ok(self.files()?.databases.config.memtable_bytes.max(PAST_BYTES_MIN))
    }

    /// Returns the operations on some tables in all logs, from these positions up to a time of commit, in the order of each log. A log that
    /// is not among the positions has begun after them.
    ///
    /// # Errors
    /// A part is missing or damaged. [`StoreError::HistoryTooLarge`] if the operations are more than `limit` bytes.
    /// [`StoreError::HistoryUncertain`] if a log has that time twice.
    #[boxed]
    pub async fn history_since(
        &self,
        positions: &[HistoryPosition],
        until: &HistoryUntil,
        tables: &BTreeSet<u32>,
        limit: u64,
    ) -> Result<Vec<Op>, StoreError> {
        let mut found = Vec::new();
        let mut room = limit;
        let logs = self.logs_of_history().await?.into_iter();
        let spans: Vec<Span> = logs.map(|log| Span::new(log, positions, until)).collect();
        let listing: Vec<_> = spans.iter().map(|span| self.parts_of_log(span, true)).collect();
        // There may be many logs, because each process has had its own.
        let listed = futures::stream::iter(listing).buffered(LISTS);
        let listed: Vec<Vec<LogPart>> = listed.try_collect().await?;
        for (span, mut parts) in spans.iter().zip(listed) {
            let mut failures = 0;
            let of_log = loop {
                match self.ops_of_log(span, parts, tables, room).await {
                    Ok(found) => break found,
                    Err(StoreError::HistoryTooLarge { .. }) => {
                        return Err(StoreError::HistoryTooLarge { limit });
                    }
                    Err(error @ StoreError::HistoryUncertain { .. }) => return Err(error),
                    // A segment may be trimmed between the listing and the reading. It is in a chunk then.
                    Err(error) if failures >= ATTEMPTS => return Err(error),
                    Err(_) => {
                        failures += 1;
                        parts = self.parts_of_log(span, false).await?;
                    }
                }
            };
            room = room.saturating_sub(Op::bytes_of(&of_log));
            found.extend(of_log);
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

    /// Returns the operations of one log, if they are not more than `room` bytes.
    async fn ops_of_log(
        &self,
        span: &Span,
        parts: Vec<LogPart>,
        tables: &BTreeSet<u32>,
        room: u64,
    ) -> Result<Vec<Op>, StoreError> {
        let databases = self.files()?.databases;
        let wants = |op: &Op| tables.contains(&databases.model.table_of(&op.key));
        let mut ops = SpanOps::new(span);
        let parts = parts.into_iter();
        let parts = parts.take_while(|part| !span.is_beyond(part.first, part.earliest_ms));
        let reading: Vec<_> = parts.map(|part| self.read_part(span.log, part)).collect();
        let mut parts = futures::stream::iter(reading).buffered(READS);
        let (mut bytes, mut seen) = (0, 0);
        while let Some(read) = parts.next().await {
            for segments in read? {
                ops.add(segments, &wants)?;
            }
            bytes += Op::bytes_of(&ops.found[seen..]);
            seen = ops.found.len();
            if bytes > room {
                return Err(StoreError::HistoryTooLarge { limit: room });
            }
            if ops.is_past() {
                break;
            }
        }
        Ok(ops.found)
    }

    /// Returns the parts of a span of a log, in the order of the segments: chunks, and segments that are in no chunk. With `is_near`, only
    /// chunks that begin near the span are listed, so the first one may be missing.
    async fn parts_of_log(&self, span: &Span, is_near: bool) -> Result<Vec<LogPart>, StoreError> {
        let (log, from) = (span.log, span.from);
        let objects = self.files()?.objects;
        let first = match is_near {
            true => from.segment.saturating_sub(CHUNK_SEGMENTS),
            false => 0,
        };
        // A folder is not listed in the order of names, so chunks of a local store are not limited by time.
        let until_ms = span.latest_ms().filter(|_| self.is_shared());
        let until = until_ms.map(|until_ms| (from.segment, until_ms));
        // The log is listed before the chunks, so that segments that are deleted meanwhile are found in a chunk.
        let listed = self.segments_in_log(log, from).await?;
        let mut chunks = archive::chunks(objects.as_ref(), log, first, until).await?;
        chunks.retain(|(name, _)| name.last >= from.segment);
        let mut parts = Vec::new();
        let mut covered: BTreeSet<(u64, u64)> = BTreeSet::new();
        for (name, path) in chunks {
            covered.extend(
                listed
                    .iter()
                    .copied()
                    .filter(|(number, _)| (name.first..=name.last).contains(number)),
            );
            parts.push(LogPart {
                first: name.first,
                earliest_ms: name.earliest_ms,
                place: PartPlace::Chunk(path),
            });
        }
        let mut run: Vec<(u64, u64)> = Vec::new();
        let mut add = |run: &mut Vec<(u64, u64)>| {
            if let Some((first, _)) = run.first() {
                parts.push(LogPart {
                    first: *first,
                    earliest_ms: i64::MIN,
                    place: PartPlace::Log(std::mem::take(run)),
                });
            }
        };
        for segment in listed {
            let is_covered = covered.contains(&segment);
            if is_covered || run.len() >= SEGMENTS {
                add(&mut run);
            }
            if !is_covered {
                run.push(segment);
            }
        }
        add(&mut run);
        parts.sort_by_key(|part| part.first);
        Ok(parts)
    }

    async fn read_part(&self, log: Uuid, part: LogPart) -> Result<Vec<Segments>, StoreError> {
        match part.place {
            PartPlace::Chunk(path) => {
                let objects = self.files()?.objects;
                Ok(vec![archive::read(objects.as_ref(), &path).await?])
            }
            PartPlace::Log(segments) => self.read_in_log(log, segments).await,
        }
    }

    /// Returns the segments or objects that are in a log, each with the offset at which it ends.
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

    /// Reads segments that were listed.
    async fn read_in_log(&self, log: Uuid, listed: Vec<(u64, u64)>) -> Result<Vec<Segments>, StoreError> {
        match &self.kind {
            StoreKind::Local(local) => {
                let folder = local.maintenance.folder.path.clone();
                let reading = crate::threads::spawn_blocking(move || {
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

    /// Returns the parts of logs from these positions on, for a backup.
    ///
    /// # Errors
    /// A log cannot be read.
    pub(crate) async fn history_to_copy(
        &self,
        positions: &[HistoryPosition],
    ) -> Result<Vec<LogToCopy>, StoreError> {
        let mut logs = Vec::new();
        for log in self.logs_of_history().await? {
            let span = Span::new(log, positions, &HistoryUntil::time(i64::MAX));
            let mut to_copy = LogToCopy {
                log,
                chunks: Vec::new(),
                newest: Vec::new(),
            };
            for part in self.parts_of_log(&span, false).await? {
                match part.place {
                    PartPlace::Chunk(path) => to_copy.chunks.push(path),
                    PartPlace::Log(segments) => {
                        to_copy.newest.extend(self.read_in_log(log, segments).await?);
                    }
                }
            }
            logs.push(to_copy);
        }
        Ok(logs)
    }

    /// Deletes the history of logs from before these positions. The history of a log without a position is kept, since that log has begun
    /// after them.
    ///
    /// # Errors
    /// The store cannot be written to.
    #[boxed]
    pub async fn trim_history(&self, positions: &[HistoryPosition]) -> Result<TrimmedHistory, StoreError> {
        let is_old = |log: Uuid, last: u64| {
            let position = positions.iter().find(|position| position.log == log);
            position.is_some_and(|position| last < position.segment)
        };
        archive::delete(&self.files()?.objects, is_old).await
    }

    /// Deletes all history of logs.
    ///
    /// # Errors
    /// The store cannot be written to.
    pub async fn remove_history(&self) -> Result<TrimmedHistory, StoreError> {
        archive::delete(&self.files()?.objects, |_, _| true).await
    }

    /// Returns the bytes of the history of logs.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn history_bytes(&self) -> Result<u64, StoreError> {
        archive::bytes(self.files()?.objects.as_ref()).await
    }

    /// Writes a document of the history.
    ///
    /// # Errors
    /// The store cannot be written to.
    #[boxed]
    pub async fn put_history(&self, folder: &str, name: &str, content: Vec<u8>) -> Result<(), StoreError> {
        let put = self
            .files()?
            .objects
            .put(&document(folder, name), content.into())
            .await;
        put.map(|_| ()).map_err(|error| failed(&error))
    }

    /// Returns the names of the documents in a folder of the history, in order.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn list_history(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let objects = self.files()?.objects;
        let listed = objects.list(Some(&Path::from(history::FOLDER).join(folder)));
        let found: Vec<_> = listed.try_collect().await.map_err(|error| failed(&error))?;
        let names = found.iter().filter_map(|object| object.location.filename());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns a document of the history. `None` if it does not exist.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn get_history(&self, folder: &str, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let found = match self.files()?.objects.get(&document(folder, name)).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| failed(&error))?,
        };
        let bytes = found.bytes().await.map_err(|error| failed(&error))?;
        Ok(Some(bytes.into()))
    }

    /// Deletes a document of the history, if it exists.
    ///
    /// # Errors
    /// The store cannot be written to.
    #[boxed]
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

/// Returns the segments of consecutive objects of a log. `None` if there are no objects.
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
