"""Garbage, torn and oversize frames on the CQL port: the node answers or closes, and goes on."""

import os
import random
import socket
import struct

import pytest

import helenus

OPTIONS, STARTUP, QUERY, ERROR, SUPPORTED, READY = 5, 1, 7, 0, 6, 2


def frame(opcode, body=b"", version=4, stream=1, flags=0, length=None):
    return struct.pack(">BBhBi", version, flags, stream, opcode, len(body) if length is None else length) + body


def string(s):
    return struct.pack(">H", len(s.encode())) + s.encode()


STARTUP_BODY = struct.pack(">H", 1) + string("CQL_VERSION") + string("3.0.0")


def query_body(cql):
    raw = cql.encode()
    return struct.pack(">i", len(raw)) + raw + struct.pack(">HB", 1, 0)


def dial(target):
    s = socket.create_connection((target.host, target.port), timeout=10)
    s.settimeout(10)
    return s


def read_frame(s):
    """Returns one answer's (version, stream, opcode, body), or None if the server closed the connection."""
    def exactly(n):
        got = b""
        while len(got) < n:
            part = s.recv(n - len(got))
            if not part:
                return None
            got += part
        return got

    try:
        header = exactly(9)
        if header is None:
            return None
        version, _, stream, opcode, length = struct.unpack(">BBhBi", header)
        return version, stream, opcode, exactly(length)
    except (ConnectionError, socket.timeout):
        return None


def ready(target, version=4):
    s = dial(target)
    s.sendall(frame(STARTUP, STARTUP_BODY, version))
    answer = read_frame(s)
    assert answer and answer[2] == READY
    return s


def goes_on(target):
    s = dial(target)
    s.sendall(frame(OPTIONS))
    assert read_frame(s)[2] == SUPPORTED
    s.close()
    if target.owned:
        assert target.alive()


def test_random_bytes(target):
    dice = random.Random(7)
    for size in (1, 8, 9, 10, 64, 1000, 100_000):
        for _ in range(10):
            s = dial(target)
            try:
                s.sendall(dice.randbytes(size))
                s.shutdown(socket.SHUT_WR)
                while read_frame(s):
                    pass
            except OSError:
                pass
            s.close()
    goes_on(target)


def test_http_request_on_the_cql_port(target):
    s = dial(target)
    s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    read_frame(s)
    s.close()
    goes_on(target)


@pytest.mark.parametrize("version", [6, 7, 65, 66, 0x7F])
def test_unknown_version_is_refused_in_words(target, version):
    s = dial(target)
    s.sendall(frame(STARTUP, STARTUP_BODY, version))
    answer = read_frame(s)
    assert answer and answer[0] & 0x7F in (3, 4, 5, 6) and answer[2] == ERROR
    code, = struct.unpack(">i", answer[3][:4])
    words = answer[3].decode(errors="replace")
    assert code == 0x000A
    assert f"Invalid or unsupported protocol version ({version}); " in words or "USE_BETA flag is unset" in words
    goes_on(target)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_ancient_versions(target, version):
    s = dial(target)
    s.sendall(frame(STARTUP, STARTUP_BODY, version))
    s.shutdown(socket.SHUT_WR)
    read_frame(s)
    s.close()
    goes_on(target)


def test_torn_frames(target):
    """A frame cut anywhere, and the connection closed."""
    whole = frame(STARTUP, STARTUP_BODY) + frame(QUERY, query_body("SELECT key FROM system.local"))
    for cut in range(len(whole)):
        s = dial(target)
        s.sendall(whole[:cut])
        s.close()
    goes_on(target)


def test_frame_in_single_bytes(target):
    s = dial(target)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for b in frame(STARTUP, STARTUP_BODY):
        s.sendall(bytes([b]))
    assert read_frame(s)[2] == READY
    s.close()


@pytest.mark.parametrize("length", [-1, 2**31 - 1, 300 * 1024 * 1024])
def test_absurd_length(target, length):
    s = ready(target)
    try:
        s.sendall(frame(QUERY, b"x" * 100, length=length))
        s.shutdown(socket.SHUT_WR)
        read_frame(s)
    except OSError:
        pass
    s.close()
    goes_on(target)


