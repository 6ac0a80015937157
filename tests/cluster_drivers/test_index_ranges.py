"""Ranges by index on three nodes: through every node, while rows are written, and after a node has died."""

import random
import threading

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

pytestmark = pytest.mark.process

ROWS = 1_500
QUERIES = (
    ("SELECT k, v FROM t WHERE v >= %s AND v < %s", (0, 40)),
    ("SELECT k, v FROM t WHERE v > %s AND v <= %s", (-5_000, -4_000)),
    ("SELECT k, v FROM t WHERE v > %s AND v < %s AND w = 3", (-2_000, 5_000)),
    ("SELECT k, v FROM t WHERE v >= %s AND v < %s LIMIT 5", (-9, 10)),
)


def connect(node):
    session = node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host]))
    session.execute("CREATE KEYSPACE IF NOT EXISTS ranges WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("USE ranges")
    return session


def rows(session, cql, values, fetch_size=None):
    return [tuple(row) for row in session.execute(SimpleStatement(cql, fetch_size=fetch_size), values, timeout=30)]


def check(sessions):
    for query, values in QUERIES:
        expected = rows(sessions[0], query.replace("v ", "u ") + " ALLOW FILTERING", values)
        for session in sessions:
            for size in (None, 3, 50):
                assert rows(session, query, values, size) == expected, (query, size)


def check_orders(sessions):
    whole = rows(sessions[0], "SELECT k, u, w FROM t", ())
    every = [(k, v) for k, v, _ in whole]
    for direction, sign in (("ASC", 1), ("DESC", -1)):
        for where, values, wanted in (
            ("", (), every),
            ("WHERE v > %s AND v < %s", (-60, 60), [row for row in every if -60 < row[1] < 60]),
            ("WHERE v > %s AND w = 3", (-60,), [(k, v) for k, v, w in whole if v > -60 and w == 3]),
        ):
            query = f"SELECT k, v FROM t {where} ORDER BY v {direction} LIMIT 200 ALLOW FILTERING"
            found = rows(sessions[0], query, values)
            assert [v for _, v in found] == sorted((v for _, v in wanted), key=lambda v: sign * v)[:200], query
            assert len(set(found)) == len(found) and set(found) <= set(wanted), query
            for session in sessions:
                for size in (None, 3, 50):
                    assert rows(session, query, values, size) == found, (query, size)


def test_ranges_of_three_nodes(cluster):
    sessions = [connect(node) for node in cluster.nodes]
    first = sessions[0]
    first.execute("CREATE TABLE t (k int PRIMARY KEY, v bigint, w int, u bigint)")
    for column in "vw":
        first.execute(f"CREATE INDEX ON t ({column}) USING 'sai'")
    insert = first.prepare("INSERT INTO t (k, v, w, u) VALUES (?, ?, ?, ?)")
    chance = random.Random(5)

    def write(keys):
        values = [chance.choice([chance.randint(-90, 90), chance.randint(-5_000, 5_000), chance.getrandbits(62)]) for _ in keys]
        results = execute_concurrent_with_args(first, insert, [(k, v, k % 5, v) for k, v in zip(keys, values)], 4)
        assert all(result.success for result in results)

    write(range(ROWS))
    check(sessions)
    check_orders(sessions)
    # Rows that stay in a range are in it while others change.
    steady = set(range(ROWS, ROWS + 50))
    for k in steady:
        first.execute(insert, (k, 2**40 + k, 0, 2**40 + k))
    writer = threading.Thread(target=write, args=([chance.randrange(ROWS) for _ in range(1_000)],))
    writer.start()
    while True:
        is_last = not writer.is_alive()
        for session in sessions:
            found = rows(session, "SELECT k, v FROM t WHERE v > %s AND v < %s", (2**40, 2**40 + 10_000), 20)
            assert {k for k, _ in found} == steady and len(found) == len(steady)
            found = rows(session, "SELECT k, v FROM t WHERE v > %s ORDER BY v DESC LIMIT 5000", (2**40,), 20)
            assert [k for k, _ in found if k in steady] == sorted(steady, reverse=True)
        if is_last:
            break
    check(sessions)
    check_orders(sessions)
    cluster.nodes[2].kill()
    check(sessions[:2])
    check_orders(sessions[:2])
