"""Logging in, and what roles may do: through the driver, the shell, and a kill."""

import collections
import contextlib
import os
import pty
import socket
import struct
import subprocess
import threading

import pytest
from cassandra import AuthenticationFailed, InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable

import helenus
import measured
from helenus import SECURED, log_in

pytestmark = pytest.mark.process

ERROR, STARTUP, AUTHENTICATE, QUERY, RESULT, AUTH_RESPONSE, AUTH_SUCCESS = 0x00, 0x01, 0x03, 0x07, 0x08, 0x0F, 0x10


@pytest.fixture
def secured(tmp_path):
    server = helenus.Node(tmp_path, args=SECURED).start()
    yield server
    server.close()


def refusal(server, name, password):
    """Returns the server's error message for a failed log-in."""
    with pytest.raises(NoHostAvailable) as refused:
        log_in(server, name, password)
    error = next(iter(refused.value.errors.values()))
    assert isinstance(error, AuthenticationFailed)
    return str(error)


def test_only_who_knows_the_password_comes_in(secured):
    root = log_in(secured, "cassandra", "cassandra")
    root.execute("CREATE ROLE ann WITH PASSWORD = 'first' AND LOGIN = true")
    root.execute("CREATE ROLE group_ WITH PASSWORD = 'x'")
    assert "Provided username ann and/or password are incorrect" in refusal(secured, "ann", "second")
    assert "Provided username nobody and/or password are incorrect" in refusal(secured, "nobody", "first")
    assert "group_ is not permitted to log in" in refusal(secured, "group_", "x")
    with pytest.raises(NoHostAvailable):
        Cluster([secured.host], port=secured.port).connect()
    log_in(secured, "ann", "first")
    root.execute("ALTER ROLE ann WITH PASSWORD = 'second'")
    assert "incorrect" in refusal(secured, "ann", "first")
    log_in(secured, "ann", "second")
    hashed = root.execute("SELECT salted_hash FROM system_auth.roles WHERE role = 'ann'").one().salted_hash
    assert hashed.startswith("$2a$10$") and len(hashed) == 60
    root.execute(f"CREATE ROLE bob WITH LOGIN = true AND HASHED PASSWORD = '{hashed}'")
    log_in(secured, "bob", "second")


@pytest.mark.parametrize("version", [3, 4, 5])
def test_every_protocol_version_logs_in(secured, version):
    session = log_in(secured, "cassandra", "cassandra", protocol_version=version)
    clients = session.execute("SELECT username, protocol_version FROM system_views.clients").all()
    assert {(c.username, c.protocol_version) for c in clients} == {("cassandra", version)}


def test_permissions_are_in_force_at_once(secured):
    root = log_in(secured, "cassandra", "cassandra")
    root.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    root.execute("CREATE TABLE k.t (k int PRIMARY KEY, v int)")
    root.execute("CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true")
    root.execute("CREATE ROLE readers")
    root.execute("GRANT readers TO ann")
    ann = log_in(secured, "ann", "a")
    # A statement that one role has prepared needs the permissions of the role that executes it.
    select = "SELECT * FROM k.t WHERE k = ?"
    root.execute(root.prepare(select), (1,))
    prepared = ann.prepare(select)
    for _ in range(3):
        with pytest.raises(Unauthorized, match="User ann has no SELECT permission on <table k.t> or any of its parents"):
            ann.execute(prepared, (1,))
        root.execute("GRANT SELECT ON KEYSPACE k TO readers")
        assert ann.execute(prepared, (1,)).all() == []
        root.execute("REVOKE SELECT ON KEYSPACE k FROM readers")
    root.execute("GRANT ALL ON k.t TO readers")
    ann.execute("INSERT INTO k.t (k, v) VALUES (1, 1)")
    root.execute("DROP ROLE readers")
    with pytest.raises(Unauthorized):
        ann.execute("INSERT INTO k.t (k, v) VALUES (1, 1)")


