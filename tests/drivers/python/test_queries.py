"""Values, paging, lightweight transactions, batches, timestamps, tracing, warnings."""

import random
import re
import socket
import struct
import time

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.murmur3 import murmur3
from cassandra.query import (BatchStatement, BatchType, SimpleStatement, TraceUnavailable, UNSET_VALUE, dict_factory)


@pytest.fixture
def rows(ks):
    """Makes 250 rows in 5 partitions."""
    ks.execute("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
    insert = ks.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    for future in [ks.execute_async(insert, (k, c, f"{k}.{c}")) for k in range(5) for c in range(50)]:
        future.result()
    return ks


@pytest.mark.parametrize("fetch_size", [1, 2, 7, 49, 50, 51, 250, 251, 5000])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_paging(target, rows, fetch_size, version):
    s = target.connect(rows.keyspace, protocol_version=version)
    plain = SimpleStatement("SELECT * FROM t", fetch_size=fetch_size)
    got = [(r.k, r.c, r.v) for r in s.execute(plain)]
    assert len(got) == 250 and len(set(got)) == 250
    for k in range(5):
        part = [r[1] for r in got if r[0] == k]
        assert part == sorted(part)
    select = s.prepare("SELECT c FROM t WHERE k = ? AND c >= ? ORDER BY c DESC")
    select.fetch_size = fetch_size
    assert [r.c for r in s.execute(select, (3, 10))] == list(range(49, 9, -1))
    s.cluster.shutdown()


def test_paging_state_by_hand(rows):
    statement = SimpleStatement("SELECT * FROM t", fetch_size=30)
    state, seen, pages = None, [], 0
    while True:
        result = rows.execute(statement, paging_state=state)
        seen += [(r.k, r.c) for r in result.current_rows]
        pages += 1
        state = result.paging_state
        if state is None:
            break
    assert len(seen) == len(set(seen)) == 250 and 9 <= pages <= 10


def first_page(session, cql):
    return session.execute(SimpleStatement(cql, fetch_size=3)).paging_state


class Pages:
    """A connection spoken to by hand: the driver closes one of which a request was refused as this is."""

    def __init__(self, target, keyspace):
        self.keyspace = keyspace
        self.raw = socket.create_connection((target.host, target.port), timeout=20)
        self.answers = self.raw.makefile("rb")
        assert self.ask(1, struct.pack(">H", 1) + b"\0\x0bCQL_VERSION\0\x053.0.0")[0] == 2

    def ask(self, opcode, body):
        self.raw.sendall(struct.pack(">BBhBi", 4, 0, 1, opcode, len(body)) + body)
        _, _, _, opcode, length = struct.unpack(">BBhBi", self.answers.read(9))
        return opcode, self.answers.read(length)

    def refuses(self, cql, state):
        """Returns true if the paging state is refused as not belonging to the statement. No other error may occur."""
        cql = re.sub(r"FROM (\w+)(?= |$)", rf"FROM {self.keyspace}.\1", cql).encode()
        parameters = struct.pack(">HBii", 1, 0x0C, 3, len(state)) + state
        opcode, body = self.ask(7, struct.pack(">i", len(cql)) + cql + parameters)
        assert opcode == 8 or body[:4] == struct.pack(">i", 0x000A) and b"Invalid value for the paging state" in body, body
        return opcode == 0


@pytest.fixture
def pages(target, rows):
    by_hand = Pages(target, rows.keyspace)
    yield by_hand
    by_hand.raw.close()


def test_random_bytes_are_no_paging_state(rows, pages):
    dice = random.Random(17)
    state = first_page(rows, "SELECT * FROM t")
    for wrong in (b"x", b"\xff" * 30, *(dice.randbytes(n) for n in (1, 4, 22, 100, 5000)), state[:-1], state[:5]):
        assert pages.refuses("SELECT * FROM t", wrong)


def test_forged_paging_states_are_protocol_errors(target, rows, pages):
    """The state of another statement, and bytes that somebody made up who knows how states are made."""
    if not target.owned:
        pytest.skip("the states are Helenus's")
    rows.execute("CREATE TABLE same (k int, c int, v text, PRIMARY KEY (k, c))")
    rows.execute("CREATE TABLE other (a text, b int, c text, d blob, PRIMARY KEY ((a, b), c, d))")
    for n in range(5):
        rows.execute("INSERT INTO same (k, c) VALUES (%s, 1)", (n,))
        rows.execute("INSERT INTO other (a, b, c, d) VALUES ('a', 1, %s, 0x01)", (str(n),))
    rows.execute("CREATE INDEX ON other (d)")
    statements = ["SELECT * FROM t", "SELECT * FROM t WHERE k = 1", "SELECT * FROM t WHERE k IN (2, 3) AND c > 1", "SELECT * FROM same",
                  "SELECT * FROM other WHERE a = 'a' AND b = 1", "SELECT * FROM other", "SELECT * FROM system_schema.tables"]
    states = {cql: first_page(rows, cql) for cql in statements}
    assert all(states.values())
    for cql in statements:
        for name, state in states.items():
            is_same_table = cql.split()[3] == name.split()[3]
            if not is_same_table:
                assert pages.refuses(cql, state), (cql, name)
    assert pages.refuses(statements[1], states[statements[2]]), "of another partition"
    dice = random.Random(5)
    for cql in [*statements, "SELECT * FROM other WHERE d = 0x01", "SELECT DISTINCT k FROM t", "SELECT * FROM t WHERE k = 1 AND c = 3",
                "SELECT k, count(*) FROM t GROUP BY k", "SELECT * FROM t WHERE token(k) > 5000000000000000000"]:
        table = cql.split("FROM ")[1].split()[0]
        good = states.get(cql) or states[f"SELECT * FROM {table}"]
        for _ in range(60):
            body = bytearray(good[:-4])
            for _ in range(dice.randint(1, 6)):
                body[dice.randrange(len(body))] = dice.randrange(256)
            body = bytes(body[:dice.randint(18, len(body))] if dice.random() < 0.3 else body) + dice.randbytes(dice.choice((0, 0, 3, 70_000)))
            token = murmur3(body) % 2**64
            forged = body + struct.pack(">I", (token ^ token >> 32) % 2**32)
            pages.refuses(cql, forged)


def test_paging_with_limit_distinct_in_and_filtering(rows):
    def read(cql, size):
        return [tuple(r) for r in rows.execute(SimpleStatement(cql, fetch_size=size))]

    for cql in ("SELECT k, c FROM t LIMIT 77", "SELECT DISTINCT k FROM t", "SELECT k, c FROM t PER PARTITION LIMIT 3",
                "SELECT k, c FROM t WHERE k IN (4, 0, 2)", "SELECT k, c FROM t WHERE c > 40 ALLOW FILTERING",
                "SELECT k, c FROM t WHERE k IN (1, 3) AND c IN (5, 2, 9)", "SELECT count(*) FROM t",
                "SELECT k, max(c) FROM t GROUP BY k", "SELECT k, c FROM t WHERE token(k) > 0 LIMIT 60"):
        whole = read(cql, 5000)
        assert whole, cql
        for size in (1, 2, 3, 10, 100):
            assert read(cql, size) == whole, (cql, size)


def test_unset_and_null(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
    insert = ks.prepare("INSERT INTO t (k, a, b) VALUES (?, ?, ?)")
    ks.execute(insert, (1, 10, 20))
    ks.execute(insert, (1, UNSET_VALUE, None))
    assert ks.execute("SELECT a, b FROM t").one() == (10, None)
    ks.execute(insert, {"k": 2, "b": 5})
    assert ks.execute("SELECT a, b FROM t WHERE k = 2").one() == (None, 5)
    with pytest.raises(Exception) as e:
        ks.execute(ks.prepare("SELECT * FROM t WHERE k = ?"), (UNSET_VALUE,))
    assert "UNSET" in str(e.value) or "unset" in str(e.value)


def test_named_values(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
    insert = ks.prepare("INSERT INTO t (k, a, b) VALUES (:key, :x, :y)")
    ks.execute(insert, {"key": 1, "x": 2, "y": 3})
    assert [c.name for c in insert.column_metadata] == ["key", "x", "y"]
    assert ks.execute(ks.prepare("SELECT a, b FROM t WHERE k = :key"), {"key": 1}).one() == (2, 3)
    select = ks.prepare("SELECT a FROM t WHERE k IN ? LIMIT ?")
    assert [c.name for c in select.column_metadata] == ["in(k)", "[limit]"]
    assert ks.execute(select, ([1, 2], 10)).all() == [(2,)]


def test_prepared_routing_key(ks):
    ks.execute("CREATE TABLE t (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))")
    statement = ks.prepare("INSERT INTO t (v, c, b, a) VALUES (?, ?, ?, ?)")
    assert statement.routing_key_indexes == [3, 2]
    assert ks.prepare("SELECT * FROM t WHERE a = ? AND b = 'x'").routing_key_indexes is None


def test_lwt(ks):
    ks.execute("CREATE TABLE t (k int, c int, v int, s text static, PRIMARY KEY (k, c))")
    assert ks.execute("INSERT INTO t (k, c, v) VALUES (1, 1, 1) IF NOT EXISTS").was_applied
    again = ks.execute("INSERT INTO t (k, c, v) VALUES (1, 1, 2) IF NOT EXISTS")
    assert not again.was_applied
    assert again.one() == (False, 1, 1, None, 1)  # [applied], k, c, s, v
    refused = ks.execute("UPDATE t SET v = 3 WHERE k = 1 AND c = 1 IF v = 7")
    assert refused.column_names == ["[applied]", "v"] and refused.one() == (False, 1)
    assert ks.execute("UPDATE t SET v = 3 WHERE k = 1 AND c = 1 IF v = 1").was_applied
    assert ks.execute(ks.prepare("UPDATE t SET v = ? WHERE k = 1 AND c = 1 IF v IN ?"), (4, [3, 5])).was_applied
    assert not ks.execute("UPDATE t SET v = 9 WHERE k = 1 AND c = 99 IF EXISTS").was_applied
    assert not ks.execute("DELETE FROM t WHERE k = 1 AND c = 1 IF v > 4").was_applied
    assert ks.execute("DELETE FROM t WHERE k = 1 AND c = 1 IF v >= 4").was_applied
    assert ks.execute("SELECT * FROM t").all() == []
    assert ks.execute("UPDATE t SET s = 'on' WHERE k = 2 IF s = null").was_applied
    batch = BatchStatement()
    batch.add(SimpleStatement("UPDATE t SET s = 'off' WHERE k = 2 IF s = 'on'"))
    batch.add(SimpleStatement("INSERT INTO t (k, c, v) VALUES (2, 1, 1)"))
    assert ks.execute(batch).was_applied
    refused = ks.execute("BEGIN BATCH UPDATE t SET s = 'x' WHERE k = 2 IF s = 'on' "
                         "INSERT INTO t (k, c, v) VALUES (2, 2, 2) IF NOT EXISTS APPLY BATCH")
    assert not refused.one()[0]
    assert ks.execute("SELECT c, v, s FROM t WHERE k = 2").all() == [(1, 1, "off")]


def test_lwt_from_many_clients_counts_each_once(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    ks.execute("INSERT INTO t (k, v) VALUES (1, 0)")
    swap = ks.prepare("UPDATE t SET v = ? WHERE k = 1 IF v = ?")
    applied = 0
    for _ in range(20):
        current = ks.execute("SELECT v FROM t WHERE k = 1").one().v
        futures = [ks.execute_async(swap, (current + 1, current)) for _ in range(8)]
        applied += sum(f.result().was_applied for f in futures)
    assert applied == 20
    assert ks.execute("SELECT v FROM t WHERE k = 1").one().v == 20


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("kind", [BatchType.LOGGED, BatchType.UNLOGGED])
def test_batch(target, ks, kind, version):
    ks.execute("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
    ks.execute("CREATE TABLE u (k int PRIMARY KEY, v text)")
    s = target.connect(ks.keyspace, protocol_version=version)
    batch = BatchStatement(batch_type=kind)
    insert = s.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    for c in range(20):
        batch.add(insert, (c % 3, c, "p"))
    batch.add(SimpleStatement("INSERT INTO u (k, v) VALUES (%s, %s)"), (1, "simple"))
    batch.add("DELETE FROM t WHERE k = 0 AND c = 0")
    s.execute(batch)
    assert s.execute("SELECT count(*) FROM u").one()[0] == 1
    # same timestamp for all: the deletion wins over the insert
    assert s.execute("SELECT count(*) FROM t").one()[0] == 19
    s.cluster.shutdown()


def test_batch_counter(ks):
    ks.execute("CREATE TABLE n (k int PRIMARY KEY, n counter)")
    ks.execute("CREATE TABLE u (k int PRIMARY KEY, v text)")
    batch = BatchStatement(batch_type=BatchType.COUNTER)
    add = ks.prepare("UPDATE n SET n = n + ? WHERE k = ?")
    for i in range(10):
        batch.add(add, (i, i % 2))
    ks.execute(batch)
    assert sorted(ks.execute("SELECT k, n FROM n").all()) == [(0, 20), (1, 25)]
    mixed = BatchStatement(batch_type=BatchType.COUNTER)
    mixed.add(add, (1, 1))
    mixed.add("INSERT INTO u (k, v) VALUES (1, 'x')")
    with pytest.raises(InvalidRequest) as e:
        ks.execute(mixed)
    assert "ounter" in str(e.value)


def test_batch_text(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    ks.execute("BEGIN UNLOGGED BATCH USING TIMESTAMP 100 INSERT INTO t (k, v) VALUES (1, 'a'); "
               "INSERT INTO t (k, v) VALUES (2, 'b'); APPLY BATCH")
    assert sorted(tuple(r) for r in ks.execute("SELECT k, writetime(v) FROM t")) == [(1, 100), (2, 100)]


def test_client_timestamps(target, ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    s = target.connect(ks.keyspace, timestamp_generator=lambda: 4242)
    s.execute("INSERT INTO t (k, v) VALUES (1, 'x')")
    assert s.execute("SELECT writetime(v) FROM t").one()[0] == 4242
    s.execute("INSERT INTO t (k, v) VALUES (1, 'older') USING TIMESTAMP 4241")
    assert s.execute("SELECT v FROM t").one()[0] == "x"
    batch = BatchStatement()
    batch.add("INSERT INTO t (k, v) VALUES (2, 'b')")
    s.execute(batch)
    assert s.execute("SELECT writetime(v) FROM t WHERE k = 2").one()[0] == 4242
    s.cluster.shutdown()


def test_server_timestamps(target, ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    s = target.connect(ks.keyspace)
    s.use_client_timestamp = False
    before = time.time_ns() // 1000
    s.execute("INSERT INTO t (k, v) VALUES (1, 'x')")
    after = time.time_ns() // 1000
    written = s.execute("SELECT writetime(v) FROM t").one()[0]
    assert before - 1000 <= written <= after + 1000
    s.cluster.shutdown()


def test_keyspace_per_request(session, keyspace):
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    session.execute(SimpleStatement("INSERT INTO t (k) VALUES (1)", keyspace=keyspace))
    assert session.execute(SimpleStatement("SELECT k FROM t", keyspace=keyspace)).one().k == 1
    prepared = session.prepare("SELECT k FROM t WHERE k = ?", keyspace=keyspace)
    assert session.execute(prepared, (1,)).one().k == 1
    batch = BatchStatement()
    batch.add(SimpleStatement("INSERT INTO t (k) VALUES (2)", keyspace=keyspace))
    assert session.keyspace is None
    with pytest.raises(InvalidRequest):
        session.execute("SELECT k FROM t")


def test_tracing_is_accepted(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY)")
    result = ks.execute("INSERT INTO t (k) VALUES (1)", trace=True)
    assert result.response_future._query_traces
    assert result.response_future._query_traces[0].trace_id is not None
    assert ks.execute("SELECT * FROM t", trace=True).one().k == 1
    prepared = ks.prepare("SELECT * FROM t WHERE k = ?")
    trace = ks.execute(prepared, (1,), trace=True).get_query_trace()
    assert trace.request_type == "Execute CQL3 prepared query" and trace.duration is not None
    assert trace.parameters["query"] == "SELECT * FROM t WHERE k = ?" and trace.parameters["bound_var_0_k"] == "1"
    elapsed = [event.source_elapsed for event in trace.events if event.source_elapsed is not None]
    assert elapsed == sorted(elapsed)


def test_traces_can_be_deleted(ks):
    trace = ks.execute("SELECT * FROM system.local", trace=True).get_query_trace()
    row = SimpleStatement(f"SELECT duration FROM system_traces.sessions WHERE session_id = {trace.trace_id}")
    assert ks.execute(row).one().duration is not None
    ks.execute(f"DELETE duration FROM system_traces.sessions WHERE session_id = {trace.trace_id}")
    assert ks.execute(row).one().duration is None
    with pytest.raises(TraceUnavailable):
        trace.populate(max_wait=0.2, wait_for_complete=True)
    trace.populate(wait_for_complete=False)
    assert trace.duration is None and trace.events
    for table in ("events", "sessions"):
        ks.execute(f"DELETE FROM system_traces.{table} WHERE session_id = {trace.trace_id}")
        assert not ks.execute(f"SELECT * FROM system_traces.{table} WHERE session_id = {trace.trace_id}").all()


def test_warnings(rows):
    future = rows.execute_async("SELECT count(*) FROM t")
    future.result()
    assert future.warnings == ["Aggregation query used without partition key"]


def test_custom_payload_is_ignored(rows):
    assert rows.execute("SELECT * FROM t LIMIT 1", custom_payload={"a": b"b"}).one() is not None


def test_dict_rows_and_aliases(rows):
    rows.row_factory = dict_factory
    row = rows.execute("SELECT k AS a, c AS \"B\", count(*) AS n, cast(c AS text) AS t FROM t WHERE k = 0").one()
    assert row == {"a": 0, "B": 0, "n": 50, "t": "0"}
    assert list(rows.execute("SELECT v, writetime(v), token(k) FROM t WHERE k = 0 AND c = 0").one()) == [
        "v", "writetime(v)", "system.token(k)"]


def test_secondary_index(rows):
    rows.execute("CREATE INDEX ON t (v)")
    select = rows.prepare("SELECT k, c FROM t WHERE v = ?")
    from helenus import wait_until

    def answered():
        try:
            return rows.execute(select, ("3.17",)).all()
        except Exception:
            return None

    assert wait_until(answered, 30) == [(3, 17)]
    rows.execute("UPDATE t SET v = 'moved' WHERE k = 3 AND c = 17")
    assert rows.execute(select, ("3.17",)).all() == []
    assert rows.execute(select, ("moved",)).all() == [(3, 17)]
    rows.execute("DELETE FROM t WHERE k = 3")
    assert rows.execute(select, ("moved",)).all() == []


def test_truncate(rows):
    rows.execute("TRUNCATE t")
    assert rows.execute("SELECT * FROM t").all() == []
    rows.execute("INSERT INTO t (k, c, v) VALUES (1, 1, 'new')")
    assert len(rows.execute("SELECT * FROM t").all()) == 1


def test_quorum_and_serial_flags(rows):
    statement = SimpleStatement("UPDATE t SET v = 'q' WHERE k = 0 AND c = 0 IF v = '0.0'",
                                consistency_level=ConsistencyLevel.QUORUM,
                                serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL)
    assert rows.execute(statement).was_applied
