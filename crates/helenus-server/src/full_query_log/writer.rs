//! The thread that writes the log.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::dropped::{Dropped, Reason};
use super::segments::Segments;

/// How often the thread looks whether a segment's cycle is over, if there is nothing to write.
const ROLL_CHECK: Duration = Duration::from_secs(1);
/// How long nothing is tried after the disk has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What the thread is sent.
pub(super) enum Message {
    /// A record, and its place in the queue, which is free when it is written.
    Record(Bytes, OwnedSemaphorePermit),
    Stop,
}

/// Writes what is sent until it is told to stop, and closes the last segment.
pub(super) struct Writer {
    pub segments: Segments,
    pub messages: Receiver<Message>,
    pub dropped: Dropped,
    /// The disk has failed, and is not tried before that.
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

    /// Writes a message and those that wait behind it; false if the thread is to stop.
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

    /// A record that can't be written is lost: requests go on without the log.
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
