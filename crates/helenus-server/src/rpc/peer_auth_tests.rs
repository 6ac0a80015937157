use helenus_cluster::{ClusterView, NodeState, SystemClock};

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

/// Calls node 1 in incarnation 10 of store 42, which knows node 2 in incarnation 20.
fn call(secret: &str, from: LocalIdentity, to: (u128, u128)) -> Result<(), Status> {
    let mut guard = PeerAuthInterceptor {
        secret: Secret::new("secret"),
        own: own(1, STORE, &[(1, 10), (2, 20)]),
        refusals: Arc::default(),
    };
    let credentials = PeerCredentials::new(Secret::new(secret), from, &node(to.0, to.1));
    let request = credentials.stream(());
    guard.call(request).map(|_| ())
}

#[test]
fn only_members_of_the_store_are_accepted() {
    let theirs = || own(2, STORE, &[(1, 10), (2, 20)]);
    call("secret", theirs(), (1, 10)).unwrap();
    let refused = |secret: &str, from, to| call(secret, from, to).unwrap_err().message().to_owned();
    assert_eq!(
        refused("guess", theirs(), (1, 10)),
        "this port is for the nodes of a cluster"
    );
    let copy = Uuid::from_u128(43);
    let words = refused("secret", own(2, copy, &[(1, 10), (2, 20)]), (1, 10));
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
        let words = refused("secret", stranger, (1, 10));
        assert!(words.contains("not in the cluster document"), "{words}");
    }
}

#[test]
fn a_call_for_another_node_is_not_heard() {
    for meant in [(2, 10), (1, 11)] {
        let theirs = own(2, STORE, &[(1, 10), (2, 20)]);
        let words = call("secret", theirs, meant).unwrap_err().message().to_owned();
        assert!(words.contains("the called node"), "{words}");
    }
}

#[test]
fn names_are_told_without_what_could_spoil_a_log() {
    let mut from = own(2, STORE, &[(2, 20)]);
    from.name = format!("a\n.b\u{1b}{}", "c".repeat(1000));
    let credentials = PeerCredentials::new(Secret::new("secret"), from, &node(1, 10));
    let request = credentials.stream(());
    let proof = request.metadata().get(HEADER).unwrap().to_str().unwrap();
    let claim = PeerClaim::read(proof).unwrap();
    assert!(
        claim.name.starts_with("a\\n.b\\u{1b}ccc") && claim.name.len() < 120,
        "{}",
        claim.name
    );
}
