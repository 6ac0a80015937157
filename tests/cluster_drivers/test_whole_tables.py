"""Aggregates, filters and groups of whole tables, IN of many keys and one hot counter on three nodes, through every node."""

import pytest
from cassandra import FunctionFailure
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

pytestmark = pytest.mark.process

ROWS = 3_000


@pytest.fixture(scope="module")
def sessions(cluster):
    sessions = [node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host])) for node in cluster.nodes]
    first = sessions[0]
    first.execute("CREATE KEYSPACE whole WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for statement in (
        "CREATE TABLE whole.t (k int PRIMARY KEY, v int, w bigint)",
        "CREATE TABLE whole.wide (p int, c int, v int, PRIMARY KEY (p, c))",
        "CREATE TABLE whole.counters (k int PRIMARY KEY, n counter)",
    ):
        first.execute(statement)
    insert = first.prepare("INSERT INTO whole.t (k, v, w) VALUES (?, ?, ?)")
    execute_concurrent_with_args(first, insert, [(k, k % 100, k) for k in range(ROWS)], concurrency=64)
    insert = first.prepare("INSERT INTO whole.wide (p, c, v) VALUES (?, ?, ?)")
    execute_concurrent_with_args(first, insert, [(p, c, p) for p in range(50) for c in range(3)], concurrency=64)
    return sessions


def rows(session, cql, values=None, fetch_size=5000):
    return [tuple(row) for row in session.execute(SimpleStatement(cql, fetch_size=fetch_size), values, timeout=30)]


