//! Times in history that are kept open. The bytes of the logs that they hold in memory are bounded.
//!
//! A time is opened once for all requests that wait for it. Several times are opened in parallel, each within a share of the bound. A time
//! that needs more is opened again, alone. The bytes of an open time count until its last reader has ended. To make room for another time,
//! the least recently used one is closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use helenus_cql::error::CqlError;
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore};

use crate::analysis::plan::AsOfKey;
use crate::storage::ExecutionContext;

/// Number of units that the bound is divided into.
const UNITS: u32 = 1024;
/// Number of times that are opened in parallel, and the part of the bound that each may need. Together they need at most half of the bound
/// beside the open times.
const OPENINGS: u32 = 4;
const SHARE_PART: u64 = 8;
/// Minimum number of units of an open time, for its open tablets.
const UNITS_MIN: u32 = UNITS / 256;

/// A time that is open or being opened.
#[derive(Clone)]
struct Entry {
    key: AsOfKey,
    opened: Arc<OnceCell<Arc<ExecutionContext>>>,
}

#[derive(Default)]
struct Entries {
    /// The times that are kept open. The most recently used one is the last.
    kept: Vec<Entry>,
    /// Times that were closed while they had readers.
    closed: Vec<(AsOfKey, Weak<ExecutionContext>)>,
}

/// The open times of all keyspaces.
pub(super) struct OpenTimes {
    units: Arc<Semaphore>,
    openings: Semaphore,
    entries: Mutex<Entries>,
    opened: AtomicU64,
}

/// Part of the bound that an opening may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Part,
    All,
}

/// An opened time, the bytes of the logs that it holds, and the whole bound in bytes.
pub(super) struct OpenedTime {
    pub context: ExecutionContext,
    pub held: u64,
    pub all: u64,
}

/// The reason why a time could not be opened.
pub(super) enum NotOpened {
    /// The time needs more than its share.
    TooLarge(CqlError),
    Failed(CqlError),
}

impl NotOpened {
    fn into_error(self) -> CqlError {
        match self {
            NotOpened::TooLarge(error) | NotOpened::Failed(error) => error,
        }
    }
}

/// The outcome of an opening.
pub(super) type Opened = Result<OpenedTime, NotOpened>;

impl Share {
    /// Returns the bytes that an opening may hold. `all` is the whole bound.
    pub fn bytes(self, all: u64) -> u64 {
        match self {
            Share::Part => all / SHARE_PART,
            Share::All => all,
        }
    }
}

impl Entries {
    /// Returns a time that is kept open, and marks it as the most recently used one.
    fn find(&mut self, key: &AsOfKey) -> Option<Entry> {
        let at = self.kept.iter().position(|entry| entry.key == *key)?;
        let entry = self.kept.remove(at);
        self.kept.push(entry.clone());
        Some(entry)
    }

    /// Returns a time that was closed but still has a reader. The time is not kept open again, because another one waits for its room.
    fn read(&self, key: &AsOfKey) -> Option<Arc<ExecutionContext>> {
        let mut closed = self.closed.iter().filter(|(closed, _)| closed == key);
        closed.find_map(|(_, read)| read.upgrade())
    }

    /// Removes the least recently used open time. Times without a reader go first.
    fn take_least(&mut self) -> Option<Entry> {
        let readers = |entry: &Entry| entry.opened.get().map(|opened| Arc::strong_count(opened) - 1);
        let least = self.kept.iter().position(|entry| readers(entry) == Some(0));
        let least = least.or_else(|| self.kept.iter().position(|entry| entry.opened.initialized()));
        let entry = self.kept.remove(least?);
        self.closed.retain(|(_, read)| read.strong_count() > 0);
        if let Some(opened) = entry.opened.get() {
            self.closed.push((entry.key.clone(), Arc::downgrade(opened)));
        }
        Some(entry)
    }
}

impl Default for OpenTimes {
    fn default() -> OpenTimes {
        OpenTimes {
            units: Arc::new(Semaphore::new(UNITS as usize)),
            openings: Semaphore::new(OPENINGS as usize),
            entries: Mutex::default(),
            opened: AtomicU64::default(),
        }
    }
}

impl OpenTimes {
    /// Returns the number of times that have been opened.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Returns a time that is open. `None` if it is not.
    pub fn get(&self, key: &AsOfKey) -> Option<Arc<ExecutionContext>> {
        let mut entries = self.entries.lock();
        match entries.find(key) {
            Some(entry) => entry.opened.get().cloned(),
            None => entries.read(key),
        }
    }

    /// Closes the times for which `is_old` is true. Their readers continue.
    pub fn close(&self, is_old: impl Fn(&AsOfKey) -> bool) {
        let mut entries = self.entries.lock();
        entries.kept.retain(|entry| !is_old(&entry.key));
        entries.closed.retain(|(key, _)| !is_old(key));
    }

    /// Returns a time. If the time is not open, and no other request is opening it, calls `open`.
    ///
    /// # Errors
    /// See `open`, which is called with the whole bound as its share.
    pub async fn get_or_open<'o>(
        &self,
        key: &AsOfKey,
        open: impl Fn(Share) -> BoxFuture<'o, Opened>,
    ) -> Result<Arc<ExecutionContext>, CqlError> {
        let entry = {
            let mut entries = self.entries.lock();
            match (entries.find(key), entries.read(key)) {
                (Some(entry), _) => entry,
                (None, Some(read)) => return Ok(read),
                (None, None) => {
                    let entry = Entry {
                        key: key.clone(),
                        opened: Arc::default(),
                    };
                    entries.kept.push(entry.clone());
                    entry
                }
            }
        };
        let opening = || self.open(&open);
        let opened = entry.opened.get_or_try_init(opening).await.cloned();
        if opened.is_err() {
            let is_failed =
                |other: &Entry| Arc::ptr_eq(&other.opened, &entry.opened) && !other.opened.initialized();
            self.entries.lock().kept.retain(|other| !is_failed(other));
        }
        opened
    }

    async fn open<'o>(
        &self,
        open: impl Fn(Share) -> BoxFuture<'o, Opened>,
    ) -> Result<Arc<ExecutionContext>, CqlError> {
        let ended = |_| CqlError::Server("no time of history can be opened any more".to_owned());
        let mut place = self.openings.acquire().await.map_err(ended)?;
        let mut opened = open(Share::Part).await;
        if let Err(NotOpened::TooLarge(_)) = opened {
            drop(place);
            place = self.openings.acquire_many(OPENINGS).await.map_err(ended)?;
            opened = open(Share::All).await;
        }
        let OpenedTime {
            mut context,
            held,
            all,
        } = opened.map_err(NotOpened::into_error)?;
        let unit = (all / u64::from(UNITS)).max(1);
        let units = u32::try_from(held.div_ceil(unit)).unwrap_or(UNITS);
        self.make_room(units.clamp(UNITS_MIN, UNITS));
        let permit = self
            .units
            .clone()
            .acquire_many_owned(units.clamp(UNITS_MIN, UNITS));
        context.history_memory = Some(permit.await.map_err(ended)?);
        drop(place);
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(context))
    }

    /// Closes times until `units` units are free, or will be free when the readers of closed times have ended.
    fn make_room(&self, units: u32) {
        while self.units.available_permits() < units as usize {
            let least = self.entries.lock().take_least();
            // The closed time is dropped without holding the lock, because that closes files.
            if least.is_none() {
                return;
            }
        }
    }
}

#[cfg(test)]
#[path = "open_times_tests.rs"]
mod tests;
