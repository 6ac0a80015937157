//! Who may speak to this node: whoever knows the cluster's secret.
//!
//! A call carries `authorization: helenus TIME.NONCE.MAC`: the sender's clock in seconds, a random word, and the HMAC-SHA256 of both by the
//! secret, which itself never travels. Who can listen to the wire can use what it hears for as long as [`AGE_MAX_S`]: that is for TLS to
//! prevent.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use sha2::Sha256;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

const HEADER: &str = "authorization";
const SCHEME: &str = "helenus ";
/// How far the clocks of nodes may be apart.
const AGE_MAX_S: u64 = 300;
/// How long a proof is used before another is made.
const REUSE: Duration = Duration::from_secs(20);

/// What a proof is for: it proves nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A call between nodes.
    Rpc,
    /// An operator's command.
    Command,
}

impl Purpose {
    fn context(self) -> &'static [u8] {
        match self {
            Purpose::Rpc => b"helenus-rpc-1",
            Purpose::Command => b"helenus-command-1",
        }
    }
}

/// What the nodes of a cluster know and no one else does.
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

    /// A new one, to be kept where only the nodes can read.
    pub fn random() -> Secret {
        Secret(rand::random::<[u8; 32]>().to_vec())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn mac(&self, purpose: Purpose, claim: &str) -> Hmac<Sha256> {
        // A key may be of any length: there is no error.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| unreachable!());
        mac.update(purpose.context());
        mac.update(claim.as_bytes());
        mac
    }

    /// What the header `authorization` has to be now.
    pub fn proof(&self, purpose: Purpose) -> String {
        self.prove(purpose, now_s())
    }

    /// Whether that header comes from someone who knows the secret.
    pub fn accepts(&self, purpose: Purpose, proof: &str) -> bool {
        self.verify(purpose, proof, now_s()).is_some()
    }

    /// The MAC of a text, in hexadecimal digits.
    pub(crate) fn sign(&self, purpose: Purpose, text: &str) -> String {
        hex(&self.mac(purpose, text).finalize().into_bytes())
    }

    /// Whether that is the MAC of that text.
    pub(crate) fn has_signed(&self, purpose: Purpose, text: &str, mac: &str) -> bool {
        unhex(mac).is_some_and(|mac| self.mac(purpose, text).verify_slice(&mac).is_ok())
    }

    fn prove(&self, purpose: Purpose, now_s: u64) -> String {
        let claim = format!("{now_s}.{:016x}", rand::random::<u64>());
        let mac = self.mac(purpose, &claim).finalize().into_bytes();
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
        self.mac(purpose, claim).verify_slice(&unhex(mac)?).ok()
    }
}

fn hex(bytes: &[u8]) -> String {
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

/// Lets in who knows the secret.
#[derive(Clone)]
pub(super) struct Guard(pub Secret);

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let proof = request
            .metadata()
            .get(HEADER)
            .and_then(|proof| proof.to_str().ok());
        match proof.is_some_and(|proof| self.0.accepts(Purpose::Rpc, proof)) {
            true => Ok(request),
            false => Err(Status::unauthenticated("this port is for the nodes of a cluster")),
        }
    }
}

/// Adds the proof to calls.
pub(super) struct Prover {
    secret: Secret,
    proof: Mutex<Option<(Instant, MetadataValue<Ascii>)>>,
}

impl Prover {
    pub fn new(secret: Secret) -> Prover {
        Prover {
            secret,
            proof: Mutex::new(None),
        }
    }

    fn proof(&self) -> Option<MetadataValue<Ascii>> {
        let mut kept = self.proof.lock();
        if let Some((made, proof)) = kept.as_ref()
            && made.elapsed() < REUSE
        {
            return Some(proof.clone());
        }
        let proof: MetadataValue<Ascii> = self.secret.proof(Purpose::Rpc).parse().ok()?;
        *kept = Some((Instant::now(), proof.clone()));
        Some(proof)
    }

    /// A stream, which ends when either side does.
    pub fn stream<T>(&self, messages: T) -> Request<T> {
        self.proven(Request::new(messages))
    }

    /// A call that ends within that time.
    pub fn request<T>(&self, message: T, timeout: Duration) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(timeout);
        self.proven(request)
    }

    fn proven<T>(&self, mut request: Request<T>) -> Request<T> {
        if let Some(proof) = self.proof() {
            request.metadata_mut().insert(HEADER, proof);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_secret_and_does_not_last() {
        let secret = Secret::new("one");
        let proof = secret.prove(Purpose::Rpc, 1000);
        assert!(secret.verify(Purpose::Rpc, &proof, 1000 + AGE_MAX_S).is_some());
        assert!(
            secret.verify(Purpose::Rpc, &proof, 1001 + AGE_MAX_S).is_none(),
            "too old"
        );
        assert!(
            secret.verify(Purpose::Rpc, &proof, 999 - AGE_MAX_S).is_none(),
            "from the future"
        );
        assert!(Secret::new("two").verify(Purpose::Rpc, &proof, 1000).is_none());
        assert!(
            secret.verify(Purpose::Command, &proof, 1000).is_none(),
            "another purpose"
        );
        let later = proof.replacen("1000", "1001", 1);
        assert!(
            secret.verify(Purpose::Rpc, &later, 1000).is_none(),
            "the time is part of it"
        );
        for broken in [
            "",
            "helenus ",
            "helenus 1000.x",
            "helenus 1000.x.zz",
            "Bearer one",
        ] {
            assert!(secret.verify(Purpose::Rpc, broken, 1000).is_none(), "{broken}");
        }
    }

    #[test]
    fn the_secret_is_not_shown() {
        assert!(!format!("{:?}", Secret::new("hush")).contains("hush"));
    }
}
