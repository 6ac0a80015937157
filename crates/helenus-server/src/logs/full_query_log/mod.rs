//! The full query log: each request that has succeeded, with its values and options, in files for replay (`org.apache.cassandra.fql`).
//!
//! [`helenus_cql::query_log`] defines the format. Records go to a [`writer`] thread through a queue that is bounded in bytes. The thread
//! writes [`segments`] and sends complete ones to [`archive`]. While the log is off, a request only checks one flag.

mod archive;
mod dropped;
mod options;
mod segments;
mod writer;

pub use options::{QueryLogOptions, QueryLogPatch};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use helenus_cql::query_log::{Entry, encode_record};
use helenus_query::clock::{Clock, SystemClock, TimestampSource};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::logs::folder::check_apart;

use dropped::{Dropped, Reason};
use segments::Segments;
use writer::{Message, Writer};

/// Maximum time that switching the log off waits for queued entries to be written.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The full query log of a node.
#[derive(Default)]
pub struct FullQueryLog {
    /// Options for switching the log on. A command may replace some of them.
    defaults: QueryLogOptions,
    is_on: AtomicBool,
    running: ArcSwapOption<RunningQueryLog>,
    /// The folder that was last written, if any. The lock is held while the log is switched on or off.
    switching: Mutex<Option<PathBuf>>,
}

/// A log that is on.
pub struct RunningQueryLog {
    options: QueryLogOptions,
    /// One permit for each byte of the queue.
    room: Arc<Semaphore>,
    messages: Sender<Message>,
    dropped: Dropped,
    timestamps: TimestampSource,
    /// Notified when the writer thread has ended.
    stopped: Mutex<Receiver<()>>,
}

/// The times of a request's beginning.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimes {
    pub start_ms: i64,
    pub now_s: i64,
    /// A timestamp that no other request has.
    pub timestamp_us: i64,
}

impl FullQueryLog {
    /// Returns the log of a node, switched off.
    pub fn new(defaults: QueryLogOptions) -> FullQueryLog {
        FullQueryLog {
            defaults,
            ..FullQueryLog::default()
        }
    }

    /// Returns the log. `None` if it is off.
    pub fn running(&self) -> Option<Arc<RunningQueryLog>> {
        // Relaxed is enough: a request that begins while the log is switched may be logged or not.
        match self.is_on.load(Ordering::Relaxed) {
            true => self.running.load_full(),
            false => None,
        }
    }

    /// Returns true if the log is on, and its options. If the log is off, these are the options with which it would be switched on.
    pub fn state(&self) -> (bool, QueryLogOptions) {
        match self.running() {
            Some(running) => (true, running.options.clone()),
            None => (false, self.defaults.clone()),
        }
    }

    /// Switches the log on.
    ///
    /// # Errors
    /// The log is on already, no folder is set, or the folder cannot be written.
    pub fn enable(&self, patch: &QueryLogPatch) -> Result<(), String> {
        let mut last_folder = self.switching.lock();
        if self.is_on.load(Ordering::Relaxed) {
            return Err("the full query log is on already; disable it first".to_owned());
        }
        let options = patch.on(self.defaults.clone())?;
        if options.folder.as_os_str().is_empty() {
            return Err("full_query_logging_options_log_dir is not set, and no --path is given".to_owned());
        }
        let folder = options.folder.clone();
        let running = check_apart(&folder, options.store_folder.as_deref())
            .and_then(|()| RunningQueryLog::start(options).map_err(|error| error.to_string()));
        let running = running.map_err(|error| format!("log_dir = \"{}\": {error}", folder.display()))?;
        tracing::info!(folder = %folder.display(), "the full query log is on");
        *last_folder = Some(folder);
        self.running.store(Some(Arc::new(running)));
        self.is_on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Switches the log off, and waits until the queue is written, for at most ten seconds.
    pub fn disable(&self) {
        let _switching = self.switching.lock();
        self.stop();
    }

    /// Switches the log off, and deletes the segments in the folder of the settings and in the folder that was last written.
    ///
    /// # Errors
    /// A segment cannot be deleted.
    pub fn reset(&self) -> Result<(), String> {
        let mut last_folder = self.switching.lock();
        self.stop();
        let of_settings = Some(&self.defaults.folder).filter(|folder| !folder.as_os_str().is_empty());
        for folder in of_settings.into_iter().chain(&*last_folder) {
            segments::delete_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        *last_folder = None;
        Ok(())
    }

    fn stop(&self) {
        self.is_on.store(false, Ordering::Relaxed);
        if let Some(running) = self.running.swap(None) {
            running.stop();
            tracing::info!("the full query log is off");
        }
    }
}

impl std::fmt::Debug for FullQueryLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FullQueryLog").field(&self.state()).finish()
    }
}

