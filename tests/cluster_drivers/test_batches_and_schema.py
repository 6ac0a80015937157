"""Logged batches over several tablets, and writes while the schema of other tables changes. Each session uses one of three nodes."""

import itertools
import threading
import time

import pytest
from cassandra import InvalidRequest
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy

import helenus

pytestmark = pytest.mark.process

names = (f"b{n}" for n in itertools.count(1))
# Statements without an effect in a partition that has no rows.
NOTHING = (
    "DELETE FROM t WHERE p = {p} AND c > 3 AND c < 2",
    "DELETE FROM t WHERE p = {p} AND c IN ()",
    "UPDATE t SET v = 1 WHERE p = {p} AND c IN ()",
    "UPDATE t SET l = l - [5] WHERE p = {p} AND c = 0",
)
KEYS = range(1, 9)
# Writes that must begin and end while one change of the schema lasts, and the rounds of changes in which they must.
WITHIN_CHANGES = 10
ROUNDS_MAX = 100


def only_coordinator(node, keyspace=None):
    """Returns a session that uses only this node, without retries."""
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
    """Yields a session for each node, in a new keyspace."""
    first = only_coordinator(cluster.nodes[0])
    keyspace = create_keyspace(first)
    yield [first, *(only_coordinator(node, keyspace) for node in cluster.nodes[1:])]
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
        sessions[number % 3].execute(f"BEGIN {kind} BATCH {'; '.join(parts)} APPLY BATCH")
    expected = {(k, number, number) for number, (_, k) in enumerate(itertools.product(NOTHING, KEYS))}
    for session in sessions:
        assert {(row.p, row.c, row.v) for row in session.execute("SELECT p, c, v FROM t")} == expected
        if index:
            assert {(row.p, row.c, number) for number in range(len(expected))
                    for row in session.execute(f"SELECT p, c FROM t WHERE v = {number}")} == expected
    sessions[1].execute(f"BEGIN {kind} BATCH {'; '.join(nothing.format(p=p) for p, nothing in enumerate(NOTHING, 100))} APPLY BATCH")


def test_a_value_that_an_index_refuses_refuses_the_batch(sessions):
    sessions[0].execute("CREATE TABLE t (p int PRIMARY KEY, v text)")
    sessions[0].execute("CREATE INDEX ON t (v)")
    for p in KEYS:
        statements = [f"INSERT INTO t (p, v) VALUES ({key}, '{value}')" for key, value in ((p, "x"), (p + 100, "x" * 65_536))]
        for parts in (statements, statements[::-1]):
            with pytest.raises(InvalidRequest, match="Cannot index value of size 65536"):
                sessions[p % 3].execute(f"BEGIN BATCH {'; '.join(parts)} APPLY BATCH")
    assert list(sessions[0].execute("SELECT p FROM t")) == []


class Writer(threading.Thread):
    """Writes rows one after the other with one session, and keeps when each write began and ended, and what failed."""

    def __init__(self, session, first, step):
        super().__init__(daemon=True)
        self.session, self.keys = session, itertools.count(first, step)
        self.written, self.done, self.longest_s, self.errors = [], [], 0, []
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
                    self.done.append((began, time.monotonic()))
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

    def within(self, began, ended):
        """Returns how many writes began and ended within this time."""
        return sum(began < write[0] and write[1] < ended for thread in self.threads for write in list(thread.done))

    def check(self, session, what):
        """Checks that no write failed, and that all rows exist."""
        errors = [error for thread in self.threads for error in thread.errors]
        longest = max(thread.longest_s for thread in self.threads)
        written = {k for thread in self.threads for k in thread.written}
        print(f"{what}: {3 * len(written)} writes, {len(errors)} failed, the longest took {longest * 1000:.0f} ms")
        assert not errors, errors[:3]
        found = lambda statement: {row[0] for row in session.execute(statement)}
        assert set().union(*(found(f"SELECT k FROM indexed WHERE v = {v}") for v in range(10))) >= written
        assert found("SELECT v FROM by_v") >= written
        assert found("SELECT v FROM one") >= written and found("SELECT v FROM other") >= written


