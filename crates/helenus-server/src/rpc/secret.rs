//! The cluster's secret, and proofs that a process knows it.
//!
//! A proof is an HMAC-SHA256 whose key is the secret, which is never sent itself. A connection between nodes begins with proofs of both sides
//! over random numbers of both ([`super::handshake`]). An operator's command signs a challenge of the node, which is itself a proof: the
//! node's clock in seconds, a random word, and the HMAC of both.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac};
use sha2::Sha256;
use uuid::Uuid;

const SCHEME: &str = "helenus ";
/// Maximum difference between the clocks of nodes.
const AGE_MAX_S: u64 = 300;
/// Bytes of a MAC.
pub(super) const MAC_LEN: usize = 32;

/// The purpose of a proof. A proof is valid for one purpose only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A caller's proof at the start of a connection between nodes.
    Rpc,
    /// The accepting node's proof at the start of a connection between nodes.
    RpcAnswer,
    /// An operator's command.
    Command,
    /// A comparison of secrets through the cluster document.
    Digest,
}

impl Purpose {
    fn context(self) -> &'static [u8] {
        match self {
            Purpose::Rpc => b"helenus-rpc-3",
            Purpose::RpcAnswer => b"helenus-rpc-answer-3",
            Purpose::Command => b"helenus-command-1",
            Purpose::Digest => b"helenus-digest-1",
        }
    }
}

/// The secret that only the nodes of a cluster know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Secret {
        Secret(bytes.into())
    }

    /// Returns a new secret. The caller must store it where only the nodes can read it.
    pub fn random() -> Secret {
        Secret(rand::random::<[u8; 32]>().to_vec())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn mac(&self, purpose: Purpose, parts: &[&[u8]]) -> Hmac<Sha256> {
        // This does not fail, because a key may have any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!());
        mac.update(purpose.context());
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    /// Returns the MAC of bytes, which are given in parts.
    pub(super) fn sign_bytes(&self, purpose: Purpose, parts: &[&[u8]]) -> [u8; MAC_LEN] {
        self.mac(purpose, parts).finalize().into_bytes().into()
    }

    /// Returns true if `mac` is the MAC of these bytes.
    pub(super) fn has_signed_bytes(&self, purpose: Purpose, parts: &[&[u8]], mac: &[u8]) -> bool {
        self.mac(purpose, parts).verify_slice(mac).is_ok()
    }

    /// Returns the header `authorization` of a call that is made now.
    pub fn proof(&self, purpose: Purpose) -> String {
        self.prove(purpose, now_s())
    }

    /// Returns true if the sender of a header knows the secret, and the header is not too old.
    pub fn accepts(&self, purpose: Purpose, proof: &str) -> bool {
        self.verify(purpose, proof, now_s()).is_some()
    }

    /// Returns the MAC of a text, in hexadecimal digits.
    pub(crate) fn sign(&self, purpose: Purpose, text: &str) -> String {
        hex(&self.mac(purpose, &[text.as_bytes()]).finalize().into_bytes())
    }

    /// Returns true if `mac` is the MAC of this text.
    pub(crate) fn has_signed(&self, purpose: Purpose, text: &str, mac: &str) -> bool {
        unhex(mac).is_some_and(|mac| self.mac(purpose, &[text.as_bytes()]).verify_slice(&mac).is_ok())
    }

    /// Returns a digest by which the nodes of a store compare their secrets. The digest does not reveal the secret.
    pub fn digest(&self, store: Uuid) -> String {
        let mac = self.mac(Purpose::Digest, &[store.to_string().as_bytes()]);
        hex(mac.finalize().into_bytes().get(..16).unwrap_or_default())
    }

    fn prove(&self, purpose: Purpose, now_s: u64) -> String {
        let claim = format!("{now_s}.{:016x}", rand::random::<u64>());
        let mac = self.mac(purpose, &[claim.as_bytes()]).finalize().into_bytes();
        format!("{SCHEME}{claim}.{}", hex(&mac))
    }

    fn verify(&self, purpose: Purpose, proof: &str, now_s: u64) -> Option<()> {
        let proof = proof.strip_prefix(SCHEME)?;
        let (claim, mac) = proof.rsplit_once('.')?;
        let (time, _) = claim.split_once('.')?;
        let time: u64 = time.parse().ok()?;
        if time.abs_diff(now_s) > AGE_MAX_S {
            return None;
        }
        self.mac(purpose, &[claim.as_bytes()])
            .verify_slice(&unhex(mac)?)
            .ok()
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.len()
        .is_multiple_of(2)
        .then(|| text.as_bytes().chunks(2).map(pair).collect())?
}

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_secret_and_does_not_last() {
        let secret = Secret::new("one");
        let proof = secret.prove(Purpose::Command, 1000);
        assert!(
            secret
                .verify(Purpose::Command, &proof, 1000 + AGE_MAX_S)
                .is_some()
        );
        assert!(
            secret
                .verify(Purpose::Command, &proof, 1001 + AGE_MAX_S)
                .is_none(),
            "too old"
        );
        assert!(
            secret.verify(Purpose::Command, &proof, 999 - AGE_MAX_S).is_none(),
            "from the future"
        );
        assert!(
            Secret::new("two")
                .verify(Purpose::Command, &proof, 1000)
                .is_none()
        );
        assert!(
            secret.verify(Purpose::Rpc, &proof, 1000).is_none(),
            "another purpose"
        );
        let later = proof.replacen("1000", "1001", 1);
        assert!(
            secret.verify(Purpose::Command, &later, 1000).is_none(),
            "the time is part of it"
        );
        for broken in [
            "",
            "helenus ",
            "helenus 1000.x",
            "helenus 1000.x.zz",
            "Bearer one",
        ] {
            assert!(
                secret.verify(Purpose::Command, broken, 1000).is_none(),
                "{broken}"
            );
        }
    }

    #[test]
    fn a_mac_is_of_one_purpose_and_of_all_bytes() {
        let secret = Secret::new("one");
        let mac = secret.sign_bytes(Purpose::Rpc, &[b"ab", b"c"]);
        let is_signed =
            |secret: &Secret, purpose, text: &[u8]| secret.has_signed_bytes(purpose, &[text], &mac);
        assert!(is_signed(&secret, Purpose::Rpc, b"abc"));
        assert!(!is_signed(&secret, Purpose::RpcAnswer, b"abc"));
        assert!(!is_signed(&secret, Purpose::Rpc, b"abd"));
        assert!(!is_signed(&Secret::new("two"), Purpose::Rpc, b"abc"));
        assert!(!secret.has_signed_bytes(Purpose::Rpc, &[b"abc"], &mac[1..]));
    }

    #[test]
    fn a_digest_is_of_one_secret_and_one_store() {
        let digest = |secret: &str, store| Secret::new(secret).digest(Uuid::from_u128(store));
        assert_eq!(digest("one", 1), digest("one", 1));
        assert_ne!(digest("one", 1), digest("two", 1));
        assert_ne!(digest("one", 1), digest("one", 2));
    }

    #[test]
    fn the_secret_is_not_shown() {
        assert!(!format!("{:?}", Secret::new("hush")).contains("hush"));
    }
}
