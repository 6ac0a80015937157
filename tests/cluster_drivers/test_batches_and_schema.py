"""Logged batches over several tablets, and writes while the schema of other tables changes: through three nodes, each asked by itself."""

import itertools
import threading
import time

import pytest
from cassandra import InvalidRequest
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy

import helenus

pytestmark = pytest.mark.process

names = (f"b{n}" for n in itertools.count(1))
# What comes to nothing in a partition that has no rows.
NOTHING = (
    "DELETE FROM t WHERE p = {p} AND c > 3 AND c < 2",
    "DELETE FROM t WHERE p = {p} AND c IN ()",
    "UPDATE t SET v = 1 WHERE p = {p} AND c IN ()",
    "UPDATE t SET l = l - [5] WHERE p = {p} AND c = 0",
)
KEYS = range(1, 9)


def asking_only(node, keyspace=None):
    """A session that asks only this node, once for each statement."""
    session = node.connect(keyspace, load_balancing_policy=WhiteListRoundRobinPolicy([node.host]), schema_metadata_enabled=False,
                           max_schema_agreement_wait=0, default_retry_policy=FallthroughRetryPolicy())
    session.default_timeout = 30
    return session


def create_keyspace(session):
    keyspace = next(names)
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.execute(f"USE {keyspace}")
    return keyspace


@pytest.fixture
def sessions(cluster):
    """A session for each node, in a keyspace of the test's own."""
    first = asking_only(cluster.nodes[0])
    keyspace = create_keyspace(first)
    yield [first, *(asking_only(node, keyspace) for node in cluster.nodes[1:])]
    for node in cluster.nodes:
        node.close_clients()


@pytest.mark.parametrize("kind", ["", "UNLOGGED"])
@pytest.mark.parametrize("index", [False, True], ids=["plain", "indexed"])
def test_a_part_of_a_batch_comes_to_nothing(sessions, kind, index):
    sessions[0].execute("CREATE TABLE t (p int, c int, v int, l list<int>, PRIMARY KEY (p, c))")
    if index:
        sessions[0].execute("CREATE INDEX ON t (v)")
    for number, (nothing, k) in enumerate(itertools.product(NOTHING, KEYS)):
        parts = [nothing.format(p=0), f"INSERT INTO t (p, c, v) VALUES ({k}, {number}, {number})"]
        if number % 2:
            parts.reverse()
        sessions[number % 3].execute(f"BEGIN {kind} BATCH {'; '.join(parts)} APPLY BATCH", timeout=5)
    expected = {(k, number, number) for number, (_, k) in enumerate(itertools.product(NOTHING, KEYS))}
    for session in sessions:
        assert {(row.p, row.c, row.v) for row in session.execute("SELECT p, c, v FROM t")} == expected
        if index:
            assert {(row.p, row.c, number) for number in range(len(expected))
                    for row in session.execute(f"SELECT p, c FROM t WHERE v = {number}")} == expected
    sessions[1].execute(f"BEGIN {kind} BATCH {'; '.join(nothing.format(p=p) for p, nothing in enumerate(NOTHING, 100))} APPLY BATCH", timeout=5)


def test_a_value_that_an_index_refuses_refuses_the_batch(sessions):
    sessions[0].execute("CREATE TABLE t (p int PRIMARY KEY, v text)")
    sessions[0].execute("CREATE INDEX ON t (v)")
    for p in KEYS:
        statements = [f"INSERT INTO t (p, v) VALUES ({key}, '{value}')" for key, value in ((p, "x"), (p + 100, "x" * 65_536))]
        for parts in (statements, statements[::-1]):
            with pytest.raises(InvalidRequest, match="Cannot index value of size 65536"):
                sessions[p % 3].execute(f"BEGIN BATCH {'; '.join(parts)} APPLY BATCH", timeout=5)
    assert list(sessions[0].execute("SELECT p FROM t")) == []


