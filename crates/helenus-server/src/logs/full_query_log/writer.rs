//! The thread that writes the log.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::dropped::{Dropped, Reason};
use super::segments::Segments;

/// Interval at which an idle thread checks whether a segment's cycle is over.
const ROLL_CHECK: Duration = Duration::from_secs(1);
/// Time for which nothing is written after the disk has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// A message to the writer thread.
pub(super) enum Message {
    /// A record, and its part of the queue, which is released when the record is written.
    Record(Bytes, OwnedSemaphorePermit),
    Stop,
}

/// Writes records until it receives [`Message::Stop`], and closes the last segment.
pub(super) struct Writer {
    pub segments: Segments,
    pub messages: Receiver<Message>,
    pub dropped: Dropped,
    /// Time until which nothing is written, because the disk has failed. `None` if it has not.
    pub failed_until: Option<Instant>,
}

impl Writer {
    pub fn run(mut self) {
        loop {
            match self.messages.recv_timeout(ROLL_CHECK) {
                Ok(message) => {
                    if !self.write_waiting(message) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.segments.roll_if_due(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.segments.close();
    }

    /// Writes a message and those that wait behind it. Returns false if the thread must stop.
    fn write_waiting(&mut self, first: Message) -> bool {
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Record(record, _place) => self.write(&record),
                Message::Stop => return false,
            }
            next = self.messages.try_recv().ok();
        }
        if let Err(error) = self.segments.flush() {
            self.fail(&error);
        }
        true
    }

    /// Writes a record. A record that cannot be written is lost, so that requests do not wait for the disk.
    fn write(&mut self, record: &[u8]) {
        if self.failed_until.is_some_and(|until| Instant::now() < until) {
            return self.dropped.count(Reason::Disk);
        }
        self.failed_until = None;
        if let Err(error) = self.segments.write(record) {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &std::io::Error) {
        tracing::warn!(%error, "the full query log can't be written");
        self.failed_until = Some(Instant::now() + AFTER_FAILURE);
        self.dropped.count(Reason::Disk);
    }
}
