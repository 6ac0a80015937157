//! The byte stream between two nodes, encrypted if TLS is configured.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;

use super::Tls;
use crate::network::{Connection, Network};

/// A byte stream.
pub(super) enum Socket {
    Plain(Connection),
    Encrypted(Box<TlsStream<Connection>>),
}

impl Socket {
    /// Connects to the address of another node.
    ///
    /// # Errors
    /// The node is not reached, or its certificate is not of the cluster.
    pub async fn connect(network: &dyn Network, address: &str, tls: Option<&Tls>) -> io::Result<Socket> {
        let plain = network.connect(address).await?;
        let Some(tls) = tls else {
            return Ok(Socket::Plain(plain));
        };
        let encrypted = tls.connector().connect(Tls::name(), plain).await?;
        Ok(Socket::Encrypted(Box::new(encrypted.into())))
    }

    /// Accepts a connection.
    ///
    /// # Errors
    /// The TLS handshake fails.
    pub async fn accept(plain: Connection, tls: Option<&Tls>) -> io::Result<Socket> {
        let Some(tls) = tls else {
            return Ok(Socket::Plain(plain));
        };
        let encrypted = tls.acceptor().accept(plain).await?;
        Ok(Socket::Encrypted(Box::new(encrypted.into())))
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_read(cx, into),
            Socket::Encrypted(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Socket::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, parts),
            Socket::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Socket::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Socket::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
