"""Snapshots with three nodes: the table is put back by another node than the one that has truncated it, and all nodes see it."""

import pytest
from cassandra.policies import WhiteListRoundRobinPolicy

from tool import done

pytestmark = pytest.mark.process

ROWS = 500


def test_a_table_that_one_node_truncates_is_put_back_by_another(cluster):
    nodes = cluster.nodes
    sessions = [node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host])) for node in nodes]
    first, _, third = sessions
    first.execute("CREATE KEYSPACE undo WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    first.execute("CREATE TABLE undo.t (k int PRIMARY KEY, v int)")
    first.execute("CREATE INDEX ON undo.t (v)")
    insert = first.prepare("INSERT INTO undo.t (k, v) VALUES (?, ?)")
    count = lambda session, where="": session.execute(f"SELECT count(*) FROM undo.t {where}").one()[0]
    for _ in range(3):
        for future in [first.execute_async(insert, (k, k % 5)) for k in range(ROWS)]:
            future.result()
        first.execute("TRUNCATE undo.t")
        assert [count(session) for session in sessions] == [0, 0, 0]
        for node in nodes:
            done(node, "compact")
        done(nodes[1], "restore", "-kt", "undo.t")
        assert [count(session) for session in sessions] == [ROWS] * 3
        assert [count(session, "WHERE v = 3") for session in sessions] == [ROWS // 5] * 3
        # Each sees what another writes to the table that came back.
        third.execute("INSERT INTO undo.t (k, v) VALUES (-1, 7)")
        assert [count(session, "WHERE v = 7") for session in sessions] == [1] * 3
        third.execute("DELETE FROM undo.t WHERE k = -1")
    assert "replaced-" in done(nodes[2], "listsnapshots")
    assert "[all snapshots]" in done(nodes[2], "clearsnapshot", "--all")
    for node in nodes:
        assert "There are no snapshots" in done(node, "listsnapshots")
