//! The network as nodes use it, as a trait, so that a simulator can replace it.

mod connection;
mod tcp;

use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

pub use connection::Connection;
pub use tcp::Tcp;

/// Byte streams between addresses.
#[async_trait]
pub trait Network: Send + Sync + 'static {
    /// Listens on an address.
    ///
    /// # Errors
    /// The address is in use, or is not of this machine.
    async fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>>;

    /// Connects to an address, which is an IP address or a name with a port.
    ///
    /// # Errors
    /// The name has no address, or nothing listens there.
    async fn connect(&self, address: &str) -> io::Result<Connection>;
}

/// An open port. Dropping it closes the port; its connections stay open.
#[async_trait]
pub trait Listener: Send + 'static {
    /// Returns the address of the port. If the requested port was 0, the address has the port that was chosen.
    fn address(&self) -> io::Result<SocketAddr>;

    /// Waits for the next connection, and returns it with the address of its other end. May be cancelled without losing a connection.
    async fn accept(&mut self) -> io::Result<(Connection, SocketAddr)>;
}

/// A byte stream in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}
