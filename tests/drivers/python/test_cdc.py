"""Captured changes: the rows of log tables. The cases are those of ScyllaDB's documentation ("Change Data Capture"), with their documented rows."""

import time
import uuid

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.protocol import ConfigurationException
from cassandra.query import BatchStatement, BatchType

import helenus

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
# The values of cdc$operation.
PRE, UPDATE, INSERT, DELETE, PARTITION, FROM, AFTER, TO, BEFORE, POST = range(10)
T = 1606390225588947


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    node = helenus.Node(tmp_path_factory.mktemp("cdc")).start()
    session = node.connect()
    session.execute(KEYSPACE)
    session.node = node
    yield session
    node.close()


@pytest.fixture
def table(session, request):
    """Creates a table of the test's own, and returns its name."""
    name = "k." + request.node.name.removeprefix("test_").split("[")[0][:30]

    def create(columns="pk int, ck int, v int, PRIMARY KEY (pk, ck)", cdc="{'enabled': true}"):
        session.execute(f"CREATE TABLE {name} ({columns}) WITH cdc = {cdc}")
        return name

    yield create
    session.execute(f"DROP TABLE IF EXISTS {name}")


def log(session, table, columns):
    """Returns the rows of a table's log."""
    columns = ", ".join(f'"{column}"' if "$" in column else column for column in columns.split())
    return [tuple(row) for row in session.execute(f"SELECT {columns} FROM {table}_scylla_cdc_log")]


def time_us(time):
    return (time.time - 0x01B21DD213814000) // 10


def test_updates_and_inserts(session, table):
    name = table("pk int, ck int, v1 int, v2 int, PRIMARY KEY (pk, ck)")
    session.execute(f"UPDATE {name} SET v1 = 0 WHERE pk = 0 AND ck = 0")
    session.execute(f"UPDATE {name} SET v2 = null WHERE pk = 0 AND ck = 0")
    session.execute(f"INSERT INTO {name} (pk, ck, v1, v2) VALUES (1, 2, 3, 4)")
    session.execute(f"DELETE FROM {name} WHERE pk = 1 AND ck = 2")
    rows = log(session, name, "cdc$batch_seq_no cdc$operation cdc$end_of_batch pk ck v1 cdc$deleted_v1 v2 cdc$deleted_v2")
    assert rows == [
        (0, UPDATE, True, 0, 0, 0, None, None, None),
        (0, UPDATE, True, 0, 0, None, None, None, True),
        (0, INSERT, True, 1, 2, 3, None, 4, None),
        (0, DELETE, True, 1, 2, None, None, None, None),
    ]


def test_deleted_ranges(session, table):
    name = table("pk int, a int, b int, v int, PRIMARY KEY (pk, a, b)")
    for where in ["a <= 2 AND a > 0", "a < 3", "a = 0 AND b > 0 AND b < 3", "a = 5", "(a, b) >= (1, 2)"]:
        session.execute(f"DELETE FROM {name} WHERE pk = 0 AND {where}")
    session.execute(f"DELETE FROM {name} WHERE pk = 0")
    assert log(session, name, "cdc$batch_seq_no a b v cdc$operation") == [
        (0, 0, None, None, AFTER), (1, 2, None, None, TO),
        (0, None, None, None, FROM), (1, 3, None, None, BEFORE),
        (0, 0, 0, None, AFTER), (1, 0, 3, None, BEFORE),
        (0, 5, None, None, FROM), (1, 5, None, None, TO),
        (0, 1, 2, None, FROM), (1, None, None, None, TO),
        (0, None, None, None, PARTITION),
    ]


def test_deleted_ranges_descending(session, table):
    name = "k.deleted_ranges_descending"
    session.execute(f"CREATE TABLE {name} (pk int, ck text, PRIMARY KEY (pk, ck)) WITH CLUSTERING ORDER BY (ck DESC) AND cdc = true")
    session.execute(f"DELETE FROM {name} WHERE pk = 0 AND ck > 'b' AND ck <= 'd'")
    assert log(session, name, "ck cdc$operation") == [("d", FROM), ("b", BEFORE)]
    session.execute(f"DROP TABLE {name}")


