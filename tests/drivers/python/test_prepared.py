"""Prepared statements across restarts, eviction and schema changes."""

import pytest
from cassandra.protocol import PrepareMessage
from cassandra.query import BatchStatement


@pytest.mark.process
def test_prepared_again_after_restart(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE p WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE p.t (k int PRIMARY KEY, v int)")
    insert = session.prepare("INSERT INTO p.t (k, v) VALUES (?, ?)")
    select = session.prepare("SELECT v FROM p.t WHERE k = ?")
    session.execute(insert, (1, 10))
    node.restart()
    from helenus import wait_until

    def read():
        try:
            return session.execute(select, (1,)).one()
        except Exception:
            return None

    assert wait_until(read, 30, "the driver's reconnect") == (10,)
    batch = BatchStatement()
    batch.add(insert, (2, 20))
    session.execute(batch)
    assert session.execute(select, (2,)).one() == (20,)


def test_same_text_same_id(target, ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY)")
    other = target.connect(ks.keyspace)
    cql = "SELECT * FROM t WHERE k = ?"
    assert ks.prepare(cql).query_id == other.prepare(cql).query_id
    assert len(ks.prepare(cql).query_id) == 16
    other.cluster.shutdown()


@pytest.mark.parametrize("version", [4, 5])
def test_table_dropped_and_made_again(target, ks, version):
    """The server forgets statements of a dropped table; the driver prepares them again."""
    s = target.connect(ks.keyspace, protocol_version=version)
    s.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    insert = s.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    s.execute(insert, (1, 1))
    s.execute("DROP TABLE t")
    s.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    s.execute(insert, (2, 2))
    assert s.execute("SELECT * FROM t").all() == [(2, 2)]
    s.cluster.shutdown()


def test_v5_metadata_changes_with_the_table(target, ks):
    ks.execute("CREATE TABLE t (a int PRIMARY KEY, v int)")
    ks.execute("INSERT INTO t (a, v) VALUES (1, 1)")
    select = ks.prepare("SELECT * FROM t")
    first = select.result_metadata_id
    assert ks.execute(select).one()._fields == ("a", "v")
    ks.execute("ALTER TABLE t ADD b text")
    assert ks.execute(select).one() == (1, None, 1)
    assert ks.execute(select).one()._fields == ("a", "b", "v")
    assert select.result_metadata_id != first
    ks.execute("ALTER TABLE t DROP v")
    assert ks.execute(select).one() == (1, None)


def test_many_statements(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    ks.execute("INSERT INTO t (k, v) VALUES (1, 7)")
    statements = [ks.prepare(f"SELECT v AS column_{i} FROM t WHERE k = ?") for i in range(500)]
    for i in (0, 1, 250, 499):
        row = ks.execute(statements[i], (1,)).one()
        assert row._fields == (f"column_{i}",) and row == (7,)


def test_prepare_of_each_kind(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>, m map<text, int>)")
    ks.execute("CREATE TABLE c (k int PRIMARY KEY, n counter)")
    ks.execute(ks.prepare("CREATE TABLE IF NOT EXISTS made (k int PRIMARY KEY)"))
    ks.execute(ks.prepare("UPDATE t USING TTL ? AND TIMESTAMP ? SET v = ?, l = l + ?, m[?] = ? WHERE k = ?"),
               (1000, 5, 1, [1, 2], "a", 3, 1))
    ks.execute(ks.prepare("UPDATE c SET n = n + ? WHERE k = ?"), (5, 1))
    ks.execute(ks.prepare("BEGIN BATCH INSERT INTO t (k, v) VALUES (?, ?); DELETE m[?] FROM t WHERE k = ?; APPLY BATCH"),
               (2, 2, "a", 1))
    assert ks.execute(ks.prepare("SELECT l, m, v FROM t WHERE k = ?"), (1,)).one() == ([1, 2], None, 1)
    ks.execute(ks.prepare("DELETE l[?] FROM t WHERE k = ?"), (0, 1))
    assert ks.execute("SELECT l FROM t WHERE k = 1").one()[0] == [2]
    ks.execute(ks.prepare("TRUNCATE t"))
    assert ks.execute(ks.prepare("SELECT count(*) FROM t")).one()[0] == 0


@pytest.mark.parametrize("version", [3, 4, 5])
def test_pages_before_and_after_a_change_of_the_table(target, ks, version):
    """A paging state stays good when columns come and go; each page's rows are of the columns that there are by then."""
    s = target.connect(ks.keyspace, protocol_version=version)
    s.default_fetch_size = 2
    s.execute("CREATE TABLE t (k int, c int, v int, w text, PRIMARY KEY (k, c))")
    for c in range(8):
        s.execute("INSERT INTO t (k, c, v, w) VALUES (1, %s, %s, 'w')", (c, c * 10))
    results = s.execute(s.prepare("SELECT * FROM t WHERE k = ?"), (1,))
    assert [tuple(row) for row in results.current_rows] == [(1, 0, 0, "w"), (1, 1, 10, "w")]
    s.execute("ALTER TABLE t ADD a int")
    results.fetch_next_page()
    assert [tuple(row) for row in results.current_rows] == [(1, 2, None, 20, "w"), (1, 3, None, 30, "w")]
    s.execute("ALTER TABLE t DROP v")
    results.fetch_next_page()
    assert [tuple(row) for row in results.current_rows] == [(1, 4, None, "w"), (1, 5, None, "w")]
    s.execute("ALTER TABLE t WITH comment = 'c'")
    results.fetch_next_page()
    assert [tuple(row) for row in results.current_rows] == [(1, 6, None, "w"), (1, 7, None, "w")]
    s.cluster.shutdown()


@pytest.mark.parametrize("version", [4, 5])
def test_statement_that_has_become_wrong(target, ks, version):
    """A prepared statement that has become invalid fails with the same message as its text, and works again when it is valid."""
    s = target.connect(ks.keyspace, protocol_version=version)
    s.execute("CREATE TABLE t (k int PRIMARY KEY, v int, w int)")
    select, update = s.prepare("SELECT k, w FROM t WHERE k = ?"), s.prepare("UPDATE t SET w = ? WHERE k = ?")
    s.execute(update, (5, 1))
    s.execute("ALTER TABLE t DROP w")
    for statement, values in (select, (1,)), (update, (6, 1)):
        with pytest.raises(Exception) as e:
            s.execute(statement, values)
        assert "Undefined column name w in table" in str(e.value)
    s.execute("ALTER TABLE t ADD w int")
    s.execute(update, (7, 1))
    assert s.execute(select, (1,)).one() == (1, 7)
    s.cluster.shutdown()


@pytest.mark.parametrize("version", [4, 5])
def test_a_transactions_columns_are_of_its_outcome(target, ks, version):
    """The columns are sent with every answer, whatever the driver has cached, and follow changes of the table."""
    s = target.connect(ks.keyspace, protocol_version=version)
    s.execute("CREATE TABLE t (a int PRIMARY KEY, b int, c int)")
    insert = s.prepare("INSERT INTO t (a, b, c) VALUES (?, ?, ?) IF NOT EXISTS")
    before = insert.result_metadata_id
    assert s.execute(insert, (5, 5, 5)).one()._asdict() == {"applied": True}
    assert s.execute(insert, (5, 5, 5)).one()._asdict() == {"applied": False, "a": 5, "b": 5, "c": 5}
    s.execute("ALTER TABLE t ADD d int")
    assert s.execute(insert, (5, 5, 5)).one()._asdict() == {"applied": False, "a": 5, "b": 5, "c": 5, "d": None}
    assert s.execute(insert, (6, 6, 6)).one()._asdict() == {"applied": True}
    assert insert.result_metadata_id == before
    s.cluster.shutdown()


@pytest.mark.parametrize("version", [4, 5])
def test_warned_once_of_a_statement_in_no_keyspace(target, version):
    session = target.connect(protocol_version=version)
    connection = session.cluster.connection_factory(next(iter(session.cluster.metadata.all_hosts())).endpoint)
    prepare = lambda cql: connection.wait_for_response(PrepareMessage(cql)).warnings
    assert not prepare("SELECT key FROM system.local")
    (warning,) = prepare("USE system")
    assert warning.endswith("Keyspace used: null, statement keyspace: null, statement id: 6025498bfbba6f68451a43c3923289ba")
    assert not prepare("USE system_schema")
    connection.close()
    session.cluster.shutdown()
