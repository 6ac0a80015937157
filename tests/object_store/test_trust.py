"""Whom a node trusts: nodes with the cluster's secret and certificates, and documents that it understands."""

import json
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
import uuid

import pytest
from cassandra.policies import HostFilterPolicy, RoundRobinPolicy

import by_hand
import helenus
from certificates import Authority

pytestmark = pytest.mark.process

SECRET = "the-secret-of-these-nodes"
OLDER_VERSION = "a node of an older version of Helenus"
KEYSPACE = "CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


def settings(files):
    return helenus.setting_args({f"rpc_tls_{name}": file for name, file in files.items()})


def wait_for_share(*nodes):
    """Waits until each node has its share of the tablets, none is on its way to another, and all know the same."""

    def shared():
        figures = [node.metrics() for node in nodes]
        values = lambda name: {f[f"helenus_cluster_{name}"] for f in figures}
        owned = values("tablets_owned")
        return (0 < min(owned) >= max(owned) - 1 and values("tablets_moving") == {0} and len(values("document_version")) == 1
                and values("nodes") == values("nodes_alive") == {len(nodes)})

    helenus.wait_until(shared, 20, "each node has its share")


def remote(node, outcome):
    name = f'helenus_cluster_remote_total{{kind="statement",outcome="{outcome}"}}'
    return node.metrics().get(name, 0)


def members(minio, bucket):
    """Returns the nodes of a store's cluster document, in the order of joining."""
    return json.loads(by_hand.document(minio, bucket, "cluster")[1])["nodes"]


def hello(minio, bucket, secret=SECRET):
    """Returns what the last node to join would say to the first one."""
    known = members(minio, bucket)
    return by_hand.hello(secret, by_hand.identity(minio, bucket), known[-1], known[0])


def context(files=None, protocol="helenus/1"):
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.set_alpn_protocols([protocol])
    if files:
        tls.load_cert_chain(files["certificate"], files["key"])
    return tls


def got_no_answer(ask):
    """Returns true if the request is refused in any way, without an answer."""
    try:
        return ask() == b""
    except (ssl.SSLError, ConnectionError):
        return True


def garbage(node, data):
    """Sends invalid bytes. Returns the node's answer before it closes the connection."""
    with socket.create_connection((node.host, node.rpc_port), timeout=20) as s:
        answer = b""
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while part := s.recv(4096):
                answer += part
        except OSError:
            # The node may close the connection at the first invalid byte.
            pass
        return answer


def test_nodes_speak_tls_and_a_stranger_is_told_nothing(bucket, nodes, minio, tmp_path):
    authority, others = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    files = [authority.certificate(f"node{n}") for n in (1, 2)]
    pair = [nodes(bucket, args=[*settings(f), "--set", f"cluster_secret={SECRET}"]).start() for f in files]
    wait_for_share(*pair)
    session = pair[0].connect()
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v int)")
    for k in range(40):
        session.execute("INSERT INTO o.t (k, v) VALUES (%s, %s)", (k, k))
    assert sorted(pair[1].connect().execute("SELECT k, v FROM o.t").all()) == [(k, k) for k in range(40)]
    assert remote(pair[0], "done") > 0, "rows of the other node"
    assert remote(pair[0], "lost") == 0
    node, stranger = pair[0], others.certificate("stranger")
    ask = lambda tls, secret=SECRET: by_hand.greet(node.host, node.rpc_port, secret and hello(minio, bucket, secret), tls)
    assert ask(context(files[1])) != b"", "who has both is answered"
    assert got_no_answer(lambda: ask(context(files[1]), None)), "a certificate without the secret"
    assert got_no_answer(lambda: ask(context(files[1]), "some-other-secret"))
    assert got_no_answer(lambda: ask(context(stranger))), "the secret with another authority's certificate"
    assert got_no_answer(lambda: ask(context())), "the secret without a certificate"
    assert got_no_answer(lambda: ask(None)), "no TLS"
    assert OLDER_VERSION not in node.log()
    assert got_no_answer(lambda: ask(context(files[1], "h2"))), "a node of an older version"
    assert OLDER_VERSION in node.log()


