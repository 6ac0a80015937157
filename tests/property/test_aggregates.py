"""Aggregates over whole tables, whose parts are read concurrently. They are equal to those of the rows that a client reads, after any deletion
or expiry. They end when their client disconnects.
"""

import random
import time
from collections import Counter
from decimal import Decimal

import pytest

import helenus
from durability.test_long_requests import Client, is_at_rest
from probe import ERROR

pytestmark = pytest.mark.process

PARTITIONS, ROWS = 600, 40
SETTINGS = {"scan_concurrency": 4, "tablet_count": 8, "range_request_timeout": "60s", "tombstone_failure_threshold": 1_000_000}


@pytest.fixture(scope="module")
def node():
    node = helenus.Node(args=helenus.setting_args(SETTINGS)).start()
    yield node
    node.close()


@pytest.fixture(scope="module")
def session(node):
    """Returns a session with a table in files and in memory, of which much is deleted, overwritten or expired."""
    session = node.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")
    session.execute(
        "CREATE TABLE t (p int, c int, s int static, v int, w bigint, n varint, m decimal, d double, x text, PRIMARY KEY (p, c))")
    session.execute("CREATE TABLE plain (k int PRIMARY KEY, v int)")
    draw = random.Random(26)

    def every(statement, values):
        helenus.execute_all(session, session.prepare(statement), values)

    insert = "INSERT INTO t (p, c, v, w, n, m, d, x) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    every(insert, [
        (p, c, draw.randrange(-1000, 1000), draw.randrange(-2**62, 2**62), draw.randrange(-2**90, 2**90),
         Decimal(draw.randrange(-10**6, 10**6)) / 100, draw.uniform(-1e6, 1e6), f"text {draw.randrange(10**6)}")
        for p in range(PARTITIONS) for c in range(ROWS)])
    every("INSERT INTO t (p, s) VALUES (?, ?)", [(p, p) for p in range(0, 2 * PARTITIONS, 3)])
    every("INSERT INTO plain (k, v) VALUES (?, ?)", [(k, k) for k in range(20_000)])
    # The restart flushes all earlier writes to files.
    node.close_clients()
    node.restart(clean=True)
    session = node.connect("ks")
    every("DELETE FROM t WHERE p = ?", [(p,) for p in range(0, PARTITIONS, 17)])
    every("DELETE FROM t WHERE p = ? AND c >= ? AND c < ?", [(p, 5, 20) for p in range(1, PARTITIONS, 13)])
    every("DELETE FROM t WHERE p = ? AND c = ?", [(p, draw.randrange(ROWS)) for p in range(PARTITIONS)])
    every("DELETE v FROM t WHERE p = ? AND c = ?", [(p, draw.randrange(ROWS)) for p in range(PARTITIONS)])
    every("INSERT INTO t (p, c, v) VALUES (?, ?, 1) USING TTL 1", [(p, 1000 + p) for p in range(2 * PARTITIONS)])
    every("UPDATE t USING TTL 1 SET v = 7 WHERE p = ? AND c = ?", [(p, 3) for p in range(2 * PARTITIONS)])
    every("DELETE FROM plain WHERE k = ?", [(k,) for k in range(0, 20_000, 7)])
    time.sleep(2.5)
    return session


@pytest.fixture(scope="module")
def rows(session):
    session.default_fetch_size = 1000
    return list(session.execute("SELECT p, c, s, v, w, n, m, d, x, token(p) AS t FROM t"))


