//! Accepts connections, and closes them in order when the server stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use helenus_cql::frame::response::Event;
use tokio::sync::{Mutex, broadcast, watch};
use tokio::task::JoinHandle;

use super::backend::Backend;
use super::config::ServerConfig;
use super::connection::Connection;
use super::events::EventBroadcaster;
use super::server_state::{ServerState, Stopping};
use crate::logs::slow::{KeptRequest, SlowLog};
use crate::metrics::Metrics;
use crate::network::{self, Listener, Network, Tcp};
use crate::threads::long_requests::LongRequestPool;
use crate::tls::Stream;

/// Time for which accepting pauses when the machine has no file descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum time for running requests to finish after the transport was disabled.
const DISABLE_PATIENCE: Duration = Duration::from_secs(1);

/// A running native transport. If dropped without [`Server::stop`], it runs until the runtime ends.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    transport: Transport,
    connections: Arc<AtomicUsize>,
    shutdown_timeout: Duration,
    events: Arc<EventBroadcaster>,
    metrics: Arc<Metrics>,
    slow: SlowRequestLog,
}

/// Sends events to a server's clients.
#[derive(Clone)]
pub struct EventSender(Arc<EventBroadcaster>);

/// Handle to a server's log of slow requests.
#[derive(Clone)]
pub struct SlowRequestLog(Arc<SlowLog>);

impl SlowRequestLog {
    /// Sets the duration above which requests are logged. `None` logs no request.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.0.set_timeout(timeout);
    }

    /// Sets the number of the latest slow requests that are kept in memory.
    pub fn set_kept(&self, kept: usize) {
        self.0.set_kept(kept);
    }

    /// Returns the slow requests that are kept, the newest first.
    pub(crate) fn kept(&self) -> Vec<KeptRequest> {
        self.0.kept()
    }
}

impl EventSender {
    /// Sends an event to the connections that registered for events of its type.
    pub fn send(&self, event: &Event) {
        self.0.send(event);
    }
}

impl Server {
    /// Binds the address and begins to accept connections.
    ///
    /// # Errors
    /// The address cannot be bound, or no threads can be started.
    pub async fn start<B: Backend>(config: ServerConfig, backend: B) -> io::Result<Server> {
        Server::start_on(Arc::new(Tcp), config, backend).await
    }

    /// Binds the address on a network and begins to accept connections.
    ///
    /// # Errors
    /// The address cannot be bound, or no threads can be started.
    pub async fn start_on<B: Backend>(
        network: Arc<dyn Network>,
        config: ServerConfig,
        backend: B,
    ) -> io::Result<Server> {
        let listener = network.listen(config.listen).await?;
        let address = listener.address()?;
        let shutdown_timeout = config.shutdown_timeout;
        let events = Arc::new(EventBroadcaster::default());
        let changes = backend.schema_changes();
        let metrics = Arc::new(Metrics::default());
        let server = Arc::new(ServerState::new(
            backend,
            config,
            metrics.clone(),
            events.clone(),
            LongRequestPool::start()?,
        ));
        let slow = SlowRequestLog(server.slow.clone());
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(forward_schema_changes(changes, events.clone(), stopped));
        let connections = Arc::new(AtomicUsize::new(0));
        let begin = {
            let connections = connections.clone();
            move |listener| Listening::begin(listener, server.clone(), connections.clone())
        };
        let transport = Transport {
            network,
            address,
            is_enabled: Arc::new(AtomicBool::new(true)),
            listening: Arc::new(Mutex::new(Some(begin(listener)))),
            begin: Arc::new(begin),
        };
        Ok(Server {
            address,
            stop,
            transport,
            connections,
            shutdown_timeout,
            events,
            metrics,
            slow,
        })
    }

    /// Returns the address on which the server listens. If the configured port was 0, the address has the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the handle with which commands close and open the port.
    pub fn transport(&self) -> Transport {
        self.transport.clone()
    }

    /// Returns the metrics of the server's requests.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns the handle with which settings of slow requests change while the server runs.
    pub fn slow_request_log(&self) -> SlowRequestLog {
        self.slow.clone()
    }

    /// Returns the sender of events other than schema changes. The server sends schema changes by itself.
    pub fn announcer(&self) -> EventSender {
        EventSender(self.events.clone())
    }

    /// Stops accepting, waits until running requests are answered, and closes the connections.
    pub async fn stop(self) {
        self.stop_after(std::future::ready(()), Duration::ZERO).await;
    }

    /// Stops accepting, and closes each connection when nothing runs on it. Requests on open connections are still served until `done`
    /// completes, and then for at most `patience`. Then it stops as [`Server::stop`] does.
    pub async fn stop_after(self, done: impl Future<Output = ()>, patience: Duration) {
        self.stop.send_replace(true);
        let stop = match self.transport.listening.lock().await.take() {
            Some(listening) => Some(listening.end().await),
            None => None,
        };
        done.await;
        self.ended_within(patience).await;
        if let Some(stop) = stop {
            stop.send_replace(Stopping::Now);
        }
        self.ended_within(self.shutdown_timeout).await;
        let left = self.connections.load(Ordering::Acquire);
        if left > 0 {
            tracing::warn!(left, "connections had requests running when the server stopped");
        }
    }

