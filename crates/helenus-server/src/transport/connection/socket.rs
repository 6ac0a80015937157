//! Reads from and writes to a connection's socket.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf, BufMut, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::{OutputEncoder, ProtocolVersion, Response, ResponseMessage};
use helenus_query::limits::answers::Reservation;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::completion_log::PendingReport;
use super::{Connection, LINGER, READ_LEN_MIN};
use crate::tls::Stream;
use crate::transport::Backend;

const READ_LEN_MAX: usize = 128 * 1024;
/// Maximum capacity of an empty buffer that is kept. Larger ones are released.
const OUTPUT_KEPT_LEN: usize = 256 * 1024;

/// Maximum bytes that are written to the socket in one call.
const WRITE_LEN_MAX: usize = 64 * 1024;
/// Maximum bytes that are written before other connections get their turn, so that a fast reader does not delay them.
const SENT_LEN_MAX: usize = 512 * 1024;

/// The bytes of a long response that are yet to be sent.
pub(super) struct LargeResponse {
    pub bytes: BytesMut,
    /// Memory reserved for the response.
    pub reserved: Option<Reservation>,
}

impl LargeResponse {
    /// Returns true if the response has reserved memory, and other responses lack memory.
    pub fn is_missed(&self) -> bool {
        self.reserved.as_ref().is_some_and(Reservation::is_scarce)
    }
}

/// The responses of a connection that are yet to be sent.
pub(super) struct Output {
    pub encoder: OutputEncoder,
    /// Responses of a v5 connection that are not yet wrapped in segments.
    pub envelopes: BytesMut,
    /// Bytes that can be sent.
    pub bytes: BytesMut,
    /// Long responses, with the memory that they have reserved. They are sent one at a time. `bytes` is sent before each of them.
    pub large: VecDeque<LargeResponse>,
    /// True if a part of the first long response has been sent.
    pub is_sending_large: bool,
    /// Number of requests answered so far. It may wrap around.
    pub answered: u32,
    /// Requests that will be reported when their responses have been sent.
    pub pending_reports: Vec<PendingReport>,
}

impl Output {
    pub fn new() -> Output {
        Output {
            encoder: OutputEncoder::unstarted(),
            envelopes: BytesMut::new(),
            bytes: BytesMut::new(),
            large: VecDeque::new(),
            is_sending_large: false,
            answered: 0,
            pending_reports: Vec::new(),
        }
    }
}

impl<B: Backend> Connection<B> {
    /// Reads from the socket. Call it only when the bytes read before contain no complete request.
    pub(super) fn read_more(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<usize>> {
        let is_partial = !self.input.bytes.is_empty() || self.input.decoder.buffered_len() > 0;
        let partial_since = self.input.partial_since.take().unwrap_or(self.input.last_read);
        self.input.partial_since = is_partial.then_some(partial_since);
        self.fill(cx)
    }

    fn fill(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<usize>> {
        self.input.bytes.reserve(self.input.read_len);
        // The buffer may have room for a whole body. The limit prevents reading more than the node has memory for.
        let mut room = (&mut self.input.bytes).limit(self.input.read_len);
        let read = pin!(self.socket.read_buf(&mut room)).poll(cx);
        let Poll::Ready(len) = read else {
            return Ok(Poll::Pending);
        };
        let len = len?;
        self.input.last_read = Instant::now();
        self.memory.moved(len);
        self.server.metrics.received(len);
        // The length of the next read follows that of this one.
        if !self.session.state.is_ready() {
            return Ok(Poll::Ready(len));
        }
        if len >= self.input.read_len {
            self.input.read_len = (self.input.read_len * 2).min(READ_LEN_MAX);
        } else if len < self.input.read_len / 8 {
            self.input.read_len = (self.input.read_len / 2).max(READ_LEN_MIN);
        }
        Ok(Poll::Ready(len))
    }

    /// Returns the bytes of responses that are yet to be sent.
    pub(super) fn output_len(&self) -> usize {
        let long: usize = self.output.large.iter().map(|long| long.bytes.len()).sum();
        self.short_output_len() + long
    }

    /// Returns the bytes of responses without a reservation of memory that are yet to be sent.
    pub(super) fn short_output_len(&self) -> usize {
        self.output.envelopes.len() + self.output.bytes.len()
    }

    /// Sends responses. Ready when all are sent: true if anything was sent now.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if !self.output.envelopes.is_empty() {
            self.output
                .encoder
                .wrap(&self.output.envelopes, &mut self.output.bytes);
            self.output.envelopes.clear();
            give_back(&mut self.output.envelopes);
        }
        let mut wrote = false;
        let mut sent_len = 0;
        while let Some((next, is_large)) = next_bytes(
            &mut self.output.large,
            self.output.is_sending_large,
            &mut self.output.bytes,
        ) {
            let part = next.get(..WRITE_LEN_MAX).unwrap_or_else(|| next.as_ref());
            let len = ready!(Pin::new(&mut self.socket).poll_write(cx, part))?;
            if len == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            next.advance(len);
            self.output.is_sending_large = is_large && !next.is_empty();
            if is_large && !self.output.is_sending_large {
                self.output.large.pop_front();
            }
            self.memory.moved(len);
            self.server.metrics.sent(len);
            wrote = true;
            sent_len += len;
            if sent_len >= SENT_LEN_MAX && self.output_len() > 0 {
                self.slice.is_over = true;
                return Poll::Pending;
            }
        }
        give_back(&mut self.output.bytes);
        // Sends bytes that are encrypted but still in the TLS buffer.
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        if !self.output.pending_reports.is_empty() {
            self.report_sent();
        }
        Poll::Ready(Ok(wrote))
    }

