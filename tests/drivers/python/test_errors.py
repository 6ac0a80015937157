"""Error classes as the driver maps them, with the words that tools match on."""

import pytest
from cassandra import AlreadyExists, ConsistencyLevel, InvalidRequest, ProtocolVersion
from cassandra.protocol import ConfigurationException, SyntaxException, ServerError
from cassandra.query import SimpleStatement


@pytest.fixture
def table(ks):
    ks.execute("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
    return ks


def test_already_exists(table):
    with pytest.raises(AlreadyExists) as e:
        table.execute(f"CREATE KEYSPACE {table.keyspace} WITH replication = "
                      "{'class': 'SimpleStrategy', 'replication_factor': 1}")
    assert e.value.keyspace == table.keyspace and not e.value.table
    with pytest.raises(AlreadyExists) as e:
        table.execute("CREATE TABLE t (k int PRIMARY KEY)")
    assert (e.value.keyspace, e.value.table) == (table.keyspace, "t")
    assert table.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)").all() == []


@pytest.mark.parametrize("cql", ["SELEC * FROM t", "SELECT * FROM", "INSERT INTO t (k, c) VALUES (1", "",
                                 "SELECT * FROM t WHERE k = 'unclosed"])
def test_syntax_error(table, cql):
    with pytest.raises(SyntaxException) as e:
        table.execute(cql)
    assert "line " in str(e.value)


@pytest.mark.parametrize("cql, words", [
    ("SELECT * FROM nope", "table nope does not exist"),
    ("SELECT nope FROM t", "Undefined column name nope in table "),
    ("SELECT * FROM nope.t", "keyspace nope does not exist"),
    ("INSERT INTO t (k, v) VALUES (1, 'x')", "Some clustering keys are missing: c"),
    ("INSERT INTO t (c, v) VALUES (1, 'x')", "Some partition key parts are missing: k"),
    ("INSERT INTO t (k, c) VALUES (null, 1)", "Invalid null value in condition for column k"),
    ("INSERT INTO t (k, c) VALUES ('a', 1)", "Invalid STRING constant (a) for \"k\" of type int"),
    ("SELECT * FROM t WHERE v = 'x'", "Cannot execute this query as it might involve data filtering"),
    ("SELECT * FROM t WHERE c = 1 ORDER BY c ALLOW FILTERING", "ORDER BY is only supported"),
    ("UPDATE t SET c = 2 WHERE k = 1 AND c = 1", "PRIMARY KEY part c found in SET part"),
    ("SELECT * FROM t WHERE k = 1 LIMIT 0", "LIMIT must be strictly positive"),
    ("DROP TABLE nope", "doesn't exist"),
])
def test_invalid_request(table, cql, words):
    with pytest.raises((InvalidRequest, ConfigurationException)) as e:
        table.execute(cql)
    assert words in str(e.value)


def test_bad_replication(session):
    with pytest.raises(ConfigurationException):
        session.execute("CREATE KEYSPACE badly WITH replication = {'class': 'NoSuchStrategy'}")


def test_no_keyspace(session):
    with pytest.raises(InvalidRequest) as e:
        session.execute("SELECT * FROM t")
    assert "No keyspace has been specified" in str(e.value)


def test_wrong_count_of_values(table):
    with pytest.raises(InvalidRequest) as e:
        table.execute(SimpleStatement("INSERT INTO t (k, c, v) VALUES (1, 2, 3, 4)"))
    assert "Unmatched column names/values" in str(e.value)


def test_serial_consistency_for_plain_write_is_refused(table):
    statement = SimpleStatement("INSERT INTO t (k, c) VALUES (1, 1)", consistency_level=ConsistencyLevel.SERIAL)
    with pytest.raises(InvalidRequest) as e:
        table.execute(statement)
    assert "SERIAL is not supported as conditional update commit consistency" in str(e.value) \
        or "You must use conditional updates for serializable writes" in str(e.value)


@pytest.mark.parametrize("level", ["ANY", "ONE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE"])
def test_write_consistencies(table, level):
    statement = SimpleStatement("INSERT INTO t (k, c) VALUES (7, 7)",
                                consistency_level=getattr(ConsistencyLevel, level))
    table.execute(statement)


@pytest.mark.parametrize("level", ["ONE", "TWO", "QUORUM", "ALL", "LOCAL_QUORUM", "LOCAL_ONE", "SERIAL", "LOCAL_SERIAL"])
def test_read_consistencies(table, level):
    table.execute("INSERT INTO t (k, c) VALUES (7, 7)")
    statement = SimpleStatement("SELECT * FROM t WHERE k = 7", consistency_level=getattr(ConsistencyLevel, level))
    if level == "TWO":
        with pytest.raises(Exception) as e:
            table.execute(statement)
        assert "Cannot achieve consistency level TWO" in str(e.value)
    else:
        assert len(table.execute(statement).all()) == 1
