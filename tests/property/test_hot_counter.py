"""One counter that many clients increment at once: each counts once."""

import pytest

pytestmark = pytest.mark.process


def test_increments_at_once_all_count(node):
    from cassandra.concurrent import execute_concurrent_with_args

    sessions = [node.connect() for _ in range(4)]
    first = sessions[0]
    first.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    first.execute("CREATE TABLE ks.t (k int, c int, n counter, m counter, s counter static, PRIMARY KEY (k, c))")
    updates = {
        "UPDATE ks.t SET n = n + ? WHERE k = 1 AND c = 1": ("n", 1),
        "UPDATE ks.t SET n = n - ? WHERE k = 1 AND c = 2": ("n", -1),
        "UPDATE ks.t SET m = m + ?, s = s + 1 WHERE k = 1 AND c = 1": ("m", 1),
    }
    count = 500
    running = []
    for session in sessions:
        for text in updates:
            prepared = session.prepare(text)
            running += [session.execute_async(prepared, (delta,)) for delta in range(count)]
    refused = [first.execute_async(first.prepare("UPDATE ks.t SET n = n + ? WHERE k = 1 AND c = 1"), (None,)) for _ in range(50)]
    for future in running:
        future.result()
    for future in refused:
        with pytest.raises(Exception, match="Invalid null value for counter increment"):
            future.result()
    total = len(sessions) * sum(range(count))
    rows = {row.c: row for row in first.execute("SELECT * FROM ks.t WHERE k = 1")}
    assert (rows[1].n, rows[1].m, rows[2].n) == (total, total, -total)
    assert rows[1].s == len(sessions) * count


def test_concurrent_increments_and_deletions_serialize(node):
    """Whatever the order is, a counter that was deleted by itself stays deleted."""
    session = node.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, n counter)")
    running = [session.execute_async("UPDATE ks.t SET n = n + 1 WHERE k = 1") for _ in range(200)]
    running.append(session.execute_async("DELETE n FROM ks.t WHERE k = 1"))
    running += [session.execute_async("UPDATE ks.t SET n = n + 1 WHERE k = 1") for _ in range(200)]
    for future in running:
        future.result()
    assert session.execute("SELECT n FROM ks.t WHERE k = 1").one() is None