    /// Appends a response to the output. Errors are counted, and translated if the client does not know them.
    pub(super) fn send(&mut self, version: ProtocolVersion, stream: i16, message: &ResponseMessage) {
        let mut translated = None;
        if let Response::Error(error) = &message.response {
            self.server.metrics.failed(error);
            let error = error.for_client(self.session.state.knows_rate_limits());
            translated = error.map(|error| ResponseMessage {
                response: Response::Error(error),
                ..message.clone()
            });
        }
        self.put(version, stream, translated.as_ref().unwrap_or(message));
    }

    /// Appends a response to the output, without counting or translating it.
    pub(super) fn put(&mut self, version: ProtocolVersion, stream: i16, message: &ResponseMessage) {
        let out = if self.output.encoder.is_segmented() {
            &mut self.output.envelopes
        } else {
            &mut self.output.bytes
        };
        self.output.encoder.response(version, stream, message, out);
    }

    pub(super) fn send_error(&mut self, version: ProtocolVersion, stream: i16, error: CqlError) {
        self.send(version, stream, &Response::Error(error).into());
    }

    /// Ends an encrypted connection in order. Otherwise the client could take the end for a truncation attack.
    pub(super) async fn close(&mut self) {
        if matches!(self.socket, Stream::Encrypted(_)) {
            let _ = tokio::time::timeout(LINGER, self.socket.shutdown()).await;
        }
    }

    /// Reads and discards input until the client closes its side, so that it can read the last response. Closing a socket with unread input
    /// would reset the connection, and the response could be lost.
    pub(super) async fn drain_input_before_close(&mut self) {
        let drain = async {
            let _ = self.socket.shutdown().await;
            let mut discarded = [0u8; 4096];
            while self.socket.read(&mut discarded).await.is_ok_and(|len| len > 0) {}
        };
        let _ = tokio::time::timeout(LINGER, drain).await;
    }
}

/// Returns the bytes to send next, and true if they belong to a long response. A long response that was begun is completed first.
fn next_bytes<'b>(
    long: &'b mut VecDeque<LargeResponse>,
    is_sending_large: bool,
    output: &'b mut BytesMut,
) -> Option<(&'b mut BytesMut, bool)> {
    if !is_sending_large && !output.is_empty() {
        return Some((output, false));
    }
    long.front_mut().map(|answer| (&mut answer.bytes, true))
}

fn give_back(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > OUTPUT_KEPT_LEN {
        *buffer = BytesMut::new();
    }
}
