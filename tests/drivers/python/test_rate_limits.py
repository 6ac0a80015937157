"""Rate limits: of partitions by an option of their table, and of roles by service levels."""

import contextlib
import socket
import struct
import time

import pytest
from cassandra import InvalidRequest, OperationTimedOut, ReadTimeout, Unauthorized
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ConfigurationException, OverloadedErrorMessage, SyntaxException
from cassandra.query import BatchStatement

import helenus
from helenus import SECURED, log_in

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
STARTUP, SUPPORTED, ERROR, QUERY, OPTIONS = 0x01, 0x06, 0x00, 0x07, 0x05
RATE_LIMIT_CODE = 0xF000
READ, WRITE = 0, 1


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    node = helenus.Node(tmp_path_factory.mktemp("limited")).start()
    yield node
    node.close()


@pytest.fixture(scope="module")
def session(server):
    session = server.connect()
    session.execute(KEYSPACE)
    yield session


@pytest.fixture
def table(session, request):
    """Makes a table of the test with a limit, and gives its name."""
    name = "k." + request.node.name.lower().removeprefix("test_")[:40]

    def make(limit, columns="p int, c int, v int, PRIMARY KEY (p, c)"):
        session.execute(f"CREATE TABLE {name} ({columns}) WITH per_partition_rate_limit = {limit}")
        return name

    yield make
    session.execute(f"DROP TABLE IF EXISTS {name}")


def passed(session, statement, times, refused=ConfigurationException):
    """Returns the number of executions that are not refused because of the rate, and the message of a refusal."""
    done, words = 0, ""
    for _ in range(times):
        try:
            session.execute(statement)
            done += 1
        except refused as error:
            words = str(error)
    return done, words


def passed_at_rate(rate, count, share=1):
    """Checks that so many executions pass as a rate allows in the time that they took: those of a second at once, and others as time goes on.
    `share` is the part of the rate that others have left. `count` executes them. Returns how many passed and what a refusal says."""
    began = time.monotonic()
    done, words = count()
    most = rate * (1 + time.monotonic() - began) + 1
    assert rate * share <= done <= most, f"{done} passed, expected {rate * share:.0f} to {most:.0f}"
    assert words, "none was refused"
    return done, words


def refusals(node, kind):
    return node.metrics()[f'helenus_rate_limited_total{{kind="{kind}"}}']


def test_writes_over_the_limit_are_refused(server, session, table):
    name = table("{'max_writes_per_second': 5}")
    before = refusals(server, "partition")
    done, words = passed_at_rate(5, lambda: passed(session, f"INSERT INTO {name} (p, c, v) VALUES (1, 1, 1)", 40))
    assert f"Per-partition rate limit reached for writes in table {name}: 5 per second" in words
    assert refusals(server, "partition") - before == 40 - done
    # Neither other partitions nor reads are limited.
    assert passed(session, f"INSERT INTO {name} (p, c, v) VALUES (2, 1, 1)", 5)[0] == 5
    assert passed(session, f"SELECT * FROM {name} WHERE p = 1", 40)[0] == 40


def test_a_partition_is_served_again(session, table):
    name = table("{'max_writes_per_second': 2}")
    insert = f"INSERT INTO {name} (p, c, v) VALUES (1, 1, 1)"
    passed_at_rate(2, lambda: passed(session, insert, 20))
    helenus.wait_until(lambda: passed(session, insert, 1)[0] == 1, what="a write within the rate", interval_s=0.1)