def test_time_is_the_write_time(session, table):
    name = table()
    session.execute(f"UPDATE {name} SET v = 0 WHERE pk = 0 AND ck = 0")
    written = session.execute(f"SELECT writetime(v) AS w FROM {name}").one().w
    [(time,)] = log(session, name, "cdc$time")
    assert time_us(time) == written
    # A time that is far from the clock is not that of the record, so that readers find it, but the record has it as its write time.
    session.execute(f"UPDATE {name} USING TIMESTAMP {T} SET v = 1 WHERE pk = 0 AND ck = 0")
    rows = session.execute(f'SELECT "cdc$time" AS time, writetime("cdc$operation") AS written FROM {name}_scylla_cdc_log').all()
    assert rows[1].written == T and time_us(rows[1].time) > written


def test_batches(session, table):
    name = table()
    session.execute(f"BEGIN UNLOGGED BATCH UPDATE {name} SET v = 0 WHERE pk = 0 AND ck = 0; UPDATE {name} SET v = 0 WHERE pk = 0 AND ck = 1; APPLY BATCH")
    rows = log(session, name, "cdc$time cdc$batch_seq_no cdc$end_of_batch ck")
    assert rows[0][0] == rows[1][0]
    assert [row[1:] for row in rows] == [(0, None, 0), (1, True, 1)]
    session.execute(f"TRUNCATE {name}_scylla_cdc_log")
    session.execute(f"BEGIN UNLOGGED BATCH UPDATE {name} USING TIMESTAMP {T} SET v = 0 WHERE pk = 0 AND ck = 0; "
                    f"UPDATE {name} USING TIMESTAMP {T + 1} SET v = 0 WHERE pk = 0 AND ck = 1; APPLY BATCH")
    rows = log(session, name, "cdc$time cdc$batch_seq_no cdc$end_of_batch")
    assert rows[0][0] != rows[1][0] and [row[1:] for row in rows] == [(0, True), (0, True)]


def test_ttl(session, table):
    name = table("pk int, ck int, a int, b int, PRIMARY KEY (pk, ck)")
    session.execute(f"UPDATE {name} USING TTL 50 SET a = 0 WHERE pk = 0 AND ck = 0")
    session.execute(f"UPDATE {name} USING TTL 50 SET a = null WHERE pk = 0 AND ck = 0")
    session.execute(f"UPDATE {name} USING TTL 50 SET a = 0, b = null WHERE pk = 0 AND ck = 0")
    assert log(session, name, "cdc$batch_seq_no a cdc$deleted_a b cdc$deleted_b cdc$ttl") == [
        (0, 0, None, None, None, 50),
        (0, None, True, None, None, None),
        (0, None, None, None, True, None),
        (1, 0, None, None, None, 50),
    ]


def test_inserted_collection_with_ttl_is_divided(session, table):
    name = table("a int PRIMARY KEY, b map<int, int>")
    session.execute(f"INSERT INTO {name} (a, b) VALUES (0, {{0: 0}}) USING TTL 50")
    assert log(session, name, "cdc$batch_seq_no cdc$operation b cdc$deleted_b cdc$ttl") == [
        (0, INSERT, None, None, 50),
        (1, UPDATE, None, True, None),
        (2, UPDATE, {0: 0}, None, 50),
    ]


def test_maps(session, table):
    name = table("pk int, ck int, v map<int, text>, PRIMARY KEY (pk, ck)")
    where = "WHERE pk = 0 AND ck = 0"
    for change in ["v = v + {1: 'v1', 2: 'v2'}", "v = v - {1, 2, 3}", "v = null", "v = {}", "v = {1: 'v1', 2: 'v2'}", "v[7] = 'x'"]:
        session.execute(f"UPDATE {name} SET {change} {where}")
    session.execute(f"DELETE v[7] FROM {name} {where}")
    session.execute(f"DELETE v FROM {name} {where}")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 0, {{1: 'v1'}})")
    both = {1: "v1", 2: "v2"}
    assert log(session, name, "v cdc$deleted_v cdc$deleted_elements_v cdc$operation") == [
        (both, None, None, UPDATE),
        (None, None, {1, 2, 3}, UPDATE),
        (None, True, None, UPDATE),
        (None, True, None, UPDATE),
        (both, True, None, UPDATE),
        ({7: "x"}, None, None, UPDATE),
        (None, None, {7}, UPDATE),
        (None, True, None, UPDATE),
        ({1: "v1"}, True, None, INSERT),
    ]


