//! Runs the archive command for each complete segment (Cassandra's `ExternalArchiver`).
#![allow(clippy::disallowed_methods, reason = "the local disk is not simulated")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time after which a failed command is run again.
const RETRY_AFTER: Duration = Duration::from_secs(300);
/// Time for which the thread sleeps if there is nothing to retry.
const IDLE: Duration = Duration::from_secs(3600);
/// Placeholder for the path of the segment in a command.
const PATH: &str = "%path";

struct Archiver {
    command: String,
    retries_max: u32,
    segments: Receiver<PathBuf>,
    /// Segments whose command has failed. Each has the time of the next attempt and the number of failed attempts.
    failed: Vec<(Instant, PathBuf, u32)>,
}

/// Starts a thread that runs the command for each segment that is sent. It ends without further retries once all senders are dropped.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn start(command: String, retries_max: u32) -> io::Result<Sender<PathBuf>> {
    let (sender, segments) = channel();
    let mut archiver = Archiver {
        command,
        retries_max,
        segments,
        failed: Vec::new(),
    };
    let builder = thread::Builder::new().name("helenus-archive".to_owned());
    builder.spawn(move || archiver.run())?;
    Ok(sender)
}

impl Archiver {
    fn run(&mut self) {
        loop {
            let due = self.failed.iter().map(|(due, ..)| *due).min();
            let wait = due.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()));
            match self.segments.recv_timeout(wait) {
                Ok(path) => self.archive(path, 0),
                Err(RecvTimeoutError::Timeout) => self.try_again(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn try_again(&mut self) {
        let now = Instant::now();
        let is_due = |(due, ..): &mut (Instant, PathBuf, u32)| *due <= now;
        let due: Vec<_> = self.failed.extract_if(.., is_due).collect();
        for (_, path, tried) in due {
            self.archive(path, tried);
        }
    }

    fn archive(&mut self, path: PathBuf, tried: u32) {
        let Err(error) = run(&self.command, &path) else {
            return;
        };
        let shown = path.display();
        if !path.exists() {
            tracing::warn!(path = %shown, "a segment of the full query log was deleted before it could be archived");
        } else if tried < self.retries_max {
            tracing::warn!(path = %shown, error, "a segment of the full query log can't be archived; trying again later");
            self.failed.push((Instant::now() + RETRY_AFTER, path, tried + 1));
        } else {
            tracing::warn!(path = %shown, error, "a segment of the full query log can't be archived and is left");
        }
    }
}

/// Runs a command without a shell, because a path may contain any characters.
fn run(command: &str, path: &Path) -> Result<(), String> {
    let shown = path.display().to_string();
    let mut words = command.split_whitespace().map(|word| word.replace(PATH, &shown));
    let program = words.next().ok_or("the command is empty")?;
    let ended = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{}: {}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr).trim()
        )),
    }
}
