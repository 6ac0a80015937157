//! The frames that a connection is writing. Small bodies are copied into one buffer, and large ones are written as they are.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::frame::{HEADER_LEN, Header};

/// Bytes of a body up to which copying costs less than a part of its own in a vectored write.
const COPIED_LEN_MAX: usize = 4 << 10;
/// Maximum number of parts in a vectored write.
const PARTS_MAX: usize = 64;
/// Maximum capacity of the empty buffer that is kept.
const KEPT_LEN: usize = 256 << 10;

/// Frames in the order in which they are written.
#[derive(Default)]
pub(super) struct Output {
    parts: VecDeque<Bytes>,
    /// Written after `parts`.
    last: BytesMut,
    /// Bytes that are yet to be written.
    len: usize,
    /// Bytes of all frames so far.
    pushed: u64,
}

impl Output {
    /// Appends a frame.
    pub fn push(&mut self, header: &Header, body: BytesMut) {
        header.encode(body.len(), &mut self.last);
        let len = HEADER_LEN + body.len();
        self.len += len;
        self.pushed += len as u64;
        if body.len() <= COPIED_LEN_MAX {
            self.last.extend_from_slice(&body);
        } else {
            self.parts.push_back(self.last.split().freeze());
            self.parts.push_back(body.freeze());
        }
    }

    /// Returns the number of bytes of all frames so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Returns the number of bytes that have been written.
    pub fn written(&self) -> u64 {
        self.pushed - self.len as u64
    }

    /// Returns the number of bytes that are yet to be written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes all frames. Ready when nothing is left to write.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        while self.len > 0 {
            let mut slices = [IoSlice::new(&[]); PARTS_MAX];
            let parts = self.parts.iter().map(Bytes::as_ref);
            let parts = parts.chain(std::iter::once(self.last.as_ref()));
            let mut count = 0;
            for (slice, part) in slices.iter_mut().zip(parts.filter(|part| !part.is_empty())) {
                *slice = IoSlice::new(part);
                count += 1;
            }
            let slices = slices.get(..count).unwrap_or_default();
            let written = ready!(Pin::new(&mut *socket).poll_write_vectored(cx, slices))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, written: usize) {
        self.len -= written;
        let mut left = written;
        while let Some(part) = self.parts.front_mut() {
            if left < part.len() {
                part.advance(left);
                return;
            }
            left -= part.len();
            self.parts.pop_front();
        }
        self.last.advance(left);
        if self.last.is_empty() && self.last.capacity() > KEPT_LEN {
            self.last = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut;

    use super::super::frame::{Frame, FrameDecoder, Kind};
    use super::*;

    impl Output {
        /// Returns the frames that are yet to be written.
        pub fn frames(&self) -> Vec<Frame> {
            let mut bytes: Vec<u8> = self.parts.iter().flatten().copied().collect();
            bytes.extend_from_slice(&self.last);
            decoded(&bytes)
        }
    }

    fn decoded(mut bytes: &[u8]) -> Vec<Frame> {
        let (mut decoder, mut frames) = (FrameDecoder::default(), Vec::new());
        loop {
            while let Some(frame) = decoder.decode().unwrap() {
                frames.push(frame);
            }
            if bytes.is_empty() {
                return frames;
            }
            let mut room = decoder.room(1000);
            let len = bytes.len().min(room.remaining_mut());
            let (now, later) = bytes.split_at(len);
            room.put_slice(now);
            bytes = later;
        }
    }

    /// A socket that takes a few bytes at a time.
    struct Slow(Vec<u8>, usize);

    impl AsyncWrite for Slow {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let this = self.get_mut();
            let len = bytes.len().min(this.1);
            this.0.extend_from_slice(&bytes[..len]);
            Poll::Ready(Ok(len))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn frames_are_written_in_order_whatever_their_size() {
        let sizes = [0, 10, COPIED_LEN_MAX, COPIED_LEN_MAX + 1, 100_000, 3, 0];
        for step in [7, 5000, usize::MAX] {
            let (mut output, mut socket) = (Output::default(), Slow(Vec::new(), step));
            for (id, size) in sizes.into_iter().enumerate() {
                let header = Header::new(Kind::Answer, id as u32);
                output.push(&header, BytesMut::from(vec![id as u8; size].as_slice()));
            }
            let write = std::future::poll_fn(|cx| output.poll_write(cx, &mut socket));
            write.await.unwrap();
            assert_eq!((output.len(), output.written()), (0, socket.0.len() as u64));
            let mut ids = Vec::new();
            for frame in decoded(&socket.0) {
                let id = frame.header.id;
                assert_eq!(frame.body, vec![id as u8; sizes[id as usize]]);
                ids.push(id);
            }
            assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6]);
        }
    }
}
