//! Passes the groups of the log to the tablets' stages, and notifies the writers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::disk::local_store::DiskSpace;
use crate::error::StoreError;
use crate::log::{Dispatch, Entry, Waiter, WriteTurn};
use crate::operation::Op;
use crate::tablet::{NodeLog, OpenTablets, Tablet, tablet_of};

/// Time between two checks of the disk by a group that waits for room.
const STALL_POLL: Duration = Duration::from_millis(200);

/// Operations with the numbers of their records, for one tablet.
struct Part {
    tablet: Arc<Tablet>,
    ops: Vec<(u64, Op)>,
}

/// A writer whose record is in a group.
struct PendingWriter {
    /// The waiter of the writer. `None` after it was notified.
    waiter: Option<Waiter>,
    /// The turn of a writer that was notified before its write was applied.
    turn: Option<Arc<dyn WriteTurn>>,
    /// Index of a part that has operations of the writer, and true if several parts have some.
    part: usize,
    in_several: bool,
    /// True if an operation of the writer has no tablet.
    is_lost: bool,
}

/// A group of the log, divided by tablet.
pub(crate) struct RoutedGroup {
    parts: Vec<Part>,
    writers: Vec<PendingWriter>,
}

/// The parts of a group, while they are collected.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    /// The tablets of the last entry, and the index of each one's part, if it has one.
    route: OpenTablets,
    places: Vec<Option<usize>>,
}

impl Parts {
    /// Sets the tablets to which the next entries go.
    fn set_route(&mut self, route: OpenTablets) {
        if Arc::ptr_eq(&self.route, &route) {
            return;
        }
        let place = |tablet: &Arc<Tablet>| {
            self.parts
                .iter()
                .position(|part| Arc::ptr_eq(&part.tablet, tablet))
        };
        self.places = route.iter().map(place).collect();
        self.route = route;
    }

    /// Adds an operation, and returns the index of its part. `None` if it has no tablet.
    fn add(&mut self, lsn: u64, op: Op) -> Option<usize> {
        let at = tablet_of(&self.route, op.token);
        let place = self.places.get_mut(at)?;
        let part = *place.get_or_insert(self.parts.len());
        if part == self.parts.len() {
            let tablet = self.route.get(at)?.clone();
            self.parts.push(Part {
                tablet,
                ops: Vec::new(),
            });
        }
        self.parts.get_mut(part)?.ops.push((lsn, op));
        Some(part)
    }
}

/// The callback for a fenced log.
pub(crate) type OnFenced = Box<dyn Fn() + Send + Sync>;

/// Routes operations to tablets.
pub(crate) struct TabletRouter {
    pub log: Arc<NodeLog>,
    /// The disk of a store in a folder. `None` for a store in a bucket.
    pub space: Option<Arc<DiskSpace>>,
    pub notifier: CompletionNotifier,
    pub on_fenced: OnFenced,
}

#[async_trait]
impl Dispatch<OpenTablets> for TabletRouter {
    type Group = RoutedGroup;

    fn route(&self, entries: Vec<Entry<OpenTablets>>) -> RoutedGroup {
        let mut parts = Parts::default();
        let mut writers = Vec::with_capacity(entries.len());
        for entry in entries {
            parts.set_route(entry.route);
            let mut writer = PendingWriter {
                waiter: entry.waiter,
                turn: None,
                part: usize::MAX,
                in_several: false,
                is_lost: false,
            };
            for op in entry.ops {
                match parts.add(entry.lsn, op) {
                    Some(part) => {
                        writer.in_several |= writer.part != usize::MAX && writer.part != part;
                        writer.part = part;
                    }
                    None => writer.is_lost = true,
                }
            }
            writers.push(writer);
        }
        RoutedGroup {
            parts: parts.parts,
            writers,
        }
    }

    fn last_lsns(&self, group: &RoutedGroup) -> Vec<(u32, u64)> {
        let last = |part: &Part| Some((part.tablet.id(), part.ops.last()?.0));
        group.parts.iter().filter_map(last).collect()
    }

    async fn apply(&self, mut group: RoutedGroup) -> Duration {
        let mut pause = Duration::ZERO;
        let mut failed: Vec<(usize, StoreError)> = Vec::new();
        for (at, Part { tablet, ops }) in group.parts.into_iter().enumerate() {
            let room = self.wait_for_room(&tablet, &mut group.writers).await;
            if let Err(error) = room.and_then(|()| tablet.stage_ops(ops)) {
                failed.push((at, self.reported(&tablet, error)));
            }
            pause = pause.max(tablet.backlog.pause());
        }
        self.notifier.notify(GroupCompletion {
            writers: group.writers,
            failed,
        });
        pause
    }

    fn fenced(&self) {
        (self.on_fenced)();
    }
}

impl TabletRouter {
    /// Returns the error that is reported to writers if a tablet does not take operations that are in the log.
    fn reported(&self, tablet: &Tablet, error: StoreError) -> StoreError {
        if tablet.limits.is_in_bucket() {
            // The outcome is unknown, because the next owner replays the operations from the log.
            return StoreError::Unknown(error.to_string());
        }
        self.log.is_obstructed.store(true, Ordering::Relaxed);
        error
    }

    /// Waits without a limit until a tablet has room. If the disk is full, the waiting writers get the error. Their records are in the log
    /// and take effect later.
    async fn wait_for_room(&self, tablet: &Tablet, writers: &mut [PendingWriter]) -> Result<(), StoreError> {
        while !tablet.stage.wait_for_room(STALL_POLL).await? {
            let Some(Err(error)) = self.space.as_ref().map(|space| space.check()) else {
                continue;
            };
            for writer in writers.iter_mut() {
                if let Some(waiter) = writer.waiter.take() {
                    writer.turn = waiter.notify(Err(error.clone()));
                }
            }
            self.log.refuse_pending(&error);
        }
        Ok(())
    }
}

/// The writers of a group that has ended, and the parts that could not be applied.
struct GroupCompletion {
    writers: Vec<PendingWriter>,
    failed: Vec<(usize, StoreError)>,
}

impl GroupCompletion {
    fn notify(self) {
        for writer in self.writers {
            let failure = self
                .failed
                .iter()
                .find(|(part, _)| writer.in_several || *part == writer.part);
            let outcome = match failure {
                Some((_, error)) => Err(error.clone()),
                None if writer.is_lost => Err(StoreError::Unknown("an operation has no tablet".to_owned())),
                None => Ok(()),
            };
            if let Some(waiter) = writer.waiter {
                waiter.done(outcome);
            }
        }
    }
}

/// Notifies writers of the outcome of their group, on the runtime on which they wait.
///
/// Waking a task from a thread outside of its runtime wakes a thread of that runtime, which is a system call for each writer. On few cores
/// it is also a change of threads for each, so that the log stands still until the whole group is answered. A task of the runtime wakes its
/// neighbours at almost no cost, and writers on one connection then answer together.
pub(crate) struct CompletionNotifier(mpsc::UnboundedSender<GroupCompletion>);

impl CompletionNotifier {
    /// Starts the notifier on the current runtime, on which the writers must wait.
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
        // Sending fails only if the runtime has ended, and then no writer waits.
        let _ = self.0.send(completion);
    }
}
