"""One request that computes for long stops no other: beside each of these, single-row requests of eight connections go on, and what the
request takes is bounded."""

import contextlib
import json
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid

import pytest

import helenus
from durability.test_garbage import QUERY, READY, frame
from durability.test_strangers import COMPRESSED, blocks_of, startup
from probe import ERROR, dial, query_frame

pytestmark = pytest.mark.process

P99_MAX_MS, MAX_MS, DIAL_MAX_MS = 20, 200, 200
ROWS = 120_000
CELL_BYTES = 24 << 20
MIB = 1 << 20
TRACED = 2
SETTINGS = {
    "answer_bytes_max": "32MiB",
    "answers_bytes_max": "64MiB",
    "range_request_timeout": "60s",
    "batch_size_fail_bytes": "1GiB",
}


@pytest.fixture(scope="module")
def node():
    """A node with a table of many rows, and what else the tests read."""
    node = helenus.Node(args=helenus.setting_args(SETTINGS)).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")
    session.execute("CREATE TABLE one (k int PRIMARY KEY, v text, n varint, d decimal)")
    session.execute("INSERT INTO one (k, v) VALUES (1, 'v')")
    session.execute("CREATE TABLE cells (k int PRIMARY KEY, b blob)")
    session.execute("CREATE TABLE many (p int, c int, v text, PRIMARY KEY (p, c))")
    insert_many(session)
    yield node
    node.close()


def insert_many(session):
    from cassandra.concurrent import execute_concurrent_with_args

    lines = ";".join(["INSERT INTO many (p, c, v) VALUES (?, ?, ?)"] * 200)
    batch = session.prepare(f"BEGIN UNLOGGED BATCH {lines}; APPLY BATCH")
    rows = ((row % 8, row, "x" * 400) for row in range(ROWS))
    values = [[value for row in group for value in row] for group in zip(*[rows] * 200)]
    execute_concurrent_with_args(session, batch, values, concurrency=16)


class Beside:
    """Single-row requests beside what runs within the block, which must not hold them up."""

    def __init__(self, node):
        self.node = node

    def __enter__(self):
        script = helenus.ROOT / "tests" / "probe.py"
        query = "SELECT v FROM ks.one WHERE k = 1"
        self.process = subprocess.Popen(
            [sys.executable, str(script), self.node.host, str(self.node.port), query],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, kind, *_):
        figures, _ = self.process.communicate(timeout=120)
        if kind is not None:
            return
        figures = json.loads(figures)
        print(figures)
        assert figures["p99"] < P99_MAX_MS and figures["max"] < MAX_MS, figures
        assert figures["dial_max"] < DIAL_MAX_MS, figures
        assert self.node.health() == 200


class Client:
    """A connection for requests that take long."""

    def __init__(self, node):
        self.socket = dial(node.host, node.port)
        self.socket.settimeout(60)

    def send(self, text):
        self.socket.sendall(query_frame(text))

    def answer(self):
        """The answer's opcode and body."""
        return receive_long(self.socket)

    def query(self, text):
        self.send(text)
        return self.answer()

    def refusal(self, text):
        """The words in which a statement is refused."""
        opcode, body = self.query(text)
        assert opcode == ERROR, (opcode, body[:100])
        length, = struct.unpack(">H", body[4:6])
        return body[6:6 + length].decode()


def receive_long(s):
    """As `receive`, for answers of many megabytes."""
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


def memory_bytes(node):
    """What the process has in memory, and the most that it had."""
    status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("Vm")}


def reset_peak(node):
    pathlib.Path(f"/proc/{node.process.pid}/clear_refs").write_text("5")


def cpu_s(node):
    """Seconds of computing that the process has had."""
    fields = pathlib.Path(f"/proc/{node.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def is_idle(node):
    """True if the node computes no more than what it does at rest."""
    before = cpu_s(node)
    time.sleep(0.3)
    return cpu_s(node) - before < 0.1


def literal_list(numbers):
    return "[" + ",".join(map(str, numbers)) + "]"


@pytest.mark.parametrize("statement", ["l = l - {}", "l = {} + l", "s = s + {{{}}}"])
def test_collections(node, statement):
    """What is taken from a list, put in front of it or into a set takes as long as it is, not the square of that."""
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
        # What grows within others counts too.
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


def test_memory_of_long_statements():
    """What statements are made into is some hundred times as large as their text: together they keep to a budget, but for one."""
    insert = "INSERT INTO ks.one (k, v) VALUES (4, 'v');"
    batch = "BEGIN UNLOGGED BATCH " + insert * 60_000 + " APPLY BATCH"
    settings = {"node_in_flight_bytes": "64MiB", "batch_size_fail_bytes": "1GiB"}
    with contextlib.closing(helenus.Node(args=helenus.setting_args(settings)).start()) as node:
        session = node.connect()
        session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE ks.one (k int PRIMARY KEY, v text)")
        clients = [Client(node) for _ in range(10)]
        reset_peak(node)
        before = memory_bytes(node)["VmRSS"]
        for client in clients:
            client.send(batch)
        answers = [client.answer() for client in clients]
        assert all(opcode != ERROR or b"timed out" in body for opcode, body in answers), answers
        assert memory_bytes(node)["VmHWM"] - before < 500 * MIB


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
    """A statement that says how long it may take is answered then."""
    client = Client(node)
    began = time.monotonic()
    words = client.refusal("SELECT max(v) FROM ks.many WHERE v > 'a' ALLOW FILTERING USING TIMEOUT 10ms")
    assert "Operation timed out" in words
    assert time.monotonic() - began < 0.1


def test_work_ends_with_its_client(node):
    """What nobody waits for is not computed; a function of a user shares out its time among rows meanwhile."""
    client = Client(node)
    body = "int n = 0; for (int i = 0; i < 2000; i++) { n += i; } return n;"
    client.query(f"CREATE OR REPLACE FUNCTION ks.long(c int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS $${body}$$")
    helenus.wait_until(lambda: is_idle(node), what="a node at rest")
    with Beside(node):
        client.send("SELECT max(ks.long(c)) FROM ks.many")
        time.sleep(1)
        client.socket.close()
        time.sleep(0.3)
    assert is_idle(node)


def test_answer_without_pages(node):
    """An answer that is too large is refused, not made."""
    client = Client(node)
    before = memory_bytes(node)["VmRSS"]
    reset_peak(node)
    with Beside(node):
        words = client.refusal("SELECT * FROM ks.many")
    assert "larger than 33554432 bytes" in words
    assert memory_bytes(node)["VmHWM"] - before < 128 * MIB
    # In pages it is read.
    opcode, _ = client.query("SELECT * FROM ks.many LIMIT 1000")
    assert opcode != ERROR


def test_many_readers_of_a_large_cell(node):
    """Their answers wait for each other: more than two have no room at a time."""
    session = node.connect("ks")
    session.execute("INSERT INTO cells (k, b) VALUES (%s, %s)", (1, bytes(CELL_BYTES)))
    clients = [Client(node) for _ in range(12)]
    clients[0].query("SELECT b FROM ks.cells WHERE k = 1")
    before = memory_bytes(node)["VmRSS"]
    reset_peak(node)
    lengths = []
    with Beside(node):
        for client in clients:
            client.send("SELECT b FROM ks.cells WHERE k = 1")
        time.sleep(0.5)
        readers = [threading.Thread(target=lambda c=client: lengths.append(len(c.answer()[1]))) for client in clients]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert len(lengths) == len(clients) and min(lengths) > CELL_BYTES
    assert memory_bytes(node)["VmHWM"] - before < 8 * CELL_BYTES
