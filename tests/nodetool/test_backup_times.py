"""Backups of a store that keeps its history: each time between two of them can be restored into another store, after any branch, drop or
restore. `verify` knows the times that cannot be restored.
"""

import json
import time

import pytest

import helenus
from indexed_table import KEYSPACE, counts, create
from tool import at, done, run, said

pytestmark = pytest.mark.process

ROWS = 1000
PAST = ["--set", "point_in_time_window=1h", "--set", "auto_snapshot=false"]


@pytest.fixture
def nodes(tmp_path):
    """Yields the node that is backed up, and one for restored backups."""
    made = [helenus.Node(tmp_path / name, args=args) for name, args in (("first", PAST), ("other", ["--set", "auto_snapshot=false"]))]
    try:
        yield [node.start() for node in made]
    finally:
        for node in made:
            node.close()


def now():
    """Returns a time in ms that is later than all earlier writes and earlier than all later ones."""
    time.sleep(0.005)
    found = int(time.time() * 1000)
    time.sleep(0.005)
    return found


def shown(session):
    """Returns the rows of all tables, by table name."""
    tables = session.execute("SELECT keyspace_name, table_name FROM system_schema.tables").all()
    names = sorted(f"{row[0]}.{row[1]}" for row in tables if not row[0].startswith("system"))
    return {name: sorted(json.dumps(row[0]) for row in session.execute(f"SELECT JSON * FROM {name}")) for name in names}


def keyspaces(session):
    found = session.execute("SELECT keyspace_name FROM system_schema.keyspaces").all()
    return [row[0] for row in found if not row[0].startswith("system")]


def cleared(session):
    for name in keyspaces(session):
        session.execute(f"DROP KEYSPACE {name}")


def back_up(node, place, name):
    said("backup", *at(node), "--to", place, "--name", name)


def verified(place):
    return said("backup", "verify", "--from", place)


def test_change_of_a_killed_node(nodes, tmp_path):
    """A node that is killed between a change of the schema and the note of it writes the change down at the next start."""
    node, other = nodes
    place, session = tmp_path / "backups", node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.known (k int PRIMARY KEY)")
    back_up(node, place, "first")
    session.execute("CREATE TABLE s.lost (k int PRIMARY KEY)")
    node.close_clients()
    node.kill()
    changes = sorted((node.store / "history" / "schema").glob("*.change"))
    changes[-1].unlink()
    node.start()
    session = node.connect()
    session.execute("CREATE TABLE s.later (k int PRIMARY KEY)")
    session.execute("INSERT INTO s.lost (k) VALUES (1)")
    at_ms, expected = now(), shown(session)
    session.execute("TRUNCATE s.lost")
    back_up(node, place, "second")
    assert "Can be restored to any time from 2" in verified(place)
    said("restore", *at(other), "--from", place, "--as-of", at_ms)
    assert shown(other.connect()) == expected


