use super::*;

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

#[test]
fn statement_counts_outlive_their_client() {
    let clients = Clients::default();
    let (one, other) = (
        clients.connect(address(1), None),
        clients.connect(address(2), None),
    );
    one.count_text();
    one.count_prepared();
    one.count_prepared();
    other.count_text();
    drop(one);
    let left: Vec<SocketAddr> = clients.connected().iter().map(|client| client.address).collect();
    assert_eq!(left, [address(2)]);
    let statement_counts = clients.statement_counts();
    assert_eq!((statement_counts.prepared, statement_counts.texts), (2, 2));
}

#[test]
fn a_session_follows_its_keyspace() {
    let clients = Clients::default();
    let client = clients.connect(address(1), None);
    let shown = || clients.connected().first().and_then(|client| client.session());
    client.uses("early");
    assert!(shown().is_none());
    client.started(Session {
        options: BTreeMap::new(),
        protocol_version: 4,
        keyspace: None,
        user: None,
    });
    client.uses("ks");
    client.logged_in("ann");
    let shown = shown().unwrap();
    assert_eq!(shown.keyspace.as_deref(), Some("ks"));
    assert_eq!(shown.user.as_deref(), Some("ann"));
}
