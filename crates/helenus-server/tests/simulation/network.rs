//! The network between simulated nodes: it delays bytes, and can be divided.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use helenus_server::network::{Connection, Listener, Network};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::dice::Dice;
use crate::machine;

/// Delays of bytes in one direction.
const DELAY_MS: std::ops::Range<u64> = 0..4;

/// One direction of a connection.
#[derive(Default)]
struct Pipe {
    from: usize,
    to: usize,
    /// Bytes under way, with their times of arrival.
    bytes: VecDeque<(Duration, Vec<u8>)>,
    /// Time of arrival of the end. `None` while the sender is there.
    end: Option<Duration>,
    /// True if the connection was cut, or if the receiver is gone.
    is_broken: bool,
    reader: Option<Waker>,
}

impl Pipe {
    /// Returns the time of the next arrival.
    fn next(&self) -> Option<Duration> {
        self.bytes.front().map(|(at, _)| *at).or(self.end)
    }
}

/// State of the network.
struct State {
    /// Time by the simulator's clock.
    now: Duration,
    ports: BTreeMap<SocketAddr, (usize, mpsc::UnboundedSender<(Stream, SocketAddr)>)>,
    pipes: BTreeMap<u64, Pipe>,
    next: u64,
    /// Pairs of nodes that do not reach each other.
    divided: BTreeSet<(usize, usize)>,
}

/// The network that all nodes share. The node whose code runs is the one that connects or listens.
#[derive(Clone)]
pub struct SimulatedNetwork {
    state: Arc<Mutex<State>>,
    dice: Dice,
}

impl SimulatedNetwork {
    pub fn new(dice: Dice) -> SimulatedNetwork {
        SimulatedNetwork {
            state: Arc::new(Mutex::new(State {
                now: Duration::ZERO,
                ports: BTreeMap::new(),
                pipes: BTreeMap::new(),
                next: 0,
                divided: BTreeSet::new(),
            })),
            dice,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Divides two nodes: bytes between them wait, and no connection is established.
    pub fn divide(&self, a: usize, b: usize) {
        self.state().divided.extend([(a, b), (b, a)]);
    }

    /// Ends all divisions. Waiting bytes arrive.
    pub fn heal(&self) {
        self.state().divided.clear();
    }

    /// Breaks all connections between two nodes.
    pub fn cut(&self, a: usize, b: usize) {
        let mut state = self.state();
        let between = |pipe: &&mut Pipe| (pipe.from, pipe.to) == (a, b) || (pipe.from, pipe.to) == (b, a);
        for pipe in state.pipes.values_mut().filter(between) {
            pipe.is_broken = true;
            pipe.reader.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Sets the time, and wakes the readers of bytes that have arrived.
    pub fn advance(&self, now: Duration) {
        let mut state = self.state();
        let state = &mut *state;
        state.now = now;
        for pipe in state.pipes.values_mut() {
            let is_due = pipe.next().is_some_and(|at| at <= now);
            if is_due && !state.divided.contains(&(pipe.from, pipe.to)) {
                pipe.reader.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    fn is_divided(&self, from: usize, to: usize) -> bool {
        self.state().divided.contains(&(from, to))
    }
}

impl State {
    fn pipe(&mut self, from: usize, to: usize) -> u64 {
        self.next += 1;
        let pipe = Pipe {
            from,
            to,
            ..Pipe::default()
        };
        self.pipes.insert(self.next, pipe);
        self.next
    }
}

#[async_trait]
impl Network for SimulatedNetwork {
    async fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let (sender, accepted) = mpsc::unbounded_channel();
        let mut state = self.state();
        if state.ports.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.ports.insert(address, (machine::node(), sender));
        Ok(Box::new(Port {
            address,
            accepted,
            network: self.clone(),
        }))
    }

    async fn connect(&self, address: &str) -> io::Result<Connection> {
        let address: SocketAddr = address.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
        let from = machine::node();
        let delay = self.dice.millis(DELAY_MS);
        tokio::time::sleep(delay).await;
        loop {
            let found = self.state().ports.get(&address).cloned();
            let (to, port) = found.ok_or(io::ErrorKind::ConnectionRefused)?;
            if self.is_divided(from, to) {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            let mut state = self.state();
            let (there, back) = (state.pipe(from, to), state.pipe(to, from));
            drop(state);
            let end = |reads, writes| Stream {
                reads,
                writes,
                network: self.clone(),
            };
            let (here, other) = (end(back, there), end(there, back));
            // Clients, who are outside of all nodes, have the address 10.0.0.0.
            let here_address = SocketAddr::from(([10, 0, 0, (from as u8).wrapping_add(1)], 50_000));
            port.send((other, here_address))
                .map_err(|_| io::ErrorKind::ConnectionRefused)?;
            return Ok(Connection::Other(Box::new(here)));
        }
    }
}

/// An open port.
struct Port {
    address: SocketAddr,
    accepted: mpsc::UnboundedReceiver<(Stream, SocketAddr)>,
    network: SimulatedNetwork,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.network.state().ports.remove(&self.address);
    }
}

#[async_trait]
impl Listener for Port {
    fn address(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    async fn accept(&mut self) -> io::Result<(Connection, SocketAddr)> {
        let accepted = self.accepted.recv().await;
        let (stream, from) = accepted.ok_or(io::ErrorKind::NotConnected)?;
        Ok((Connection::Other(Box::new(stream)), from))
    }
}

/// One end of a connection.
struct Stream {
    reads: u64,
    writes: u64,
    network: SimulatedNetwork,
}

impl Drop for Stream {
    fn drop(&mut self) {
        let delay = self.network.dice.millis(DELAY_MS);
        let mut state = self.network.state();
        let now = state.now;
        if let Some(pipe) = state.pipes.get_mut(&self.writes) {
            let last = pipe.bytes.back().map_or(now, |(at, _)| *at);
            pipe.end.get_or_insert(last.max(now + delay));
            if pipe.is_broken {
                state.pipes.remove(&self.writes);
            }
        }
        // The other end writes in vain from now on.
        if let Some(pipe) = state.pipes.get_mut(&self.reads) {
            pipe.is_broken = true;
            if pipe.end.is_some() {
                state.pipes.remove(&self.reads);
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.network.state();
        let state = &mut *state;
        let Some(pipe) = state.pipes.get_mut(&self.reads) else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        };
        if pipe.is_broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let is_divided = state.divided.contains(&(pipe.from, pipe.to));
        if is_divided || pipe.next().is_none_or(|at| at > state.now) {
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if let Some((_, bytes)) = pipe.bytes.front_mut() {
            let len = bytes.len().min(into.remaining());
            into.put_slice(&bytes[..len]);
            bytes.drain(..len);
            if bytes.is_empty() {
                pipe.bytes.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let delay = self.network.dice.millis(DELAY_MS);
        let mut state = self.network.state();
        let now = state.now;
        match state.pipes.get_mut(&self.writes) {
            Some(pipe) if !pipe.is_broken && pipe.end.is_none() => {
                let last = pipe.bytes.back().map_or(now, |(at, _)| *at);
                pipe.bytes.push_back((last.max(now + delay), bytes.to_vec()));
                Poll::Ready(Ok(bytes.len()))
            }
            _ => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.network.state();
        let now = state.now;
        if let Some(pipe) = state.pipes.get_mut(&self.writes) {
            let last = pipe.bytes.back().map_or(now, |(at, _)| *at);
            pipe.end.get_or_insert(last);
        }
        Poll::Ready(Ok(()))
    }
}