def test_aggregates(sessions):
    for session in sessions:
        assert rows(session, "SELECT count(*) FROM whole.t") == [(ROWS,)]
        assert rows(session, "SELECT count(v), sum(w), min(v), max(w), avg(v) FROM whole.t") == [
            (ROWS, sum(range(ROWS)), 0, ROWS - 1, 49)]
        assert rows(session, "SELECT count(*) FROM whole.t WHERE v = 7 ALLOW FILTERING") == [(ROWS // 100,)]
        grouped = rows(session, "SELECT p, count(*) FROM whole.wide GROUP BY p", fetch_size=7)
        assert sorted(grouped) == [(p, 3) for p in range(50)]


def test_owners_read_the_parts_of_aggregates(cluster, sessions):
    """Aggregates are equal to those that the client computes from the rows, and no rows are sent between nodes."""
    table = rows(sessions[0], "SELECT k, v, w, writetime(v), token(k) FROM whole.t")
    seen = [row for row in table if row[1] >= 10]
    half = [row for row in table if row[4] > 0]
    whole = [(len(seen), min(row[0] for row in seen), max(row[2] for row in seen), sum(row[2] for row in seen), seen[0][0])]
    for session in sessions:
        scans, parts = cluster.asked("scan"), cluster.asked("part")
        assert rows(session, "SELECT count(*) FROM whole.t") == [(len(table),)]
        filtered = "SELECT count(v), min(k), max(w), sum(w), k FROM whole.t WHERE v >= %s ALLOW FILTERING"
        assert rows(session, filtered, (10,)) == whole
        assert [tuple(row) for row in session.execute(session.prepare(filtered.replace("%s", ":least")), {"least": 10})] == whole
        assert rows(session, "SELECT count(*), sum(v) FROM whole.t WHERE token(k) > 0") == [(len(half), sum(row[1] for row in half))]
        assert rows(session, "SELECT max(writetime(v)), writetime(v), v FROM whole.t") == [
            (max(row[3] for row in table), table[0][3], table[0][1])]
        assert rows(session, "SELECT count(*), max(v) FROM whole.t WHERE v < 0 ALLOW FILTERING") == [(0, None)]
        # Each node reads parts for this one, at every statement.
        assert cluster.asked("part") >= parts + 6 * 2
        assert cluster.asked("scan") == scans


def test_owners_filter_and_group_their_rows(cluster, sessions):
    """Only what the client gets is sent from node to node, in the order of the table, whatever the pages are."""
    table = rows(sessions[0], "SELECT k, v, w FROM whole.t")
    wide = rows(sessions[0], "SELECT p, c, v FROM whole.wide")
    partitions = list(dict.fromkeys(row[0] for row in wide))
    scans, parts = cluster.asked("scan"), cluster.asked("part")
    for query, expected in (
            ("SELECT k, v, w FROM whole.t WHERE v = 7 ALLOW FILTERING", [row for row in table if row[1] == 7]),
            ("SELECT k, v, w FROM whole.t WHERE v >= 1 ALLOW FILTERING", [row for row in table if row[1] >= 1]),
            ("SELECT k, v, w FROM whole.t WHERE v > 10 AND w < 500 LIMIT 40 ALLOW FILTERING",
             [row for row in table if row[1] > 10 and row[2] < 500][:40]),
            ("SELECT k FROM whole.t WHERE v > 1000 ALLOW FILTERING", []),
            ("SELECT p, c, v FROM whole.wide WHERE c = 2 ALLOW FILTERING", [row for row in wide if row[1] == 2]),
            ("SELECT p, count(*), sum(c) FROM whole.wide GROUP BY p", [(p, 3, 3) for p in partitions]),
            ("SELECT p, c, max(v) FROM whole.wide GROUP BY p, c PER PARTITION LIMIT 2", [row for row in wide if row[1] < 2])):
        for session in sessions:
            for size in (1000, 10, None):
                assert rows(session, query, fetch_size=size) == expected, (query, size)
    prepared = sessions[1].prepare("SELECT k, v, w FROM whole.t WHERE v = ? AND w > ? ALLOW FILTERING")
    found = [tuple(row) for row in sessions[1].execute(prepared, (5, 1000))]
    assert found == [row for row in table if row[1] == 5 and row[2] > 1000]
    assert cluster.asked("scan") == scans
    assert cluster.asked("part") >= parts + 100


def test_a_failure_at_an_owner_is_the_clients(cluster, sessions):
    """A part that would fail here as well is not read here."""
    sessions[0].execute("CREATE FUNCTION whole.refuse (v int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS "
                        "'if (v >= 0) throw new RuntimeException(\"no\"); return v;'")
    with pytest.raises(FunctionFailure) as of_one:
        rows(sessions[0], "SELECT whole.refuse(v) FROM whole.t WHERE k = 1")
    for session in sessions:
        scans = cluster.asked("scan")
        with pytest.raises(FunctionFailure) as of_all:
            rows(session, "SELECT max(whole.refuse(v)) FROM whole.t")
        assert str(of_all.value) == str(of_one.value)
        assert cluster.asked("scan") == scans


def test_in_of_many_keys(sessions):
    """The rows are the same, in the same order, from every node and with every page size."""
    keys = [(k * 7919) % (2 * ROWS) for k in range(1_000)]
    found = {k for k in keys if k < ROWS}
    text = ",".join(map(str, keys))
    queries = (f"SELECT k, v FROM whole.t WHERE k IN ({text})", f"SELECT k, v FROM whole.t WHERE k IN ({text}) LIMIT 3",
               "SELECT p, c FROM whole.wide WHERE p IN (3, 1, 77, 2) AND c IN (0, 2)")
    whole = rows(sessions[0], queries[0], fetch_size=None)
    assert sorted(whole) == sorted((k, k % 100) for k in found)
    for query in queries:
        expected = rows(sessions[0], query, fetch_size=None)
        for session in sessions:
            for size in (None, 10, 333):
                assert rows(session, query, fetch_size=size) == expected, (query[:50], size)
    assert rows(sessions[1], queries[1]) == whole[:3]


def test_a_hot_counter(sessions):
    running = [session.execute_async("UPDATE whole.counters SET n = n + 1 WHERE k = 1") for _ in range(200) for session in sessions]
    for future in running:
        future.result()
    for session in sessions:
        assert rows(session, "SELECT n FROM whole.counters WHERE k = 1") == [(len(running),)]