def test_overwritten_map_is_one_change(session, table):
    name = table("pk int, ck int, v map<int, text>, PRIMARY KEY (pk, ck)")
    where = "WHERE pk = 0 AND ck = 0"
    session.execute(f"BEGIN UNLOGGED BATCH UPDATE {name} SET v = {{}} {where}; UPDATE {name} SET v = v + {{1: 'v1'}} {where}; APPLY BATCH")
    assert log(session, name, "v cdc$deleted_v") == [({1: "v1"}, True)]


def test_sets(session, table):
    name = table("pk int, ck int, v set<int>, PRIMARY KEY (pk, ck)")
    for change in ["v = v + {1, 2}", "v = v - {1, 2, 3}", "v = null", "v = {1, 2}"]:
        session.execute(f"UPDATE {name} SET {change} WHERE pk = 0 AND ck = 0")
    assert log(session, name, "v cdc$deleted_v cdc$deleted_elements_v") == [
        ({1, 2}, None, None), (None, None, {1, 2, 3}), (None, True, None), ({1, 2}, True, None),
    ]


def test_lists(session, table):
    name = table("pk int, ck int, v list<int>, PRIMARY KEY (pk, ck)")
    for change in ["v = v + [1, 2, 1, 3]", "v = v - [1]", "v = null", "v = [1, 2]"]:
        session.execute(f"UPDATE {name} SET {change} WHERE pk = 0 AND ck = 0")
    added, removed, deleted, overwritten = log(session, name, "v cdc$deleted_v cdc$deleted_elements_v")
    elements = list(added[0].items())
    assert [value for _, value in elements] == [1, 2, 1, 3] and added[1:] == (None, None)
    assert removed == (None, None, {elements[0][0], elements[2][0]})
    assert deleted == (None, True, None)
    assert list(overwritten[0].values()) == [1, 2] and overwritten[1] is True


def test_user_types(session, table):
    session.execute("CREATE TYPE IF NOT EXISTS k.ut (a int, b int, c int)")
    name = table("pk int, ck int, v ut, PRIMARY KEY (pk, ck)")
    for change in ["v.a = 0, v.b = 1", "v.a = null, v.b = null", "v.a = 42, v.c = null", "v = null", "v = {a: 1, b: 2}"]:
        session.execute(f"UPDATE {name} SET {change} WHERE pk = 0 AND ck = 0")
    assert [(tuple(row[0]), *row[1:]) for row in log(session, name, "v cdc$deleted_v cdc$deleted_elements_v")] == [
        ((0, 1, None), None, None),
        ((None, None, None), None, {0, 1}),
        ((42, None, None), None, {2}),
        ((None, None, None), True, None),
        ((1, 2, None), True, None),
    ]


def test_static_columns(session, table):
    name = table("pk int, ck int, s int static, v int, PRIMARY KEY (pk, ck)")
    session.execute(f"INSERT INTO {name} (pk, ck, s, v) VALUES (0, 1, 2, 3)")
    session.execute(f"UPDATE {name} SET s = 4 WHERE pk = 0")
    assert log(session, name, "cdc$batch_seq_no cdc$operation ck s v") == [
        (0, UPDATE, None, 2, None), (1, INSERT, 1, None, 3), (0, UPDATE, None, 4, None),
    ]


@pytest.mark.parametrize("preimage, earlier", [("true", None), ("'full'", 0)])
def test_preimages(session, table, preimage, earlier):
    name = table("pk int, ck int, v1 int, v2 map<int, int>, PRIMARY KEY (pk, ck)", f"{{'enabled': true, 'preimage': {preimage}}}")
    for change in ["v1 = 0", "v2 = v2 + {1: 1, 2: 2}", "v2 = v2 + {2: 3, 3: 4}"]:
        session.execute(f"UPDATE {name} SET {change} WHERE pk = 0 AND ck = 0")
    assert log(session, name, "cdc$batch_seq_no cdc$operation v1 v2 cdc$deleted_v2") == [
        (0, UPDATE, 0, None, None),
        (0, PRE, earlier, None, True), (1, UPDATE, None, {1: 1, 2: 2}, None),
        (0, PRE, earlier, {1: 1, 2: 2}, None), (1, UPDATE, None, {2: 3, 3: 4}, None),
    ]


