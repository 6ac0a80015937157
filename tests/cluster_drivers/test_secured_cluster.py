"""Three nodes with authentication and encryption: roles and permissions that one node changes take effect on all."""

import ssl

import pytest
from cassandra import AuthenticationFailed, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from cassandra.policies import WhiteListRoundRobinPolicy

import helenus
from certificates import Authority
from three_nodes import HOSTS, Cluster

pytestmark = pytest.mark.process

ROWS = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("trust") / "own").certificate("node", also="".join(f"IP:{host}," for host in HOSTS)[:-1])


@pytest.fixture(scope="module")
def secured(minio, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("secured")
    settings = {"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer",
                "tls_certificate": files["certificate"], "tls_key": files["key"]}
    url = f"s3://{minio.bucket(folder.name.replace('_', '-'))}/store"
    nodes = Cluster(minio, folder, url, args=helenus.setting_args(settings))
    yield nodes
    nodes.close()


@pytest.fixture
def log_in(files):
    """Logs in on a node, and speaks to it alone."""
    context = ssl.create_default_context(cafile=files["authority"])
    context.check_hostname = False

    def session(node, name, password):
        return node.connect(auth_provider=PlainTextAuthProvider(name, password), ssl_context=context,
                            load_balancing_policy=WhiteListRoundRobinPolicy([node.host]))

    return session


def is_refused(log_in, node, name, password):
    with pytest.raises(NoHostAvailable) as refused:
        log_in(node, name, password)
    return any(isinstance(error, AuthenticationFailed) for error in refused.value.errors.values())


def test_roles_and_permissions_are_those_of_the_cluster(secured, log_in):
    first, second, third = secured.nodes
    root = log_in(first, "cassandra", "cassandra")
    root.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    root.execute("CREATE TABLE k.t (k int PRIMARY KEY, v int)")
    insert = root.prepare("INSERT INTO k.t (k, v) VALUES (?, ?)")
    for k in range(ROWS):
        root.execute(insert, (k, k))
    root.execute("CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true")
    root.execute("GRANT SELECT ON k.t TO ann")
    # The second node forwards reads of rows that the others own.
    ann = log_in(second, "ann", "a")
    select = ann.prepare("SELECT v FROM k.t WHERE k = ?")
    assert [ann.execute(select, (k,)).one().v for k in range(ROWS)] == list(range(ROWS))
    assert len(ann.execute("SELECT * FROM k.t").all()) == ROWS
    with pytest.raises(Unauthorized, match="User ann has no MODIFY permission on <table k.t> or any of its parents"):
        ann.execute("UPDATE k.t SET v = 0 WHERE k = 1")

    elsewhere = log_in(third, "ann", "a")
    root.execute("GRANT MODIFY ON k.t TO ann")
    elsewhere.execute("UPDATE k.t SET v = 0 WHERE k = 1")
    root.execute("REVOKE ALL ON k.t FROM ann")
    for session in (ann, elsewhere):
        with pytest.raises(Unauthorized):
            session.execute(select, (1,))
    root.execute("ALTER ROLE ann WITH PASSWORD = 'b'")
    assert all(is_refused(log_in, node, "ann", "a") for node in secured.nodes)
    for node in secured.nodes:
        assert log_in(node, "ann", "b").execute("SELECT key FROM system.local").one()


def test_a_node_that_was_away_knows_what_it_missed(secured, log_in):
    first, _, third = secured.nodes
    third.kill()
    secured.wait_settled()
    root = log_in(first, "cassandra", "cassandra")
    root.execute("CREATE ROLE bob WITH PASSWORD = 'b' AND LOGIN = true")
    root.execute("CREATE ROLE late WITH PASSWORD = 'l' AND LOGIN = true AND SUPERUSER = true")
    third.start()
    assert log_in(third, "late", "l").execute("LIST ROLES OF bob").one().role == "bob"
    secured.wait_settled()


def test_a_driver_sees_all_nodes_through_tls(secured, files):
    context = ssl.create_default_context(cafile=files["authority"])
    context.check_hostname = False
    session = secured.nodes[0].connect(auth_provider=PlainTextAuthProvider("cassandra", "cassandra"), ssl_context=context)
    helenus.wait_until(lambda: len(session.get_pools()) == 3, what="connections to three nodes")
    asked = {session.execute("SELECT rpc_address FROM system.local").one().rpc_address for _ in range(12)}
    assert asked == set(HOSTS)
    encrypted = {c.ssl_enabled for _ in range(3) for c in session.execute("SELECT ssl_enabled FROM system_views.clients")}
    assert encrypted == {True}
