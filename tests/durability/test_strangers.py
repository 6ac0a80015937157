"""Clients that mean harm, or none of whom anything is known: the node's memory and log stay small, and others are served."""

import contextlib
import pathlib
import random
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import helenus
import measured
from durability.test_garbage import ERROR, OPTIONS, QUERY, READY, STARTUP, STARTUP_BODY, dial, frame, query_body, read_frame, ready, string

pytestmark = pytest.mark.process

AUTHENTICATE, EXECUTE, AUTH_RESPONSE, AUTH_SUCCESS, RESULT = 3, 10, 15, 16, 8
OVERLOADED, BAD_CREDENTIALS, PROTOCOL_ERROR = 0x1001, 0x0100, 0x000A
MIB = 1 << 20
BUDGET = 64 * MIB
COMPRESSED = 1


@pytest.fixture
def start(tmp_path):
    """Starts a node with such settings."""
    nodes = []

    def start(**settings):
        nodes.append(helenus.Node(tmp_path, args=helenus.setting_args(settings)).start())
        return nodes[-1]

    yield start
    for node in nodes:
        node.close()


def secured(start, **settings):
    return start(authenticator="PasswordAuthenticator", **settings)


def push(s, data, patience_s=5.0):
    """Sends what the other side takes within that time; true if it took all."""
    s.settimeout(patience_s)
    try:
        s.sendall(data)
        return True
    except OSError:
        return False
    finally:
        s.settimeout(10)


def on_all(sockets, act):
    """Does something with each, all at the same time."""
    with ThreadPoolExecutor(len(sockets)) as pool:
        list(pool.map(act, sockets))


def code(answer):
    return struct.unpack(">i", answer[3][:4])[0]


def startup(s, **options):
    options = {"CQL_VERSION": "3.0.0", **options}
    body = struct.pack(">H", len(options)) + b"".join(string(k) + string(v) for k, v in options.items())
    s.sendall(frame(STARTUP, body))
    return read_frame(s)


def token(name, password):
    raw = b"\0" + name + b"\0" + password
    return struct.pack(">i", len(raw)) + raw


def log_in(s, name, password):
    s.sendall(frame(AUTH_RESPONSE, token(name, password)))
    return read_frame(s)