def test_reads_of_partitions_count_and_scans_do_not(session, table):
    name = table("{'max_reads_per_second': 5}")
    session.execute(f"CREATE INDEX ON {name} (v)")
    for c in range(10):
        session.execute(f"INSERT INTO {name} (p, c, v) VALUES (1, {c}, 1)")
    for where in ("", "WHERE v = 1", "WHERE token(p) > 0", "WHERE v > 0 ALLOW FILTERING"):
        assert passed(session, f"SELECT * FROM {name} {where}", 30)[0] == 30, where
    limited = lambda statement, share=1: passed_at_rate(5, lambda: passed(session, statement, 30), share)
    assert "for reads in table" in limited(f"SELECT * FROM {name} WHERE p = 1 AND c = 1")[1]
    # The first partition has used up its rate.
    limited(f"SELECT * FROM {name} WHERE p IN (1, 2)", share=0)
    assert passed(session, f"SELECT * FROM {name} WHERE p IN (3, 4)", 5)[0] == 5
    limited(f"SELECT count(*) FROM {name} WHERE p = 5")
    prepared = session.prepare(f"SELECT v FROM {name} WHERE p = ? AND c = ?")
    limited(prepared.bind((6, 1)))


def test_rate_limit_counts_a_batch_once_per_partition(session, table):
    name = table("{'max_writes_per_second': 4}")
    limited = lambda statement: passed_at_rate(4, lambda: passed(session, statement, 30))
    limited(f"UPDATE {name} SET v = 1 WHERE p = 1 AND c = 1 IF v = 2")
    batch = BatchStatement()
    for c in range(10):
        batch.add(f"INSERT INTO {name} (p, c, v) VALUES (2, {c}, 1)")
    batch.add(f"INSERT INTO {name} (p, c, v) VALUES (3, 1, 1)")
    limited(batch)
    text = f"BEGIN UNLOGGED BATCH INSERT INTO {name} (p, c) VALUES (4, 1); INSERT INTO {name} (p, c) VALUES (4, 2); APPLY BATCH"
    limited(text)
    limited(f"DELETE FROM {name} WHERE p IN (5, 6)")
    session.execute(f"DROP TABLE {name}")
    table("{'max_writes_per_second': 4}", "p int PRIMARY KEY, n counter")
    done, _ = limited(f"UPDATE {name} SET n = n + 1 WHERE p = 1")
    assert session.execute(f"SELECT n FROM {name} WHERE p = 1").one().n == done


def test_a_refused_batch_changes_nothing(session, table):
    name = table("{'max_writes_per_second': 0}")
    other = f"{name}_other"
    session.execute(f"CREATE TABLE {other} (p int PRIMARY KEY)")
    batch = BatchStatement()
    batch.add(f"INSERT INTO {other} (p) VALUES (1)")
    batch.add(f"INSERT INTO {name} (p, c, v) VALUES (1, 1, 1)")
    with pytest.raises(ConfigurationException):
        session.execute(batch)
    assert session.execute(f"SELECT * FROM {other}").all() == []


def test_the_option_is_altered_and_described(session, table):
    name = table("{'max_reads_per_second': 7, 'max_writes_per_second': 0}")
    keyspace, short = name.split(".")
    literal = "{'max_reads_per_second': 7, 'max_writes_per_second': 0}"
    described = session.execute(f"DESCRIBE TABLE {name}").one().create_statement
    assert f"AND per_partition_rate_limit = {literal}" in described

    def extensions():
        query = "SELECT extensions FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"
        return dict(session.execute(query, (keyspace, short)).one().extensions)

    assert extensions() == {"per_partition_rate_limit": literal.encode()}
    session.execute(f"DROP TABLE {name}")
    session.execute(described)
    assert session.execute(f"DESCRIBE TABLE {name}").one().create_statement == described
    assert passed(session, f"INSERT INTO {name} (p, c) VALUES (1, 1)", 3)[0] == 0
    future = session.execute_async(f"ALTER TABLE {name} WITH per_partition_rate_limit = {{'max_writes_per_second': 1000000}}")
    future.result()
    assert not future.warnings
    assert passed(session, f"INSERT INTO {name} (p, c) VALUES (1, 1)", 50)[0] == 50
    session.execute(f"ALTER TABLE {name} WITH per_partition_rate_limit = {{}}")
    assert "per_partition_rate_limit" not in session.execute(f"DESCRIBE TABLE {name}").one().create_statement
    assert extensions() == {}