def test_each_time_is_restored_after_branches_and_restores(nodes, tmp_path):
    node, other = nodes
    place, times = tmp_path / "backups", []
    session, there = node.connect(), other.connect()
    note = lambda: times.append((now(), shown(session)))
    # A backup before there is a table is one that times follow.
    back_up(node, place, "empty")
    session.execute(KEYSPACE.format("s"))
    session.execute(KEYSPACE.format("other"))
    session.execute("CREATE TABLE other.u (k int PRIMARY KEY, v text)")
    session.execute("INSERT INTO other.u (k, v) VALUES (1, 'one')")
    insert = create(session)
    note()
    helenus.execute_all(session, insert, [(k, k % 10, "x" * 200) for k in range(ROWS)])
    note()
    back_up(node, place, "first")
    # A branch that is gone before the next backup, and one that is still there.
    session.execute("CREATE KEYSPACE gone AS COPY OF s")
    session.execute("INSERT INTO gone.t (k, i, v) VALUES (-1, 3, 'in the branch')")
    note()
    session.execute("DROP KEYSPACE gone")
    session.execute("CREATE KEYSPACE there AS COPY OF s")
    session.execute("DELETE FROM there.t WHERE k IN (1, 2, 3)")
    note()
    session.execute("UPDATE s.t SET v = 'later' WHERE k = 5")
    note()
    # Restored rows are copied in the background.
    done(node, "restore", "--as-of", str(times[1][0]), "-kt", "s.t")
    note()
    back_up(node, place, "second")
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-2, 3, 'last')")
    note()
    back_up(node, place, "third")
    report = verified(place)
    assert "Can be restored: empty, first, second, third\n" in report
    assert report.count("Can be restored to any time from 2") == 1, report
    for at_ms, expected in times:
        assert shown_as_of(session, at_ms, expected) == expected, at_ms
        cleared(there)
        said("restore", *at(other), "--from", place, "--as-of", at_ms)
        assert shown(there) == expected, at_ms
    assert counts(there) == (ROWS + 1, ROWS // 10 + 1, ROWS + 1)
    # A keyspace alone.
    cleared(there)
    said("restore", *at(other), "--from", place, "--as-of", times[2][0], "--keyspace", "other")
    assert shown(there) == {name: rows for name, rows in times[2][1].items() if name.startswith("other.")}


def test_branch_that_only_a_dropped_table_keeps_is_restored(nodes, tmp_path):
    """The rows of a branch of a time lie partly in the log. DROP leaves a snapshot, and nothing else keeps the branch."""
    place, other = tmp_path / "backups", nodes[1]
    node = helenus.Node(tmp_path / "dropping", args=["--set", "point_in_time_window=1h"])
    try:
        session, there = node.start().connect(), other.connect()
        session.execute(KEYSPACE.format("s"))
        session.execute("CREATE TABLE s.t (k int PRIMARY KEY, v text)")
        back_up(node, place, "first")
        session.execute("INSERT INTO s.t (k, v) VALUES (1, 'in the log')")
        branched_ms = now()
        session.execute("DELETE FROM s.t WHERE k = 1")
        session.execute(f"CREATE KEYSPACE b AS COPY OF s AS OF {branched_ms}")
        at_ms, expected = now(), shown(session)
        assert expected["b.t"] and not expected["s.t"]
        session.execute("DROP KEYSPACE b")
        back_up(node, place, "second")
        cleared(there)
        said("restore", *at(other), "--from", place, "--as-of", at_ms)
        assert shown(there) == expected
    finally:
        node.close()


def shown_as_of(session, at_ms, names):
    """Returns the rows of tables as of a time."""
    return {name: sorted(json.dumps(row[0]) for row in session.execute(f"SELECT JSON * FROM {name} AS OF {at_ms}")) for name in names}


def test_verify_names_the_times_that_can_not_be_restored(nodes, tmp_path):
    node, other = nodes
    place = tmp_path / "backups"
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY)")
    back_up(node, place, "first")
    session.execute("INSERT INTO s.t (k) VALUES (1)")
    session.execute("CREATE KEYSPACE b AS COPY OF s")
    between = now()
    back_up(node, place, "second")
    session.execute("INSERT INTO s.t (k) VALUES (2)")
    back_up(node, place, "third")
    assert verified(place).count("Can be restored to any time from") == 1
    logs = [file for file in place.glob("history/newest/second/*/*")]
    manifests = json.loads((place / "backups" / "second.json").read_text())
    for lost in (logs[0], place / branch_manifest(manifests)):
        moved = lost.rename(tmp_path / "moved")
        ended = run("backup", "verify", "--from", place)
        assert ended.returncode == 1
        assert ended.stdout.count("Can't be restored to all times from") == 2, ended.stdout
        assert run("restore", *at(other), "--from", place, "--as-of", between).returncode == 1
        moved.rename(lost)
    assert verified(place).count("Can be restored to any time from") == 1


def branch_manifest(document):
    """Returns the path of a manifest that only a branch of a backup needs."""
    own = {(tablet["id"], tablet["manifest"]) for tablet in document["tablets"]}
    paths = [file["path"] for file in document["files"] if file["path"].endswith(".manifest")]
    of = lambda path: (int(path.split("/")[1]), int(path.split("/")[3].split(".")[0]))
    return next(path for path in paths if of(path) not in own)