def blocks_of(length):
    """Returns a body of `length` zeros compressed with lz4."""
    matched = length - 1 - 5 - 4 - 15
    block = bytes([0x1F, 0]) + b"\1\0" + b"\xff" * (matched // 255) + bytes([matched % 255]) + bytes([0x50]) + b"\0" * 5
    return struct.pack(">I", length) + block


def single_rows(session, count=50):
    """Writes and reads rows."""
    for k in range(count):
        session.execute("INSERT INTO s.t (k, v) VALUES (%s, 'small')", (k,), timeout=60)
        assert session.execute("SELECT v FROM s.t WHERE k = %s", (k,), timeout=60).one().v == "small"


def rows_while(session, condition, most=50):
    """Writes and reads single rows as long as something holds; the number of those after which it still held."""
    served = 0
    while served < most:
        single_rows(session, 1)
        if not condition():
            break
        served += 1
    return served


def with_table(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY, v text)")
    single_rows(session, 3)
    return session


HUGE = 229 * MIB


def long_request(node, length):
    """Sends a request of `length` bytes, as a client that has logged in."""
    with contextlib.closing(dial(node)) as s:
        assert startup(s)[2] == AUTHENTICATE and log_in(s, b"cassandra", b"cassandra")[2] == AUTH_SUCCESS
        s.settimeout(60)
        query = "SELECT key FROM system.local"
        s.sendall(frame(QUERY, query_body(query + " " * (length - len(query)))))
        assert read_frame(s)[2] == RESULT


@pytest.mark.parametrize("attack", ["body", "options", "name", "compressed"])
def test_strangers_get_no_memory(start, attack):
    node = secured(start, startup_timeout="20s", node_in_flight_bytes=f"{4 * BUDGET}")
    memory = measured.Memory(node)
    sockets, refused = [], []

    def act(s):
        if attack == "options":
            push(s, frame(STARTUP, length=HUGE) + struct.pack(">H", 2000) + string("a") + struct.pack(">H", 60_000))
        elif attack == "compressed":
            assert startup(s, COMPRESSION="lz4")[2] == AUTHENTICATE
            # Once too long as it is, once when it is decompressed.
            s.sendall(frame(AUTH_RESPONSE, blocks_of(2 * MIB), flags=COMPRESSED))
            answer = read_frame(s)
            assert answer[2] == ERROR and b"exceeds maximum allowed length" in answer[3]
            push(s, frame(AUTH_RESPONSE, blocks_of(HUGE), flags=COMPRESSED))
        else:
            assert startup(s)[2] == AUTHENTICATE
            body = struct.pack(">i", HUGE - 4) + b"\0" if attack == "name" else b""
            push(s, frame(AUTH_RESPONSE if attack == "name" else QUERY, body, length=HUGE))
        for _ in range(40):
            if not push(s, b"x" * MIB):
                break
        with contextlib.suppress(OSError):
            refused.append(read_frame(s))

    def strangers():
        sockets[:] = [dial(node) for _ in range(12)]
        on_all(sockets, act)
        for s in sockets:
            s.close()

    measured.compare(lambda: memory.most(lambda: long_request(node, 48 * MIB)), lambda: memory.most(strangers), 1,
                     "bytes for twelve strangers, beside one long request of a client")
    for answer in filter(None, refused):
        assert answer[2] == ERROR and b"too big" in answer[3], answer
    assert node.log_path.stat().st_size < 100_000
    with contextlib.closing(dial(node)) as s:
        assert startup(s)[2] == AUTHENTICATE and log_in(s, b"cassandra", b"cassandra")[2] == AUTH_SUCCESS


def test_a_login_has_a_deadline_whatever_is_sent(start):
    node = secured(start, startup_timeout="1s")
    began = time.monotonic()

    def is_cut_off(s):
        try:
            s.sendall(frame(OPTIONS))
            return read_frame(s) is None
        except OSError:
            return True

    with contextlib.closing(dial(node)) as s:
        helenus.wait_until(lambda: is_cut_off(s), 60, "an end of the connection", 0.05)
    assert time.monotonic() - began > 0.8

    def logged_in():
        """Returns a connection that has logged in. `None` if hashing the password took so long that the deadline passed."""
        s = dial(node)
        with contextlib.suppress(OSError):
            startup(s)
            if (answer := log_in(s, b"cassandra", b"cassandra")) and answer[2] == AUTH_SUCCESS:
                return s
        s.close()
        return None

    # A client that has logged in may be silent.
    with contextlib.closing(helenus.wait_until(logged_in, 60, "a login in time")) as s:
        time.sleep(1.5)
        s.sendall(frame(OPTIONS))
        assert read_frame(s)


def test_refused_clients_fill_no_log(start):
    node = secured(start)
    before = node.log_path.stat().st_size
    with contextlib.closing(dial(node)) as s:
        startup(s)
        answer = log_in(s, b"ann\n2026-01-01T00:00:00Z  WARN all is lost\x1b[31m" + b"n" * 500, b"x")
        assert code(answer) == BAD_CREDENTIALS
        assert code(log_in(s, b"n" * 5000, b"x")) == BAD_CREDENTIALS
        assert code(log_in(s, b"n", b"x" * 5000)) == BAD_CREDENTIALS
        for _ in range(500):
            assert code(log_in(s, b"n" * 900, b"")) == BAD_CREDENTIALS
    log = node.log_path.read_text()[before:]
    lines = [line for line in log.splitlines() if "login failed" in line]
    assert 3 < len(lines) <= 60 and all(len(line) < 500 for line in lines), len(lines)
    assert "\\n2026-01-01T00:00:00Z  WARN all is lost\\u{1b}[31m" in log
    assert not any(line.startswith("2026-01-01T") for line in log.splitlines())


def test_half_read_requests_share_a_budget(start):
    """Twelve clients begin requests of 30 MiB and never finish them. Memory stays bounded, these clients get an error or are disconnected, and
    others are served.
    """
    node = start(node_in_flight_bytes=f"{BUDGET}")
    session = with_table(node)
    memory = measured.Memory(node)
    answers, served = [], []

    def act(s):
        for part in [frame(QUERY, length=30 * MIB), *[b"x" * MIB] * 29]:
            if not push(s, part, 30):
                break
        s.settimeout(8)
        with contextlib.suppress(OSError):
            answers.append(read_frame(s))

    def attack(count):
        sockets = [ready(node) for _ in range(count)]
        attack = threading.Thread(target=on_all, args=(sockets, act))
        attack.start()
        served.append(rows_while(session, attack.is_alive))
        attack.join()
        for s in sockets:
            s.close()

    # Three use up the budget already.
    measured.compare(lambda: memory.most(lambda: attack(3)), lambda: memory.most(lambda: attack(12)), 2,
                     "bytes for twelve clients, beside three")
    assert min(served) >= 5, f"rows that others wrote and read during each attack: {served}"
    told = [answer for answer in answers if answer]
    assert told and all(answer[2] == ERROR and code(answer) == OVERLOADED for answer in told), answers
    # There is room again.
    helenus.wait_until(lambda: insert_long(node, 20 * MIB)[2] == RESULT, 20, "a long request that is served", 0.2)


def insert_long(node, length):
    with contextlib.closing(ready(node)) as s:
        s.sendall(frame(QUERY, query_body(f"INSERT INTO s.t (k, v) VALUES (-1, '{'v' * 1000}') {' ' * (length - 2000)}")))
        return read_frame(s)


def test_long_requests_are_refused_that_can_never_fit(start):
    node = start(node_in_flight_bytes=f"{BUDGET}")
    with contextlib.closing(ready(node)) as s:
        s.sendall(frame(QUERY, length=40 * MIB, stream=5))
        for _ in range(40):
            s.sendall(b"x" * MIB)
        answer = read_frame(s)
        assert answer[1:3] == (5, ERROR) and b"Request is too big" in answer[3]
        s.sendall(frame(QUERY, query_body("SELECT key FROM system.local"), stream=7))
        assert read_frame(s)[1:3] == (7, RESULT)


def test_compressed_requests_are_counted_as_they_will_be(start):
    node = start(node_in_flight_bytes=f"{BUDGET}")
    session = with_table(node)
    memory = measured.Memory(node)
    bomb = frame(QUERY, blocks_of(30 * MIB), flags=COMPRESSED)

    def bombs(count):
        sockets = [dial(node) for _ in range(count)]
        for s in sockets:
            assert startup(s, COMPRESSION="lz4")[2] == READY
        on_all(sockets, lambda s: push(s, bomb * 4))
        single_rows(session)
        # Each is answered, one after the other.
        on_all(sockets, lambda s: [read_frame(s) for _ in range(4)])
        for s in sockets:
            s.close()

    measured.compare(lambda: memory.most(lambda: bombs(2)), lambda: memory.most(lambda: bombs(10)), 2, "bytes for ten clients, beside two")
    with contextlib.closing(dial(node)) as s:
        assert startup(s, COMPRESSION="lz4")[2] == READY
        s.sendall(frame(QUERY, blocks_of(40 * MIB), flags=COMPRESSED))
        refused = read_frame(s)
        assert code(refused) == PROTOCOL_ERROR and b"Compressed body exceeds maximum allowed length" in refused[3]


def test_answers_that_nobody_takes_share_a_budget(start):
    node = start(node_in_flight_bytes=f"{BUDGET}", answers_bytes_max=f"{BUDGET}")
    session = with_table(node)
    session.execute("CREATE TABLE s.long (k int, c int, v blob, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO s.long (k, c, v) VALUES (0, ?, ?)")
    for c in range(256):
        session.execute(insert, (c, bytes(64 * 1024)))
    memory = measured.Memory(node)
    select = frame(QUERY, query_body("SELECT * FROM s.long WHERE k = 0"))
    served = []

    connections = lambda: node.metrics()["helenus_connections"]

    def leave_answers(count):
        before = connections()
        sockets = [ready(node) for _ in range(count)]
        for s in sockets:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        on_all(sockets, lambda s: push(s, select * 200))
        # A client that does not read its answers is disconnected after a while. Until then others are served.
        served.append(rows_while(session, lambda: connections() >= before + count))
        for s in sockets:
            s.close()
        helenus.wait_until(lambda: connections() <= before, what="an end of their connections")

    # Ten leave more than the budget already.
    measured.compare(lambda: memory.most(lambda: leave_answers(10)), lambda: memory.most(lambda: leave_answers(60)), 2,
                     "bytes for sixty clients, beside ten")
    assert min(served) > 0, f"rows that others wrote and read beside each: {served}"


def test_few_descriptors_are_shared_out(tmp_path):
    """As many connections as the limit of open files lets in at all leave the store enough to write, flush, compact and read."""

    class Confined(helenus.Node):
        def command(self):
            return ["bash", "-c", 'ulimit -n 400 && exec "$@"', "bash", *super().command()]

    small = dict(memtable_bytes="4MiB", log_segment_bytes="1MiB", log_max_bytes="8MiB", compaction_poll_interval="200ms")
    node = Confined(tmp_path, args=helenus.setting_args(small)).start()
    sockets = []
    try:
        session = with_table(node)
        for _ in range(500):
            with contextlib.suppress(OSError):
                sockets.append(dial(node))
        held = len(list(pathlib.Path(f"/proc/{node.process.pid}/fd").iterdir()))
        assert 180 < held < 330, held
        single_rows(session, 100)
        insert = session.prepare("INSERT INTO s.t (k, v) VALUES (?, ?)")
        dice = random.Random(1)

        def has_compacted():
            futures = [session.execute_async(insert, (dice.randrange(10_000), dice.randbytes(1000).hex())) for _ in range(1000)]
            for future in futures:
                future.result()
            return node.metrics()["helenus_store_compacted_bytes_total"] > 0

        helenus.wait_until(has_compacted, 200, "a compaction", 0)
        assert "the limit of open files (ulimit -n) is low" in node.log()
    finally:
        for s in sockets:
            s.close()
        node.close()