def wrapped(value, bits):
    """Returns a sum as its bounded type wraps it."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def average(values):
    """Returns the average. For integers it is rounded toward zero."""
    total, count = sum(values), len(values)
    return 0 if not count else abs(total) // count * (1 if total >= 0 else -1)


@pytest.mark.parametrize("where,passes", [
    ("", lambda row: True),
    (" WHERE v < 100 ALLOW FILTERING", lambda row: row.v is not None and row.v < 100),
    (" WHERE c >= 4 AND c < 9 ALLOW FILTERING", lambda row: row.c is not None and 4 <= row.c < 9),
    (" WHERE token(p) > -3000000000000000000 AND token(p) <= 5000000000000000000",
     lambda row: -3 * 10**18 < row.t <= 5 * 10**18),
    (" WHERE s = 30 ALLOW FILTERING", lambda row: row.s == 30),
    (" WHERE x = 'nowhere' ALLOW FILTERING", lambda row: False),
])
def test_aggregates_are_those_of_the_rows(session, rows, where, passes):
    found = [row for row in rows if passes(row)]
    of = lambda name: [getattr(row, name) for row in found if getattr(row, name) is not None]
    assert session.execute(f"SELECT count(*) FROM t{where}").one()[0] == len(found)
    got = session.execute(
        f"SELECT count(*), count(v), sum(v), avg(v), min(v), max(v), sum(w), avg(w), sum(n), avg(n), min(x), max(x) FROM t{where}").one()
    assert tuple(got) == (
        len(found), len(of("v")), wrapped(sum(of("v")), 32), average(of("v")), min(of("v"), default=None),
        max(of("v"), default=None), wrapped(sum(of("w")), 64), average(of("w")), sum(of("n")), average(of("n")),
        min(of("x"), default=None), max(of("x"), default=None))


def test_what_is_rounded_is_added_up_in_the_order_of_tokens(session, rows):
    """A trace reads one part after the other, as do aggregates whose result depends on the order."""
    query = "SELECT sum(d), avg(d), sum(m), avg(m), count(v), p, v FROM t"
    got = session.execute(query).one()
    assert tuple(got) == tuple(session.execute(query, trace=True).one())
    assert got[0] == pytest.approx(sum(row.d for row in rows if row.d is not None))
    assert (got.p, got.v) == (rows[0].p, rows[0].v)
    first = session.execute("SELECT p, v, count(*) FROM t").one()
    assert (first.p, first.v, first.count) == (rows[0].p, rows[0].v, len(rows))


def test_groups_are_those_of_the_rows(session, rows):
    counts = Counter(row.p for row in rows)
    for fetch in (7, 5000, None):
        session.default_fetch_size = fetch
        assert {row.p: row.count for row in session.execute("SELECT p, count(*) FROM t GROUP BY p")} == counts
        filtered = session.execute("SELECT p, max(v) AS v FROM t WHERE v > 900 GROUP BY p ALLOW FILTERING")
        greatest = {}
        for row in rows:
            if row.v is not None and row.v > 900:
                greatest[row.p] = max(row.v, greatest.get(row.p, row.v))
        assert {row.p: row.v for row in filtered} == greatest


def test_rows_in_memory_and_in_files_are_counted(session):
    expected = 20_000 - len(range(0, 20_000, 7))
    assert session.execute("SELECT count(*) FROM plain").one()[0] == expected
    session.execute("INSERT INTO plain (k, v) VALUES (0, 0)")
    assert session.execute("SELECT count(*) FROM plain").one()[0] == expected + 1
    session.execute("DELETE FROM plain WHERE k = 0")
    assert session.execute("SELECT count(1) FROM plain").one()[0] == expected
    assert session.execute("SELECT count(*) FROM plain", trace=True).one()[0] == expected


def test_tombstones_warn_as_in_one_read(session):
    """The threshold is that of the whole read, not of a part. No compaction removes the tombstones, since their timestamps are in the future."""
    session.execute("CREATE TABLE IF NOT EXISTS deleted (k int PRIMARY KEY, v int)")
    tomorrow_us = (int(time.time()) + 86_400) * 1_000_000
    helenus.execute_all(session, session.prepare("INSERT INTO deleted (k, v) VALUES (?, 1)"), [(k,) for k in range(2000)])
    delete = session.prepare(f"DELETE FROM deleted USING TIMESTAMP {tomorrow_us} WHERE k = ?")
    helenus.execute_all(session, delete, [(k,) for k in range(2000)])
    for trace in (False, True):
        result = session.execute_async("SELECT count(*) FROM deleted", trace=trace)
        result.result()
        warnings = [warning for warning in result.warnings or [] if "tombstone_warn_threshold" in warning]
        assert len(warnings) == 1, result.warnings


LONG_AGGREGATE = "SELECT sum(w), max(x) FROM ks.t WHERE v > 0 ALLOW FILTERING"


def parts_run(node):
    return node.metrics()["helenus_scan_parts_running"] > 0


def test_a_count_ends_when_its_client_is_gone(node, session):
    gone = [Client(node) for _ in range(4)]
    for client in gone:
        for _ in range(20):
            client.send(LONG_AGGREGATE)
    helenus.wait_until(lambda: parts_run(node), what="parts that are read")
    for client in gone:
        client.socket.close()
    helenus.wait_until(lambda: is_at_rest(node), what="an end of the parts")


def test_a_count_ends_at_its_timeout(node, session):
    client = Client(node)
    opcode, body = client.query(f"{LONG_AGGREGATE} USING TIMEOUT 5ms")
    assert opcode == ERROR, body[:100]
    helenus.wait_until(lambda: is_at_rest(node), what="an end of the parts")