@pytest.mark.parametrize("limit, words", [
    ("{'max_scans_per_second': 1}", "Unknown sub-option 'max_scans_per_second' of per_partition_rate_limit"),
    ("{'max_reads_per_second': -1}", "Invalid value '-1' for sub-option 'max_reads_per_second'"),
    ("{'max_writes_per_second': 'many'}", "Invalid value 'many' for sub-option 'max_writes_per_second'"),
])
def test_invalid_limits_are_refused(session, limit, words):
    for statement in (f"CREATE TABLE k.bad (p int PRIMARY KEY) WITH per_partition_rate_limit = {limit}",):
        with pytest.raises(ConfigurationException, match=words):
            session.execute(statement)
    with pytest.raises(SyntaxException, match="It should be a map"):
        session.execute("CREATE TABLE k.bad (p int PRIMARY KEY) WITH per_partition_rate_limit = 10")


def test_a_limit_survives_a_kill(tmp_path):
    node = helenus.Node(tmp_path).start()
    try:
        session = node.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY) WITH per_partition_rate_limit = {'max_writes_per_second': 0}")
        node.kill()
        node.start()
        session = node.connect()
        with pytest.raises(ConfigurationException, match="rate limit"):
            session.execute("INSERT INTO k.t (p) VALUES (1)")
    finally:
        node.close()


