"""Clients that write to a cluster and know what a moment of it may have: at least what was acknowledged before, at most what was begun by then.

Each value is written by one thread, and grows: rows of a table with an index and a view, logged batches over several tablets, and counters.
"""

import contextlib
import threading

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, RoundRobinPolicy

import helenus

KEYSPACE = "tm"
KEYS, BATCHES, PARTS, COUNTERS = 6, 4, 6, 2
# The values of the column with an index.
GROUPS = 5
TABLES = (
    f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
    f"CREATE TABLE {KEYSPACE}.rows (k int PRIMARY KEY, n int, g int, pad text)",
    f"CREATE INDEX rows_g ON {KEYSPACE}.rows (g)",
    f"CREATE MATERIALIZED VIEW {KEYSPACE}.rows_by_g AS SELECT * FROM {KEYSPACE}.rows WHERE k IS NOT NULL AND g IS NOT NULL PRIMARY KEY (g, k)",
    f"CREATE TABLE {KEYSPACE}.batches (b int, part int, n int, PRIMARY KEY ((b, part)))",
    f"CREATE TABLE {KEYSPACE}.counters (k int PRIMARY KEY, n counter)",
)


class Value:
    """A number that one thread makes larger."""

    def __init__(self):
        self.begun = self.acknowledged = 0

    def write(self, execute):
        """Writes the next number. Returns true if it was acknowledged."""
        self.begun += 1
        number = self.begun
        try:
            execute(number)
        except Exception:  # Whatever it was, it is not known whether the number was written.
            return False
        self.acknowledged = number
        return True


class Counter(Value):
    """A counter that one thread increments. A failed increment may have taken effect."""

    def write(self, execute):
        self.begun += 1
        try:
            execute(1)
        except Exception:  # Whatever it was, it is not known whether the number was written.
            return False
        self.acknowledged += 1
        return True


def connect(nodes):
    """Returns a cluster and a session on all nodes, whose requests are never retried."""
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), retry_policy=FallthroughRetryPolicy(), request_timeout=12)
    first = nodes[0]
    cluster = Cluster([node.host for node in nodes], port=first.port, protocol_version=5, connect_timeout=20, control_connection_timeout=20,
                      reconnection_policy=ConstantReconnectionPolicy(0.3, None), execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    return cluster, cluster.connect()


class Writers:
    """Threads at work until `close`. `rows`, `batches` and `counters` are their values by key."""

    def __init__(self, nodes):
        self.cluster, self.session = connect(nodes)
        for statement in TABLES:
            helenus.wait_until(lambda: self.schema(statement), 30, statement, 0.5)
        self.rows = {k: Value() for k in range(KEYS)}
        self.batches = {b: Value() for b in range(BATCHES)}
        self.counters = {k: Counter() for k in range(COUNTERS)}
        # Cleared while no row is to be written.
        self.may_write_rows = threading.Event()
        self.may_write_rows.set()
        self.rows_at_rest = threading.Semaphore(KEYS)
        self.ends = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=job, daemon=True) for job in self.jobs()]
        for thread in self.threads:
            thread.start()

    def schema(self, statement):
        try:
            self.session.execute(statement)
        except Exception as error:
            return "already exists" in str(error)
        return True

    def jobs(self):
        row = self.session.prepare(f"INSERT INTO {KEYSPACE}.rows (k, n, g, pad) VALUES (?, ?, ?, ?)")
        count = self.session.prepare(f"UPDATE {KEYSPACE}.counters SET n = n + ? WHERE k = ?")
        run = self.session.execute
        for k, value in self.rows.items():
            yield value, lambda n, k=k: run(row, (k, n, n % GROUPS, "x" * (n % 7) * 200)), True
        for b, value in self.batches.items():
            yield value, lambda n, b=b: run(f"BEGIN BATCH {self.lines(b, n)} APPLY BATCH"), False
        for k, value in self.counters.items():
            yield value, lambda n, k=k: run(count, (n, k)), False

    @staticmethod
    def lines(b, n):
        return "".join(f"INSERT INTO {KEYSPACE}.batches (b, part, n) VALUES ({b}, {part}, {n});" for part in range(PARTS))

    def work(self, value, execute, is_row):
        while not self.ends.is_set():
            with self.rows_at_rest if is_row else contextlib.nullcontext():
                is_written = not is_row or self.may_write_rows.is_set()
                if is_written and not value.write(execute):
                    # A node is gone: not too many tries.
                    self.ends.wait(0.05)
            if is_row:
                self.may_write_rows.wait(1)

    def rest(self):
        """Returns when no row is being written; none is until `go_on`."""
        self.may_write_rows.clear()
        for _ in range(KEYS):
            self.rows_at_rest.acquire()
        for _ in range(KEYS):
            self.rows_at_rest.release()

    def go_on(self):
        self.may_write_rows.set()

    def acknowledged(self):
        return {name: {k: value.acknowledged for k, value in getattr(self, name).items()} for name in ("rows", "batches", "counters")}

    def begun(self):
        return {name: {k: value.begun for k, value in getattr(self, name).items()} for name in ("rows", "batches", "counters")}

    def close(self):
        self.ends.set()
        self.may_write_rows.set()
        for thread in self.threads:
            thread.join(60)
        self.cluster.shutdown()
