//! The handshake of a connection between nodes. It authenticates both sides, and chooses the version of the protocol.
//!
//! Three messages are exchanged. Numbers are little-endian.
//!
//! The accepting node sends a *greeting*:
//!
//! | bytes | field |
//! |---|---|
//! | 8 | `HELENUS` and the byte 1 |
//! | 4 + 4 | oldest and newest version of the protocol that the node speaks |
//! | 16 | random bytes |
//!
//! The caller answers with a *hello*:
//!
//! | bytes | field |
//! |---|---|
//! | 6 | `HLNODE` |
//! | 2 | length of the rest |
//! | 4 | chosen version |
//! | 1 | purpose of the connection ([`Traffic`]) |
//! | 16 | random bytes |
//! | 5 * 16 | ids of the store, the caller's host, the caller's incarnation, the callee's host and the callee's incarnation |
//! | 1, then as many | the caller's name |
//! | 32 | MAC |
//!
//! The accepting node answers with a *verdict*:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | code: 0, or the reason of a refusal |
//! | 2, then as many | MAC if the code is 0, else a text |
//!
//! The key of both MACs is the cluster's secret. Each covers all earlier bytes of the handshake, with the random bytes of both sides. So no
//! recorded handshake can be used again. An attacker who can change the traffic can still take over an open connection; TLS prevents that.

use helenus_cluster::{HostId, Incarnation, Member};
use uuid::Uuid;

use super::failure::{Reason, Refusal};
use super::peer_auth::PeerClaim;
use super::secret::{MAC_LEN, Purpose, Secret};
use super::{PROTOCOL, PROTOCOL_MIN};

const GREETING_MAGIC: [u8; 8] = *b"HELENUS\x01";
const HELLO_MAGIC: [u8; 6] = *b"HLNODE";
/// First bytes of a connection of HTTP/2, by which older versions of Helenus call other nodes.
const HTTP2_PREFACE: [u8; 8] = *b"PRI * HT";

/// Bytes of a greeting.
pub(super) const GREETING_LEN: usize = 32;
/// Bytes of a hello's magic and length.
pub(super) const HELLO_HEAD_LEN: usize = 8;
/// Bytes of a hello between its length and the caller's name.
const HELLO_FIXED_LEN: usize = 4 + 1 + 16 * 6 + 1;
/// Maximum bytes of a caller's name. The name is read before the caller is authenticated.
const NAME_BYTES_MAX: usize = 100;
/// Bytes of a verdict's code and length.
pub(super) const VERDICT_HEAD_LEN: usize = 3;
/// Maximum bytes of the text in a verdict.
pub(super) const VERDICT_TEXT_MAX: usize = 1000;

/// Purpose of a connection. Each has a connection of its own, so that messages of one purpose do not queue behind those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Traffic {
    /// Greetings, and messages about the cluster document and consistent cuts.
    Control = 1,
    Requests = 2,
    /// Scans and large requests.
    Bulk = 3,
}

impl Traffic {
    fn of_number(number: u8) -> Option<Traffic> {
        let all = [Traffic::Control, Traffic::Requests, Traffic::Bulk];
        all.into_iter().find(|traffic| *traffic as u8 == number)
    }
}

/// The first message of the accepting node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub protocol_min: u32,
    pub protocol: u32,
    pub nonce: [u8; 16],
}

impl Greeting {
    /// Returns a greeting of this version with new random bytes.
    pub fn random() -> Greeting {
        Greeting {
            protocol_min: PROTOCOL_MIN,
            protocol: PROTOCOL,
            nonce: rand::random(),
        }
    }

    pub fn encode(&self) -> [u8; GREETING_LEN] {
        let mut bytes = [0; GREETING_LEN];
        bytes[..8].copy_from_slice(&GREETING_MAGIC);
        bytes[8..12].copy_from_slice(&self.protocol_min.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.protocol.to_le_bytes());
        bytes[16..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Decodes a greeting. `None` if the other side is not a node, or is of a version without this handshake.
    pub fn decode(bytes: &[u8; GREETING_LEN]) -> Option<Greeting> {
        let mut reader = Reader(bytes);
        (reader.array()? == GREETING_MAGIC).then_some(())?;
        Some(Greeting {
            protocol_min: reader.number()?,
            protocol: reader.number()?,
            nonce: reader.array()?,
        })
    }

    /// Returns the newest version that both nodes speak.
    ///
    /// # Errors
    /// The nodes have no version in common.
    pub fn choose(&self) -> Result<u32, Refusal> {
        let chosen = self.protocol.min(PROTOCOL);
        match chosen >= PROTOCOL_MIN && chosen >= self.protocol_min {
            true => Ok(chosen),
            false => Err(Refusal::new(
                Reason::Incompatible,
                format!(
                    "the node speaks versions {} to {} of the protocol between nodes, and this node {PROTOCOL_MIN} to {PROTOCOL}; upgrade the \
                     older of the two",
                    self.protocol_min, self.protocol
                ),
            )),
        }
    }
}

/// The message of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub protocol: u32,
    pub traffic: Traffic,
    pub nonce: [u8; 16],
    pub claim: PeerClaim,
}

/// The first bytes of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelloHead {
    /// A hello, of which this number of bytes follow.
    Hello(usize),
    /// The start of a connection of HTTP/2.
    Http2,
    Garbage,
}

