//! Carries out the handshake on a new connection, as the caller or as the accepting node.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use uuid::Uuid;

use super::failure::{CallError, Reason, Refusal};
use super::handshake::{
    GREETING_LEN, Greeting, HELLO_HEAD_LEN, Hello, HelloHead, Traffic, VERDICT_HEAD_LEN, Verdict,
};
use super::peer_auth::{PeerCredentials, PeerGuard};
use super::{PROTOCOL, PROTOCOL_MIN};

/// Proves to the accepting node who calls it, and checks its proof. Returns the version of the protocol.
///
/// # Errors
/// The other side is not the node that is meant, refuses this node, or has closed the connection.
pub(super) async fn introduce<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
    credentials: &PeerCredentials,
    traffic: Traffic,
) -> Result<u32, CallError> {
    let Some(claim) = credentials.claim() else {
        return Err(CallError::Unreachable(
            "this node has not joined the cluster yet".to_owned(),
        ));
    };
    let mut greeting_bytes = [0; GREETING_LEN];
    socket.read_exact(&mut greeting_bytes).await.map_err(ended)?;
    let Some(greeting) = Greeting::decode(&greeting_bytes) else {
        return Err(CallError::Refused(Refusal::new(
            Reason::Incompatible,
            "the process at this address is no node of Helenus, or one of an older version, which must be upgraded",
        )));
    };
    let protocol = greeting.choose().map_err(CallError::Refused)?;
    let hello = Hello {
        protocol,
        traffic,
        nonce: rand::random(),
        claim,
    };
    let hello = hello.encode(&credentials.secret, &greeting_bytes);
    socket.write_all(&hello).await.map_err(ended)?;
    socket.flush().await.map_err(ended)?;
    match receive_verdict(socket).await? {
        Verdict::Refused(refusal) => Err(CallError::Refused(refusal)),
        Verdict::Accepted(mac)
            if Verdict::is_authentic(&mac, &credentials.secret, &greeting_bytes, &hello) =>
        {
            Ok(protocol)
        }
        Verdict::Accepted(_) => Err(CallError::Refused(Refusal::new(
            Reason::Stranger,
            "the node at this address does not know the cluster_secret of this one",
        ))),
    }
}

async fn receive_verdict(socket: &mut (impl AsyncRead + Unpin)) -> Result<Verdict, CallError> {
    let invalid = || CallError::Unreachable("the node's answer to the handshake is invalid".to_owned());
    let mut head = [0; VERDICT_HEAD_LEN];
    socket.read_exact(&mut head).await.map_err(ended)?;
    let mut rest = vec![0; Verdict::rest_len(head).ok_or_else(invalid)?];
    socket.read_exact(&mut rest).await.map_err(ended)?;
    Verdict::decode(head, &rest).ok_or_else(invalid)
}

fn ended(error: io::Error) -> CallError {
    CallError::Unreachable(format!("the connection ended in the handshake: {error}"))
}

/// Checks the claim and the proof of a caller. Returns its hello. `None` if the caller was refused, which is logged.
///
/// # Errors
/// The caller has closed the connection.
pub(super) async fn admit<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
    guard: &PeerGuard,
) -> io::Result<Option<Hello>> {
    let greeting = Greeting::random().encode();
    socket.write_all(&greeting).await?;
    socket.flush().await?;
    let mut head = [0; HELLO_HEAD_LEN];
    socket.read_exact(&mut head).await?;
    let len = match HelloHead::decode(&head) {
        HelloHead::Hello(len) => len,
        HelloHead::Http2 => {
            note_older_version(guard);
            return Ok(None);
        }
        HelloHead::Garbage => {
            note_garbage(guard);
            return Ok(None);
        }
    };
    let mut bytes = head.to_vec();
    bytes.resize(HELLO_HEAD_LEN + len, 0);
    socket.read_exact(&mut bytes[HELLO_HEAD_LEN..]).await?;
    let judged = judge(guard, &greeting, &bytes);
    let verdict = match &judged {
        Ok(_) => Verdict::accepted(&guard.secret, &greeting, &bytes),
        Err(refusal) => Verdict::Refused(refusal.clone()),
    };
    socket.write_all(&verdict.encode()).await?;
    socket.flush().await?;
    Ok(judged.ok())
}

/// Returns a decoded and verified hello.
fn judge(guard: &PeerGuard, greeting: &[u8; GREETING_LEN], bytes: &[u8]) -> Result<Hello, Refusal> {
    let Some(hello) = Hello::decode(bytes) else {
        return Err(guard.stranger("?"));
    };
    if !Hello::is_authentic(bytes, &guard.secret, greeting) {
        return Err(guard.stranger(&hello.claim.name));
    }
    if !(PROTOCOL_MIN..=PROTOCOL).contains(&hello.protocol) {
        return Err(Refusal::new(
            Reason::Incompatible,
            format!(
                "this node speaks versions {PROTOCOL_MIN} to {PROTOCOL} of the protocol between nodes, and not {}",
                hello.protocol
            ),
        ));
    }
    guard.check(&hello.claim)?;
    Ok(hello)
}

fn note_garbage(guard: &PeerGuard) {
    if guard.refusals.should_log(Uuid::nil(), "garbage", Duration::ZERO) {
        tracing::warn!(
            "a connection to the port for other nodes was closed: it does not begin like that of a node"
        );
    }
}

/// Logs that a node of an older version, which speaks gRPC, has connected.
pub(super) fn note_older_version(guard: &PeerGuard) {
    if guard
        .refusals
        .should_log(Uuid::nil(), "older version", Duration::ZERO)
    {
        tracing::warn!(
            "a connection to the port for other nodes was refused: it is from a node of an older version of Helenus, which must be upgraded"
        );
    }
}

#[cfg(test)]
#[path = "introduction_tests.rs"]
mod tests;
