//! What goes through a connection's socket.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::{ProtocolVersion, Response, ResponseMessage};
use helenus_query::limits::answers::Reservation;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Connection, LINGER, Phase, READ_LEN_MIN};
use crate::backend::Backend;
use crate::tls::Stream;

const READ_LEN_MAX: usize = 128 * 1024;
/// A buffer that a long answer has made larger than this is given back.
const OUTPUT_KEPT_LEN: usize = 256 * 1024;

/// The most that is handed to the socket at a time.
const WRITE_LEN_MAX: usize = 64 * 1024;
/// And until others have had their turn: whoever reads fast shall not keep them waiting.
const SENT_LEN_MAX: usize = 512 * 1024;

/// A long answer as it is sent.
pub(super) struct LongAnswer {
    pub bytes: BytesMut,
    /// The memory that it takes.
    pub reserved: Option<Reservation>,
}

impl LongAnswer {
    /// True if others lack the memory that it takes.
    pub fn is_missed(&self) -> bool {
        self.reserved.as_ref().is_some_and(Reservation::is_scarce)
    }
}

impl<B: Backend> Connection<B> {
    /// Reads, when what was read before is no whole request.
    pub(super) fn read_more(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<usize>> {
        let is_partial = !self.input.is_empty() || self.decoder.buffered_len() > 0;
        let partial_since = self.partial_since.take().unwrap_or(self.last_read);
        self.partial_since = is_partial.then_some(partial_since);
        self.fill(cx)
    }

    fn fill(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<usize>> {
        self.input.reserve(self.read_len);
        let read = pin!(self.socket.read_buf(&mut self.input)).poll(cx);
        let Poll::Ready(len) = read else {
            return Ok(Poll::Pending);
        };
        let len = len?;
        self.last_read = Instant::now();
        self.memory.moved(len);
        self.shared.metrics.received(len);
        // The next read is as long as this one suggests.
        if !matches!(self.phase, Phase::Started(_)) {
            return Ok(Poll::Ready(len));
        }
        if len >= self.read_len {
            self.read_len = (self.read_len * 2).min(READ_LEN_MAX);
        } else if len < self.read_len / 8 {
            self.read_len = (self.read_len / 2).max(READ_LEN_MIN);
        }
        Ok(Poll::Ready(len))
    }

    /// Bytes of answers that the client has not taken.
    pub(super) fn output_len(&self) -> usize {
        let long: usize = self.long.iter().map(|long| long.bytes.len()).sum();
        self.short_output_len() + long
    }

    /// Those of answers that have reserved no memory.
    pub(super) fn short_output_len(&self) -> usize {
        self.envelopes.len() + self.output.len()
    }

    /// Sends what is ready to be sent. Ready when nothing is left: true if anything was sent.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if !self.envelopes.is_empty() {
            self.encoder.wrap(&self.envelopes, &mut self.output);
            self.envelopes.clear();
            give_back(&mut self.envelopes);
        }
        let mut wrote = false;
        let mut sent_len = 0;
        while let Some((next, is_long)) = next_bytes(&mut self.long, self.is_sending_long, &mut self.output) {
            let part = next.get(..WRITE_LEN_MAX).unwrap_or_else(|| next.as_ref());
            let len = ready!(Pin::new(&mut self.socket).poll_write(cx, part))?;
            if len == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            next.advance(len);
            self.is_sending_long = is_long && !next.is_empty();
            if is_long && !self.is_sending_long {
                self.long.pop_front();
            }
            self.memory.moved(len);
            self.shared.metrics.sent(len);
            wrote = true;
            sent_len += len;
            if sent_len >= SENT_LEN_MAX && self.output_len() > 0 {
                self.slice_is_over = true;
                return Poll::Pending;
            }
        }
        give_back(&mut self.output);
        // What is encrypted and was not taken yet.
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        if !self.unsent.is_empty() {
            self.tell_sent();
        }
        Poll::Ready(Ok(wrote))
    }

    /// Puts a response where the next flush finds it.
    pub(super) fn send(&mut self, version: ProtocolVersion, stream: i16, message: &ResponseMessage) {
        if let Response::Error(error) = &message.response {
            self.shared.metrics.failed(error);
        }
        let out = if self.encoder.is_segmented() {
            &mut self.envelopes
        } else {
            &mut self.output
        };
        self.encoder.response(version, stream, message, out);
    }

    pub(super) fn send_error(&mut self, version: ProtocolVersion, stream: i16, error: CqlError) {
        self.send(version, stream, &Response::Error(error).into());
    }

    /// Says goodbye to a client that could take the end of an encrypted connection for a cut.
    pub(super) async fn close(&mut self) {
        if matches!(self.socket, Stream::Encrypted(_)) {
            let _ = tokio::time::timeout(LINGER, self.socket.shutdown()).await;
        }
    }

    /// Lets the client read why it was refused: closing with unread input would reset the connection, and the
    /// answer could be lost.
    pub(super) async fn linger(&mut self) {
        let drain = async {
            let _ = self.socket.shutdown().await;
            let mut discarded = [0u8; 4096];
            while self.socket.read(&mut discarded).await.is_ok_and(|len| len > 0) {}
        };
        let _ = tokio::time::timeout(LINGER, drain).await;
    }
}

/// What is to be sent now, and whether it is a long answer. What has been begun is sent to its end first.
fn next_bytes<'b>(
    long: &'b mut VecDeque<LongAnswer>,
    is_sending_long: bool,
    output: &'b mut BytesMut,
) -> Option<(&'b mut BytesMut, bool)> {
    if !is_sending_long && !output.is_empty() {
        return Some((output, false));
    }
    long.front_mut().map(|answer| (&mut answer.bytes, true))
}

fn give_back(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > OUTPUT_KEPT_LEN {
        *buffer = BytesMut::new();
    }
}
