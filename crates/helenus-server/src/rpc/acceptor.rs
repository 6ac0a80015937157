//! Accepts connections of other nodes. Until a caller is authenticated, its connection costs a socket, a few hundred bytes and a few seconds.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::Tls;
use super::handshake::Hello;
use super::introduction::{admit, note_older_version};
use super::served_connection::ServedConnection;
use super::served_requests::ServedBy;
use super::socket;
use super::stopping::Stopping;
use super::strangers::{Stranger, Strangers};
use crate::network::{Connection, Listener};

/// Maximum number of connections whose callers are not authenticated yet.
const STRANGERS_MAX: usize = 256;
/// Maximum time for a caller to authenticate itself.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which accepting pauses when the machine has no file descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections.
#[derive(Clone)]
pub(super) struct Acceptor {
    pub server: Arc<ServedBy>,
    pub tls: Option<Tls>,
    pub stopping: watch::Receiver<Stopping>,
    /// Each connection holds a sender, so that the receiver's end shows that all connections have ended.
    pub running: mpsc::Sender<()>,
}

impl Acceptor {
    /// Accepts connections until the server stops.
    pub async fn run(self, mut listener: Box<dyn Listener>) {
        let strangers = Strangers::new(STRANGERS_MAX);
        let mut stopping = self.stopping.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopping.wait_for(|now| *now > Stopping::No) => return,
            };
            match accepted {
                Ok((socket, _)) => {
                    tokio::spawn(self.clone().serve(socket, strangers.enter()));
                }
                Err(error) => {
                    self.note_no_accept(&error);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection until it ends.
    async fn serve(self, socket: Connection, stranger: Stranger) {
        let mut stopping = self.stopping.clone();
        let admitted = tokio::select! {
            admitted = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.admit(socket)) => admitted,
            () = stranger.evicted() => return,
            _ = stopping.wait_for(|now| *now > Stopping::No) => return,
        };
        drop(stranger);
        match admitted {
            Ok(Ok(Some((socket, hello)))) => {
                let (node, traffic) = (&hello.claim.name, hello.traffic);
                tracing::debug!(
                    node,
                    ?traffic,
                    protocol = hello.protocol,
                    "another node has connected"
                );
                let connection = ServedConnection::new(self.server, socket, hello, self.stopping);
                connection.run().await;
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "a connection to the port for other nodes ended in the handshake")
            }
            Err(_) => tracing::debug!(
                "a connection to the port for other nodes has not begun with a handshake in time"
            ),
        }
        drop(self.running);
    }

    async fn admit(&self, socket: Connection) -> io::Result<Option<(Connection, Hello)>> {
        let guard = &self.server.guard;
        let mut socket = match socket::accept(socket, self.tls.as_ref()).await {
            Ok(socket) => socket,
            Err(error) if speaks_other_protocol(&error) => {
                note_older_version(guard);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let hello = admit(&mut socket, guard).await?;
        Ok(hello.map(|hello| (socket, hello)))
    }

    fn note_no_accept(&self, error: &io::Error) {
        let refusals = &self.server.guard.refusals;
        if refusals.should_log(Uuid::nil(), "accept", Duration::ZERO) {
            tracing::warn!(%error, "cannot accept a connection of another node");
        }
    }
}

/// Returns true if the caller's TLS names protocols, and not this one. Nodes of older versions name HTTP/2.
fn speaks_other_protocol(error: &io::Error) -> bool {
    let tls = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::NoApplicationProtocol))
}