class Wire:
    """A connection of the protocol's version 4."""

    def __init__(self, node, **options):
        self.socket = socket.create_connection((node.host, node.port), timeout=30)
        self.answers = self.socket.makefile("rb")
        self.supported = self.ask(OPTIONS, b"")
        options = {"CQL_VERSION": "3.0.0", **options}
        pairs = b"".join(self.string(word) for pair in options.items() for word in pair)
        self.ask(STARTUP, struct.pack(">H", len(options)) + pairs)

    @staticmethod
    def string(text):
        return struct.pack(">H", len(text)) + text.encode()

    def ask(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBi", 4, 0, 0, opcode, len(body)) + body)
        *_, self.opcode, length = struct.unpack(">BBhBi", self.answers.read(9))
        return self.answers.read(length)

    def error(self, cql):
        """Returns the code and the message of an error, and the bytes after them."""
        body = self.ask(QUERY, struct.pack(">i", len(cql)) + cql.encode() + b"\0\1\0")
        assert self.opcode == ERROR, body
        code, length = struct.unpack(">iH", body[:6])
        return code, body[6:6 + length].decode(), body[6 + length:]

    def close(self):
        self.answers.close()
        self.socket.close()


def test_drivers_that_know_the_error_are_told_it(server, session, table):
    name = table("{'max_reads_per_second': 0, 'max_writes_per_second': 0}")
    insert, select = f"INSERT INTO {name} (p, c) VALUES (1, 1)", f"SELECT * FROM {name} WHERE p = 1"
    with contextlib.closing(Wire(server, SCYLLA_RATE_LIMIT_ERROR="")) as knowing:
        assert b"SCYLLA_RATE_LIMIT_ERROR" in knowing.supported and b"ERROR_CODE=61440" in knowing.supported
        code, message, rest = knowing.error(insert)
        assert (code, rest) == (RATE_LIMIT_CODE, bytes([WRITE, 0])) and "for writes in table" in message
        code, message, rest = knowing.error(select)
        assert (code, rest) == (RATE_LIMIT_CODE, bytes([READ, 0])) and "for reads in table" in message
    with contextlib.closing(Wire(server)) as other:
        code, message, rest = other.error(insert)
        assert (code, rest) == (0x2300, b"") and "for writes in table" in message


@pytest.fixture
def secured(tmp_path):
    node = helenus.Node(tmp_path, args=SECURED).start()
    root = log_in(node, "cassandra", "cassandra")
    for statement in (
        KEYSPACE, "CREATE TABLE k.t (p int PRIMARY KEY, v int)",
        "CREATE ROLE team", "CREATE ROLE ann WITH PASSWORD = 'ann' AND LOGIN = true", "GRANT team TO ann",
        "GRANT ALL ON KEYSPACE k TO team",
    ):
        root.execute(statement)
    node.root = root
    yield node
    root.cluster.shutdown()
    node.close()


def overloaded(session, statement, times):
    """Returns the number of executions that the rate of the role allows, and the message of a refusal."""
    done, words = 0, ""
    for _ in range(times):
        try:
            session.execute(statement)
            done += 1
        except NoHostAvailable as error:
            # The driver tries each node that it knows, here one, and records the node's error in another thread.
            helenus.wait_until(lambda: error.errors, what="the refusal")
            [refusal] = error.errors.values()
            assert isinstance(refusal, OverloadedErrorMessage), refusal
            words = str(refusal)
        except OverloadedErrorMessage as error:
            words = str(error)
    return done, words


def test_roles_are_served_at_the_rate_of_their_level(secured):
    root, ann = secured.root, log_in(secured, "ann", "ann")
    select = ann.prepare("SELECT * FROM k.t WHERE p = ?").bind((1,))
    root.execute("CREATE SERVICE LEVEL gold WITH max_requests_per_second = 5")
    assert overloaded(ann, select, 40)[0] == 40
    root.execute("ATTACH SERVICE LEVEL gold TO team")
    limited = lambda session, statement, share: passed_at_rate(5, lambda: overloaded(session, statement, 40), share)
    done, words = limited(ann, select, 1)
    assert "Role ann has exceeded 5 requests per second at this node, the limit of its service level gold" in words
    assert refusals(secured, "role") >= 40 - done
    # Another connection of the role shares the rate. Requests for the driver's metadata do not count.
    again = log_in(secured, "ann", "ann")
    limited(again, "INSERT INTO k.t (p, v) VALUES (1, 1)", 0)
    assert overloaded(ann, "SELECT * FROM system.local", 40)[0] == 40
    batch = BatchStatement()
    batch.add("INSERT INTO k.t (p, v) VALUES (1, 1)")
    limited(ann, batch, 0)
    assert overloaded(root, "SELECT * FROM k.t WHERE p = 1", 40)[0] == 40
    root.execute("ALTER SERVICE LEVEL gold WITH max_requests_per_second = null")
    assert overloaded(ann, select, 40)[0] == 40
    root.execute("ALTER SERVICE LEVEL gold WITH max_requests_per_second = 5")
    root.execute("DETACH SERVICE LEVEL FROM team")
    assert overloaded(ann, select, 40)[0] == 40
    for cluster in (ann.cluster, again.cluster):
        cluster.shutdown()


def test_levels_are_listed_and_merged(secured):
    root = secured.root
    for statement in (
        "CREATE SERVICE LEVEL gold WITH max_requests_per_second = 1000 AND timeout = 500ms",
        "CREATE SERVICE LEVEL tin WITH max_requests_per_second = 50",
        "CREATE SERVICE LEVEL IF NOT EXISTS gold WITH timeout = 1s",
        "ATTACH SERVICE LEVEL gold TO ann",
        "ATTACH SERVICE_LEVEL tin TO team",
    ):
        root.execute(statement)
    listed = [tuple(row) for row in root.execute("LIST ALL SERVICE LEVELS")]
    assert [(name, rate, timeout and timeout.nanoseconds) for name, rate, timeout in listed] == \
        [("gold", 1000, 500_000_000), ("tin", 50, None)]
    assert [tuple(row)[0] for row in root.execute("LIST SERVICE LEVEL tin")] == ["tin"]
    assert [tuple(row) for row in root.execute("LIST ALL ATTACHED SERVICE LEVELS")] == [("ann", "gold"), ("team", "tin")]
    ann = log_in(secured, "ann", "ann")
    assert [tuple(row) for row in ann.execute("LIST ATTACHED SERVICE LEVEL OF team")] == [("team", "tin")]
    effective = [("max_requests_per_second", "tin", "50"), ("timeout", "gold", "500ms")]
    for session in (root, ann):
        assert [tuple(row) for row in session.execute("LIST EFFECTIVE SERVICE LEVEL OF ann")] == effective
    for statement in ("CREATE SERVICE LEVEL x", "DROP SERVICE LEVEL tin", "ATTACH SERVICE LEVEL gold TO team", "LIST ALL SERVICE LEVELS"):
        with pytest.raises(Unauthorized, match="Only superusers are allowed to"):
            ann.execute(statement)
    for statement, words in (
        ("CREATE SERVICE LEVEL gold", "Service level gold already exists"),
        ("ALTER SERVICE LEVEL none WITH timeout = 1s", "Service level none doesn't exist"),
        ("CREATE SERVICE LEVEL x WITH shares = 100",
         "Unknown option 'shares' of a service level: the options are max_requests_per_second and timeout"),
        ("CREATE SERVICE LEVEL x WITH workload_type = 'batch'", "Unknown option 'workload_type' of a service level"),
        ("CREATE SERVICE LEVEL x WITH timeout = 1mo", "it must be a duration of whole milliseconds"),
        ("ATTACH SERVICE LEVEL gold TO nobody", "Role nobody doesn't exist"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            root.execute(statement)
    root.execute("DROP SERVICE LEVEL gold")
    assert [tuple(row) for row in root.execute("LIST EFFECTIVE SERVICE LEVEL OF ann")] == effective[:1]
    ann.cluster.shutdown()


def test_levels_survive_a_kill(secured):
    secured.root.execute("CREATE SERVICE LEVEL gold WITH max_requests_per_second = 7 AND timeout = 20ms")
    secured.root.execute("ATTACH SERVICE LEVEL gold TO ann")
    secured.kill()
    secured.start()
    root = log_in(secured, "cassandra", "cassandra")
    effective = [tuple(row) for row in root.execute("LIST EFFECTIVE SERVICE LEVEL OF ann")]
    assert effective == [("max_requests_per_second", "gold", "7"), ("timeout", "gold", "20ms")]
    root.cluster.shutdown()


def test_the_timeout_of_a_level_ends_reads(secured):
    root = secured.root
    root.execute("CREATE TABLE k.many (p int, c int, v int, PRIMARY KEY (p, c))")
    insert = root.prepare("INSERT INTO k.many (p, c, v) VALUES (?, ?, ?)")
    from cassandra.concurrent import execute_concurrent_with_args
    execute_concurrent_with_args(root, insert, [(c % 50, c, c) for c in range(20_000)], concurrency=100)
    body = "int n = 0; for (int i = 0; i < 500; i++) { n += i; } return n;"
    root.execute(f"CREATE FUNCTION k.busy(v int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS $${body}$$")
    root.execute("GRANT EXECUTE ON ALL FUNCTIONS TO ann")
    root.execute("CREATE SERVICE LEVEL short WITH timeout = 20ms")
    root.execute("CREATE SERVICE LEVEL long WITH timeout = 1h")
    root.execute("ATTACH SERVICE LEVEL short TO ann")
    ann = log_in(secured, "ann", "ann")
    slow = "SELECT max(k.busy(v)) FROM k.many"
    for statement in (slow, f"{slow} USING TIMEOUT 1h"):
        with pytest.raises((ReadTimeout, OperationTimedOut)):
            ann.execute(statement, timeout=60)
    assert ann.execute("SELECT v FROM k.many WHERE p = 1 AND c = 1").one().v == 1
    root.execute("ATTACH SERVICE LEVEL long TO ann")
    with pytest.raises(ReadTimeout):
        ann.execute(f"{slow} USING TIMEOUT 20ms", timeout=60)
    ann.cluster.shutdown()
