"""A node whose data lies in a bucket: what it acknowledged is there, whatever happens to it or to the object store."""

import itertools
import random
import threading
import time

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unavailable, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.query import BatchStatement

import helenus
from faulty_proxy import FaultyProxy

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE IF NOT EXISTS o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
TABLE = "CREATE TABLE IF NOT EXISTS o.t (k int PRIMARY KEY, v int)"


def session_on(node):
    session = node.connect()
    session.execute(KEYSPACE)
    session.execute(TABLE)
    return session


class Writers:
    """Threads that write rows one after the other and remember which were acknowledged."""

    def __init__(self, node, count=8):
        session = session_on(node)
        insert = session.prepare("INSERT INTO o.t (k, v) VALUES (?, ?)")
        self.keys = itertools.count()
        self.acknowledged, self.failures = set(), []
        self.stopped = threading.Event()

        def write():
            while not self.stopped.is_set():
                k = next(self.keys)
                try:
                    session.execute(insert, (k, k), timeout=10)
                    self.acknowledged.add(k)
                except Exception as error:
                    self.failures.append((time.monotonic(), error))
                    if isinstance(error, NoHostAvailable):
                        time.sleep(0.05)

        self.threads = [threading.Thread(target=write) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def wait_for(self, more):
        """Returns when so many more writes are acknowledged."""
        goal = len(self.acknowledged) + more
        helenus.wait_until(lambda: len(self.acknowledged) >= goal, 60, f"{more} more writes")

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def check_all_there(node, acknowledged):
    session = node.connect()
    found = {row.k: row.v for row in session.execute("SELECT k, v FROM o.t")}
    missing = sorted(k for k in acknowledged if found.get(k) != k)
    assert not missing, f"{len(missing)} acknowledged rows are lost: {missing[:10]}"


def test_acknowledged_rows_survive_kill(bucket, nodes):
    node = nodes(bucket).start()
    acknowledged = set()
    for _ in range(3):
        writers = Writers(node)
        writers.wait_for(300)
        node.kill()
        writers.stop()
        node.close_clients()
        acknowledged |= writers.acknowledged
        node.start()
        check_all_there(node, acknowledged)
    assert node.terminate() == 0
    node.close_clients()
    node.start()
    check_all_there(node, acknowledged)


def rows(session):
    return session.execute("SELECT count(*) FROM o.t").one()[0]


def peers(session):
    return len(session.execute("SELECT host_id FROM system.peers_v2").all())


def test_three_nodes_share_a_bucket(bucket, nodes):
    cluster = [nodes(bucket).start() for _ in range(3)]
    sessions = [session_on(node) for node in cluster]
    for session in sessions:
        helenus.wait_until(lambda: peers(session) == 2, what="all nodes own tablets")
    for k in range(90):
        sessions[k % 3].execute("INSERT INTO o.t (k, v) VALUES (%s, %s)", (k, k))
    assert [rows(session) for session in sessions] == [90, 90, 90]
    # One node is stopped with SIGTERM, and hands over its tablets.
    assert cluster[0].terminate() == 0
    cluster[0].close_clients()
    for k in range(90, 120):
        sessions[1 + k % 2].execute("INSERT INTO o.t (k, v) VALUES (%s, %s)", (k, k))
    assert [rows(session) for session in sessions[1:]] == [120, 120]
    # Another dies: the last one takes its tablets over.
    cluster[1].kill()
    cluster[1].close_clients()
    helenus.wait_until(lambda: peers(sessions[2]) == 0, what="the dead node is given up")
    assert rows(sessions[2]) == 120
    check_all_there(cluster[2], range(120))


def test_a_store_that_stops_answering(bucket, nodes, minio):
    node = nodes(bucket).start()
    writers = Writers(node)
    writers.wait_for(200)
    minio.pause()
    paused = time.monotonic()
    # The node's answer: the clients themselves wait for longer.
    helenus.wait_until(lambda: any(isinstance(e, WriteTimeout) for _, e in writers.failures), what="a write timeout")
    while time.monotonic() - paused < 8:
        time.sleep(0.1)
    before = len(writers.acknowledged)
    minio.resume()
    writers.wait_for(200)
    writers.stop()
    assert len(writers.acknowledged) > before
    kinds = {type(error) for _, error in writers.failures}
    assert kinds <= {WriteTimeout, OperationTimedOut}, kinds
    check_all_there(node, writers.acknowledged)
    node.kill()
    node.close_clients()
    node.start()
    check_all_there(node, writers.acknowledged)


def test_a_store_that_misbehaves(bucket, nodes, minio):
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        node = nodes(bucket, minio.environment(proxy.endpoint)).start()
        chance = random.Random(7)

        def sometimes(method, path):
            dice = chance.random()
            if dice < 0.05:
                return ("refuse", 503)
            if dice < 0.10 and method == "PUT":
                return ("after", 500)
            return ("delay", 0.05) if dice < 0.15 else None

        writers = Writers(node)
        proxy.rule = sometimes
        writers.wait_for(400)
        # Then it throttles everything for a while.
        proxy.rule = lambda method, path: ("refuse", 503)
        helenus.wait_until(lambda: any(isinstance(e, WriteTimeout) for _, e in writers.failures), what="a write timeout")
        proxy.rule = sometimes
        writers.wait_for(400)
        proxy.rule = lambda method, path: None
        writers.stop()
        check_all_there(node, writers.acknowledged)
        node.kill()
        node.close_clients()
        node.start()
        check_all_there(node, writers.acknowledged)
    finally:
        proxy.close()


def test_counters_and_transactions_when_answers_get_lost(bucket, nodes, minio):
    """Errors after the effect are made good within the store: each increment and each condition counts once."""
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        node = nodes(bucket, minio.environment(proxy.endpoint)).start()
        session = session_on(node)
        session.execute("CREATE TABLE o.c (k int PRIMARY KEY, n counter)")
        flip = itertools.count()
        proxy.rule = lambda method, path: ("after", 500) if "/logs/" in path and next(flip) % 3 == 0 else None
        for n in range(30):
            session.execute("UPDATE o.c SET n = n + 1 WHERE k = 1")
            assert session.execute("INSERT INTO o.t (k, v) VALUES (%s, 1) IF NOT EXISTS", (n,)).one().applied
            assert not session.execute("INSERT INTO o.t (k, v) VALUES (%s, 2) IF NOT EXISTS", (n,)).one().applied
        proxy.rule = lambda method, path: None
        assert session.execute("SELECT n FROM o.c WHERE k = 1").one().n == 30
        node.kill()
        node.close_clients()
        node.start()
        session = node.connect()
        assert session.execute("SELECT n FROM o.c WHERE k = 1").one().n == 30
        assert {row.v for row in session.execute("SELECT v FROM o.t")} == {1}
    finally:
        proxy.close()


def test_a_logged_batch_is_whole_after_a_kill(bucket, nodes, minio):
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        node = nodes(bucket, minio.environment(proxy.endpoint), ["--set", "tablet_count=4"]).start()
        session = session_on(node)
        insert = session.prepare("INSERT INTO o.t (k, v) VALUES (?, ?)")
        # The log's object is stored, and the node dies without knowing it.
        times = itertools.count()
        proxy.rule = lambda method, path: (("refuse", 503) if next(times) else ("after", 500)) if "/logs/" in path else None
        batch = BatchStatement()
        for k in range(40):
            batch.add(insert, (k, 1))
        with pytest.raises(WriteTimeout):
            session.execute(batch)
        node.kill()
        node.close_clients()
        proxy.rule = lambda method, path: None
        node.start()
        session = node.connect()
        # The node applies the recorded batch to four tablets, while it serves reads.
        helenus.wait_until(lambda: len(list(session.execute("SELECT k FROM o.t"))) == 40, 60, "all rows of the batch")
    finally:
        proxy.close()


@pytest.mark.parametrize("change, url, words", [
    ({"AWS_SECRET_ACCESS_KEY": "wrong"}, None, ["credentials are wrong", "AWS_SECRET_ACCESS_KEY"]),
    ({"AWS_ACCESS_KEY_ID": "nobody"}, None, ["credentials are wrong", "AWS_ACCESS_KEY_ID"]),
    ({}, "s3://no-such-bucket/store", ["no bucket no-such-bucket"]),
], ids=["secret", "key", "bucket"])
def test_a_bucket_that_cannot_be_used_is_refused_in_words(bucket, nodes, minio, change, url, words):
    node = nodes(url or bucket, {**minio.environment(), **change})
    node.start(wait=False)
    assert node.process.wait(40) != 0
    log = node.log()
    for word in words:
        assert word in log, log


def test_a_store_without_conditional_writes_is_refused(bucket, nodes, minio):
    """A store that ignores If-None-Match answers with success instead of a conflict."""
    proxy = FaultyProxy(minio.host, minio.port)
    proxy.ignore_conditions = True
    try:
        node = nodes(bucket, minio.environment(proxy.endpoint))
        node.start(wait=False)
        assert node.process.wait(40) != 0
        assert "does not honour If-None-Match" in node.log(), node.log()
    finally:
        proxy.close()


def test_schema_and_everyday_statements(bucket, nodes):
    node = nodes(bucket).start()
    session = session_on(node)
    session.execute("CREATE TABLE o.w (p int, c int, v text, PRIMARY KEY (p, c))")
    session.execute("CREATE INDEX ON o.w (v)")
    for c in range(20):
        session.execute("INSERT INTO o.w (p, c, v) VALUES (1, %s, %s)", (c, f"v{c % 4}"))
    session.execute("DELETE FROM o.w WHERE p = 1 AND c < 5")
    assert [row.c for row in session.execute("SELECT c FROM o.w WHERE p = 1 ORDER BY c DESC")] == list(range(19, 4, -1))
    assert sorted(row.c for row in session.execute("SELECT c FROM o.w WHERE v = 'v0'")) == [8, 12, 16]
    with pytest.raises(InvalidRequest):
        session.execute("SELECT nothing FROM o.w")
    session.execute("TRUNCATE o.w")
    node.restart()
    session = node.connect()
    assert list(session.execute("SELECT * FROM o.w")) == []
