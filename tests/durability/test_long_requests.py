"""One request that computes for long stops no other: beside each of these, single-row requests of eight connections go on, and what the
request takes is bounded. `bench/beside` measures how long the others take."""

import contextlib
import json
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid

import pytest

import helenus
import measured
from durability.test_garbage import QUERY, READY, frame
from durability.test_strangers import COMPRESSED, blocks_of, startup
from probe import ERROR, dial, query_frame

pytestmark = pytest.mark.process

# Rounds beside a long request are at least this part of those in the same time at rest.
ROUNDS_MIN = 1 / 20
ROWS = 120_000
CELL_BYTES = 24 << 20
MIB = 1 << 20
TRACED = 2
OVERLOADED, WRITE_TIMEOUT = 0x1001, 0x1100
SETTINGS = {
    "answer_bytes_max": "32MiB",
    "answers_bytes_max": "64MiB",
    "range_request_timeout": "60s",
    "batch_size_fail_bytes": "1GiB",
}


def with_keyspace(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")
    return session


@pytest.fixture(scope="module")
def node():
    """Yields a node with a table of many rows, and the other tables of the tests."""
    node = helenus.Node(args=helenus.setting_args(SETTINGS)).start()
    fill(with_keyspace(node))
    yield node
    node.close()


def fill(session):
    session.execute("CREATE TABLE one (k int PRIMARY KEY, v text, n varint, d decimal)")
    session.execute("INSERT INTO one (k, v) VALUES (1, 'v')")
    session.execute("CREATE TABLE many (p int, c int, v text, PRIMARY KEY (p, c))")
    insert_many(session)


@pytest.fixture
def young(tmp_path):
    """Yields a new node, so that its memory can be compared."""
    node = helenus.Node(tmp_path, args=helenus.setting_args(SETTINGS)).start()
    yield node
    node.close()


def insert_many(session):
    """Fills the table `many`. On a busy machine a batch may time out: it is sent again."""
    from cassandra.concurrent import execute_concurrent_with_args

    lines = ";".join(["INSERT INTO many (p, c, v) VALUES (?, ?, ?)"] * 200)
    batch = session.prepare(f"BEGIN UNLOGGED BATCH {lines}; APPLY BATCH")
    rows = ((row % 8, row, "x" * 400) for row in range(ROWS))
    values = [[value for row in group for value in row] for group in zip(*[rows] * 200)]

    def insert():
        results = execute_concurrent_with_args(session, batch, values, concurrency=16, raise_on_first_error=False)
        values[:] = [value for value, (is_ok, _) in zip(values, results) if not is_ok]
        return not values

    helenus.wait_until(insert, 180, "all rows inserted")


class Beside:
    """Single-row requests beside what runs within the block, which must not hold them up."""

    def __init__(self, node, has_long=True):
        self.node, self.has_long = node, has_long

    def __enter__(self):
        script = helenus.ROOT / "tests" / "probe.py"
        query = "SELECT v FROM ks.one WHERE k = 1"
        self.process = subprocess.Popen(
            [sys.executable, str(script), self.node.host, str(self.node.port), query],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        assert self.process.stdout.readline() == "ready\n"
        self.before = self.node.metrics()
        return self

    def __exit__(self, kind, *_):
        figures, _ = self.process.communicate(timeout=120)
        if kind is not None:
            return
        figures = json.loads(figures)
        after = self.node.metrics()
        grown = lambda name: after[name] - self.before[name]
        print(figures)
        stalls, computed_s = grown("helenus_stall_seconds_count"), grown("helenus_stall_seconds_sum")
        assert stalls == 0, f"threads that serve sockets computed {stalls:.0f} times for long, {computed_s:.3f} s in all"
        if self.has_long:
            assert grown("helenus_long_requests_total") > 0, "nothing was moved to the threads for long requests"
        expected = figures["rounds_at_rest"] * ROUNDS_MIN
        if measured.is_judged:
            assert figures["rounds"] >= expected - 1, f"expected {expected:.0f} rounds of requests beside it, got {figures}"
        assert self.node.health() == 200


class Client:
    """A connection for requests that take long."""

    def __init__(self, node):
        self.socket = dial(node.host, node.port)
        self.socket.settimeout(120)

    def send(self, text):
        self.socket.sendall(query_frame(text))

    def answer(self):
        """Returns the answer's opcode and body."""
        return receive_long(self.socket)

    def query(self, text):
        self.send(text)
        return self.answer()

    def refusal(self, text):
        """Returns the error message of a statement that is refused."""
        opcode, body = self.query(text)
        assert opcode == ERROR, (opcode, body[:100])
        length, = struct.unpack(">H", body[4:6])
        return body[6:6 + length].decode()


def code_of(body):
    """Returns the code of an ERROR's body."""
    return struct.unpack(">i", body[:4])[0]


def receive_long(s):
    """Returns an answer like `receive`, but efficiently for many megabytes."""
    def exactly(count):
        got = bytearray(count)
        view = memoryview(got)
        while view:
            read = s.recv_into(view)
            assert read, "the node closed the connection"
            view = view[read:]
        return bytes(got)

    header = exactly(9)
    return header[4], exactly(struct.unpack(">i", header[5:9])[0])


def is_at_rest(node):
    """Returns true if no long request, or part of one, runs."""
    figures = node.metrics()
    return figures["helenus_long_requests_running"] == figures["helenus_scan_parts_running"] == 0


def literal_list(numbers):
    return "[" + ",".join(map(str, numbers)) + "]"


@pytest.mark.parametrize("statement", ["l = l - {}", "l = {} + l", "s = s + {{{}}}"])
def test_collections(node, statement):
    """Removing from a list, prepending to it, and adding to a set take linear time in the number of elements, not quadratic time."""
    count, client = 60_000, Client(node)
    client.query("CREATE TABLE IF NOT EXISTS ks.lists (k int PRIMARY KEY, l list<int>, s set<int>)")
    client.query(f"UPDATE ks.lists SET l = {literal_list(range(2 * count))} WHERE k = 1")
    # In no order: each of them would have to be put between others.
    given = literal_list((number * 7919) % (1 << 30) for number in range(count))
    if "s" == statement[0]:
        given = given.strip("[]")
    with Beside(node):
        opcode, body = client.query(f"UPDATE ks.lists SET {statement.format(given)} WHERE k = 1")
        assert opcode != ERROR, body


@pytest.mark.parametrize("column, fraction", [("d", ".5"), ("n", "")])
def test_numbers_of_many_digits(node, column, fraction):
    with Beside(node):
        words = Client(node).refusal(f"INSERT INTO ks.one (k, {column}) VALUES (2, {'7' * 2_000_000}{fraction})")
    assert "longer than the 100000 digits that are allowed" in words


def test_types_of_types(node):
    """A type of ten fields, each of a type of ten fields and so on, is refused before it can't be written out any more."""
    client = Client(node)
    with Beside(node):
        client.query("CREATE TYPE ks.t0 (" + ", ".join(f"f{field} int" for field in range(10)) + ")")
        for level in range(1, 4):
            fields = ", ".join(f"f{field} frozen<t{level - 1}>" for field in range(10))
            refused = level == 3 and client.refusal(f"CREATE TYPE ks.t{level} ({fields})")
            if not refused:
                assert client.query(f"CREATE TYPE ks.t{level} ({fields})")[0] != ERROR
        assert "is made of more than 10000 types" in refused
        # Growth of a type within other types counts too.
        client.query("CREATE TYPE ks.grows (a int)")
        fields = ", ".join(f"f{field} frozen<grows>" for field in range(3000))
        assert client.query(f"CREATE TYPE ks.of_grown ({fields})")[0] != ERROR
        assert client.query("ALTER TYPE ks.grows ADD b int")[0] != ERROR
        assert "is made of more than 10000 types" in client.refusal("ALTER TYPE ks.grows ADD c int")


def test_statements_of_many_words(node):
    client = Client(node)
    with Beside(node):
        assert "nested too deeply" in client.refusal("SELECT " + "(" * 30_000_000)
        assert "more than 2000000 words and signs" in client.refusal("SELECT " + "1 " * 10_000_000)
        insert = "INSERT INTO ks.one (k) VALUES (3);"
        words = client.refusal("BEGIN BATCH " + insert * 70_000 + " APPLY BATCH")
        assert "Too many statements in a batch: 65535 are allowed" in words


def test_compressed_bodies(node):
    """A body that takes long to be decompressed holds no connection up."""
    s = socket.create_connection((node.host, node.port), timeout=60)
    assert startup(s, COMPRESSION="lz4")[2] == READY
    bodies = [frame(QUERY, blocks_of(250 * MIB), flags=COMPRESSED, stream=stream) for stream in range(3)]
    with Beside(node):
        for body in bodies:
            s.sendall(body)
        # Zeros are an empty statement.
        assert {receive_long(s)[0] for _ in bodies} == {ERROR}


def test_long_statement_with_a_trace(node):
    """A statement that takes long to be decoded is traced as others are."""
    client = Client(node)
    text = f"UPDATE ks.many SET v = '{'x' * 100_000}' WHERE p = 1 AND c = 1"
    request = bytearray(query_frame(text))
    request[1] |= TRACED
    client.socket.sendall(request)
    opcode, body = client.answer()
    assert opcode != ERROR, body
    session = uuid.UUID(bytes=body[:16])
    row = node.connect().execute("SELECT request, parameters FROM system_traces.sessions WHERE session_id = %s", (session,)).one()
    assert row.request == "Execute CQL3 query" and row.parameters["query"].startswith("UPDATE ks.many SET v = 'xxx")


def test_memory_of_long_statements(tmp_path):
    """A parsed statement is about a hundred times as large as its text. Many concurrent ones use no more memory than one, which uses the whole
    budget.
    """
    insert = "INSERT INTO ks.one (k, v) VALUES (4, 'v');"
    batch = "BEGIN UNLOGGED BATCH " + insert * 30_000 + " APPLY BATCH"
    settings = {"node_in_flight_bytes": "64MiB", "batch_size_fail_bytes": "1GiB"}
    with contextlib.closing(helenus.Node(tmp_path, args=helenus.setting_args(settings)).start()) as node:
        with_keyspace(node).execute("CREATE TABLE ks.one (k int PRIMARY KEY, v text)")
        clients = [Client(node) for _ in range(8)]
        memory = measured.Memory(node)

        def send_to(clients):
            for client in clients:
                client.send(batch)
            answers = [client.answer() for client in clients]
            # On a busy machine, some wait for the budget until their time is over.
            refusals = [body for opcode, body in answers if opcode == ERROR]
            assert {code_of(body) for body in refusals} <= {OVERLOADED, WRITE_TIMEOUT}, refusals

        measured.compare(lambda: memory.most(lambda: send_to(clients[:1])), lambda: memory.most(lambda: send_to(clients)), 2.5,
                         "bytes for eight long batches, beside one")


def test_long_batch(node):
    client = Client(node)
    insert = "INSERT INTO ks.one (k, v) VALUES (4, 'v');"
    with Beside(node):
        opcode, body = client.query("BEGIN UNLOGGED BATCH " + insert * 20_000 + " APPLY BATCH")
    assert opcode != ERROR or b"timed out" in body, body[:100]


def test_many_scans(node):
    """Thirty-two at once, of rows that lie in memory."""
    clients = [Client(node) for _ in range(32)]
    with Beside(node):
        for client in clients:
            client.send("SELECT count(*) FROM ks.many")
        for client in clients:
            opcode, body = client.answer()
            assert opcode != ERROR and struct.unpack(">q", body[-8:])[0] == ROWS


def test_timeout_of_a_statement(node):
    """A statement that says how long it may take is answered then, not when it would have ended."""
    client = Client(node)
    statement = "SELECT max(v) FROM ks.many WHERE v > 'a' ALLOW FILTERING"

    def whole():
        assert client.query(statement)[0] != ERROR

    def limited():
        assert "Operation timed out" in client.refusal(f"{statement} USING TIMEOUT 5ms")

    measured.compare(lambda: measured.seconds(whole), lambda: measured.seconds(limited), 0.5, "seconds with a timeout, beside the whole read")


def test_work_ends_with_its_client(node):
    """A request whose client has disconnected is not computed further. A user's function yields between rows meanwhile."""
    client = Client(node)
    # All rows take longer than the timeout of a read, which is longer than what is waited for.
    body = "int n = 0; for (int i = 0; i < 100000; i++) { n += i; } return n;"
    client.query(f"CREATE OR REPLACE FUNCTION ks.long(c int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS $${body}$$")
    helenus.wait_until(lambda: is_at_rest(node), what="a node at rest")
    with Beside(node):
        client.send("SELECT max(ks.long(c)) FROM ks.many")
        helenus.wait_until(lambda: not is_at_rest(node), what="a node at work")
        client.socket.close()
    helenus.wait_until(lambda: is_at_rest(node), 30, what="a node at rest again")


def test_answer_without_pages(young):
    """An answer that is too large is refused, not made."""
    client, session = Client(young), with_keyspace(young)
    session.execute("CREATE TABLE many (p int, c int, v blob, PRIMARY KEY (p, c))")
    insert = session.prepare("INSERT INTO many (p, c, v) VALUES (1, ?, ?)")
    for c in range(240):
        session.execute(insert, (c, bytes(100_000)))
    memory = measured.Memory(young)

    def allowed():
        assert client.query("SELECT v FROM ks.many")[0] != ERROR

    def refused():
        # 16 times as long.
        words = client.refusal("SELECT " + ", ".join("v" * 16) + " FROM ks.many")
        assert "larger than 33554432 bytes" in words

    measured.compare(lambda: memory.most(allowed), lambda: memory.most(refused), 3, "bytes for an answer that is refused, beside one that is given")
    # In pages it is read.
    rows = session.execute("SELECT " + ", ".join("v" * 16) + " FROM ks.many LIMIT 10")
    assert len(rows.all()) == 10


def test_many_readers_of_a_large_cell(young):
    """The readers' answers wait for each other, because there is memory for only two at a time."""
    session = with_keyspace(young)
    session.execute("CREATE TABLE one (k int PRIMARY KEY, v text)")
    session.execute("INSERT INTO one (k, v) VALUES (1, 'v')")
    session.execute("CREATE TABLE cells (k int PRIMARY KEY, b blob)")
    session.execute("INSERT INTO cells (k, b) VALUES (%s, %s)", (1, bytes(CELL_BYTES)))
    clients = [Client(young) for _ in range(12)]
    clients[0].query("SELECT b FROM ks.cells WHERE k = 1")
    memory = measured.Memory(young)

    select = "SELECT b FROM ks.cells WHERE k = 1"

    def read(clients):
        lengths = []

        def receive(client):
            opcode, body = client.answer()
            # On a busy machine, memory may become free too late for an answer: the client tries again.
            while opcode == ERROR and code_of(body) == OVERLOADED:
                opcode, body = client.query(select)
            lengths.append(len(body))

        for client in clients:
            client.send(select)
        # The clients do not read the answers yet.
        time.sleep(0.5)
        readers = [threading.Thread(target=receive, args=[client]) for client in clients]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert len(lengths) == len(clients) and min(lengths) > CELL_BYTES

    with Beside(young, has_long=False):
        measured.compare(lambda: memory.most(lambda: read(clients[:3])), lambda: memory.most(lambda: read(clients)), 2,
                         "bytes for twelve readers, beside three")