@pytest.mark.parametrize("change", ["DROP ROLE ann", "ALTER ROLE ann WITH LOGIN = false"])
def test_connections_end_with_the_role(secured, change):
    root = log_in(secured, "cassandra", "cassandra")
    root.execute("CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true")
    with contextlib.closing(Wire(secured)) as ann, contextlib.closing(Wire(secured)) as other:
        assert ann.log_in("ann", "a")[1] == AUTH_SUCCESS and other.log_in("cassandra", "cassandra")[1] == AUTH_SUCCESS
        for wire in (ann, other):
            assert wire.query("SELECT key FROM system.local")[1] == RESULT
        root.execute("ALTER ROLE ann WITH PASSWORD = 'b'")
        root.execute("CREATE ROLE bob")
        assert ann.query("SELECT key FROM system.local")[1] == RESULT, "the role is still there"
        root.execute(change)
        assert ann.raw.recv(1) == b"", "the connection ends by itself"
        assert other.query("SELECT key FROM system.local")[1] == RESULT
    users = {c.username for c in root.execute("SELECT username FROM system_views.clients")}
    assert users == {"cassandra"}
    with pytest.raises(NoHostAvailable):
        log_in(secured, "ann", "b")


def test_hashes_that_take_too_long_are_refused(secured):
    root = log_in(secured, "cassandra", "cassandra")
    root.execute("CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true")
    digest = "." * 53
    ann = log_in(secured, "ann", "a")
    for cost in (14, 31):
        for session, statement in ((ann, "ALTER ROLE ann WITH HASHED PASSWORD"), (root, "CREATE ROLE bob WITH LOGIN = true AND HASHED PASSWORD"),
                                   (root, "CREATE USER bob WITH HASHED PASSWORD")):
            equals = "" if "USER" in statement else " ="
            with pytest.raises(InvalidRequest, match=f"Invalid hashed password value: its cost is {cost}, and the highest .* is 13"):
                session.execute(f"{statement}{equals} '$2a${cost}${digest}'")
    ann.execute(f"ALTER ROLE ann WITH HASHED PASSWORD = '$2a$13${digest}'")
    with pytest.raises(InvalidRequest, match="Password can't be longer than 1024 bytes, and this one has 1025"):
        ann.execute(f"ALTER ROLE ann WITH PASSWORD = '{'x' * 1025}'")
    with pytest.raises(InvalidRequest, match="Role name can't be longer than 1024 bytes"):
        root.execute(f"CREATE ROLE {'x' * 1025}")


def test_who_guesses_holds_up_nobody_elsewhere(secured):
    """A hundred connections that guess passwords, from one address; a right one from another does not wait for them all."""
    root = log_in(secured, "cassandra", "cassandra")
    root.execute("CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true")
    wires = [Wire(secured) for _ in range(100)]
    guesses = collections.Counter()

    def guess(wire):
        with contextlib.suppress(OSError, struct.error):
            while wire.log_in("ann", "wrong"):
                guesses[wire] += 1

    guessers = [threading.Thread(target=guess, args=(wire,)) for wire in wires]
    for guesser in guessers:
        guesser.start()
    try:
        helenus.wait_until(lambda: sum(guesses.values()) > 5, what="refused guesses")
        before = sum(guesses.values())
        with contextlib.closing(Wire(secured, source="127.0.0.2")) as wire:
            assert wire.log_in("ann", "a")[1] == AUTH_SUCCESS
        meanwhile = sum(guesses.values()) - before
    finally:
        for wire in wires:
            wire.raw.shutdown(socket.SHUT_RDWR)
        for guesser in guessers:
            guesser.join()
    # A hundred guesses were waiting when it came.
    assert meanwhile < 50, f"{meanwhile} guesses were refused before it had its turn"


def test_passwords_of_prepared_statements_are_hidden(secured):
    root = log_in(secured, "cassandra", "cassandra")
    prepared = root.prepare("CREATE ROLE ann WITH PASSWORD = 'unutterable' AND LOGIN = true")
    root.prepare("SELECT role FROM system_auth.roles")
    root.execute(prepared, trace=True).get_query_trace(10)
    shown = [s.query_string for s in root.execute("SELECT query_string FROM system.prepared_statements")]
    assert "CREATE ROLE ann WITH PASSWORD" in shown and "SELECT role FROM system_auth.roles" in shown
    everything = [root.execute(f"SELECT * FROM {table}").all() for table in
                  ("system.prepared_statements", "system_traces.sessions", "system_traces.events", "system_views.clients")]
    assert "unutterable" not in str(everything)


