//! The machine's network.

use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use tokio::net::{TcpListener, TcpStream};

use super::{Connection, Listener, Network};

/// TCP. Small writes are sent at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

#[async_trait]
impl Network for Tcp {
    async fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(TcpListener::bind(address).await?))
    }

    async fn connect(&self, address: &str) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection::Tcp(stream))
    }
}

#[async_trait]
impl Listener for TcpListener {
    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    async fn accept(&mut self) -> io::Result<(Connection, SocketAddr)> {
        let (stream, other) = TcpListener::accept(self).await?;
        // The option cannot be set if the other end has already closed the connection, which the first read reports.
        let _ = stream.set_nodelay(true);
        Ok((Connection::Tcp(stream), other))
    }
}
