"""A node whose bucket does not answer: it lives, is not ready and says why; it waits for the bucket when it starts, and ends without it."""

import json
import signal

import pytest

import helenus
from faulty_proxy import FaultyProxy

pytestmark = pytest.mark.process


def test_a_node_whose_bucket_is_away_lives_but_is_not_ready(bucket, nodes, minio):
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        node = nodes(bucket, minio.environment(proxy.endpoint)).start()
        assert node.http("/health/ready")[0] == 200 and node.metrics()["helenus_ready"] == 1
        proxy.rule = lambda method, path: ("refuse", 503)
        helenus.wait_until(lambda: node.http("/health/ready")[0] == 503, what="a node that is not ready")
        status, body = node.http("/health/ready")
        troubles = json.loads(body)["troubles"]
        assert len(troubles) == 1 and ("lease has run out" in troubles[0] or "joins the cluster" in troubles[0]), troubles
        assert node.http("/health/live")[0] == 200

        def warnings():
            return [line for line in node.log(10_000).splitlines() if " WARN " in line and "the node is not ready" in line]

        helenus.wait_until(warnings, what="a warning")
        proxy.rule = lambda method, path: None
        helenus.wait_until(lambda: node.http("/health/ready")[0] == 200, what="a node that is ready again")
        helenus.wait_until(lambda: "the node is ready again" in node.log(10_000), what="a line that it is")
        assert len(warnings()) == 1, warnings()
    finally:
        proxy.close()


@pytest.fixture
def proxy(minio):
    proxy = FaultyProxy(minio.host, minio.port)
    yield proxy
    proxy.close()


def trouble(node):
    """Returns the troubles in /health/ready. Empty if there are none, or if the node does not answer."""
    try:
        status, body = node.http("/health/ready")
    except OSError:
        return ""
    return "; ".join(json.loads(body)["troubles"]) if status == 503 else ""


def test_the_answer_of_a_bucket_that_refuses_is_told(bucket, nodes, minio, proxy):
    node = nodes(bucket, minio.environment(proxy.endpoint)).start()
    proxy.rule = lambda method, path: ("refuse", 403)
    helenus.wait_until(lambda: "403" in trouble(node), what="a trouble that names the status")
    proxy.rule = lambda method, path: None
    helenus.wait_until(lambda: node.http("/health/ready")[0] == 200, what="a node that is ready again")


@pytest.mark.parametrize("status", [503, 500])
def test_a_node_waits_for_its_bucket_at_the_start(bucket, nodes, minio, proxy, status):
    proxy.rule = lambda method, path: ("refuse", status)
    node = nodes(bucket, minio.environment(proxy.endpoint)).start(wait=False)
    helenus.wait_until(lambda: str(status) in trouble(node), what="a node that says what it waits for")
    assert node.http("/health/live")[0] == 200 and json.loads(node.http("/health")[1])["status"] == "starting"
    assert node.metrics()["helenus_ready"] == 0 and node.alive()
    waits = lambda: [line for line in node.log(10_000).splitlines() if "the node waits for it" in line]
    assert len(waits()) == 1, waits()
    proxy.rule = lambda method, path: None
    node.wait_ready()
    assert len(waits()) == 1 and "the store answers; the start goes on" in node.log(10_000)
    assert node.connect().execute("SELECT key FROM system.local").one().key == "local"


def test_a_node_that_waits_for_its_bucket_can_be_stopped(bucket, nodes, minio):
    # No server listens at this address.
    node = nodes(bucket, {**minio.environment(), "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}).start(wait=False)
    helenus.wait_until(lambda: "cannot be reached" in trouble(node) and "AWS_ENDPOINT_URL" in trouble(node), what="a node that says what it waits for")
    assert node.terminate() == 0
    assert "stopped before the node was ready" in node.log()


def with_rows(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE h WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE h.t (k int PRIMARY KEY)")
    for k in range(100):
        session.execute("INSERT INTO h.t (k) VALUES (%s)", (k,))
    node.close_clients()


@pytest.mark.parametrize("hurried", [False, True], ids=["one signal", "three signals"])
def test_a_node_whose_bucket_is_gone_stops(bucket, nodes, minio, proxy, hurried):
    node = nodes(bucket, minio.environment(proxy.endpoint), ["--set", "lease=1s"]).start()
    with_rows(node)
    proxy.rule = lambda method, path: ("refuse", 503)
    node.process.send_signal(signal.SIGTERM)
    if hurried:
        for words in ("stopping", "a second signal to stop was received"):
            helenus.wait_until(lambda: words in node.log(10_000), what=words)
            node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(90) == 0
    last = node.log(10_000).splitlines()[-2:]
    assert "what was not flushed is in the log" in last[0] and "stopped" in last[1], node.log(10_000)
    # All that was acknowledged is in the bucket.
    proxy.rule = lambda method, path: None
    node.start()
    assert len(list(node.connect().execute("SELECT k FROM h.t"))) == 100
