"""Writes of one partition that read before they write: they share records of the log, and fail with what they follow from."""

import collections
import threading

import pytest
from cassandra import WriteTimeout
from cassandra.cluster import NoHostAvailable

import helenus
from faulty_proxy import FaultyProxy

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
CLIENTS = 64
EACH = 5
WRITES = CLIENTS * EACH


@pytest.fixture
def slow_log(minio):
    """Yields a proxy that counts the PUTs of the log and delays each."""
    proxy = FaultyProxy(minio.host, minio.port)
    proxy.puts = collections.Counter()

    def rule(method, path):
        if method == "PUT" and "/logs/" in path:
            proxy.puts["log"] += 1
            return ("delay", 0.02)

    proxy.rule = rule
    yield proxy
    proxy.close()


def run_all(session, statement, values):
    """Runs a statement with each of the values, from many clients at once; the results."""
    prepared = session.prepare(statement)
    results, pending = [], iter(list(values))
    lock = threading.Lock()

    def client():
        while True:
            with lock:
                given = next(pending, None)
            if given is None:
                return
            result = session.execute(prepared, given, timeout=60).all()
            with lock:
                results.append((given, result))

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == WRITES, "a client has failed"
    return results


def test_one_partition_takes_many_writes_a_record(bucket, nodes, minio, slow_log):
    session = nodes(bucket, minio.environment(slow_log.endpoint)).start().connect()
    session.execute(KEYSPACE)

    def counted(what, statement, values):
        before = slow_log.puts["log"]
        results = run_all(session, statement, values)
        puts = slow_log.puts["log"] - before
        assert puts < WRITES / 4, f"{what}: {puts} log records for {WRITES} writes"
        return results

    session.execute("CREATE TABLE o.i (k int, c int, v int, PRIMARY KEY (k, c))")
    session.execute("CREATE INDEX ON o.i (v)")
    counted("index", "INSERT INTO o.i (k, c, v) VALUES (1, ?, ?)", [(n, n % 7) for n in range(WRITES)])
    # Each of these moves a row from one value to another; the last one of a row is not known, but the index and the row agree.
    counted("index, changed", "UPDATE o.i SET v = ? WHERE k = 1 AND c = ?", [(n, n % 20) for n in range(WRITES)])
    rows = {row.c: row.v for row in session.execute("SELECT c, v FROM o.i WHERE k = 1")}
    assert len(rows) == WRITES
    for c in range(20):
        assert c in [row.c for row in session.execute("SELECT c FROM o.i WHERE v = %s", (rows[c],))]

    session.execute("CREATE TABLE o.b (k int, c int, v int, PRIMARY KEY (k, c))")
    session.execute("CREATE MATERIALIZED VIEW o.w AS SELECT * FROM o.b WHERE k IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL "
                    "PRIMARY KEY (v, k, c)")
    counted("view", "UPDATE o.b SET v = ? WHERE k = 1 AND c = ?", [(n, n % 20) for n in range(WRITES)])
    rows = {(row.c, row.v) for row in session.execute("SELECT c, v FROM o.b WHERE k = 1")}
    helenus.wait_until(lambda: {(row.c, row.v) for row in session.execute("SELECT c, v FROM o.w")} == rows, what="the view follows")

    session.execute("CREATE TABLE o.c (k int PRIMARY KEY, n counter)")
    counted("counter", "UPDATE o.c SET n = n + ? WHERE k = 1", [(n,) for n in range(WRITES)])
    assert session.execute("SELECT n FROM o.c").one().n == sum(range(WRITES))

    session.execute("CREATE TABLE o.l (k int, c int, s int static, v int, l list<int>, PRIMARY KEY (k, c))")
    results = counted("condition", "INSERT INTO o.l (k, c, v) VALUES (1, ?, ?) IF NOT EXISTS", [(n // 2, n) for n in range(WRITES)])
    assert sum(result[0].applied for _, result in results) == WRITES / 2
    # The answer to a transaction that was not applied has the row of the one that was.
    won = {c: v for (c, v), result in results if result[0].applied}
    assert all(result[0].v == won[c] for (c, _), result in results if not result[0].applied)
    session.execute("UPDATE o.l SET s = 0 WHERE k = 1")
    results = counted("static condition", "UPDATE o.l SET s = ? WHERE k = 1 IF s < ?", [(n, n) for n in range(1, WRITES + 1)])
    assert session.execute("SELECT s FROM o.l WHERE k = 1 LIMIT 1").one().s == WRITES
    session.execute("UPDATE o.l SET l = [0] WHERE k = 1 AND c = 0")
    counted("list", "UPDATE o.l SET l[0] = ? WHERE k = 1 AND c = 0", [(n,) for n in range(WRITES)])
    assert len(session.execute("SELECT l FROM o.l WHERE k = 1 AND c = 0").one().l) == 1


def test_nobody_is_told_of_what_is_not_durable(bucket, nodes, minio):
    proxy = FaultyProxy(minio.host, minio.port)
    stuck, go_on = threading.Event(), threading.Event()
    try:
        session = nodes(bucket, minio.environment(proxy.endpoint), ["--set", "write_timeout=30s"]).start().connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v int, l list<int>)")
        session.execute("INSERT INTO o.t (k, v, l) VALUES (2, 0, [0])")

        def rule(method, path):
            if method == "PUT" and "/logs/" in path:
                stuck.set()
                go_on.wait()

        proxy.rule = rule
        first = session.execute_async("INSERT INTO o.t (k, v) VALUES (1, 1) IF NOT EXISTS", timeout=60)
        assert stuck.wait(20)
        removed = session.execute_async("DELETE l[0] FROM o.t WHERE k = 2", timeout=60)
        later = [
            session.execute_async("INSERT INTO o.t (k, v) VALUES (1, 2) IF NOT EXISTS", timeout=60),
            session.execute_async("UPDATE o.t SET v = 3 WHERE k = 1 IF v = 1", timeout=60),
        ]
        for _ in range(5):
            assert session.execute("SELECT v FROM o.t WHERE k = 1").one() is None
            assert session.execute("SELECT l FROM o.t WHERE k = 2").one().l == [0]
        answered = []
        for future in [first, removed, *later]:
            future.add_callbacks(answered.append, answered.append)
        assert not answered, "a client was told of what is not durable"
        go_on.set()
        assert first.result().one().applied
        removed.result()
        lost, swapped = (future.result().one() for future in later)
        assert not lost.applied and lost.v in (1, 3)
        assert swapped.applied
        assert session.execute("SELECT v FROM o.t WHERE k = 1").one().v == 3
    finally:
        go_on.set()
        proxy.close()


def test_what_follows_from_a_lost_record_is_not_acknowledged(bucket, nodes, minio):
    """A node is cut off from its log with writes pending, and another one takes its tablets over."""
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        first = nodes(bucket, minio.environment(proxy.endpoint)).start()
        session = first.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE o.c (k int PRIMARY KEY, n counter)")
        session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v int)")
        session.execute("INSERT INTO o.t (k, v) VALUES (1, 0)")
        nodes(bucket).start()
        helenus.wait_until(lambda: len(session.execute("SELECT host_id FROM system.peers_v2").all()) == 1, what="two nodes")
        counts, stopped = collections.Counter(), threading.Event()
        lock = threading.Lock()
        add = session.prepare("UPDATE o.c SET n = n + 1 WHERE k = ?")
        swap = session.prepare("UPDATE o.t SET v = ? WHERE k = 1 IF v = ?")

        def attempt(kind, statement, values):
            try:
                answer = session.execute(statement, values, timeout=30).one()
                outcome = "done" if answer is None or answer.applied else "refused"
            except (WriteTimeout, NoHostAvailable) as error:
                outcome = "unknown" if isinstance(error, WriteTimeout) else "undone"
            with lock:
                counts[kind, outcome] += 1

        def increments(k):
            while not stopped.is_set():
                attempt(k, add, (k,))

        def swaps():
            while not stopped.is_set():
                now = session.execute("SELECT v FROM o.t WHERE k = 1", timeout=30).one().v
                attempt("swap", swap, (now + 1, now))

        threads = [threading.Thread(target=increments, args=(k % 4,)) for k in range(32)]
        threads += [threading.Thread(target=swaps) for _ in range(8)]
        for thread in threads:
            thread.start()
        done = lambda: sum(count for (_, outcome), count in counts.items() if outcome == "done")
        helenus.wait_until(lambda: done() > 200, what="writes")
        proxy.rule = lambda method, path: ("refuse", 503) if method == "PUT" else None
        before = done()
        helenus.wait_until(lambda: done() > before + 200, 60, "writes at the other node")
        stopped.set()
        proxy.rule = lambda method, path: None
        for thread in threads:
            thread.join()
        found = {row.k: row.n for row in session.execute("SELECT k, n FROM o.c")}
        for k in range(4):
            assert counts[k, "done"] <= found[k] <= counts[k, "done"] + counts[k, "unknown"], (k, found, counts)
        swapped = session.execute("SELECT v FROM o.t WHERE k = 1").one().v
        assert counts["swap", "done"] <= swapped <= counts["swap", "done"] + counts["swap", "unknown"], (swapped, counts)
    finally:
        proxy.close()
