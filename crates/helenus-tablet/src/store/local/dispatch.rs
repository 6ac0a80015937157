//! Hands the groups of the log to the tablets' stages, and notifies the writers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::disk::local_store::DiskSpace;
use crate::error::StoreError;
use crate::log::{Dispatch, Entry, Log, Waiter};
use crate::operation::Op;
use crate::stage::backpressure::CompactionBacklog;
use crate::tablet::Tablet;

/// How often a group that does not find room looks at the disk.
const STALL_POLL: Duration = Duration::from_millis(200);

/// Maps operations to tablets.
pub(crate) struct TabletRouter {
    pub tablets: Vec<Arc<Tablet>>,
    /// The backlog of each tablet.
    pub backlogs: Vec<Arc<CompactionBacklog>>,
    pub log: Arc<Log>,
    pub space: Arc<DiskSpace>,
    pub maintenance: Arc<tokio::sync::Notify>,
    pub notifier: CompletionNotifier,
}

impl Dispatch for TabletRouter {
    fn tablet_count(&self) -> usize {
        self.tablets.len()
    }

    fn tablet_of(&self, token: i64) -> usize {
        tablet_of(&self.tablets, token)
    }

    fn apply(&self, mut entries: Vec<Entry>) {
        let ops = entries.iter_mut().flat_map(|entry| {
            std::mem::take(&mut entry.ops)
                .into_iter()
                .map(|op| (entry.lsn, op))
        });
        let (parts, mut result) = match parts(&self.tablets, ops) {
            Ok(parts) => (parts, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        for (part, tablet) in parts.into_iter().zip(&self.tablets) {
            if part.is_empty() {
                continue;
            }
            let room = self.wait_for_room(tablet, &mut entries);
            let applied = room.and_then(|()| tablet.stage_ops(part));
            if let Err(error) = applied {
                self.log.is_obstructed.store(true, Ordering::Relaxed);
                result = Err(error);
            }
        }
        let waiters = entries.into_iter().filter_map(|entry| entry.waiter).collect();
        self.notifier.notify(GroupCompletion { waiters, result });
    }

    fn pause(&self) -> Duration {
        let pauses = self.backlogs.iter().map(|backlog| backlog.pause());
        pauses.max().unwrap_or_default()
    }

    fn rolled(&self) {
        self.maintenance.notify_one();
    }
}

impl TabletRouter {
    /// Waits without a limit until a tablet has room. If the disk is full, the waiting writers get the error; their records, which are in the log,
    /// take effect later.
    fn wait_for_room(&self, tablet: &Tablet, entries: &mut [Entry]) -> Result<(), StoreError> {
        while !tablet.stage.wait_for_room(STALL_POLL)? {
            if let Err(error) = self.space.check() {
                for waiter in entries.iter_mut().filter_map(|entry| entry.waiter.take()) {
                    waiter.done(Err(error.clone()));
                }
                self.log.refuse_pending(&error);
            }
        }
        Ok(())
    }
}

/// Writers whose group has ended, and how.
struct GroupCompletion {
    waiters: Vec<Waiter>,
    result: Result<(), StoreError>,
}

impl GroupCompletion {
    fn notify(self) {
        for waiter in self.waiters {
            waiter.done(self.result.clone());
        }
    }
}

/// Tells writers how their group has ended, on the runtime on which they wait.
///
/// Waking a task from a thread outside of its runtime wakes a thread of that runtime: a system call for each writer, and where cores
/// are few a change of threads for each, so that the log stands still for as long as it takes to answer all of a group one by one. A
/// task of the runtime wakes its neighbours at next to no cost, and those on one connection then answer together.
pub(crate) struct CompletionNotifier(mpsc::UnboundedSender<GroupCompletion>);

impl CompletionNotifier {
    /// Writers wait on the runtime that this is called on.
    pub fn start() -> CompletionNotifier {
        let (sender, mut ended) = mpsc::unbounded_channel::<GroupCompletion>();
        tokio::spawn(async move {
            while let Some(completion) = ended.recv().await {
                completion.notify();
            }
        });
        CompletionNotifier(sender)
    }

    fn notify(&self, completion: GroupCompletion) {
        // Without the runtime no writer waits.
        let _ = self.0.send(completion);
    }
}

/// Operations with the numbers of their records, by tablet.
///
/// # Errors
/// One of them has no tablet.
pub(crate) fn parts(
    tablets: &[Arc<Tablet>],
    ops: impl Iterator<Item = (u64, Op)>,
) -> Result<Vec<Vec<(u64, Op)>>, StoreError> {
    let mut parts: Vec<Vec<(u64, Op)>> = tablets.iter().map(|_| Vec::new()).collect();
    for (lsn, op) in ops {
        let part = parts.get_mut(tablet_of(tablets, op.token));
        part.ok_or(StoreError::NotOwned(op.token))?.push((lsn, op));
    }
    Ok(parts)
}

/// The index of the tablet that owns a token; `tablets` cover the ring in order.
pub(crate) fn tablet_of(tablets: &[Arc<Tablet>], token: i64) -> usize {
    tablets.partition_point(|tablet| tablet.token_range().last < token)
}