class Writer(threading.Thread):
    """Writes rows one after the other with one session, and remembers how long each took and what failed."""

    def __init__(self, session, first, step):
        super().__init__()
        self.session, self.keys = session, itertools.count(first, step)
        self.written, self.longest_s, self.errors = [], 0, []
        self.stopped = threading.Event()

    def statements(self, k):
        yield f"INSERT INTO indexed (k, v) VALUES ({k}, {k % 10})"
        yield f"INSERT INTO base (k, v) VALUES ({k}, {k})"
        yield (f"BEGIN BATCH INSERT INTO one (k, v) VALUES ({k}, {k}); INSERT INTO other (k, v) VALUES ({k + 1}, {k}); "
               f"UPDATE indexed SET w = {k} WHERE k = {k + 2_000_000} APPLY BATCH")

    def run(self):
        while not self.stopped.is_set():
            k = next(self.keys)
            for statement in self.statements(k):
                began = time.monotonic()
                try:
                    self.session.execute(statement)
                except Exception as error:
                    self.errors.append(f"{time.monotonic() - began:.1f} s: {type(error).__name__} {error}: {statement}")
                self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.written.append(k)


class Writers:
    """A writer for each session, on tables whose rows lie in several tablets."""

    def __init__(self, sessions):
        for statement in ("CREATE TABLE indexed (k int PRIMARY KEY, v int, w int)", "CREATE INDEX ON indexed (v)",
                          "CREATE TABLE base (k int PRIMARY KEY, v int)",
                          "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM base WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
                          "CREATE TABLE one (k int PRIMARY KEY, v int)", "CREATE TABLE other (k int PRIMARY KEY, v int)",
                          "CREATE TABLE empty (k int PRIMARY KEY, v int)"):
            sessions[0].execute(statement)
        self.threads = [Writer(session, first, len(sessions)) for first, session in enumerate(sessions)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        for thread in self.threads:
            thread.stopped.set()
        for thread in self.threads:
            thread.join()

    def check(self, session, longest_s, what):
        """Nothing failed or took longer, and all is there."""
        errors = [error for thread in self.threads for error in thread.errors]
        longest = max(thread.longest_s for thread in self.threads)
        written = {k for thread in self.threads for k in thread.written}
        print(f"{what}: {3 * len(written)} writes, {len(errors)} failed, the longest took {longest * 1000:.0f} ms")
        assert not errors, errors[:3]
        assert longest < longest_s
        found = lambda statement: {row[0] for row in session.execute(statement)}
        assert set().union(*(found(f"SELECT k FROM indexed WHERE v = {v}") for v in range(10))) >= written
        assert found("SELECT v FROM by_v") >= written
        assert found("SELECT v FROM one") >= written and found("SELECT v FROM other") >= written


def change_schema(sessions, rounds):
    """Makes and drops an index and a view of a table that has no rows; the statements that failed."""
    longest_s = 0
    for number in range(rounds):
        for statement in ("CREATE INDEX i ON empty (v)", "DROP INDEX i",
                          "CREATE MATERIALIZED VIEW w AS SELECT * FROM empty WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
                          "DROP MATERIALIZED VIEW w"):
            began = time.monotonic()
            sessions[number % len(sessions)].execute(statement)
            longest_s = max(longest_s, time.monotonic() - began)
    print(f"{4 * rounds} changes of the schema, the longest took {longest_s * 1000:.0f} ms")


def test_writes_go_on_while_other_tables_change(sessions):
    with Writers(sessions) as writers:
        change_schema(sessions, 12)
    writers.check(sessions[1], 1.5, "three nodes")


def test_writes_go_on_in_a_folder_while_other_tables_change(node):
    session = asking_only(node)
    create_keyspace(session)
    with Writers([session]) as writers:
        change_schema([session], 12)
    writers.check(session, 1, "a folder")


def test_writes_go_on_while_other_tables_change_and_a_node_dies(cluster, sessions):
    """Those of the dead node's rows wait for its lease."""
    with Writers(sessions[:2]) as writers:
        change_schema(sessions[:2], 4)
        cluster.nodes[2].kill()
        change_schema(sessions[:2], 8)
    writers.check(sessions[1], 8, "two nodes of three")
    cluster.nodes[2].start()
    cluster.wait_settled()
