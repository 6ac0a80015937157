//! A connection after the handshake: frames that are read from the socket, and frames that are written to it.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWrite};

use super::frame::{Frame, FrameDecoder, FrameError};
use super::output::Output;
use crate::network::Connection;

/// Bytes of the first read, and maximum bytes of a read. Each read is as long as the former ones suggest.
const READ_LEN_MIN: usize = 4 << 10;
const READ_LEN_MAX: usize = 128 << 10;

/// An open connection.
pub(super) struct Wire {
    socket: Connection,
    decoder: FrameDecoder,
    pub output: Output,
    read_len: usize,
    /// Time of the last read from the socket.
    pub last_read: Instant,
    /// True if bytes were written that the socket may still hold back.
    is_unflushed: bool,
}

impl Wire {
    pub fn new(socket: Connection) -> Wire {
        Wire {
            socket,
            decoder: FrameDecoder::default(),
            output: Output::default(),
            read_len: READ_LEN_MIN,
            last_read: Instant::now(),
            is_unflushed: false,
        }
    }

    /// Returns the next frame that was read completely. `None` if there is none.
    ///
    /// # Errors
    /// The bytes are not frames.
    pub fn decode(&mut self) -> Result<Option<Frame>, FrameError> {
        self.decoder.decode()
    }

    /// Reads from the socket. Call it only when no complete frame is left. Returns the number of bytes, 0 at the end.
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = self.decoder.room(self.read_len);
        let len = ready!(pin!(self.socket.read_buf(&mut room)).poll(cx))?;
        self.last_read = Instant::now();
        if len >= self.read_len {
            self.read_len = (self.read_len * 2).min(READ_LEN_MAX);
        } else if len < self.read_len / 8 {
            self.read_len = (self.read_len / 2).max(READ_LEN_MIN);
        }
        Poll::Ready(Ok(len))
    }

    /// Writes the output. Ready when everything is written.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_unflushed |= self.output.len() > 0;
        ready!(self.output.poll_write(cx, &mut self.socket))?;
        if self.is_unflushed {
            ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the output in order, so that the other node can read what was written.
    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