def test_repeated_writes_keep_their_preimages(session, table):
    name = table(cdc="{'enabled': true, 'preimage': true}")
    now_us = int(time.time() * 1e6)
    texts = [
        f"INSERT INTO {name} (pk, ck, v) VALUES (1, 1, 10) USING TIMESTAMP {now_us}",
        f"UPDATE {name} USING TIMESTAMP {now_us + 1} SET v = 11 WHERE pk = 1 AND ck = 1",
        f"DELETE FROM {name} USING TIMESTAMP {now_us + 2} WHERE pk = 1 AND ck = 1",
        f"INSERT INTO {name} (pk, ck, v) VALUES (1, 1, 12) USING TIMESTAMP {now_us + 3}",
        f"DELETE FROM {name} USING TIMESTAMP {now_us + 4} WHERE pk = 1",
    ]
    for text in texts:
        session.execute(text)
    columns = "cdc$time cdc$batch_seq_no cdc$operation v"
    once = log(session, name, columns)
    for text in texts:
        session.execute(text)
    assert log(session, name, columns) == once
    # A write that is older than the rows and was never made is recorded.
    session.execute(f"UPDATE {name} USING TIMESTAMP {now_us - 1} SET v = 9 WHERE pk = 1 AND ck = 1")
    assert len(log(session, name, columns)) == len(once) + 1


def test_preimages_of_deletions(session, table):
    name = table(cdc="{'enabled': true, 'preimage': true}")
    for ck in range(3):
        session.execute(f"UPDATE {name} SET v = 0 WHERE pk = 0 AND ck = {ck}")
    session.execute(f"UPDATE {name} SET v = 1 WHERE pk = 0 AND ck = 0")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 0, 2)")
    session.execute(f"DELETE FROM {name} WHERE pk = 0 AND ck = 0")
    session.execute(f"DELETE FROM {name} WHERE pk = 0 AND ck >= 1 AND ck < 2")
    session.execute(f"DELETE FROM {name} WHERE pk = 0")
    assert log(session, name, "cdc$batch_seq_no cdc$operation ck v") == [
        (0, UPDATE, 0, 0), (0, UPDATE, 1, 0), (0, UPDATE, 2, 0),
        (0, PRE, 0, 0), (1, UPDATE, 0, 1),
        (0, PRE, 0, 1), (1, INSERT, 0, 2),
        (0, PRE, 0, 2), (1, DELETE, 0, None),
        (0, FROM, 1, None), (1, BEFORE, 2, None),
        (0, PARTITION, None, None),
    ]


def test_postimages(session, table):
    name = table("pk int, ck int, v1 int, v2 int, PRIMARY KEY (pk, ck)", "{'enabled': true, 'preimage': 'full', 'postimage': true}")
    session.execute(f"UPDATE {name} SET v1 = 0 WHERE pk = 0 AND ck = 0")
    session.execute(f"INSERT INTO {name} (pk, ck, v2) VALUES (0, 0, 0)")
    session.execute(f"DELETE FROM {name} WHERE pk = 0 AND ck = 0")
    session.execute(f"DELETE FROM {name} WHERE pk = 0")
    assert log(session, name, "cdc$batch_seq_no cdc$operation ck v1 v2") == [
        (0, UPDATE, 0, 0, None), (1, POST, 0, 0, None),
        (0, PRE, 0, 0, None), (1, INSERT, 0, None, 0), (2, POST, 0, 0, 0),
        (0, PRE, 0, 0, 0), (1, DELETE, 0, None, None),
        (0, PARTITION, None, None, None),
    ]


def test_postimages_of_maps(session, table):
    name = table("pk int, ck int, v map<int, int>, PRIMARY KEY (pk, ck)", "{'enabled': true, 'preimage': true, 'postimage': true}")
    for change in ["v = {1: 1, 2: 2}", "v = v + {3: 3}, v = v - {2}", "v = {4: 4}"]:
        session.execute(f"UPDATE {name} SET {change} WHERE pk = 0 AND ck = 0")
    rows = log(session, name, "cdc$operation v cdc$deleted_elements_v cdc$deleted_v")
    assert [(row[0], dict(row[1] or {}), *row[2:]) for row in rows] == [
        (UPDATE, {1: 1, 2: 2}, None, True), (POST, {1: 1, 2: 2}, None, None),
        (PRE, {1: 1, 2: 2}, None, None), (UPDATE, {3: 3}, {2}, None), (POST, {1: 1, 3: 3}, None, None),
        (PRE, {1: 1, 3: 3}, None, None), (UPDATE, {4: 4}, None, True), (POST, {4: 4}, None, None),
    ]


