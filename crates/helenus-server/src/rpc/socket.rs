//! The byte stream between two nodes, encrypted if TLS is configured.

use std::io;

use super::Tls;
use crate::network::{Connection, Network};

/// Connects to the address of another node.
///
/// # Errors
/// The node is not reached, or its certificate is not of the cluster.
pub(super) async fn connect(
    network: &dyn Network,
    address: &str,
    tls: Option<&Tls>,
) -> io::Result<Connection> {
    let plain = network.connect(address).await?;
    let Some(tls) = tls else {
        return Ok(plain);
    };
    let encrypted = tls.connector().connect(Tls::name(), plain).await?;
    Ok(Connection::Other(Box::new(encrypted)))
}

/// Accepts a connection.
///
/// # Errors
/// The TLS handshake fails.
pub(super) async fn accept(plain: Connection, tls: Option<&Tls>) -> io::Result<Connection> {
    let Some(tls) = tls else {
        return Ok(plain);
    };
    let encrypted = tls.acceptor().accept(plain).await?;
    Ok(Connection::Other(Box::new(encrypted)))
}
