"""Snapshots with three nodes: a snapshot that one node has taken, or that a drop has left, is read, restored and cleared by the others."""

import pytest
from cassandra import InvalidRequest
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

import helenus
from tool import done

pytestmark = pytest.mark.process

ROWS = 500


def sessions_of(nodes):
    return [node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host])) for node in nodes]


def make(session, keyspace):
    """Makes a table with an index and a view. Returns a prepared INSERT."""
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, v int)")
    session.execute(f"CREATE INDEX ON {keyspace}.t (v)")
    session.execute(f"CREATE MATERIALIZED VIEW {keyspace}.by_v AS SELECT * FROM {keyspace}.t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)")
    return session.prepare(f"INSERT INTO {keyspace}.t (k, v) VALUES (?, ?)")


def fill(session, insert, v=lambda k: k % 5):
    helenus.execute_all(session, insert, [(k, v(k)) for k in range(ROWS)])


def counts(session, keyspace, as_of=""):
    """Returns the numbers of rows of the table, by its index, and of its view."""
    count = lambda table, where="": session.execute(f"SELECT count(*) FROM {keyspace}.{table} {as_of} {where}").one()[0]
    return count("t"), count("t", "WHERE v = 3"), count("by_v")


WHOLE = (ROWS, ROWS // 5, ROWS)


def test_a_table_that_one_node_truncates_is_put_back_by_another(cluster):
    nodes = cluster.nodes
    sessions = sessions_of(nodes)
    first, _, third = sessions
    insert = make(first, "undo")
    for _ in range(3):
        fill(first, insert)
        first.execute("TRUNCATE undo.t")
        assert [counts(session, "undo")[0] for session in sessions] == [0, 0, 0]
        for node in nodes:
            done(node, "compact")
        done(nodes[1], "restore", "-kt", "undo.t")
        assert [counts(session, "undo") for session in sessions] == [WHOLE] * 3
        # Each sees what another writes to the table that came back.
        third.execute("INSERT INTO undo.t (k, v) VALUES (-1, 3)")
        assert [counts(session, "undo")[1] for session in sessions] == [ROWS // 5 + 1] * 3
        third.execute("DELETE FROM undo.t WHERE k = -1")
    assert "replaced-" in done(nodes[2], "listsnapshots")
    assert "[all snapshots]" in done(nodes[2], "clearsnapshot", "--all")
    for node in nodes:
        assert "There are no snapshots" in done(node, "listsnapshots")


def test_snapshot_of_one_node_is_usable_by_all(cluster):
    nodes = cluster.nodes
    sessions = sessions_of(nodes)
    first, second, third = sessions
    insert = make(first, "moments")
    fill(first, insert)
    said = done(nodes[0], "snapshot", "-t", "then", "moments")
    assert said.startswith("Requested creating snapshot(s) for [moments] with snapshot name [then]")
    fill(second, insert, v=lambda k: 3)
    first.execute("DELETE FROM moments.t WHERE k = 7")
    for node in nodes:
        done(node, "compact")
    assert [counts(session, "moments") for session in sessions] == [(ROWS - 1,) * 3] * 3
    assert [counts(session, "moments", "AS OF SNAPSHOT then") for session in sessions] == [WHOLE] * 3
    prepared = third.prepare("SELECT v FROM moments.t AS OF SNAPSHOT then WHERE k = ?")
    assert [third.execute(prepared, (k,)).one().v for k in (7, 8)] == [2, 3]
    paged = second.execute(SimpleStatement("SELECT k FROM moments.t AS OF SNAPSHOT then", fetch_size=30))
    assert sorted(row.k for row in paged) == list(range(ROWS))
    done(nodes[1], "restore", "-t", "then")
    assert [counts(session, "moments") for session in sessions] == [WHOLE] * 3
    # A branch shares the files of its moment, and goes its own way, on all nodes.
    third.execute("CREATE KEYSPACE branch AS COPY OF moments AS OF SNAPSHOT then")
    assert [counts(session, "branch") for session in sessions] == [WHOLE] * 3
    second.execute("DELETE FROM branch.t WHERE k = 3")
    first.execute("UPDATE branch.t SET v = 77 WHERE k = 8")
    for node in nodes:
        done(node, "compact")
    assert [counts(session, "branch") for session in sessions] == [(ROWS - 1, ROWS // 5 - 2, ROWS - 1)] * 3
    assert [counts(session, "moments") for session in sessions] == [WHOLE] * 3
    first.execute("DROP KEYSPACE branch")
    # A snapshot without a flush is not a consistent cut of all nodes. It has only the rows of each table that are in files.
    done(nodes[2], "snapshot", "-t", "flushed", "--skip-flush", "moments")
    assert second.execute("SELECT count(*) FROM moments.t AS OF SNAPSHOT flushed").one()[0] <= ROWS
    done(nodes[2], "clearsnapshot", "-t", "then")
    for session in sessions:
        with pytest.raises(InvalidRequest, match="There is no snapshot then of keyspace moments"):
            session.execute("SELECT * FROM moments.t AS OF SNAPSHOT then")
    done(nodes[0], "clearsnapshot", "--all")