def test_delta_of_keys(session, table):
    name = table(cdc="{'enabled': true, 'delta': 'keys', 'postimage': true}")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 1, 2)")
    assert log(session, name, "cdc$operation pk ck v") == [(INSERT, 0, 1, None), (POST, 0, 1, 2)]


def test_only_applied_conditional_writes(session, table):
    name = table()
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 0, 1) IF NOT EXISTS")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 0, 2) IF NOT EXISTS")
    session.execute(f"UPDATE {name} SET v = 3 WHERE pk = 0 AND ck = 0 IF v = 7")
    session.execute(f"UPDATE {name} SET v = 3 WHERE pk = 0 AND ck = 0 IF v = 1")
    assert log(session, name, "cdc$operation v") == [(INSERT, 1), (UPDATE, 3)]


def test_batch_over_partitions_and_tables(session, table):
    name = table()
    session.execute("CREATE TABLE IF NOT EXISTS k.uncaptured (pk int PRIMARY KEY, v int)")
    batch = BatchStatement(BatchType.LOGGED)
    for pk in range(5):
        batch.add(f"INSERT INTO {name} (pk, ck, v) VALUES (%s, 0, 0)", (pk,))
        batch.add("INSERT INTO k.uncaptured (pk, v) VALUES (%s, 0)", (pk,))
    session.execute(batch)
    assert sorted(log(session, name, "pk cdc$operation")) == [(pk, INSERT) for pk in range(5)]


def test_log_expires_after_its_ttl(session, table):
    name = table(cdc="{'enabled': true, 'ttl': 1000}")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 0, 0)")
    [row] = session.execute(f'SELECT ttl("cdc$operation") AS ttl FROM {name}_scylla_cdc_log')
    assert 0 < row.ttl <= 1000


def test_columns_follow_the_table(session, table):
    name = table()
    session.execute(f"ALTER TABLE {name} ADD (m map<text, int>, w text)")
    session.execute(f"INSERT INTO {name} (pk, ck, w, m) VALUES (0, 0, 'w', {{'a': 1}})")
    session.execute(f"ALTER TABLE {name} RENAME ck TO renamed")
    session.execute(f"ALTER TABLE {name} DROP v")
    session.execute(f"INSERT INTO {name} (pk, renamed, w) VALUES (0, 1, 'x')")
    assert log(session, name, "pk renamed w m cdc$deleted_m") == [(0, 0, "w", {"a": 1}, True), (0, 1, "x", None, None)]
    columns = session.execute("SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'k' AND table_name = %s",
                              (name.removeprefix("k.") + "_scylla_cdc_log",))
    assert "v" not in {row.column_name for row in columns}


def test_log_is_dropped_with_its_table(session, table):
    name = table()
    with pytest.raises(InvalidRequest, match="Cannot drop CDC log table"):
        session.execute(f"DROP TABLE {name}_scylla_cdc_log")
    session.execute(f"ALTER TABLE {name} WITH cdc = {{'enabled': false}}")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 0, 0)")
    assert log(session, name, "pk") == []
    session.execute(f"ALTER TABLE {name} WITH cdc = {{'enabled': true}}")
    session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, 0, 0)")
    assert log(session, name, "pk") == [(0,)]
    session.execute(f"DROP TABLE {name}")
    with pytest.raises(InvalidRequest, match="does not exist"):
        log(session, name, "pk")


@pytest.mark.parametrize("statement", [
    "INSERT INTO {log} (\"cdc$stream_id\", \"cdc$time\", \"cdc$batch_seq_no\") VALUES (0x00, now(), 0)",
    "DELETE FROM {log} WHERE \"cdc$stream_id\" = 0x00",
    "ALTER TABLE {log} ADD x int",
    "CREATE INDEX ON {log} (v)",
])
def test_logs_are_not_changed_by_clients(session, table, statement):
    name = table()
    with pytest.raises(InvalidRequest, match="CDC log table"):
        session.execute(statement.format(log=f"{name}_scylla_cdc_log"))