def test_passwords_are_not_kept_in_the_shells_history(secured, tmp_path):
    """At a terminal, where the shell keeps a history."""
    address = f"{secured.host}:{secured.port}"
    command = [str(helenus.binary()), "shell", address, "-u", "cassandra", "-p", "cassandra"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, {**helenus.clean_environment(), "HOME": str(tmp_path), "TERM": "dumb"})
    said = b""

    def wait_for(words):
        nonlocal said
        while words not in said:
            said += os.read(terminal, 4096)
        said = b""

    def type_in(line, answer=b"cql> "):
        os.write(terminal, line.encode() + b"\n")
        wait_for(answer)

    wait_for(b"cql> ")
    type_in("CREATE ROLE ann WITH PASSWORD = 'unutterable' AND LOGIN = true;")
    type_in("ALTER ROLE ann", b"... ")
    type_in("WITH PASSWORD =", b"... ")
    type_in("'unspeakable';")
    type_in("SELECT role FROM system_auth.roles;")
    os.write(terminal, b"EXIT\n")
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass
    os.waitpid(pid, 0)
    os.close(terminal)
    history = (tmp_path / ".helenus_history").read_text()
    assert "unutterable" not in history and "unspeakable" not in history
    assert "CREATE ROLE ann WITH PASSWORD\n" in history and "SELECT role FROM system_auth.roles;" in history
    log_in(secured, "ann", "unspeakable")


def test_roles_survive_a_kill(secured):
    root = log_in(secured, "cassandra", "cassandra")
    root.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for i in range(30):
        root.execute(f"CREATE ROLE r{i} WITH PASSWORD = 'p{i}' AND LOGIN = true")
        root.execute(f"GRANT SELECT ON KEYSPACE k TO r{i}")
    root.execute("ALTER ROLE cassandra WITH PASSWORD = 'other'")
    root.execute("DROP ROLE r0")
    before = root.execute("LIST ALL PERMISSIONS").all()
    secured.kill()
    secured.start()
    assert "incorrect" in refusal(secured, "cassandra", "cassandra")
    root = log_in(secured, "cassandra", "other")
    assert root.execute("LIST ALL PERMISSIONS").all() == before and len(before) > 29
    assert [r.role for r in root.execute("LIST ROLES")] == sorted(["cassandra"] + [f"r{i}" for i in range(1, 30)])
    log_in(secured, "r7", "p7")


def test_nobody_is_asked_unless_told_to(node):
    session = node.connect()
    assert session.execute("SELECT * FROM system_auth.roles").all() == []
    with pytest.raises(Unauthorized, match="You have to be logged in and not anonymous"):
        session.execute("CREATE ROLE ann")


def test_a_known_password_is_quickly_known_again(secured):
    """A wrong password is hashed each time, which takes long on purpose."""
    log_in(secured, "cassandra", "cassandra")

    def log_in_often(password, opcode):
        for _ in range(5):
            with contextlib.closing(Wire(secured)) as wire:
                assert wire.log_in("cassandra", password)[1] == opcode

    measured.compare(lambda: measured.seconds(lambda: log_in_often("wrong", ERROR)),
                     lambda: measured.seconds(lambda: log_in_often("cassandra", AUTH_SUCCESS)),
                     0.5, "seconds for logins with a known password, beside wrong ones")


def shell(server, *args, env=()):
    command = [str(helenus.binary()), "shell", f"{server.host}:{server.port}", *args]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30,
                          env={**helenus.clean_environment(), **dict(env)})


def test_the_shell_logs_in(secured):
    query = ("-e", "SELECT role FROM system_auth.roles")
    done = shell(secured, "-u", "cassandra", "-p", "cassandra", *query)
    assert done.returncode == 0 and "cassandra" in done.stdout
    assert "cassandra" in shell(secured, "-u", "cassandra", *query, env={"HELENUS_PASSWORD": "cassandra"}).stdout
    refused = shell(secured, "-u", "cassandra", "-p", "x", *query)
    assert refused.returncode != 0
    assert "Provided username cassandra and/or password are incorrect" in refused.stderr
    assert "give --username" in shell(secured, *query).stderr


