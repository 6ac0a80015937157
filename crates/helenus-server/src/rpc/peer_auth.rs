//! Mutual authentication of calls between nodes. A call proves by the cluster's secret which node calls which, and for which store. The
//! callee checks the proof.
//!
//! A store and its copy have the same secret and know the same addresses. So a call is accepted only
//!
//! - with this store's identity,
//! - from a node, in its present incarnation, that this store's own cluster document shows or has shown. An incarnation is random and
//!   belongs to one cluster. So no call from a node of a copy is accepted, even if the copy has the same identity,
//! - by the node, in its present incarnation, that the caller means. A copy knows the addresses of the store's nodes, and another node may
//!   listen there.
//!
//! The caller claims each of them in the header `authorization`: `helenus TIME.NONCE.STORE.HOST.INCARNATION.HOST.INCARNATION.NAME.MAC`. The
//! first pair of host and incarnation is the caller, the second the callee. The name is the caller's, in hexadecimal digits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_cluster::{AgentHandle, HostId, Incarnation, Member, NodeInfo};
use parking_lot::Mutex;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};
use uuid::Uuid;

use super::refusal_log::RefusalLog;
use super::secret::{Purpose, Secret, hex, unhex, words};

const HEADER: &str = "authorization";
/// Maximum time for which a proof is used before a new one is made.
const REUSE: Duration = Duration::from_secs(20);
/// Maximum bytes of a caller's name. It is read before the caller is authenticated.
const NAME_BYTES_MAX: usize = 100;

/// This node, as other nodes see it.
#[derive(Clone)]
pub struct LocalIdentity {
    /// Identity of the store that this node has open.
    pub store: Uuid,
    pub host_id: HostId,
    pub name: String,
    pub agent: AgentHandle,
}

impl LocalIdentity {
    fn member(&self) -> Option<Member> {
        Some(Member {
            host_id: self.host_id,
            incarnation: self.agent.incarnation()?,
        })
    }
}

/// The claim in a call's header.
struct PeerClaim {
    store: Uuid,
    from: Member,
    to: Member,
    name: String,
}

impl PeerClaim {
    fn words(&self) -> String {
        let Member { host_id, incarnation } = self.from;
        let (store, name, to) = (self.store, hex(self.name.as_bytes()), self.to);
        format!(
            "{store}.{host_id}.{incarnation}.{}.{}.{name}",
            to.host_id, to.incarnation
        )
    }

    /// Parses the claim in a header, without verifying it. `None` if the header is invalid.
    fn read(proof: &str) -> Option<PeerClaim> {
        let mut words = words(proof)?.split('.');
        let mut id = || words.next().and_then(|word| Uuid::parse_str(word).ok());
        let (store, from, from_incarnation, to, to_incarnation) = (id()?, id()?, id()?, id()?, id()?);
        let member = |host_id, incarnation| Member {
            host_id: HostId(host_id),
            incarnation: Incarnation(incarnation),
        };
        let mut name = unhex(words.next()?)?;
        name.truncate(NAME_BYTES_MAX);
        Some(PeerClaim {
            store,
            from: member(from, from_incarnation),
            to: member(to, to_incarnation),
            name: String::from_utf8_lossy(&name).escape_debug().to_string(),
        })
    }
}

/// Host id of the authenticated caller, as an extension of the request.
#[derive(Clone, Copy)]
pub(super) struct Caller(pub Uuid);

/// Accepts calls that are meant for this node and come from nodes of its cluster.
#[derive(Clone)]
pub(super) struct PeerAuthInterceptor {
    pub secret: Secret,
    pub own: LocalIdentity,
    pub refusals: Arc<RefusalLog>,
}

