"""Random batches over tablets on three nodes leave what the same statements leave, one by one, on a single node."""

import random
import time

import pytest
from cassandra import InvalidRequest
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy

pytestmark = pytest.mark.process

BATCHES = 150
PARTITIONS, ROWS = 8, 4
TABLES = (
    "CREATE TABLE t (p int, c int, s int static, v int, l list<int>, m map<int, int>, PRIMARY KEY (p, c))",
    "CREATE INDEX ON t (v)",
    "CREATE TABLE n (p int PRIMARY KEY, n counter)",
)


class Batches:
    """Statements that may stand together in a batch and mean the same one after the other: none is about a row of another."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self):
        return self.random.randrange(10)

    def list(self):
        return [self.value() for _ in range(self.random.randrange(3))]

    def of_row(self, p, c, using):
        where = f"WHERE p = {p} AND c = {c}"
        return self.random.choice((
            lambda: f"INSERT INTO t (p, c, v, l) VALUES ({p}, {c}, {self.value()}, {self.list()}) {using}",
            lambda: f"INSERT INTO t JSON '{{\"p\": {p}, \"c\": {c}, \"l\": {self.list()}}}' DEFAULT UNSET {using}",
            lambda: f"UPDATE t {using} SET v = {self.value()}, m[{self.value()}] = {self.value()} {where}",
            lambda: f"UPDATE t {using} SET l = l + {self.list()} {where}",
            lambda: f"UPDATE t {using} SET l = {self.list()} + l {where}",
            lambda: f"UPDATE t {using} SET l = l - {self.list()} {where}",
            lambda: f"UPDATE t {using} SET l = {self.list()} {where}",
            lambda: f"DELETE v, m[{self.value()}] FROM t {using} {where}",
            lambda: f"DELETE FROM t {using} {where}",
        ))()

    def of_partition(self, p, using):
        low, high = self.random.randrange(ROWS), self.random.randrange(ROWS)
        return self.random.choice((
            f"UPDATE t {using} SET s = {self.value()} WHERE p = {p}",
            f"DELETE FROM t {using} WHERE p = {p} AND c > {low} AND c < {high}",
            f"DELETE FROM t {using} WHERE p = {p} AND c > {low} AND c <= {low}",
            f"DELETE FROM t {using} WHERE p = {p} AND c IN ()",
            f"UPDATE t {using} SET v = 1 WHERE p = {p} AND c IN ()",
            f"DELETE FROM t {using} WHERE p = {p}",
        ))

    def statements(self, using):
        made = []
        for p in self.random.sample(range(PARTITIONS), self.random.randint(1, 4)):
            if self.random.random() < 0.3:
                made.append(self.of_partition(p, using))
            else:
                made += [self.of_row(p, c, using) for c in self.random.sample(range(ROWS), self.random.randint(1, 2))]
        self.random.shuffle(made)
        return made

    def counters(self):
        return [f"UPDATE n SET n = n + {self.value()} WHERE p = {p}" for p in self.random.sample(range(PARTITIONS), 3)]

    def conditional(self):
        """Returns the statements of a batch on one partition: the conditional one, and the others."""
        p, c = self.random.randrange(PARTITIONS), self.random.randrange(ROWS)
        condition = f"v = {self.value()}" if self.random.random() < 0.5 else "v = null"
        return f"UPDATE t SET l = l + {self.list()} WHERE p = {p} AND c = {c} IF {condition}", [
            f"UPDATE t SET v = {self.value()}, l = {self.list()} + l WHERE p = {p} AND c = {(c + 1) % ROWS}",
            f"DELETE FROM t WHERE p = {p} AND c > {c} AND c <= {c}"]


def batch(kind, statements):
    return f"BEGIN {kind} BATCH {'; '.join(statements)} APPLY BATCH"


def connect(node):
    session = node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host]), default_retry_policy=FallthroughRetryPolicy())
    session.execute("CREATE KEYSPACE IF NOT EXISTS r WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("USE r")
    return session


class Both:
    """A cluster, whose nodes are used in turn, and a single node."""

    def __init__(self, nodes, alone):
        self.sessions, self.alone, self.asked = [connect(node) for node in nodes], connect(alone), 0
        for statement in TABLES:
            self.sessions[0].execute(statement)
            self.alone.execute(statement)

    def ask(self, statement):
        self.asked += 1
        return self.sessions[self.asked % len(self.sessions)].execute(statement, timeout=5)

    def one_by_one(self, statements):
        for statement in statements:
            self.alone.execute(statement)

    def run(self, made, kind):
        if kind == "conditional":
            tested, others = made.conditional()
            is_applied = self.ask(batch("", [tested, *others])).one()[0]
            assert self.alone.execute(batch("", [tested, *others])).one()[0] == is_applied, tested
        elif kind == "counters":
            statements = made.counters()
            with pytest.raises(InvalidRequest, match="Cannot include a counter statement in a logged batch"):
                self.ask(batch("", statements))
            self.ask(batch("COUNTER", statements))
            self.one_by_one(statements)
        else:
            statements = made.statements(f"USING TIMESTAMP {time.time_ns() // 1000}")
            self.ask(batch("" if kind == "logged" else "UNLOGGED", statements))
            self.one_by_one(statements)

    def compare(self):
        for statement in ("SELECT p, c, s, v, l, m FROM t", "SELECT p, n FROM n",
                          *(f"SELECT p, c FROM t WHERE v = {v}" for v in range(10))):
            expected = sorted(map(repr, self.alone.execute(statement)))
            for session in self.sessions:
                assert sorted(map(repr, session.execute(statement))) == expected, statement


def test_batches_leave_what_their_statements_leave(cluster, node, request):
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    print(f"--seed {seed}")
    made, both = Batches(seed), Both(cluster.nodes, node)
    for number in range(BATCHES):
        kind = made.random.choices(("logged", "unlogged", "conditional", "counters"), (6, 2, 1, 1))[0]
        both.run(made, kind)
        if number % 50 == 49:
            both.compare()
    for one in (*cluster.nodes, node):
        one.close_clients()