def test_passwords_are_not_logged(tmp_path):
    args = [*SECURED, "--set", "log=debug", "--set", "slow_request_log_timeout=1ms"]
    server = helenus.Node(tmp_path, args=args).start()
    root = log_in(server, "cassandra", "cassandra")
    root.execute("CREATE ROLE ann WITH PASSWORD = 'unutterable' AND LOGIN = true", trace=True)
    log_in(server, "ann", "unutterable")
    traces = root.execute("SELECT parameters FROM system_traces.sessions").all()
    server.close()
    assert "a slow request" in server.log(10_000).lower() or "slow" in server.log(10_000)
    assert "unutterable" not in server.log_path.read_text()
    assert not any("unutterable" in str(trace) for trace in traces)


def test_permissions_need_names(tmp_path):
    server = helenus.Node(tmp_path, args=["--set", "authorizer=CassandraAuthorizer"])
    with pytest.raises(RuntimeError, match="requires authenticator = .PasswordAuthenticator."):
        server.start()


def test_a_lost_password_is_replaced_at_the_start(secured):
    root = log_in(secured, "cassandra", "cassandra")
    root.execute("ALTER ROLE cassandra WITH PASSWORD = 'forgotten'")
    root.execute("CREATE ROLE ann WITH PASSWORD = 'a' AND LOGIN = true")
    root.cluster.shutdown()
    secured.close()
    secured.env["HELENUS_SUPERUSER_PASSWORD"] = "found"
    secured.start()
    assert "incorrect" in refusal(secured, "cassandra", "forgotten")
    assert len(log_in(secured, "cassandra", "found").execute("LIST ROLES").all()) == 2
    log_in(secured, "ann", "a")


class Wire:
    """A connection that has started up, spoken to by hand."""

    def __init__(self, server, source=""):
        self.raw = socket.create_connection((server.host, server.port), timeout=20, source_address=(source, 0))
        self.answers = self.raw.makefile("rb")
        self.send(0, STARTUP, struct.pack(">H", 1) + b"\x00\x0bCQL_VERSION\x00\x053.0.0")
        assert self.answer()[:2] == (0, AUTHENTICATE)

    @staticmethod
    def frame(stream, opcode, body):
        return struct.pack(">BBhBi", 4, 0, stream, opcode, len(body)) + body

    def send(self, *parts):
        self.raw.sendall(self.frame(*parts))

    def answer(self):
        _, _, stream, opcode, length = struct.unpack(">BBhBi", self.answers.read(9))
        return stream, opcode, self.answers.read(length)

    def log_in(self, name, password):
        token = f"\0{name}\0{password}".encode()
        self.send(1, AUTH_RESPONSE, struct.pack(">i", len(token)) + token)
        return self.answer()

    def query(self, cql):
        self.send(2, QUERY, struct.pack(">i", len(cql)) + cql.encode() + b"\0\1\0")
        return self.answer()

    def close(self):
        self.answers.close()
        self.raw.close()


def test_a_connection_has_one_password_looked_at_at_a_time(secured):
    with contextlib.closing(Wire(secured)) as wire:
        send, answer, raw, frame = wire.send, wire.answer, wire.raw, wire.frame
        send(1, QUERY, struct.pack(">i", 8) + b"SELECT 1" + b"\x00\x01\x00")
        assert b"Unexpected message QUERY, expecting SASL_RESPONSE" in answer()[2]
        token = b"\0cassandra\0wrong"
        raw.sendall(b"".join(frame(stream, AUTH_RESPONSE, struct.pack(">i", len(token)) + token) for stream in range(2, 6)))
        said = dict((stream, body) for stream, _, body in (answer() for _ in range(4)))
        assert b"incorrect" in said[2]
        assert all(b"the one before is not answered yet" in said[stream] for stream in (3, 4, 5))
        token = b"\0cassandra\0cassandra"
        send(6, AUTH_RESPONSE, struct.pack(">i", len(token)) + token)
        assert answer()[:2] == (6, AUTH_SUCCESS)
