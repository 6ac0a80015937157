//! The server of this node's port for other nodes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helenus_cluster::DocumentVersion;
use helenus_query::engine::Engine;
use tokio::sync::{mpsc, watch};

use super::acceptor::Acceptor;
use super::node_service::NodeService;
use super::peer_auth::{LocalIdentity, PeerGuard};
use super::request_handler::RequestHandler;
use super::secret::Secret;
use super::served_requests::ServedBy;
use super::stopping::Stopping;
use super::{TabletReleased, Tls};
use crate::network::Network;
use crate::threads::long_requests::LongRequestPool;

/// Time without calls after which the server stops. Other nodes need a moment to see that this node has left. A call that is in flight when
/// a connection closes gets no response.
const QUIET: Duration = Duration::from_millis(100);
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);

/// Maximum number of notifications about closed tablets that wait. Further ones are dropped.
const RELEASED_MAX: usize = 64;

/// A running server for the other nodes.
pub struct RpcServer {
    address: SocketAddr,
    /// Number of requests so far, without greetings.
    calls: Arc<AtomicU64>,
    announced: watch::Receiver<DocumentVersion>,
    released: Option<mpsc::Receiver<TabletReleased>>,
    stop: watch::Sender<Stopping>,
    /// Channel that ends when all connections have ended.
    running: mpsc::Receiver<()>,
}

impl RpcServer {
    /// Binds the address and begins to serve.
    ///
    /// # Errors
    /// The address cannot be bound, or no threads can be started.
    pub async fn start(
        network: &dyn Network,
        address: SocketAddr,
        engine: Arc<Engine>,
        cluster_name: String,
        own: LocalIdentity,
        secret: Secret,
        tls: Option<&Tls>,
    ) -> io::Result<RpcServer> {
        let listener = network.listen(address).await?;
        let address = listener.address()?;
        let calls = Arc::<AtomicU64>::default();
        let (tell, announced) = watch::channel(DocumentVersion::default());
        let (release, released) = mpsc::channel(RELEASED_MAX);
        let (stop, stopping) = watch::channel(Stopping::No);
        let (connected, running) = mpsc::channel(1);
        let service = NodeService {
            handler: RequestHandler {
                engine,
                long_requests: Arc::new(LongRequestPool::start()?),
                calls: calls.clone(),
            },
            cluster_name,
            host_id: own.host_id.0,
            store: own.store,
            tell,
            release,
        };
        let guard = PeerGuard {
            secret,
            own,
            refusals: Arc::default(),
        };
        let acceptor = Acceptor {
            server: Arc::new(ServedBy { service, guard }),
            tls: tls.cloned(),
            stopping,
            running: connected,
        };
        tokio::spawn(acceptor.run(listener));
        Ok(RpcServer {
            address,
            calls,
            announced,
            released: Some(released),
            stop,
            running,
        })
    }

    /// Returns a channel with the newest version of the cluster document that another node has sent.
    pub fn announced(&self) -> watch::Receiver<DocumentVersion> {
        self.announced.clone()
    }

    /// Returns a channel with the notifications about closed tablets. `None` if it was taken before.
    pub fn released(&mut self) -> Option<mpsc::Receiver<TabletReleased>> {
        self.released.take()
    }

    /// Returns the address on which the server listens. If the configured port was 0, the address has the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server. First waits a little until other nodes send no more calls. Then closes the port, and waits for running calls, for
    /// at most `at_most`. Calls that arrive meanwhile are declined, so that their senders know that they were not executed.
    pub async fn stop(mut self, at_most: Duration) {
        let _ = tokio::time::timeout(QUIET_WAIT_MAX, self.quiet()).await;
        self.stop.send_replace(Stopping::WhenIdle);
        let _ = tokio::time::timeout(at_most, self.running.recv()).await;
        self.stop.send_replace(Stopping::Now);
    }

    async fn quiet(&self) {
        loop {
            let before = self.calls.load(Ordering::Relaxed);
            tokio::time::sleep(QUIET).await;
            if self.calls.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}
