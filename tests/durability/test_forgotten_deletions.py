"""Deleted data stays deleted after compactions have dropped the tombstones. This holds for the row cache, for older writes in newer files or
in memory, and for writes that arrive late.
"""

import time

import pytest
from cassandra.query import SimpleStatement

import helenus

pytestmark = pytest.mark.process

# Tombstones are kept for so long whatever is below.
GRACE_S = 10
VALUE = "x" * 1000


@pytest.fixture
def node(tmp_path):
    settings = {"tablet_count": 1, "memtable_bytes": "4MiB", "compaction_poll_interval": "100ms"}
    server = helenus.Node(tmp_path, args=helenus.setting_args(settings)).start()
    yield server
    server.close()


@pytest.fixture
def session(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.filler (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE s.t (p int, c int, v int, w int, s set<int>, st int static, PRIMARY KEY (p, c))")
    return session


class Filler:
    """Writes that fill memtables, so that they are flushed and files are compacted."""

    def __init__(self, node, session):
        self.node, self.session, self.key = node, session, 0
        self.insert = session.prepare("INSERT INTO s.filler (k, v) VALUES (?, ?)")

    def figure(self, name):
        return self.node.metrics()[f"helenus_store_{name}"]

    def until(self, name, more):
        """Writes until a counter has grown by so much."""
        wanted = self.figure(name) + more
        while self.figure(name) < wanted:
            futures = [self.session.execute_async(self.insert, (self.key + k, VALUE)) for k in range(500)]
            self.key += 500
            for future in futures:
                future.result()

    def flush(self):
        self.until("flushes_total", 1)

    def compact(self, since):
        """Waits for compactions of all present files that begin after the grace period of tombstones."""
        helenus.wait_until(lambda: time.monotonic() - since > GRACE_S + 1, what="the grace has passed")
        self.until("flushes_total", 5)
        helenus.wait_until(lambda: self.figure("level0_files") < 4 and self.figure("compactions_running") == 0, what="compactions have ended")


def test_dropped_partition_tombstone_revives_no_cached_row(node, session):
    filler = Filler(node, session)
    session.execute("CREATE TABLE s.counts (p int, c int, n counter, PRIMARY KEY (p, c))")
    session.execute("CREATE INDEX ON s.t (v)")
    partitions = range(50)
    by_key = session.prepare("SELECT v FROM s.t WHERE p = ? AND c = 1")
    count = session.prepare("SELECT n FROM s.counts WHERE p = ? AND c = 1")
    for p in partitions:
        session.execute(f"INSERT INTO s.t (p, c, v) VALUES ({p}, 1, 7)")
        session.execute(f"UPDATE s.counts SET n = n + 5 WHERE p = {p} AND c = 1")
        assert session.execute(by_key, (p,)).one().v == 7
        assert session.execute(count, (p,)).one().n == 5
        range_of_it = "AND c > 0" if p % 2 else ""
        session.execute(f"DELETE FROM s.t WHERE p = {p} {range_of_it}")
        session.execute(f"DELETE FROM s.counts WHERE p = {p} {range_of_it}")
        assert session.execute(by_key, (p,)).one() is None
    filler.compact(time.monotonic())
    for p in partitions:
        assert session.execute(by_key, (p,)).one() is None, p
        assert session.execute(count, (p,)).one() is None, p
    assert list(session.execute("SELECT p FROM s.t WHERE v = 7")) == []
    for p in partitions:
        assert session.execute(f"INSERT INTO s.t (p, c, v) VALUES ({p}, 1, 8) IF NOT EXISTS").one().applied
        session.execute(f"UPDATE s.counts SET n = n + 1 WHERE p = {p} AND c = 1")
        assert session.execute(count, (p,)).one().n == 1, p


# Pairs of a deletion at timestamp 1000, of a row or a part of it, and an older write that must stay invisible.
SHADOWED = {
    "row": ("DELETE FROM s.t USING TIMESTAMP 1000 WHERE p = {p} AND c = 1", "INSERT INTO s.t (p, c, v) VALUES ({p}, 1, 1) USING TIMESTAMP 999"),
    "cell": ("DELETE v FROM s.t USING TIMESTAMP 1000 WHERE p = {p} AND c = 1", "UPDATE s.t USING TIMESTAMP 999 SET v = 1 WHERE p = {p} AND c = 1"),
    "element": ("UPDATE s.t USING TIMESTAMP 1000 SET s = s - {{1}} WHERE p = {p} AND c = 1", "UPDATE s.t USING TIMESTAMP 999 SET s = s + {{1}} WHERE p = {p} AND c = 1"),
    "collection": ("DELETE s FROM s.t USING TIMESTAMP 1000 WHERE p = {p} AND c = 1", "UPDATE s.t USING TIMESTAMP 999 SET s = s + {{1}} WHERE p = {p} AND c = 1"),
    "expired": ("INSERT INTO s.t (p, c, v) VALUES ({p}, 1, 2) USING TIMESTAMP 1000 AND TTL 1", "INSERT INTO s.t (p, c, v) VALUES ({p}, 1, 1) USING TIMESTAMP 999"),
    "partition": ("DELETE FROM s.t USING TIMESTAMP 1000 WHERE p = {p}", "INSERT INTO s.t (p, c, v, st) VALUES ({p}, 1, 1, 1) USING TIMESTAMP 999"),
    "range": ("DELETE FROM s.t USING TIMESTAMP 1000 WHERE p = {p} AND c > 0", "INSERT INTO s.t (p, c, v) VALUES ({p}, 1, 1) USING TIMESTAMP 999"),
    "static": ("DELETE st FROM s.t USING TIMESTAMP 1000 WHERE p = {p}", "UPDATE s.t USING TIMESTAMP 999 SET st = 1 WHERE p = {p}"),
}


def seen(session):
    """Returns the partitions of the table that are visible in a slice or by their whole key."""
    slices = {row.p for row in session.execute("SELECT p FROM s.t")}
    points = {p for p in range(100) if session.execute(f"SELECT v, s, st FROM s.t WHERE p = {p} AND c = 1").one()}
    return slices | points


def name(partitions):
    return sorted({list(SHADOWED)[p % len(SHADOWED)] for p in partitions})


def test_older_write_stays_deleted_after_compactions(node, session):
    filler = Filler(node, session)
    kinds = list(SHADOWED.values())
    late = range(50, 50 + len(kinds))
    for p in [*range(len(kinds)), *late]:
        session.execute(kinds[(p - 50 if p >= 50 else p) % len(kinds)][0].format(p=p))
    deleted = time.monotonic()
    filler.flush()
    helenus.wait_until(lambda: time.monotonic() - deleted > 2, what="the TTL has passed")
    for p in range(len(kinds)):
        session.execute(kinds[p][1].format(p=p))
    assert name(seen(session)) == []
    filler.compact(deleted)
    assert name(seen(session)) == [], "older writes in memory or in newer files"
    for p in late:
        session.execute(kinds[p - 50][1].format(p=p))
    assert name(p - 50 for p in seen(session)) == [], "writes that arrive late"
    node.kill()
    node.start()
    session = node.connect()
    assert name(p % 50 for p in seen(session)) == [], "after a restart"
    filler = Filler(node, session)
    filler.compact(deleted)
    assert name(p % 50 for p in seen(session)) == [], "after another compaction"


def test_what_arrives_late_is_in_no_index_and_no_view(node, session):
    filler = Filler(node, session)
    session.execute("CREATE INDEX ON s.t (v)")
    session.execute("CREATE MATERIALIZED VIEW s.by_w AS SELECT p, c, w FROM s.t WHERE w IS NOT NULL AND c IS NOT NULL AND p IS NOT NULL PRIMARY KEY (w, p, c)")
    session.execute("DELETE FROM s.t USING TIMESTAMP 1000 WHERE p = 1 AND c = 1")
    session.execute("DELETE FROM s.t USING TIMESTAMP 1000 WHERE p = 2")
    filler.compact(time.monotonic())
    for p in (1, 2):
        session.execute(f"INSERT INTO s.t (p, c, v, w) VALUES ({p}, 1, 7, 8) USING TIMESTAMP 999")
        session.execute(f"INSERT INTO s.t (p, c, v, w) VALUES ({p}, 2, 7, 8) USING TIMESTAMP 1001")
    assert {(row.p, row.c) for row in session.execute("SELECT p, c FROM s.t WHERE v = 7")} == {(1, 2), (2, 2)}
    assert {(row.p, row.c) for row in session.execute("SELECT p, c FROM s.by_w WHERE w = 8")} == {(1, 2), (2, 2)}


def test_a_table_without_grace_takes_what_arrives_late(node, session):
    filler = Filler(node, session)
    session.execute("CREATE TABLE s.graceless (p int PRIMARY KEY, v int) WITH gc_grace_seconds = 0")
    session.execute("DELETE FROM s.graceless USING TIMESTAMP 1000 WHERE p = 1")
    filler.compact(time.monotonic())

    def taken():
        """Returns the row once a compaction has dropped the tombstone. The first ones may have left out its file."""
        session.execute("INSERT INTO s.graceless (p, v) VALUES (1, 1) USING TIMESTAMP 999")
        row = session.execute("SELECT v FROM s.graceless WHERE p = 1").one()
        return row or filler.flush()

    assert helenus.wait_until(taken, 120, "the tombstone is dropped").v == 1


def test_longer_ttl_of_equal_timestamp_wins_after_first(node, session):
    filler = Filler(node, session)
    session.execute("UPDATE s.t USING TIMESTAMP 1000 AND TTL 1 SET v = 1 WHERE p = 1 AND c = 1")
    began = time.monotonic()
    # The live column keeps the row. A compaction sees the expired cell before the grace period of its tombstone ends.
    session.execute("UPDATE s.t SET w = 1 WHERE p = 1 AND c = 1")
    helenus.wait_until(lambda: time.monotonic() - began > 2, what="the TTL has passed")
    filler.until("flushes_total", 5)
    helenus.wait_until(lambda: filler.figure("level0_files") < 4, what="a compaction")
    session.execute(SimpleStatement("UPDATE s.t USING TIMESTAMP 1000 AND TTL 1000 SET v = 2 WHERE p = 1 AND c = 1"))
    assert session.execute("SELECT v FROM s.t WHERE p = 1 AND c = 1").one().v == 2
    filler.compact(began)
    assert session.execute("SELECT v FROM s.t WHERE p = 1 AND c = 1").one().v == 2
