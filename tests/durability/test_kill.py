"""8 writers at full speed, kill -9, restart, many times: no acknowledged write lost, none invented."""

import random
import threading

import pytest
from cassandra.query import BatchStatement

import helenus

pytestmark = pytest.mark.process

WRITERS = 8
IN_FLIGHT = 16
ACKS_BEFORE_KILL = (500, 4000)


class Ledger:
    """Sent and acknowledged writes of a writer."""

    def __init__(self):
        self.sent, self.acked = set(), set()
        self.register_sent = self.register_acked = 0
        self.counter_sent = self.counter_acked = 0
        self.swaps_sent = self.swaps_acked = 0


class Writer(threading.Thread):
    """Writes until the server dies, with several statements in flight, and keeps the ledger."""

    def __init__(self, node, number, ledger, statements, session, stop):
        super().__init__(daemon=True)
        self.number, self.ledger, self.s, self.session, self.stopped = number, ledger, statements, session, stop
        self.window = threading.Semaphore(IN_FLIGHT)
        self.acks = 0
        self.dead = False

    def send(self, statement, values, acknowledged):
        self.window.acquire()

        def done(_):
            acknowledged()
            self.acks += 1
            self.window.release()

        def failed(_):
            self.dead = True
            self.window.release()

        self.session.execute_async(statement, values).add_callbacks(done, failed)

    def insert(self):
        n = len(self.ledger.sent)
        self.ledger.sent.add(n)
        self.send(self.s["insert"], (self.number, n, value(self.number, n)), lambda: self.ledger.acked.add(n))

    def pair(self):
        """Sends a logged batch over two partitions."""
        n = len(self.ledger.sent)
        self.ledger.sent.add(n)
        batch = BatchStatement()
        batch.add(self.s["insert"], (self.number, n, value(self.number, n)))
        batch.add(self.s["shadow"], (n, self.number, value(self.number, n)))
        self.send(batch, None, lambda: self.ledger.acked.add(n))

    def alone(self, statement, sent, acked, values):
        """Executes a statement and waits for its result."""
        setattr(self.ledger, sent, getattr(self.ledger, sent) + 1)
        try:
            self.session.execute(statement, values)
        except Exception:
            self.dead = True
            return
        setattr(self.ledger, acked, getattr(self.ledger, acked) + 1)
        self.acks += 1

    def run(self):
        dice = random.Random(self.number)
        while not self.dead and not self.stopped.is_set():
            throw = dice.random()
            if throw < 0.85:
                self.insert()
            elif throw < 0.93:
                self.pair()
            elif throw < 0.96:
                self.ledger.register_sent += 1
                n = self.ledger.register_sent
                try:
                    self.session.execute(self.s["register"], (n, self.number))
                    self.ledger.register_acked = n
                except Exception:
                    self.dead = True
            elif throw < 0.98:
                self.alone(self.s["count"], "counter_sent", "counter_acked", (self.number,))
            else:
                self.alone(self.s["swap"], "swaps_sent", "swaps_acked", (self.number, self.ledger.swaps_sent))
        for _ in range(IN_FLIGHT):
            self.window.acquire(timeout=30)


def value(writer, n):
    return f"{writer}:{n}:" + "x" * (n % 150)


def create(session):
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.log (w int, n int, v text, PRIMARY KEY (w, n))")
    session.execute("CREATE TABLE k.shadow (n int, w int, v text, PRIMARY KEY (n, w))")
    session.execute("CREATE TABLE k.register (w int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE k.counter (w int PRIMARY KEY, c counter)")
    session.execute("CREATE TABLE k.swap (w int, n int, PRIMARY KEY (w, n))")


def prepare(session):
    return {
        "insert": session.prepare("INSERT INTO k.log (w, n, v) VALUES (?, ?, ?)"),
        "shadow": session.prepare("INSERT INTO k.shadow (n, w, v) VALUES (?, ?, ?)"),
        "register": session.prepare("UPDATE k.register SET v = ? WHERE w = ?"),
        "count": session.prepare("UPDATE k.counter SET c = c + 1 WHERE w = ?"),
        "swap": session.prepare("INSERT INTO k.swap (w, n) VALUES (?, ?) IF NOT EXISTS"),
    }


def check(session, ledgers, batches_seen):
    """Compares everything in the store with the ledgers."""
    shadows = {(r.w, r.n): r.v for r in session.execute("SELECT w, n, v FROM k.shadow")}
    for w, ledger in enumerate(ledgers):
        rows = {r.n: r.v for r in session.execute("SELECT n, v FROM k.log WHERE w = %s", (w,))}
        lost = ledger.acked - set(rows)
        assert not lost, f"writer {w} lost {len(lost)} acknowledged rows, first {min(lost)}"
        invented = set(rows) - ledger.sent
        assert not invented, f"writer {w} never sent {sorted(invented)[:5]}"
        for n, v in rows.items():
            assert v == value(w, n), (w, n, v)
        half = [n for (x, n), v in shadows.items() if x == w and n not in rows]
        assert not half, f"half a logged batch of writer {w}: {half[:5]}"
        ledger.acked = set(rows)  # what is there now must stay
        register = session.execute("SELECT v FROM k.register WHERE w = %s", (w,)).one()
        got = register.v if register else 0
        assert ledger.register_acked <= got <= ledger.register_sent
        ledger.register_acked = got
        counter = session.execute("SELECT c FROM k.counter WHERE w = %s", (w,)).one()
        got = counter.c if counter else 0
        assert ledger.counter_acked <= got <= ledger.counter_sent, (w, ledger.counter_acked, got, ledger.counter_sent)
        ledger.counter_acked = ledger.counter_sent = got
        swaps = session.execute("SELECT count(*) FROM k.swap WHERE w = %s", (w,)).one()[0]
        assert ledger.swaps_acked <= swaps <= ledger.swaps_sent
        ledger.swaps_acked = swaps
    gone = batches_seen - set(shadows)
    assert not gone, f"{len(gone)} rows of logged batches went missing"
    batches_seen |= set(shadows)


