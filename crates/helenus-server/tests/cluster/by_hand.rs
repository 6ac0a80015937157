//! The protocol between nodes, written by hand. It shows that the bytes are those of the description, and sends what no node would send.

use std::net::SocketAddr;
use std::time::Duration;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::nodes::{STORE, host, incarnation};

pub const GREET: u8 = 1;
pub const LOAD: u8 = 7;
pub const EXECUTE: u8 = 16;
pub const SCAN: u8 = 21;
pub const NEXT: u8 = 32;
pub const GIVE_UP: u8 = 33;
pub const PING: u8 = 34;
pub const ANSWER: u8 = 64;
pub const FAILURE: u8 = 65;
pub const PONG: u8 = 66;

/// Maximum time for anything that a node should do at once, or after its own timeouts.
const PATIENCE: Duration = Duration::from_secs(30);

/// The claim of a caller.
#[derive(Clone)]
pub struct Claim {
    pub secret: &'static str,
    pub protocol: u32,
    pub store: Uuid,
    /// Host id and incarnation of the caller and of the callee.
    pub ids: [Uuid; 4],
}

impl Claim {
    /// Returns the claim of the second node, which calls the first one.
    pub fn true_one() -> Claim {
        Claim {
            secret: "secret",
            protocol: 7,
            store: STORE,
            ids: [host(1).0, incarnation(1).0, host(0).0, incarnation(0).0],
        }
    }

    /// Returns the hello that answers a greeting.
    pub fn hello(&self, greeting: &[u8]) -> Vec<u8> {
        let name = b"by hand";
        let len = 102 + name.len() + 32;
        let mut hello = b"HLNODE".to_vec();
        hello.extend((len as u16).to_le_bytes());
        hello.extend(self.protocol.to_le_bytes());
        hello.push(1);
        hello.extend([9; 16]);
        hello.extend(self.store.as_bytes());
        self.ids.iter().for_each(|id| hello.extend(id.as_bytes()));
        hello.push(name.len() as u8);
        hello.extend(name);
        let mac = mac(self.secret, b"helenus-rpc-3", &[greeting, &hello]);
        hello.extend(mac);
        hello
    }
}

fn mac(secret: &str, context: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(context);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

/// A connection to a node.
pub struct Caller {
    socket: TcpStream,
    pub greeting: [u8; 32],
}

impl Caller {
    /// Connects and reads the greeting.
    pub async fn connect(address: SocketAddr) -> Caller {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let mut greeting = [0; 32];
        socket.read_exact(&mut greeting).await.unwrap();
        assert!(
            greeting.starts_with(b"HELENUS\x01\x07\0\0\0\x08\0\0\0"),
            "{greeting:?}"
        );
        Caller { socket, greeting }
    }

    /// Connects and authenticates itself.
    pub async fn authenticated(address: SocketAddr) -> Caller {
        let mut caller = Caller::connect(address).await;
        let claim = Claim::true_one();
        let hello = claim.hello(&caller.greeting);
        caller.send(&hello).await;
        let expected = mac(claim.secret, b"helenus-rpc-answer-3", &[&caller.greeting, &hello]);
        let (code, mac) = caller.verdict().await.unwrap();
        assert_eq!((code, mac), (0, expected));
        caller
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        // Errors are ignored, because the node may have closed the connection.
        let _ = self.socket.write_all(bytes).await;
    }

    /// Closes this side of the connection.
    pub async fn finish(&mut self) {
        let _ = self.socket.shutdown().await;
    }

    async fn read(&mut self, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        let read = self.socket.read_exact(&mut bytes);
        let read = tokio::time::timeout(PATIENCE, read)
            .await
            .expect("the node is silent");
        read.ok().map(|_| bytes)
    }

    /// Reads the verdict: its code, and the MAC or the text. `None` if the node closes the connection.
    pub async fn verdict(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = self.read(3).await?;
        let rest = self
            .read(usize::from(u16::from_le_bytes([head[1], head[2]])))
            .await?;
        Some((head[0], rest))
    }

    /// Reads a frame: its kind, its flags and its body. `None` if the node closes the connection.
    pub async fn frame(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        let head = self.read(14).await?;
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let body = self.read(len as usize).await?;
        Some((head[4], head[5], body))
    }

    /// Greets the node. Panics if the node does not answer.
    pub async fn greet(&mut self) {
        let message = b"\x0a\x04test";
        self.send(&frame(GREET, 1, message)).await;
        let (kind, _, body) = self.frame().await.expect("the node has closed the connection");
        assert_eq!(kind, ANSWER);
        let store = STORE.as_bytes();
        assert!(body.windows(16).any(|part| part == store), "{body:?}");
    }
}

/// Returns the bytes of a request.
pub fn frame(kind: u8, id: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend([kind, 0]);
    bytes.extend(id.to_le_bytes());
    bytes.extend(10_000u32.to_le_bytes());
    bytes.extend(body);
    bytes
}
