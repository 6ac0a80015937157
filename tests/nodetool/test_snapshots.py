"""Snapshots that TRUNCATE and DROP leave: their content, restoring and clearing."""

import os
import re

import pytest

import helenus
from indexed_table import KEYSPACE, counts, create
from tool import done, refused, set_live

pytestmark = pytest.mark.process

ROWS = 4000
VALUE = "value"


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "data").start()
    yield node
    node.close()


def listed(node):
    """Returns the tag, keyspace and table of each snapshot."""
    lines = done(node, "listsnapshots").splitlines()
    return [tuple(line.split()[:3]) for line in lines if re.match(r"(truncated|dropped|replaced)-", line)]


def fill(session):
    insert = create(session)
    helenus.execute_all(session, insert, [(k, k % 10, VALUE + os.urandom(200).hex()) for k in range(ROWS)])


WHOLE = (ROWS, ROWS // 10, ROWS)


def test_truncated_table_is_restored_after_kill(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session)
    done(node, "flush")
    session.execute("TRUNCATE s.t")
    # The compaction may sweep these rows only. Those of the snapshot stay.
    session.execute("INSERT INTO s.t (k, i, v) VALUES (1, 3, 'new')")
    done(node, "compact")
    node.kill()
    node.start()
    session = node.connect()
    assert counts(session) == (1, 1, 1)
    assert [table for _, _, table in listed(node)] == ["t", "t_view"]
    said = done(node, "restore", "-kt", "s.t")
    replaced = re.search(r"Restored s\.t from snapshot truncated-\d+-t\nThe replaced rows are in snapshot (replaced-\d+-t)\n", said)[1]
    assert counts(session) == WHOLE
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-1, 3, 'later')")
    done(node, "compact")
    node.kill()
    node.start()
    session = node.connect()
    assert counts(session) == (ROWS + 1, ROWS // 10 + 1, ROWS + 1)
    # The restore is undone.
    done(node, "restore", "-t", replaced)
    assert counts(session) == (1, 1, 1)
    assert session.execute("SELECT v FROM s.t").one().v == "new"


def test_a_dropped_keyspace_comes_back_with_types_and_functions(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session)
    session.execute("CREATE TYPE s.point (x int, y int)")
    session.execute("CREATE TABLE s.points (k int PRIMARY KEY, p frozen<point>)")
    session.execute("INSERT INTO s.points (k, p) VALUES (1, {x: 3, y: 4})")
    session.execute("CREATE FUNCTION s.twice (n int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 2 * n;'")
    session.execute("DROP KEYSPACE s")
    done(node, "compact")
    assert done(node, "restore", "s").startswith("Restored s.points, s.t from snapshot dropped-")
    assert listed(node) == []
    session = node.connect("s")
    assert counts(session) == WHOLE
    assert session.execute("SELECT twice(k) AS k, p.x AS x FROM points").one() == (2, 3)


def test_a_prepared_statement_and_a_driver_see_the_table_again(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session)
    select = session.prepare("SELECT v FROM s.t WHERE k = ?")
    session.execute("DROP MATERIALIZED VIEW s.t_view")
    session.execute("DROP TABLE s.t")
    done(node, "restore", "-kt", "s.t")
    assert session.execute(select, (5,)).one().v.startswith(VALUE)
    helenus.wait_until(lambda: "t" in session.cluster.metadata.keyspaces["s"].tables, what="the event")


def test_rows_of_a_cleared_snapshot_are_swept(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session)
    session.execute("TRUNCATE s.t")
    done(node, "flush")
    done(node, "compact")
    size = lambda: node.metrics()["helenus_store_data_bytes"]
    kept = size()
    sizes = session.execute("SELECT size_on_disk FROM system_views.snapshots").all()
    assert sum(row.size_on_disk for row in sizes) > kept / 2
    tag, *_ = listed(node)[0]
    assert "Specify snapshot name or --all" in refused(node, "clearsnapshot")
    assert done(node, "clearsnapshot", "-t", tag, "elsewhere") == f"Requested clearing snapshot(s) for [elsewhere] with snapshot name [{tag}]\n"
    assert len(listed(node)) == 2
    assert done(node, "clearsnapshot", "--all", "--older-than", "1h").endswith("with [all snapshots] older than 3600 seconds.\n")
    assert len(listed(node)) == 2
    assert done(node, "clearsnapshot", "-t", tag, "--", "s") == f"Requested clearing snapshot(s) for [s] with snapshot name [{tag}]\n"
    assert done(node, "listsnapshots") == "Snapshot Details: \nThere are no snapshots\n"
    # The sweep needs no writes and no compaction command.
    helenus.wait_until(lambda: size() < kept / 4, 60, "the sweep")
    assert f"there is no snapshot {tag}" in refused(node, "restore", "-t", tag)
    assert "there is no snapshot of s.t" in refused(node, "restore", "-kt", "s.t")
    assert "name a snapshot by -t" in refused(node, "restore")


def test_snapshots_expire_and_can_be_switched_off(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session)

    def put(name, value):
        assert set_live(node, name, value) == (200, "set\n")

    setting = lambda name: session.execute("SELECT value FROM system_views.settings WHERE name = %s", (name,)).one().value
    assert setting("auto_snapshot") == "true"
    put("auto_snapshot", "false")
    assert setting("auto_snapshot") == "false"
    session.execute("TRUNCATE s.t")
    assert listed(node) == []
    put("auto_snapshot", "true")
    session.execute("ALTER TABLE s.t WITH allow_auto_snapshot = false")
    session.execute("TRUNCATE s.t")
    assert listed(node) == []
    session.execute("ALTER TABLE s.t WITH allow_auto_snapshot = true")
    put("auto_snapshot_ttl", "off")
    session.execute("TRUNCATE s.t")
    put("auto_snapshot_ttl", "3s")
    session.execute("TRUNCATE s.t")
    assert len(listed(node)) == 4
    assert len(done(node, "listsnapshots", "--no-ttl").splitlines()) == len(done(node, "listsnapshots").splitlines()) - 2
    helenus.wait_until(lambda: len(listed(node)) == 2, 30, "the snapshot has expired", 0.5)
