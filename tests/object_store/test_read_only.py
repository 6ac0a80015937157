"""`helenus serve --read-only`: reads from the bucket alone, beside the node that writes."""

import subprocess
import time

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ReadFailure
from cassandra.query import SimpleStatement

import helenus

pytestmark = pytest.mark.process

FLUSH_S, REFRESH_S = 3, 0.5
# Time limit of what must be seen; without an interval rows are flushed much later.
BOUND_S = 60
FLUSHES = ("--set", f"flush_interval={FLUSH_S}s")
READS = ("--read-only", "--set", f"read_only_refresh_interval={int(REFRESH_S * 1000)}ms")


@pytest.fixture
def pair(bucket, nodes):
    """Returns a node that writes, and a read-only one."""
    writer = nodes(bucket, args=["--name", "writer", "--set", "tablet_count=4", *FLUSHES]).start()
    session = writer.connect()
    session.execute("CREATE KEYSPACE r WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE r.t (k int, c int, v text, s text static, PRIMARY KEY (k, c))")
    reader = nodes(bucket, args=["--name", "reader", *READS]).start()
    return writer, reader


def seen(condition, what):
    """Waits for what the reader must show."""
    helenus.wait_until(condition, BOUND_S, what, interval_s=0.1)


def rows(session, query="SELECT k, c, v FROM r.t"):
    return {tuple(row) for row in session.execute(query)}


def test_what_is_flushed_is_read_within_the_bound(pair):
    writer, reader = pair
    write, read = writer.connect(), reader.connect()
    insert = write.prepare("INSERT INTO r.t (k, c, v) VALUES (?, ?, ?)")
    expected = set()
    for k in range(50):
        for c in range(4):
            write.execute(insert, (k, c, f"{k}/{c}"))
            expected.add((k, c, f"{k}/{c}"))
    seen(lambda: rows(read) == expected, "rows are read")
    point = read.prepare("SELECT v FROM r.t WHERE k = ? AND c = ?")
    assert read.execute(point, (7, 3)).one().v == "7/3"

    # Rows that were read, and are in the row cache, change and vanish, partitions as well.
    write.execute("UPDATE r.t SET v = 'new' WHERE k = 7 AND c = 3")
    write.execute("DELETE FROM r.t WHERE k = 8 AND c = 0")
    write.execute("DELETE FROM r.t WHERE k = 9")
    write.execute("DELETE FROM r.t WHERE k = 10 AND c > 1")
    write.execute("INSERT INTO r.t (k, s) VALUES (11, 'static')")
    expected = rows(write)
    assert (7, 3, "new") in expected and len(expected) == 200 - 1 - 4 - 2
    seen(lambda: rows(read) == expected, "changes are read")
    assert read.execute(point, (7, 3)).one().v == "new"
    assert read.execute(point, (8, 0)).one() is None
    assert rows(read, "SELECT k, c FROM r.t WHERE k = 9") == set()
    assert rows(read, "SELECT c FROM r.t WHERE k = 10") == {(0,), (1,)}
    assert rows(read, "SELECT DISTINCT k, s FROM r.t WHERE k = 11") == {(11, "static")}

    write.execute("TRUNCATE r.t")
    seen(lambda: rows(read) == set(), "a truncated table is empty")


