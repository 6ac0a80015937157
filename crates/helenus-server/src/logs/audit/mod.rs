//! The audit log: a line for each request and log-in of clients, in the format of Cassandra's (`org.apache.cassandra.audit`).
//!
//! Lines go to [`files`] of their own, which a thread of `tracing-appender` writes. While the log is off, a request only checks one
//! pointer. [`entry`] formats the lines, [`statement`] names statements, and [`options`] has the settings and the filter.

mod entry;
mod files;
mod options;
mod statement;

pub(crate) use entry::without_password;
pub use options::{AuditOptions, AuditPatch, categories};

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use helenus_cql::error::CqlError;
use parking_lot::Mutex;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use uuid::Uuid;

use crate::logs::folder::check_apart;
use entry::{Entry, EntryKind};
use files::AuditFiles;

/// Maximum number of lines that wait to be written to the file.
const LINES_WAITING_MAX: usize = 65_536;

/// The audit log of a node.
#[derive(Default)]
pub struct AuditLog {
    /// Options for switching the log on. A command may replace some of them.
    defaults: AuditOptions,
    running: ArcSwapOption<RunningLog>,
    /// Held while the log is switched on or off.
    switching: Mutex<()>,
}

/// A log that is on.
pub struct RunningLog {
    options: AuditOptions,
    lines: NonBlocking,
    /// Writes the waiting lines when it is dropped, which switches the log off.
    _worker: WorkerGuard,
}

/// The client that made a request, and the node that received it.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'a> {
    pub user: Option<&'a str>,
    pub peer: SocketAddr,
    /// The node's address for clients.
    pub node: SocketAddr,
    /// The keyspace in use. `None` before USE.
    pub keyspace: Option<&'a str>,
}

impl AuditLog {
    /// Returns the log of a node. The log is on if the options say so.
    ///
    /// # Errors
    /// The log's folder cannot be written.
    pub fn new(options: AuditOptions) -> Result<AuditLog, String> {
        let log = AuditLog {
            running: ArcSwapOption::empty(),
            switching: Mutex::new(()),
            defaults: options,
        };
        if log.defaults.enabled {
            log.enable(AuditPatch::default())?;
        }
        Ok(log)
    }

    /// Returns the log. `None` if it is off.
    pub fn running(&self) -> Option<Arc<RunningLog>> {
        self.running.load_full()
    }

    /// Returns true if the log is on.
    pub fn is_on(&self) -> bool {
        self.running.load().is_some()
    }

    /// Returns the options in use. If the log is off, these are the options with which it would be switched on.
    pub fn options(&self) -> AuditOptions {
        match self.running() {
            Some(running) => running.options.clone(),
            None => AuditOptions {
                enabled: false,
                ..self.defaults.clone()
            },
        }
    }

    /// Switches the log on. If it is on already, replaces its options.
    ///
    /// # Errors
    /// The log's folder cannot be written.
    pub fn enable(&self, patch: AuditPatch) -> Result<(), String> {
        let _switching = self.switching.lock();
        let options = patch.on(self.defaults.clone());
        let folder = options.folder.clone();
        let files = check_apart(&folder, options.store_folder.as_deref())
            .and_then(|()| AuditFiles::open(&options).map_err(|error| error.to_string()));
        let files = files.map_err(|error| format!("audit_logs_dir = \"{}\": {error}", folder.display()))?;
        let (lines, worker) = NonBlockingBuilder::default()
            .lossy(!options.block)
            .buffered_lines_limit(LINES_WAITING_MAX)
            .thread_name("helenus-audit")
            .finish(files);
        tracing::info!(folder = %folder.display(), "the audit log is on");
        self.running.store(Some(Arc::new(RunningLog {
            options,
            lines,
            _worker: worker,
        })));
        Ok(())
    }

    /// Switches the log off.
    pub fn disable(&self) {
        let _switching = self.switching.lock();
        if self.running.swap(None).is_some() {
            tracing::info!("the audit log is off");
        }
    }
}

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AuditLog").field(&self.options()).finish()
    }
}

impl RunningLog {
    /// Logs a log-in. `error` is `None` if it succeeded.
    pub fn login(&self, by: Requester<'_>, error: Option<&CqlError>) {
        let (kind, operation) = match error {
            None => (EntryKind::LoginSuccess, "LOGIN SUCCESSFUL".to_owned()),
            Some(error) => (EntryKind::LoginError, format!("LOGIN FAILURE; {error}")),
        };
        self.write(by, &Entry::new(kind, operation));
    }

    /// Logs a statement that was run or prepared. `error` is `None` if it succeeded.
    pub fn statement(&self, by: Requester<'_>, text: &str, is_prepare: bool, error: Option<&CqlError>) {
        let mut entry = statement::entry(text, by.keyspace);
        if is_prepare {
            entry.kind = EntryKind::PrepareStatement;
        }
        if let Some(error) = error {
            entry.fail(error);
        }
        self.write(by, &entry);
    }

    /// Logs a BATCH message, and each of its statements if it succeeded.
    pub fn batch<'t>(
        &self,
        by: Requester<'_>,
        texts: impl ExactSizeIterator<Item = &'t str>,
        error: Option<&CqlError>,
    ) {
        let id = Uuid::new_v4();
        let operation = format!("BatchId:[{id}] - BATCH of [{}] statements", texts.len());
        let mut batch = Entry::new(EntryKind::Batch, operation);
        batch.batch = Some(id);
        if let Some(error) = error {
            batch.fail(error);
        }
        self.write(by, &batch);
        if error.is_some() {
            return;
        }
        for text in texts {
            let mut entry = statement::entry(text, by.keyspace);
            entry.batch = Some(id);
            self.write(by, &entry);
        }
    }

    fn write(&self, by: Requester<'_>, entry: &Entry) {
        let user = by.user.unwrap_or("anonymous");
        if !self
            .options
            .includes(user, entry.kind.category(), entry.keyspace.as_deref())
        {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let line = entry.line(&by, user, now.unwrap_or_default().as_millis());
        // The error is ignored, because a file that cannot be written must not stop requests. The worker handles the file.
        let _ = self.lines.clone().write_all(line.as_bytes());
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