def test_bodies_of_noise(target):
    """Well-framed nonsense of every opcode gets an error, and the connection or the node goes on."""
    dice = random.Random(11)
    for opcode in range(256):
        for body in (b"", dice.randbytes(3), dice.randbytes(40)):
            s = ready(target)
            try:
                s.sendall(frame(opcode, body))
                s.shutdown(socket.SHUT_WR)
                read_frame(s)
            except OSError:
                pass
            s.close()
    goes_on(target)


def test_mutated_queries(target):
    """Random damage to valid frames."""
    dice = random.Random(13)
    good = frame(QUERY, query_body("SELECT key, tokens FROM system.local WHERE key = 'local'"))
    for _ in range(300):
        s = ready(target)
        raw = bytearray(good)
        for _ in range(dice.randint(1, 5)):
            raw[dice.randrange(9, len(raw))] = dice.randrange(256)
        try:
            s.sendall(raw)
            s.shutdown(socket.SHUT_WR)
            read_frame(s)
        except OSError:
            pass
        s.close()
    goes_on(target)


def test_error_keeps_the_stream(target):
    s = ready(target)
    s.sendall(frame(QUERY, query_body("SELEC"), stream=1234))
    version, stream, opcode, body = read_frame(s)
    assert (version, stream, opcode) == (0x84, 1234, ERROR)
    s.sendall(frame(QUERY, query_body("SELECT key FROM system.local"), stream=7))
    assert read_frame(s)[1:3] == (7, 8)
    s.close()


def test_connection_goes_on_behind_what_is_no_request(target):
    """An opcode that is unknown, or that only servers send, is refused on its stream. The request after it is served."""
    if not target.owned:
        pytest.skip("Cassandra answers all that follows with the same error, before v5")
    s = ready(target)
    select = frame(QUERY, query_body("SELECT key FROM system.local"), stream=7)
    for opcode, version in ((0x20, 4), (0xFF, 4), (READY, 4), (QUERY, 0x84)):
        s.sendall(frame(opcode, b"body", stream=5, version=version) + select)
        answers = {answer[1]: answer for answer in (read_frame(s), read_frame(s))}
        assert answers[5][2] == ERROR and struct.unpack(">i", answers[5][3][:4])[0] == 0x000A
        assert answers[7][2] == 8
    s.close()


def test_too_large_request_is_skipped(target):
    s = ready(target)
    length = 300 * 1024 * 1024
    s.sendall(frame(QUERY, length=length, stream=5))
    for _ in range(300):
        s.sendall(b"x" * (1024 * 1024))
    answer = read_frame(s)
    assert answer[1:3] == (5, ERROR) and b"Request is too big" in answer[3]
    s.sendall(frame(QUERY, query_body("SELECT key FROM system.local"), stream=7))
    assert read_frame(s)[1:3] == (7, 8)
    s.close()


def test_query_before_startup(target):
    s = dial(target)
    s.sendall(frame(QUERY, query_body("SELECT key FROM system.local")))
    answer = read_frame(s)
    assert answer and answer[2] == ERROR and struct.unpack(">i", answer[3][:4])[0] == 0x000A
    goes_on(target)


def test_damaged_v5_segments(target):
    """After a v5 handshake, segments with wrong checksums close the connection, never the node."""
    for noise in (os.urandom(6), os.urandom(100), b"\0" * 64, b"\xff" * 64, os.urandom(200_000)):
        s = ready(target, version=5)
        try:
            s.sendall(noise)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
        except OSError:
            pass
        s.close()
    goes_on(target)


def test_deep_nesting_and_long_statements(target):
    """The parser's limits hold: deep nesting and statements of a megabyte get an error, not a crash."""
    session = target.connect()
    for cql in ("SELECT " + "(" * 50_000 + "1" + ")" * 50_000 + " FROM system.local",
                "SELECT key FROM system.local WHERE key = " + "[" * 50_000 + "]" * 50_000,
                "CREATE TABLE system.x (k int PRIMARY KEY, v " + "frozen<list<" * 5_000 + "int" + ">>" * 5_000 + ")",
                "SELECT " + "key, " * 100_000 + "nope FROM system.local",
                "SELECT * FROM " + "x" * 1_000_000):
        with pytest.raises(Exception):
            session.execute(cql)
    session.cluster.shutdown()
    goes_on(target)


def test_many_idle_connections(target):
    sockets = [ready(target) for _ in range(300)]
    goes_on(target)
    for s in sockets:
        s.close()
    goes_on(target)