    /// Waits until no connection is left, for at most `limit`.
    async fn ended_within(&self, limit: Duration) {
        let deadline = tokio::time::Instant::now() + limit;
        while self.connections.load(Ordering::Acquire) > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A switch for a server's port (Cassandra's `nodetool enablebinary`, `disablebinary`, `statusbinary`).
#[derive(Clone)]
pub struct Transport {
    network: Arc<dyn Network>,
    address: SocketAddr,
    is_enabled: Arc<AtomicBool>,
    /// `None` while the transport is disabled, and after the server has stopped.
    listening: Arc<Mutex<Option<Listening>>>,
    begin: Arc<dyn Fn(Box<dyn Listener>) -> Listening + Send + Sync>,
}

impl Transport {
    /// Returns true while clients can connect.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Opens the port, if it is closed.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn enable(&self) -> io::Result<()> {
        let mut listening = self.listening.lock().await;
        if listening.is_none() {
            *listening = Some((self.begin)(self.network.listen(self.address).await?));
            self.is_enabled.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Closes the port. Connections close when their running requests are answered, or after a second.
    pub async fn disable(&self) {
        let mut listening = self.listening.lock().await;
        if let Some(listening) = listening.take() {
            self.is_enabled.store(false, Ordering::Relaxed);
            let stop = listening.end().await;
            tokio::spawn(async move {
                tokio::time::sleep(DISABLE_PATIENCE).await;
                stop.send_replace(Stopping::Now);
            });
        }
    }
}

/// An open port and its connections.
struct Listening {
    stop: watch::Sender<Stopping>,
    accepting: JoinHandle<()>,
}

impl Listening {
    fn begin<B: Backend>(
        listener: Box<dyn Listener>,
        server: Arc<ServerState<B>>,
        connections: Arc<AtomicUsize>,
    ) -> Listening {
        let (stop, stopped) = watch::channel(Stopping::No);
        Listening {
            stop,
            accepting: tokio::spawn(accept(listener, server, connections, stopped)),
        }
    }

    /// Closes the port. Each connection closes when nothing runs on it. The returned sender can stop the connections at once.
    async fn end(self) -> watch::Sender<Stopping> {
        self.stop.send_replace(Stopping::WhenIdle);
        let _ = self.accepting.await;
        self.stop
    }
}

async fn forward_schema_changes(
    mut changes: broadcast::Receiver<helenus_cql::frame::response::SchemaChange>,
    events: Arc<EventBroadcaster>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => events.send(&Event::SchemaChange(change)),
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    tracing::warn!(lost, "schema events were lost");
                }
                Err(broadcast::error::RecvError::Closed) => return,
            },
            _ = stopped.changed() => return,
        }
    }
}

/// Counts a connection until it is dropped.
struct Counted {
    connections: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.connections.fetch_sub(1, Ordering::AcqRel);
        self.metrics.connections(before.saturating_sub(1));
    }
}

async fn accept<B: Backend>(
    mut listener: Box<dyn Listener>,
    server: Arc<ServerState<B>>,
    connections: Arc<AtomicUsize>,
    mut stopped: watch::Receiver<Stopping>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        match accepted {
            Ok((socket, peer)) => begin(socket, peer, &server, &connections, &stopped),
            Err(error) => {
                if let Some(suppressed) = server.refusals.take() {
                    tracing::warn!(%error, suppressed, "cannot accept a connection");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn begin<B: Backend>(
    socket: network::Connection,
    peer: SocketAddr,
    server: &Arc<ServerState<B>>,
    connections: &Arc<AtomicUsize>,
    stopped: &watch::Receiver<Stopping>,
) {
    let count = connections.fetch_add(1, Ordering::AcqRel) + 1;
    let counted = Counted {
        connections: connections.clone(),
        metrics: server.metrics.clone(),
    };
    let limit = server.config.connections_max;
    if count > limit {
        server.metrics.connection_refused();
        if let Some(suppressed) = server.refusals.take() {
            tracing::warn!(%peer, limit, suppressed, "connection refused: connections_max is reached");
        }
        return;
    }
    server.metrics.connections(count);
    let (server, stopped) = (server.clone(), stopped.clone());
    tokio::spawn(async move {
        let login_deadline = Instant::now() + server.config.startup_timeout;
        match encrypted(socket, login_deadline, &server).await {
            Ok(stream) => {
                let connection = Connection::new(stream, peer, login_deadline, server);
                connection.run(stopped).await;
            }
            Err(error) => {
                if let Some(suppressed) = server.refusals.take() {
                    tracing::info!(%peer, %error, suppressed, "a connection could not be encrypted");
                }
            }
        }
        drop(counted);
    });
}

/// Returns the client's stream, encrypted if TLS is configured and the client uses it.
async fn encrypted<B: Backend>(
    socket: network::Connection,
    deadline: Instant,
    server: &ServerState<B>,
) -> io::Result<Stream> {
    let Some(tls) = &server.config.tls else {
        return Ok(Stream::Plain(socket));
    };
    tokio::time::timeout_at(deadline.into(), tls.accept(socket))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
