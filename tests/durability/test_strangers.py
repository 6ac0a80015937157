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


def resident(node, which="VmRSS"):
    status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(which))


@contextlib.contextmanager
def grows_less_than(node, limit):
    """The node's memory is watched while the block runs, and its highest is looked at in the end."""
    pathlib.Path(f"/proc/{node.process.pid}/clear_refs").write_text("5")
    before = resident(node)
    yield
    assert node.alive(), node.log()
    grown = resident(node, "VmHWM") - before
    assert grown < limit, f"{grown / MIB:.0f} MiB"


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
    """That many zeros as a body compressed by lz4."""
    matched = length - 1 - 5 - 4 - 15
    block = bytes([0x1F, 0]) + b"\1\0" + b"\xff" * (matched // 255) + bytes([matched % 255]) + bytes([0x50]) + b"\0" * 5
    return struct.pack(">I", length) + block


def single_rows(session, count=50):
    """Writes and reads rows; the longest time that one took."""
    slowest = 0
    for k in range(count):
        began = time.monotonic()
        session.execute("INSERT INTO s.t (k, v) VALUES (%s, 'small')", (k,), timeout=10)
        assert session.execute("SELECT v FROM s.t WHERE k = %s", (k,), timeout=10).one().v == "small"
        slowest = max(slowest, time.monotonic() - began)
    return slowest


def with_table(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY, v text)")
    single_rows(session, 3)
    return session


HUGE = 229 * MIB


@pytest.mark.parametrize("attack", ["body", "options", "name", "compressed"])
def test_strangers_get_no_memory(start, attack):
    node = secured(start, startup_timeout="20s")
    refused = []

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

    with grows_less_than(node, 48 * MIB):
        sockets = [dial(node) for _ in range(12)]
        on_all(sockets, act)
    for s in sockets:
        s.close()
    for answer in filter(None, refused):
        assert answer[2] == ERROR and b"too big" in answer[3], answer
    assert node.log_path.stat().st_size < 100_000
    with contextlib.closing(dial(node)) as s:
        assert startup(s)[2] == AUTHENTICATE and log_in(s, b"cassandra", b"cassandra")[2] == AUTH_SUCCESS


def test_a_login_has_a_deadline_whatever_is_sent(start):
    node = secured(start, startup_timeout="1s")
    began = time.monotonic()
    with contextlib.closing(dial(node)) as s:
        with contextlib.suppress(OSError):
            while time.monotonic() < began + 10:
                s.sendall(frame(OPTIONS))
                if read_frame(s) is None:
                    break
                time.sleep(0.05)
    assert 0.8 < time.monotonic() - began < 5
    # Who has logged in may be silent.
    with contextlib.closing(dial(node)) as s:
        startup(s)
        assert log_in(s, b"cassandra", b"cassandra")[2] == AUTH_SUCCESS
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
    """Twelve clients begin requests of 30 MiB and never finish them: what is held stays bounded, they are told or cut off, others go on."""
    node = start(node_in_flight_bytes=f"{BUDGET}")
    session = with_table(node)
    answers = []
    with grows_less_than(node, BUDGET + 48 * MIB):
        sockets = [ready(node) for _ in range(12)]

        def act(s):
            for part in [frame(QUERY, length=30 * MIB), *[b"x" * MIB] * 29]:
                if not push(s, part, 30):
                    break
            s.settimeout(8)
            answers.append(read_frame(s))

        attack = threading.Thread(target=on_all, args=(sockets, act))
        attack.start()
        slowest = 0
        while attack.is_alive():
            slowest = max(slowest, single_rows(session, 5))
        attack.join()
    assert slowest < 3, slowest
    told = [answer for answer in answers if answer]
    assert told and all(answer[2] == ERROR and code(answer) == OVERLOADED for answer in told), answers
    for s in sockets:
        s.close()
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
    bomb = frame(QUERY, blocks_of(30 * MIB), flags=COMPRESSED)
    with grows_less_than(node, BUDGET + 64 * MIB):
        sockets = [dial(node) for _ in range(10)]
        for s in sockets:
            assert startup(s, COMPRESSION="lz4")[2] == READY
        on_all(sockets, lambda s: push(s, bomb * 4))
        slowest = single_rows(session)
        # Each is answered, one after the other.
        on_all(sockets, lambda s: [read_frame(s) for _ in range(4)])
        sockets[0].sendall(frame(QUERY, blocks_of(40 * MIB), flags=COMPRESSED))
        refused = read_frame(sockets[0])
        assert code(refused) == PROTOCOL_ERROR and b"Compressed body exceeds maximum allowed length" in refused[3]
    assert slowest < 5, slowest
    for s in sockets:
        s.close()


def test_answers_that_nobody_takes_share_a_budget(start):
    node = start(node_in_flight_bytes=f"{BUDGET}", answers_bytes_max=f"{BUDGET}")
    session = with_table(node)
    session.execute("CREATE TABLE s.long (k int, c int, v blob, PRIMARY KEY (k, c))")
    insert = session.prepare("INSERT INTO s.long (k, c, v) VALUES (0, ?, ?)")
    for c in range(256):
        session.execute(insert, (c, bytes(64 * 1024)))
    with grows_less_than(node, 4 * BUDGET + 96 * MIB):
        sockets = [ready(node) for _ in range(60)]
        for s in sockets:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        select = frame(QUERY, query_body("SELECT * FROM s.long WHERE k = 0"))
        on_all(sockets, lambda s: push(s, select * 200))
        slowest = single_rows(session)
    assert slowest < 3, slowest
    for s in sockets:
        s.close()


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
        assert single_rows(session, 100) < 5
        insert = session.prepare("INSERT INTO s.t (k, v) VALUES (?, ?)")
        dice = random.Random(1)

        def has_compacted():
            futures = [session.execute_async(insert, (dice.randrange(10_000), dice.randbytes(1000).hex())) for _ in range(1000)]
            for future in futures:
                future.result()
            return node.metrics()["helenus_store_compacted_bytes_total"] > 0

        helenus.wait_until(has_compacted, 60, "a compaction", 0)
        assert "the limit of open files (ulimit -n) is low" in node.log()
    finally:
        for s in sockets:
            s.close()
        node.close()