impl HelloHead {
    pub fn decode(bytes: &[u8; HELLO_HEAD_LEN]) -> HelloHead {
        let [magic @ .., l0, l1] = *bytes;
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        let lengths = HELLO_FIXED_LEN + MAC_LEN..=HELLO_FIXED_LEN + NAME_BYTES_MAX + MAC_LEN;
        match magic == HELLO_MAGIC && lengths.contains(&len) {
            true => HelloHead::Hello(len),
            false if *bytes == HTTP2_PREFACE => HelloHead::Http2,
            false => HelloHead::Garbage,
        }
    }
}

impl Hello {
    /// Encodes the hello that answers a greeting, and proves that the caller knows the secret.
    pub fn encode(&self, secret: &Secret, greeting: &[u8; GREETING_LEN]) -> Vec<u8> {
        let name = self.claim.name.as_bytes();
        let name = name.get(..NAME_BYTES_MAX).unwrap_or(name);
        let len = HELLO_FIXED_LEN + name.len() + MAC_LEN;
        let mut out = Vec::with_capacity(HELLO_HEAD_LEN + len);
        out.extend_from_slice(&HELLO_MAGIC);
        out.extend_from_slice(&(len as u16).to_le_bytes());
        out.extend_from_slice(&self.protocol.to_le_bytes());
        out.push(self.traffic as u8);
        out.extend_from_slice(&self.nonce);
        let PeerClaim { store, from, to, .. } = &self.claim;
        for id in [
            store,
            &from.host_id.0,
            &from.incarnation.0,
            &to.host_id.0,
            &to.incarnation.0,
        ] {
            out.extend_from_slice(id.as_bytes());
        }
        out.push(name.len() as u8);
        out.extend_from_slice(name);
        let mac = secret.sign_bytes(Purpose::Rpc, &[greeting, &out]);
        out.extend_from_slice(&mac);
        out
    }

    /// Decodes a hello without verifying it. `None` if it is invalid.
    pub fn decode(hello: &[u8]) -> Option<Hello> {
        let mut reader = Reader(hello.get(HELLO_HEAD_LEN..)?);
        let protocol = reader.number()?;
        let [traffic] = reader.array()?;
        let nonce = reader.array()?;
        let store = reader.id()?;
        let from = reader.member()?;
        let to = reader.member()?;
        let [name_len] = reader.array()?;
        let name = reader.bytes(usize::from(name_len))?;
        (reader.0.len() == MAC_LEN).then_some(Hello {
            protocol,
            traffic: Traffic::of_number(traffic)?,
            nonce,
            claim: PeerClaim {
                store,
                from,
                to,
                name: String::from_utf8_lossy(name).escape_debug().to_string(),
            },
        })
    }

    /// Returns true if the sender of a hello knows the secret, and has answered this greeting.
    pub fn is_authentic(hello: &[u8], secret: &Secret, greeting: &[u8; GREETING_LEN]) -> bool {
        let Some((signed, mac)) = hello.split_last_chunk::<MAC_LEN>() else {
            return false;
        };
        secret.has_signed_bytes(Purpose::Rpc, &[greeting, signed], mac)
    }
}

/// The answer of the accepting node to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The connection is accepted. The MAC proves that the accepting node knows the secret.
    Accepted([u8; MAC_LEN]),
    Refused(Refusal),
}

impl Verdict {
    pub fn accepted(secret: &Secret, greeting: &[u8; GREETING_LEN], hello: &[u8]) -> Verdict {
        Verdict::Accepted(secret.sign_bytes(Purpose::RpcAnswer, &[greeting, hello]))
    }

    pub fn encode(&self) -> Vec<u8> {
        let (code, rest): (u8, &[u8]) = match self {
            Verdict::Accepted(mac) => (0, mac),
            Verdict::Refused(refusal) => {
                let text = refusal.text.as_bytes();
                (code(refusal.reason), text.get(..VERDICT_TEXT_MAX).unwrap_or(text))
            }
        };
        let mut out = vec![code];
        out.extend_from_slice(&(rest.len() as u16).to_le_bytes());
        out.extend_from_slice(rest);
        out
    }

    /// Returns the length of a verdict's rest. `None` if it is longer than any verdict.
    pub fn rest_len(head: [u8; VERDICT_HEAD_LEN]) -> Option<usize> {
        let [_, l0, l1] = head;
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        (len <= VERDICT_TEXT_MAX).then_some(len)
    }

    /// Decodes a verdict. `None` if it is invalid.
    pub fn decode(head: [u8; VERDICT_HEAD_LEN], rest: &[u8]) -> Option<Verdict> {
        let [code, ..] = head;
        if code == 0 {
            return rest.try_into().ok().map(Verdict::Accepted);
        }
        let text = super::failure::received_text(rest);
        Some(Verdict::Refused(Refusal::new(reason(code), text)))
    }

    /// Returns true if the accepting node has proved that it knows the secret.
    pub fn is_authentic(
        mac: &[u8; MAC_LEN],
        secret: &Secret,
        greeting: &[u8; GREETING_LEN],
        hello: &[u8],
    ) -> bool {
        secret.has_signed_bytes(Purpose::RpcAnswer, &[greeting, hello], mac)
    }
}

fn code(reason: Reason) -> u8 {
    match reason {
        Reason::Stranger => 1,
        Reason::NotMember => 2,
        Reason::Incompatible => 3,
    }
}

/// Returns the reason of a code. An unknown code is of a newer version.
fn reason(code: u8) -> Reason {
    match code {
        1 => Reason::Stranger,
        2 => Reason::NotMember,
        _ => Reason::Incompatible,
    }
}

/// Reads fields from the start of bytes. `None` once too few are left.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn id(&mut self) -> Option<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    fn member(&mut self) -> Option<Member> {
        Some(Member {
            host_id: HostId(self.id()?),
            incarnation: Incarnation(self.id()?),
        })
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
