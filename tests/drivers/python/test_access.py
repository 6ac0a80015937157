"""Logging in, and what roles may do: through the driver, the shell, and a kill."""

import socket
import struct
import subprocess
import time

import pytest
from cassandra import AuthenticationFailed, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable

import helenus

pytestmark = pytest.mark.process

STARTUP, AUTHENTICATE, QUERY, AUTH_RESPONSE, AUTH_SUCCESS = 0x01, 0x03, 0x07, 0x0F, 0x10
SECURED = ["--set", "authenticator=PasswordAuthenticator", "--set", "authorizer=CassandraAuthorizer"]


@pytest.fixture
def secured(tmp_path):
    server = helenus.Node(tmp_path, args=SECURED).start()
    yield server
    server.close()


def log_in(server, name, password, **options):
    cluster = Cluster([server.host], port=server.port, auth_provider=PlainTextAuthProvider(name, password), **options)
    try:
        return cluster.connect()
    except Exception:
        cluster.shutdown()
        raise


def refusal(server, name, password):
    """The server's words."""
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
    # What is prepared by one is not allowed to another.
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
    root.execute("DROP ROLE ann")
    with pytest.raises(Unauthorized):
        ann.execute(prepared, (1,))


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
    log_in(secured, "cassandra", "cassandra")
    began = time.monotonic()
    for _ in range(20):
        log_in(secured, "cassandra", "cassandra").cluster.shutdown()
    assert time.monotonic() - began < 20


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
    with pytest.raises(RuntimeError, match="set authenticator = .PasswordAuthenticator. too"):
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


def test_a_connection_has_one_password_looked_at_at_a_time(secured):
    with socket.create_connection((secured.host, secured.port), timeout=20) as raw:
        frame = lambda stream, opcode, body: struct.pack(">BBhBi", 4, 0, stream, opcode, len(body)) + body
        send = lambda *parts: raw.sendall(frame(*parts))
        send(0, STARTUP, struct.pack(">H", 1) + b"\x00\x0bCQL_VERSION\x00\x053.0.0")
        answers = raw.makefile("rb")

        def answer():
            _, _, stream, opcode, length = struct.unpack(">BBhBi", answers.read(9))
            return stream, opcode, answers.read(length)

        assert answer()[:2] == (0, AUTHENTICATE)
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
