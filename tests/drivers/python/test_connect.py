"""Handshake: protocol versions, compression, what the cluster says of itself."""

import uuid

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Cluster, NoHostAvailable
import cassandra.connection


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("compression", [False, "lz4", "snappy"])
def test_protocol_and_compression(target, keyspace, version, compression):
    if version == 5 and compression == "snappy":
        # v5 knows lz4 only; the driver would refuse the choice itself
        compression = True
    session = target.connect(keyspace, protocol_version=version, compression=compression)
    assert session.cluster.protocol_version == version
    session.execute("CREATE TABLE big (k int PRIMARY KEY, v text, b blob)")
    text, blob = "compressible " * 5000, bytes(range(256)) * 200
    session.execute("INSERT INTO big (k, v, b) VALUES (%s, %s, %s)", (1, text, blob))
    insert = session.prepare("INSERT INTO big (k, v, b) VALUES (?, ?, ?)")
    session.execute(insert, (2, text, blob))
    session.execute(insert, (3, "", b""))
    rows = {r.k: (r.v, r.b) for r in session.execute("SELECT * FROM big")}
    assert rows == {1: (text, blob), 2: (text, blob), 3: ("", b"")}
    session.cluster.shutdown()


def test_negotiates_down_to_v5(target):
    """Without a version the driver begins with one the server does not know and steps down."""
    cluster = Cluster([target.host], port=target.port, connect_timeout=20)
    session = cluster.connect()
    assert cluster.protocol_version == 5
    assert session.execute("SELECT release_version FROM system.local").one()[0].startswith("5.0")
    cluster.shutdown()


def test_supported_options(target):
    session = target.connect()
    connection = session.cluster.control_connection._connection
    from cassandra.protocol import OptionsMessage
    answer = connection.wait_for_response(OptionsMessage())
    assert set(answer.options["COMPRESSION"]) >= {"lz4", "snappy"}
    assert answer.cql_versions == ["3.4.7"]
    assert answer.options["PROTOCOL_VERSIONS"][:3] == ["3/v3", "4/v4", "5/v5"]
    session.cluster.shutdown()


def test_cluster_metadata(target, session):
    meta = session.cluster.metadata
    local = session.execute("SELECT * FROM system.local WHERE key = 'local'").one()
    assert meta.cluster_name == local.cluster_name
    assert meta.partitioner == "org.apache.cassandra.dht.Murmur3Partitioner"
    hosts = meta.all_hosts()
    assert len(hosts) == 1 and hosts[0].is_up
    assert hosts[0].release_version.startswith("5.0")
    assert hosts[0].datacenter == local.data_center and hosts[0].rack == local.rack
    assert isinstance(local.host_id, uuid.UUID) and isinstance(local.schema_version, uuid.UUID)
    assert local.tokens and all(-2**63 <= int(t) < 2**63 for t in local.tokens)
    assert local.bootstrapped == "COMPLETED" and local.native_protocol_version == "5"
    assert list(session.execute("SELECT * FROM system.peers_v2")) == []
    assert list(session.execute("SELECT * FROM system.peers")) == []
    assert meta.token_map is not None


def test_token_map_agrees_with_token_function(target, keyspace, session):
    session.execute(f"CREATE TABLE {keyspace}.t (k text PRIMARY KEY)")
    from cassandra.metadata import Murmur3Token
    for key in ("", "a", "Troja", "ü" * 40):
        session.execute(f"INSERT INTO {keyspace}.t (k) VALUES (%s)", (key or "x",))
    for row in session.execute(f"SELECT k, token(k) AS t FROM {keyspace}.t"):
        assert Murmur3Token.from_key(row.k.encode()).value == row.t


def test_unknown_keyspace_on_connect(target):
    with pytest.raises((NoHostAvailable, InvalidRequest)) as e:
        target.connect("no_such_keyspace")
    assert "no_such_keyspace'" in str(e.value)
    with pytest.raises(InvalidRequest) as e:
        target.connect().execute("USE no_such_keyspace")
    assert "Keyspace 'no_such_keyspace' does not exist" in str(e.value)


def test_use_and_set_keyspace(target, session, keyspace):
    s = target.connect()
    s.execute(f"CREATE TABLE {keyspace}.here (k int PRIMARY KEY)")
    s.set_keyspace(keyspace)
    s.execute("INSERT INTO here (k) VALUES (1)")
    assert s.execute("SELECT k FROM here").one().k == 1
    with pytest.raises(InvalidRequest):
        s.execute("SELECT * FROM not_here")
    s.cluster.shutdown()


def test_authentication_is_not_requested(target):
    """A server without authentication accepts credentials."""
    from cassandra.auth import PlainTextAuthProvider
    s = target.connect(auth_provider=PlainTextAuthProvider("cassandra", "cassandra"))
    assert s.execute("SELECT key FROM system.local").one().key == "local"
    s.cluster.shutdown()