def test_without_tls_the_secret_is_required(bucket, nodes, minio):
    node = nodes(bucket, args=["--set", f"cluster_secret={SECRET}"]).start()
    ask = lambda said: by_hand.greet(node.host, node.rpc_port, said)
    assert ask(hello(minio, bucket)) != b""
    recorded = hello(minio, bucket)(b"\0" * by_hand.GREETING_BYTES)
    cut = lambda greeting: hello(minio, bucket)(greeting)[:-1]
    for stranger in (None, hello(minio, bucket, "some-other-secret"), recorded, cut, f"helenus {SECRET}".encode(), by_hand.proof(SECRET).encode()):
        assert got_no_answer(lambda: ask(stranger)), stranger
    for data in (b"hello\r\n\r\n", b"\0" * 4096, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", helenus.OPTIONS_FRAME):
        answer = garbage(node, data)
        assert len(answer) <= by_hand.GREETING_BYTES, answer
    assert OLDER_VERSION not in node.log()
    assert len(garbage(node, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) <= by_hand.GREETING_BYTES
    assert OLDER_VERSION in node.log()
    assert node.alive() and ask(hello(minio, bucket)) != b""


def test_secret_holder_must_match_store_and_node(bucket, nodes, minio):
    node = nodes(bucket, args=["--set", f"cluster_secret={SECRET}"]).start()
    store, me = by_hand.identity(minio, bucket), members(minio, bucket)[0]
    ask = lambda *claim: by_hand.greet(node.host, node.rpc_port, by_hand.hello(SECRET, *claim, name="stranger"))
    assert ask(store, me, me) != b""
    other = str(uuid.uuid4())
    for claim in ((other, me, me), (store, {**me, "incarnation": other}, me), (store, {**me, "host_id": other}, me),
                  (store, me, {**me, "incarnation": other}), (store, me, {**me, "host_id": other})):
        assert got_no_answer(lambda: ask(*claim)), claim
    words = node.log()
    assert "a node of another store was refused" in words and other in words and "stranger" in words, words


def refused_to_join(node, words):
    node.start(wait=False)
    assert node.process.wait(30) == 1
    assert words in node.log(), node.log()


def test_who_would_not_be_understood_takes_no_tablets(bucket, nodes, minio, tmp_path):
    """A node with the bucket's credentials and another secret, or without the cluster's TLS, is refused before it is in the document."""
    authority, others = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    tls, other_tls = (settings(which.certificate("node")) for which in (authority, others))
    secret = ["--set", f"cluster_secret={SECRET}"]
    first = nodes(bucket, args=["--name", "first", *tls, *secret]).start()
    version = first.metrics()["helenus_cluster_document_version"]
    refused_to_join(nodes(bucket, args=[*tls, "--set", "cluster_secret=some-other-secret"]), "it has another cluster_secret")
    refused_to_join(nodes(bucket, args=tls), "it has another cluster_secret")
    refused_to_join(nodes(bucket, args=secret), "it speaks TLS")
    refused_to_join(nodes(bucket, args=[*other_tls, *secret]), "another authority")
    figures = first.metrics()
    assert figures["helenus_cluster_document_version"] == version, "nobody has written to the document"
    assert figures["helenus_cluster_tablets_owned"] == figures["helenus_cluster_tablets"]
    assert [node["name"] for node in members(minio, bucket)] == ["first"]
    # After the last node of the cluster has ended, a new node may have another secret.
    first.kill()
    nodes(bucket, args=["--set", "cluster_secret=some-other-secret"]).start()


def post(node, headers):
    asked = urllib.request.Request(f"http://{node.host}:{node.http_port}/cluster/drain", b"", headers, method="POST")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.status


def test_commands_are_not_taken_from_strangers(bucket, nodes):
    node = nodes(bucket, args=["--set", f"cluster_secret={SECRET}"]).start()
    other = nodes(bucket, args=["--set", f"cluster_secret={SECRET}"]).start()
    challenge = by_hand.challenge(node)
    for stranger in ({"Origin": "http://example.org"}, {"Host": f"example.org:{node.http_port}"}, {"Host": "127.0.0.1.example.org"},
                     {"Authorization": by_hand.answer("some-other-secret", challenge)}, {"Authorization": by_hand.proof(SECRET)},
                     {"Authorization": by_hand.answer(SECRET, challenge, "POST /cluster/other")},
                     {"Authorization": by_hand.answer(SECRET, by_hand.challenge(other))},
                     {"Authorization": by_hand.proof(SECRET, "helenus-command-1")}, {"Authorization": by_hand.proof(SECRET, "helenus-rpc-3")}):
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(node, stranger)
        assert refused.value.code == 403
    tool = [str(helenus.binary()), "nodetool", "--http", f"{node.host}:{node.http_port}"]
    wrong = subprocess.run([*tool, "--secret", "some-other-secret", "drain"], capture_output=True, text=True)
    assert wrong.returncode != 0 and "secret" in wrong.stderr, wrong
    assert subprocess.run([*tool, "health"]).returncode == 0
    assert node.alive()
    subprocess.run([*tool, "--secret", SECRET, "drain"], check=True)
    assert node.process.wait(30) == 0
    assert post(other, {"Authorization": by_hand.answer(SECRET, by_hand.challenge(other))}) == 200
    assert other.process.wait(30) == 0


def test_newer_documents_are_refused(bucket, nodes, minio):
    """A cluster that newer nodes have written to is not joined."""
    first = nodes(bucket).start()

    def raise_format(content):
        document = json.loads(content)
        document["format"] += 1
        return json.dumps(document).encode()

    # The node that runs goes on with what it knows; the one that comes ends, and says why.
    by_hand.change_document(minio, bucket, "cluster", raise_format)
    second = nodes(bucket).start(wait=False)
    assert second.process.wait(30) == 1
    assert "has format 3" in second.log() and "upgrade this node first" in second.log(), second.log()
    assert first.alive()
    session = first.connect()
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO o.t (k, v) VALUES (1, 1)")
    assert session.execute("SELECT v FROM o.t WHERE k = 1").one().v == 1


def test_what_a_node_tells_of_the_cluster(bucket, nodes):
    """Virtual tables, the greeting, and the ports by which nodes know each other."""
    pair = [nodes(bucket, args=["--name", name]).start() for name in ("one", "two")]
    wait_for_share(*pair)
    assert "1 nodes)" not in pair[1].log(), pair[1].log()
    assert "2 nodes" in pair[1].log(), pair[1].log()
    for node, other in (pair, reversed(pair)):
        # Both nodes have the same IP address. This session uses only one of them.
        here = lambda host, port=node.port: host.endpoint.port == port
        ask = node.connect(load_balancing_policy=HostFilterPolicy(RoundRobinPolicy(), here)).execute
        known = {row.name: row for row in ask("SELECT * FROM system_views.cluster_nodes")}
        assert set(known) == {"one", "two"} and all(row.alive and row.state == "normal" for row in known.values())
        tablets = ask("SELECT * FROM system_views.tablets").all()
        owners = [row.owner for row in tablets]
        assert {row.host_id: row.tablets for row in known.values()} == {owner: owners.count(owner) for owner in owners}
        assert abs(sum(row.owns for row in known.values()) - 1) < 1e-9
        peer = ask("SELECT * FROM system.peers_v2").one()
        assert (peer.native_port, peer.peer_port) == (other.port, other.rpc_port)
        local = ask("SELECT tokens, broadcast_port FROM system.local").one()
        assert local.broadcast_port == node.rpc_port
        assert {int(token) for token in [*local.tokens, *peer.tokens]} == {row.last_token for row in tablets}
