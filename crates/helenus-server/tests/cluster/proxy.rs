//! A proxy before a node's port for other nodes. It can end a connection when the node answers a request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Position of the purpose in a hello, and the purpose of a connection for requests.
const PURPOSE_AT: usize = 12;
const REQUESTS: u8 = 2;
/// Position of the kind in a frame, and the kind of answers.
const KIND_AT: usize = 4;
const ANSWER: u8 = 64;

/// A proxy before one node.
pub struct Proxy {
    pub address: SocketAddr,
    loses_answer: Arc<AtomicBool>,
    /// True while answers to requests about rows are held.
    holds: watch::Sender<bool>,
}

impl Proxy {
    pub async fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let loses_answer = Arc::<AtomicBool>::default();
        let loses = loses_answer.clone();
        let holds = watch::Sender::new(false);
        let held = holds.subscribe();
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let (loses, held) = (loses.clone(), held.clone());
                tokio::spawn(async move {
                    if let Ok(to) = TcpStream::connect(to).await {
                        forward(from, to, &loses, held).await;
                    }
                });
            }
        });
        Proxy {
            address,
            loses_answer,
            holds,
        }
    }

    /// Holds the answers to requests about rows, or sends them.
    pub fn hold_answers(&self, holds: bool) {
        self.holds.send_replace(holds);
    }

    /// Makes the connection end when the node answers the next request about rows.
    pub fn lose_answer(&self) {
        self.loses_answer.store(true, Ordering::SeqCst);
    }

    /// Returns true if no answer has been lost since [`Proxy::lose_answer`], and loses none any more.
    pub fn has_lost_none(&self) -> bool {
        self.loses_answer.swap(false, Ordering::SeqCst)
    }
}

async fn forward(from: TcpStream, to: TcpStream, loses_answer: &AtomicBool, mut held: watch::Receiver<bool>) {
    let (from_read, mut from_write) = from.into_split();
    let (mut to_read, mut to_write) = to.into_split();
    let mut hello = [0; 200];
    let Some(len) = greet(&mut to_read, &mut from_write, &from_read, &mut hello).await else {
        return;
    };
    let is_for_requests = hello[PURPOSE_AT] == REQUESTS;
    let requests = async {
        let mut from_read = from_read;
        if to_write.write_all(&hello[..len]).await.is_ok() {
            let _ = tokio::io::copy(&mut from_read, &mut to_write).await;
        }
    };
    let answers = async {
        let mut bytes = [0; 64 << 10];
        while let Ok(len @ 1..) = to_read.read(&mut bytes).await {
            let is_answer = len > KIND_AT && bytes[KIND_AT] == ANSWER;
            if is_for_requests && held.wait_for(|held| !held).await.is_err() {
                return;
            }
            if is_for_requests && is_answer && loses_answer.swap(false, Ordering::SeqCst) {
                return;
            }
            if from_write.write_all(&bytes[..len]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = requests => {}
        () = answers => {}
    }
}

/// Forwards the greeting of the node, and reads the start of the hello. Returns its length. `None` if either side is gone.
async fn greet(
    node: &mut OwnedReadHalf,
    caller: &mut OwnedWriteHalf,
    from_caller: &OwnedReadHalf,
    hello: &mut [u8],
) -> Option<usize> {
    let mut greeting = [0; 32];
    node.read_exact(&mut greeting).await.ok()?;
    caller.write_all(&greeting).await.ok()?;
    loop {
        from_caller.readable().await.ok()?;
        match from_caller.try_read(hello) {
            Ok(len) if len > PURPOSE_AT => return Some(len),
            Ok(_) => return None,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}