def change_schema(sessions, rounds):
    """Makes and drops an index and a view of a table that has no rows. Returns when each change began and ended."""
    changes = []
    for number in range(rounds):
        for statement in ("CREATE INDEX i ON empty (v)", "DROP INDEX i",
                          "CREATE MATERIALIZED VIEW w AS SELECT * FROM empty WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
                          "DROP MATERIALIZED VIEW w"):
            began = time.monotonic()
            sessions[number % len(sessions)].execute(statement)
            changes.append((began, time.monotonic()))
    return changes


def change_until_writes_go_on(sessions, writers):
    """Changes the schema until writes have ended within changes in which they began. A change that blocks writes would have none."""
    done = 0
    for _ in range(ROUNDS_MAX):
        done += sum(writers.within(*change) for change in change_schema(sessions, 2))
        if done >= WITHIN_CHANGES:
            return
    raise AssertionError(f"expected {WITHIN_CHANGES} writes within changes of the schema, got {done} in {8 * ROUNDS_MAX} changes")


def test_writes_go_on_while_other_tables_change(sessions):
    with Writers(sessions) as writers:
        change_schema(sessions, 6)
        change_until_writes_go_on(sessions, writers)
    writers.check(sessions[1], "three nodes")


def test_writes_go_on_in_a_folder_while_other_tables_change(node):
    session = only_coordinator(node)
    create_keyspace(session)
    with Writers([session]) as writers:
        change_schema([session], 6)
        change_until_writes_go_on([session], writers)
    writers.check(session, "a folder")


def test_writes_go_on_while_other_tables_change_and_a_node_dies(cluster, sessions):
    """Writes go on, and those to the dead node's rows wait for the end of its lease."""
    with Writers(sessions[:2]) as writers:
        change_schema(sessions[:2], 4)
        cluster.nodes[2].kill()
        change_schema(sessions[:2], 8)
    # No write waited until the timeout of its client.
    writers.check(sessions[1], "two nodes of three")
    cluster.nodes[2].start()
    cluster.wait_settled()


def test_an_index_or_view_made_under_load_misses_no_row(sessions):
    columns = [f"v{n}" for n in range(4)]
    sessions[0].execute(f"CREATE TABLE t (k int PRIMARY KEY, {', '.join(f'{column} int' for column in columns)})")

    class Inserter(Writer):
        def statements(self, k):
            values = ", ".join([str(k % 10)] * len(columns))
            yield f"INSERT INTO t (k, {', '.join(columns)}) VALUES ({k}, {values})"
            yield (f"BEGIN BATCH INSERT INTO t (k, {', '.join(columns)}) VALUES ({k + 1_000_000}, {values}); "
                   f"INSERT INTO t (k, {', '.join(columns)}) VALUES ({k + 2_000_000}, {values}) APPLY BATCH")

    inserters = [Inserter(sessions[n % 3], n, 6) for n in range(6)]
    for inserter in inserters:
        inserter.start()
    try:
        for number, column in enumerate(columns):
            sessions[number % 3].execute(f"CREATE INDEX ON t ({column})")
            sessions[number % 3].execute(f"CREATE MATERIALIZED VIEW by_{column} AS SELECT * FROM t WHERE {column} IS NOT NULL AND k IS NOT NULL "
                                         f"PRIMARY KEY ({column}, k)")
    finally:
        for inserter in inserters:
            inserter.stopped.set()
    for inserter in inserters:
        inserter.join()
        assert not inserter.errors, inserter.errors[:3]
    written = {k for inserter in inserters for k in inserter.written}
    expected = written | {k + 1_000_000 for k in written} | {k + 2_000_000 for k in written}
    for column in columns:
        for table in ("t", f"by_{column}"):
            found = {row.k for v in range(10) for row in sessions[0].execute(f"SELECT k FROM {table} WHERE {column} = {v}")}
            assert found == expected, (column, table, len(expected - found))