@pytest.mark.timeout(1800)
def test_kill_9_loses_nothing(node, request):
    rounds = request.config.getoption("--rounds")
    session = node.connect()
    create(session)
    ledgers, batches_seen = [Ledger() for _ in range(WRITERS)], set()
    dice = random.Random(20)
    total = 0
    for round_number in range(rounds):
        sessions = [node.connect() for _ in range(WRITERS)]
        stop = threading.Event()
        writers = [Writer(node, w, ledgers[w], prepare(sessions[w]), sessions[w], stop) for w in range(WRITERS)]
        [w.start() for w in writers]
        goal = dice.randint(*ACKS_BEFORE_KILL)
        helenus.wait_until(lambda: sum(w.acks for w in writers) >= goal, 60, f"{goal} acknowledged writes", 0.001)
        node.kill()
        stop.set()
        [w.join(60) for w in writers]
        total += sum(w.acks for w in writers)
        node.close_clients()
        node.start()
        check(node.connect(), ledgers, batches_seen)
        print(f"round {round_number + 1}: {total} acknowledged so far, all there")


@pytest.mark.timeout(300)
def test_schema_survives(node):
    """DDL that was acknowledged is there after a kill -9, and prepared writes go on."""
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for i in range(10):
        session.execute(f"CREATE TABLE s.t{i} (k int PRIMARY KEY, v int)")
        session.execute(f"INSERT INTO s.t{i} (k, v) VALUES (1, {i})")
    session.execute("DROP TABLE s.t3")
    session.execute("TRUNCATE s.t4")
    session.execute("ALTER TABLE s.t5 ADD extra text")
    session.execute("ALTER TABLE s.t6 DROP v")
    session.execute("CREATE INDEX t7_v ON s.t7 (v)")
    session.execute("CREATE TABLE s.said (k int, c text, PRIMARY KEY (k, c))")
    session.execute("CREATE MATERIALIZED VIEW s.quoted AS SELECT * FROM s.said WHERE k > 0 AND c >= 'it''s' PRIMARY KEY (c, k)")
    version = session.execute("SELECT schema_version FROM system.local").one()[0]
    host_id = session.execute("SELECT host_id FROM system.local").one()[0]
    node.close_clients()
    node.restart()
    session = node.connect()
    tables = set(session.cluster.metadata.keyspaces["s"].tables)
    assert tables == {f"t{i}" for i in range(10)} - {"t3"} | {"said"}
    session.execute("INSERT INTO s.said (k, c) VALUES (1, 'it''s so')")
    session.execute("INSERT INTO s.said (k, c) VALUES (1, 'is it')")
    assert session.execute("SELECT c FROM s.quoted").all() == [("it's so",)]
    assert session.execute("SELECT * FROM s.t4").all() == []
    assert session.execute("SELECT * FROM s.t5").all() == [(1, None, 5)]
    assert session.execute("SELECT * FROM s.t6").all() == [(1,)]
    assert session.execute("SELECT k FROM s.t7 WHERE v = 7").all() == [(1,)]
    assert session.execute("SELECT schema_version FROM system.local").one()[0] == version
    assert session.execute("SELECT host_id FROM system.local").one()[0] == host_id


@pytest.mark.timeout(300)
def test_ttl_and_deletions_survive(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int, c int, v int, PRIMARY KEY (k, c))")
    for c in range(10):
        session.execute(f"INSERT INTO s.t (k, c, v) VALUES (1, {c}, {c}) USING TTL 5000")
        session.execute(f"INSERT INTO s.t (k, c, v) VALUES (2, {c}, {c})")
    session.execute("DELETE FROM s.t WHERE k = 1 AND c > 6")
    session.execute("DELETE FROM s.t WHERE k = 2")
    session.execute("INSERT INTO s.t (k, c, v) VALUES (2, 3, 33)")
    session.execute("DELETE v FROM s.t WHERE k = 1 AND c = 0")
    for _ in range(2):
        node.close_clients()
        node.restart()
        session = node.connect()
        rows = session.execute("SELECT c, v, ttl(v) AS ttl FROM s.t WHERE k = 1").all()
        assert [(r.c, r.v) for r in rows] == [(0, None)] + [(c, c) for c in range(1, 7)]
        assert all(4000 < r.ttl <= 5000 for r in rows[1:])
        assert session.execute("SELECT c, v FROM s.t WHERE k = 2").all() == [(3, 33)]