def test_the_schema_and_roles_are_followed(bucket, nodes):
    control = ["--set", "authenticator=PasswordAuthenticator", "--set", "authorizer=CassandraAuthorizer"]
    from cassandra.auth import PlainTextAuthProvider
    root = PlainTextAuthProvider("cassandra", "cassandra")
    writer = nodes(bucket, args=["--name", "writer", *FLUSHES, *control]).start()
    write = writer.connect(auth_provider=root)
    reader = nodes(bucket, args=["--name", "reader", *READS, *control]).start()
    read = reader.connect(auth_provider=root)
    write.execute("CREATE KEYSPACE r WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    write.execute("CREATE TABLE r.t (k int PRIMARY KEY, v text)")
    write.execute("CREATE ROLE shop WITH PASSWORD = 'secret' AND LOGIN = true")
    write.execute("GRANT SELECT ON r.t TO shop")
    write.execute("INSERT INTO r.t (k, v) VALUES (1, 'a')")

    def is_read():
        try:
            return rows(read, "SELECT k, v FROM r.t") == {(1, "a")}
        except InvalidRequest:
            return False

    seen(is_read, "a new table is read")
    shop = reader.connect(auth_provider=PlainTextAuthProvider("shop", "secret"))
    assert rows(shop, "SELECT k FROM r.t") == {(1,)}
    write.execute("ALTER TABLE r.t ADD w int")
    write.execute("CREATE INDEX ON r.t (v)")
    write.execute("UPDATE r.t SET w = 2 WHERE k = 1")

    def is_altered():
        try:
            return rows(read, "SELECT w FROM r.t WHERE v = 'a'") == {(2,)}
        except (InvalidRequest, ReadFailure):
            return False

    seen(is_altered, "a new column and an index are read")
    write.execute("DROP TABLE r.t")

    def is_dropped():
        try:
            read.execute("SELECT * FROM r.t")
        except InvalidRequest as error:
            return "t" in str(error)
        return False

    seen(is_dropped, "the table is dropped")


REFUSED = [
    "INSERT INTO r.t (k, c) VALUES (1, 1)",
    "UPDATE r.t SET v = 'x' WHERE k = 1 AND c = 1",
    "UPDATE r.t SET v = 'x' WHERE k = 1 AND c = 1 IF v = 'y'",
    "INSERT INTO r.t (k, c) VALUES (1, 1) IF NOT EXISTS",
    "DELETE FROM r.t WHERE k = 1",
    "BEGIN BATCH INSERT INTO r.t (k, c) VALUES (1, 1); APPLY BATCH",
    "UPDATE r.n SET n = n + 1 WHERE k = 1",
    "CREATE TABLE r.other (k int PRIMARY KEY)",
    "DROP TABLE r.t",
    "CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "TRUNCATE r.t",
    "CREATE ROLE other",
]


def test_what_it_may_not_answer_is_refused_in_words(pair):
    writer, reader = pair
    write, read = writer.connect(), reader.connect()
    write.execute("CREATE TABLE r.n (k int PRIMARY KEY, n counter)")
    seen(lambda: rows(read, "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'r'") == {("t",), ("n",)}, "the table")
    serial = SimpleStatement("SELECT * FROM r.t", consistency_level=ConsistencyLevel.SERIAL)
    for statement in [*REFUSED, serial]:
        with pytest.raises(InvalidRequest, match="This node is read-only"):
            read.execute(statement)
    prepared = read.prepare("INSERT INTO r.t (k, c, v) VALUES (?, ?, ?)")
    with pytest.raises(InvalidRequest, match="This node is read-only"):
        read.execute(prepared, (1, 1, "x"))
    assert rows(write) == set()
    read.execute("USE r")
    assert read.execute("SELECT count(*) FROM t").one()[0] == 0


def test_it_takes_no_part_and_writes_nothing(pair):
    writer, reader = pair
    write, read = writer.connect(), reader.connect()
    write.execute("INSERT INTO r.t (k, c, v) VALUES (1, 1, 'a')")
    seen(lambda: rows(read) == {(1, 1, "a")}, "the row")
    for session in (write, read):
        assert list(session.execute("SELECT * FROM system.peers")) == []
        assert list(session.execute("SELECT * FROM system.peers_v2")) == []
    ids = [session.execute("SELECT host_id FROM system.local").one()[0] for session in (write, read)]
    assert ids[0] != ids[1]
    figures = reader.metrics()
    for kind in ("put", "delete"):
        assert figures.get(f'helenus_bucket_requests_total{{kind="{kind}"}}', 0) == 0
    # Rounds begin again and again: the last one becomes younger.
    ages = [figures["helenus_read_only_age_seconds"]]

    def is_refreshed():
        ages.append(reader.metrics()["helenus_read_only_age_seconds"])
        return ages[-1] < ages[-2]

    helenus.wait_until(is_refreshed, what="a round of refreshing")
    # The last that its owner has flushed is there whatever becomes of the owner.
    writer.kill()
    time.sleep(3)
    assert rows(read) == {(1, 1, "a")}
    assert reader.health() == 200
    writer.close_clients()
    writer.start()
    again = writer.connect()
    again.execute("INSERT INTO r.t (k, c, v) VALUES (1, 2, 'b')")
    seen(lambda: rows(read) == {(1, 1, "a"), (1, 2, "b")}, "what the next owner writes")
    assert reader.terminate() == 0


def test_it_needs_a_store_in_a_bucket(bucket, minio, tmp_path):
    def refused(store):
        port = helenus.free_port()
        command = [str(helenus.binary()), "serve", "--store", store, "--read-only", "--listen", f"127.0.0.1:{port}", "--http", "off"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path,
                               env={**helenus.clean_environment(), **minio.environment()})
        assert ended.returncode != 0
        return ended.stdout + ended.stderr

    assert "read-only nodes are for stores in a bucket" in refused(str(tmp_path / "folder"))
    assert "there is no store" in refused(bucket)