def test_refused_options(session):
    create = "CREATE TABLE k.refused (p int PRIMARY KEY, c {}) WITH cdc = {}"
    for cdc, message in [("{'enabled': 'maybe'}", "Invalid value for CDC option \"enabled\": maybe"), ("{'ttl': '-1'}", "ttl must be >= 0"),
                         ("{'enabled': true, 'color': 'blue'}", "Invalid CDC option: color")]:
        with pytest.raises(ConfigurationException, match=message):
            session.execute(create.format("int", cdc))
    with pytest.raises(InvalidRequest, match="Cannot create CDC log for table k.refused. Counter support not implemented"):
        session.execute(create.format("counter", "true"))
    session.execute("CREATE TABLE k.taken_scylla_cdc_log (p int PRIMARY KEY)")
    with pytest.raises(InvalidRequest, match="because a table of name k.taken_scylla_cdc_log already exists"):
        session.execute("CREATE TABLE k.taken (p int PRIMARY KEY) WITH cdc = true")


def test_description(session, table):
    name = table(cdc="{'enabled': true, 'preimage': 'full', 'ttl': 60}")
    text = session.execute(f"DESCRIBE TABLE {name}").one().create_statement
    assert "AND cdc = {'delta': 'full', 'enabled': 'true', 'postimage': 'false', 'preimage': 'full', 'ttl': '60'}" in text
    described = [row.name for row in session.execute("DESCRIBE KEYSPACE k")]
    assert name.removeprefix("k.") in described and name.removeprefix("k.") + "_scylla_cdc_log" not in described
    extensions = session.execute("SELECT extensions FROM system_schema.tables WHERE keyspace_name = 'k' AND table_name = %s", (name.removeprefix("k."),)).one().extensions
    assert b"ttl" in extensions["cdc"]


def test_streams_are_listed(session, table):
    name = table()
    for pk in range(20):
        session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES ({pk}, 0, 0)")
    used = {stream for (stream,) in log(session, name, "cdc$stream_id")}
    own = name.removeprefix("k.")
    [generation] = session.execute("SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name = 'k' AND table_name = %s", (own,))
    listed = session.execute("SELECT stream_id FROM system.cdc_streams WHERE keyspace_name = 'k' AND table_name = %s AND timestamp = %s AND stream_state = 0",
                             (own, generation.timestamp))
    assert used <= {row.stream_id for row in listed}
    [time] = session.execute("SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'")
    described = session.execute("SELECT streams FROM system_distributed.cdc_streams_descriptions_v2 WHERE time = %s", (time.time,))
    assert used <= {stream for row in described for stream in row.streams}


def test_read_as_readers_do(session, table):
    name = table()
    for ck in range(10):
        session.execute(f"INSERT INTO {name} (pk, ck, v) VALUES (0, {ck}, {ck})")
    [stream] = {stream for (stream,) in log(session, name, "cdc$stream_id")}
    prepared = session.prepare(f'SELECT * FROM {name}_scylla_cdc_log WHERE "cdc$stream_id" IN ? AND "cdc$time" >= minTimeuuid(?) AND "cdc$time" < minTimeuuid(?) BYPASS CACHE')
    rows = list(session.execute(prepared, ([stream], 0, 4102444800000)))
    assert [row.ck for row in rows] == list(range(10))
    times = [row.cdc_time if hasattr(row, "cdc_time") else row[1] for row in rows]
    assert all(isinstance(time, uuid.UUID) for time in times) and len(set(times)) == 10


def test_changes_survive_a_kill(session, tmp_path):
    node = helenus.Node(tmp_path / "killed")
    try:
        first = node.start().connect()
        first.execute(KEYSPACE)
        first.execute("CREATE TABLE k.t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': true, 'preimage': true}")
        for pk in range(50):
            first.execute(f"INSERT INTO k.t (pk, v) VALUES ({pk}, 1)")
        before = log(first, "k.t", "cdc$stream_id cdc$time pk v")
        node.kill()
        again = node.start().connect()
        assert log(again, "k.t", "cdc$stream_id cdc$time pk v") == before
        again.execute("UPDATE k.t SET v = 2 WHERE pk = 0")
        assert [row for row in log(again, "k.t", "cdc$operation pk v") if row[1] == 0] == [(INSERT, 0, 1), (PRE, 0, 1), (UPDATE, 0, 2)]
    finally:
        node.close()