impl RunningQueryLog {
    #[allow(clippy::disallowed_methods, reason = "the local disk is not simulated")]
    fn start(options: QueryLogOptions) -> std::io::Result<RunningQueryLog> {
        let archive = match options.archive_command.trim() {
            "" => None,
            command => Some(archive::start(command.to_owned(), options.archive_retries_max)?),
        };
        let dropped = Dropped::new();
        let (messages, received) = mpsc::channel();
        let writer = Writer {
            segments: Segments::open(&options, archive)?,
            messages: received,
            dropped: dropped.clone(),
            failed_until: None,
        };
        let (ended, stopped) = mpsc::channel();
        let builder = thread::Builder::new().name("helenus-query-log".to_owned());
        builder.spawn(move || {
            writer.run();
            // The error is ignored, because the log may not be waited for.
            let _ = ended.send(());
        })?;
        Ok(RunningQueryLog {
            room: Arc::new(Semaphore::new(options.queue_bytes_max as usize)),
            options,
            messages,
            dropped,
            timestamps: TimestampSource::default(),
            stopped: Mutex::new(stopped),
        })
    }

    /// Returns the times of a request that begins.
    pub fn times(&self) -> RequestTimes {
        let timestamp_us = self.timestamps.next_us(&SystemClock as &dyn Clock);
        let now_us = SystemClock.now_us();
        RequestTimes {
            start_ms: now_us.div_euclid(1000),
            now_s: now_us.div_euclid(1_000_000),
            timestamp_us,
        }
    }

    /// Queues an entry. If the queue is full, waits or drops the entry, depending on the options.
    pub async fn record(&self, entry: &Entry) {
        let Some(record) = encode_record(entry) else {
            return self.dropped.count(Reason::TooLong);
        };
        let Some(place) = self.place(record.len()).await else {
            return;
        };
        // The error is ignored, because the log may have been switched off meanwhile.
        let _ = self.messages.send(Message::Record(record, place));
    }

    /// Reserves `len` bytes of the queue. `None` if the entry must be dropped, or the log is off.
    async fn place(&self, len: usize) -> Option<OwnedSemaphorePermit> {
        // An entry that is longer than the queue takes all of it.
        let len = u32::try_from(len)
            .unwrap_or(u32::MAX)
            .min(self.options.queue_bytes_max);
        if let Ok(place) = self.room.clone().try_acquire_many_owned(len) {
            return Some(place);
        }
        if self.options.block {
            return self.room.clone().acquire_many_owned(len).await.ok();
        }
        self.dropped.count(Reason::QueueFull);
        None
    }

    fn stop(&self) {
        self.room.close();
        // The error is ignored, because the thread may have ended by itself.
        let _ = self.messages.send(Message::Stop);
        if self.stopped.lock().recv_timeout(STOP_TIMEOUT).is_err() {
            tracing::warn!("the full query log is still being written");
        }
    }
}

#[cfg(test)]
#[path = "full_query_log_tests.rs"]
mod tests;