impl PeerAuthInterceptor {
    fn check(&self, proof: &str) -> Result<Caller, Status> {
        let claim = PeerClaim::read(proof);
        let (Some(claim), true) = (&claim, self.secret.accepts(Purpose::Rpc, proof)) else {
            self.note_stranger(claim.as_ref());
            return Err(unknown());
        };
        let PeerClaim {
            store,
            from,
            to,
            name,
        } = claim;
        if *store != self.own.store {
            let seen = format!("store {store}");
            if self.refusals.should_log(from.host_id.0, &seen, Duration::ZERO) {
                tracing::warn!(node = name, host_id = %from.host_id, %store, here = %self.own.store,
                    "a node of another store was refused: one of the two was made of a copy of the other, or has an address of it");
            }
            return Err(Status::permission_denied(format!(
                "node {:?} is of store {}, and {name:?}, which has called it, of store {store}",
                self.own.name, self.own.store
            )));
        }
        if self.own.member() != Some(*to) {
            return Err(Status::permission_denied(format!(
                "the node at this address is {:?}, and not, or no longer, the called node",
                self.own.name
            )));
        }
        self.check_member(*from, name)?;
        Ok(Caller(from.host_id.0))
    }

    /// Refuses callers that are not in the cluster document. The agent reads the document again, because the caller may have just joined.
    /// The caller is expected to call again.
    fn check_member(&self, from: Member, name: &str) -> Result<(), Status> {
        if self.own.agent.has_seen(from.host_id, from.incarnation) {
            return Ok(());
        }
        self.own.agent.refresh();
        if self
            .refusals
            .should_log(from.host_id.0, "not a member", RefusalLog::JOIN_GRACE)
        {
            tracing::warn!(node = name, host_id = %from.host_id, store = %self.own.store,
                "a node was refused that is not in the cluster document of this store: it has a copy of the store open, or was expelled");
        }
        Err(Status::permission_denied(format!(
            "node {name:?} is not in the cluster document that node {:?} has of store {}: it has a copy of that store open, or was expelled, or \
             has just come",
            self.own.name, self.own.store
        )))
    }

    fn note_stranger(&self, claim: Option<&PeerClaim>) {
        // All such refusals share one id, so that they cause one line a minute, whatever ids the callers invent.
        if self.refusals.should_log(Uuid::nil(), "secret", Duration::ZERO) {
            let name = claim.map_or("?", |claim| claim.name.as_str());
            tracing::warn!(
                node = name,
                "a call to the port for other nodes was refused: its sender has another cluster_secret, or none"
            );
        }
    }
}

/// Returns the refusal of a caller without the secret. The text reveals nothing about the cluster.
fn unknown() -> Status {
    Status::unauthenticated("this port is for the nodes of a cluster")
}

impl Interceptor for PeerAuthInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let proof = request.metadata().get(HEADER);
        let proof = proof.and_then(|proof| proof.to_str().ok());
        let caller = self.check(proof.unwrap_or_default())?;
        request.extensions_mut().insert(caller);
        Ok(request)
    }
}

/// Adds proofs to the calls to one node.
pub(super) struct PeerCredentials {
    secret: Secret,
    own: LocalIdentity,
    to: Member,
    proof: Mutex<Option<CachedProof>>,
}

struct CachedProof {
    made: Instant,
    from: Member,
    proof: MetadataValue<Ascii>,
}

impl PeerCredentials {
    pub fn new(secret: Secret, own: LocalIdentity, to: &NodeInfo) -> PeerCredentials {
        PeerCredentials {
            secret,
            own,
            to: to.member(),
            proof: Mutex::new(None),
        }
    }

    /// Returns true if the proofs are for this node in this incarnation.
    pub fn is_for(&self, node: &NodeInfo) -> bool {
        self.to == node.member()
    }

    fn proof(&self) -> Option<MetadataValue<Ascii>> {
        let from = self.own.member()?;
        let mut kept = self.proof.lock();
        if let Some(kept) = kept.as_ref()
            && kept.from == from
            && kept.made.elapsed() < REUSE
        {
            return Some(kept.proof.clone());
        }
        let claim = PeerClaim {
            store: self.own.store,
            from,
            to: self.to,
            name: self.own.name.clone(),
        };
        let proof = self.secret.proof_of(Purpose::Rpc, &claim.words());
        let proof: MetadataValue<Ascii> = proof.parse().ok()?;
        *kept = Some(CachedProof {
            made: Instant::now(),
            from,
            proof: proof.clone(),
        });
        Some(proof)
    }

    /// Returns the request of a stream without a time limit. The stream ends when either side ends it.
    pub fn stream<T>(&self, messages: T) -> Request<T> {
        self.proven(Request::new(messages))
    }

    /// Returns the request of a call that ends within `timeout`.
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
#[path = "peer_auth_tests.rs"]
pub(super) mod tests;
