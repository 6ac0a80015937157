use helenus_cluster::{ClusterView, Incarnation, NodeState, SystemClock};

use super::*;

pub const STORE: Uuid = Uuid::from_u128(42);

pub fn node(number: u128, stay: u128) -> NodeInfo {
    NodeInfo {
        host_id: HostId(Uuid::from_u128(number)),
        incarnation: Incarnation(Uuid::from_u128(stay)),
        description: helenus_cluster::NodeDescription {
            name: format!("node{number}"),
            cql_address: std::net::SocketAddr::from(([127, 0, 0, 1], 9042)),
            rpc_address: String::new(),
            data_center: String::new(),
            rack: String::new(),
            software_version: String::new(),
        },
        state: NodeState::Normal,
        alive: true,
    }
}

/// Returns the identity of a node whose view contains the nodes `seen`.
pub fn own(number: u128, store: Uuid, seen: &[(u128, u128)]) -> LocalIdentity {
    let nodes = seen.iter().map(|&(number, stay)| node(number, stay));
    let view = ClusterView::new(1, "test", nodes.collect(), Vec::new());
    let host_id = HostId(Uuid::from_u128(number));
    LocalIdentity {
        store,
        host_id,
        name: format!("node{number}"),
        agent: AgentHandle::detached(view, host_id, Arc::new(SystemClock)),
    }
}

/// Returns the guard of node 1 in incarnation 10 of store 42, which knows node 2 in incarnation 20.
pub fn guard() -> PeerGuard {
    PeerGuard {
        secret: Secret::new("secret"),
        own: own(1, STORE, &[(1, 10), (2, 20)]),
        refusals: Arc::default(),
    }
}

/// Returns the credentials of node 2 for node 1.
pub fn credentials() -> PeerCredentials {
    credentials_of("secret", own(2, STORE, &[(1, 10), (2, 20)]), (1, 10))
}

pub fn credentials_of(secret: &str, from: LocalIdentity, to: (u128, u128)) -> PeerCredentials {
    PeerCredentials::new(Secret::new(secret), from, &node(to.0, to.1))
}

/// Returns the text of the refusal of a node that knows the secret.
fn refused(from: LocalIdentity, to: (u128, u128)) -> String {
    let claim = credentials_of("secret", from, to).claim().unwrap();
    let refusal = guard().check(&claim).unwrap_err();
    assert_eq!(refusal.reason, Reason::NotMember);
    refusal.text
}

#[test]
fn only_members_of_the_store_are_accepted() {
    guard().check(&credentials().claim().unwrap()).unwrap();
    let copy = Uuid::from_u128(43);
    let words = refused(own(2, copy, &[(1, 10), (2, 20)]), (1, 10));
    assert!(
        words.contains(&STORE.to_string()) && words.contains(&copy.to_string()),
        "{words}"
    );
    assert!(
        words.contains("\"node1\"") && words.contains("\"node2\""),
        "{words}"
    );
    // Callers of a copy with the same identity: the same host id in another incarnation, or a new node.
    for stranger in [own(2, STORE, &[(2, 21)]), own(3, STORE, &[(3, 30)])] {
        let words = refused(stranger, (1, 10));
        assert!(words.contains("not in the cluster document"), "{words}");
    }
}

#[test]
fn a_call_for_another_node_is_refused() {
    for meant in [(2, 10), (1, 11)] {
        let words = refused(own(2, STORE, &[(1, 10), (2, 20)]), meant);
        assert!(words.contains("the called node"), "{words}");
    }
}

#[test]
fn credentials_are_for_one_incarnation() {
    let credentials = credentials();
    assert!(credentials.is_for(&node(1, 10)));
    assert!(!credentials.is_for(&node(1, 11)));
    assert!(!credentials.is_for(&node(3, 10)));
    let unborn = credentials_of("secret", own(2, STORE, &[(1, 10)]), (1, 10));
    assert_eq!(unborn.claim(), None);
}
