"""Snapshots of tables in use: their content, reading, restoring and clearing. They survive kills."""

import os
import pathlib
import re
import threading

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.concurrent import execute_concurrent
from cassandra.query import SimpleStatement

import helenus
from indexed_table import KEYSPACE, counts, create
from tool import done, nodetool, refused

pytestmark = pytest.mark.process

ROWS = 2000
WRITERS = 4


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "data").start()
    yield node
    node.close()


def fill(session):
    session.execute(KEYSPACE.format("s"))
    insert = create(session)
    session.execute("CREATE TABLE s.counts (k int PRIMARY KEY, n counter)")
    helenus.execute_all(session, insert, [(k, k % 10, f"first {k}") for k in range(ROWS)])
    for _ in range(3):
        session.execute("UPDATE s.counts SET n = n + 2 WHERE k = 1")


WHOLE = (ROWS, ROWS // 10, ROWS)


def change_all(session):
    """Changes, deletes and adds rows."""
    update = session.prepare("UPDATE s.t SET i = 77, v = 'second' WHERE k = ?")
    delete = session.prepare("DELETE FROM s.t WHERE k = ?")
    execute_concurrent(session, [(update if k % 2 else delete, (k,)) for k in range(ROWS)], concurrency=64)
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-1, 3, 'new')")
    session.execute("UPDATE s.counts SET n = n + 100 WHERE k = 1")


CHANGED = (ROWS // 2 + 1, 1, ROWS // 2 + 1)


def test_snapshot_survives_changes_compactions_and_kill(node):
    session = node.connect()
    fill(session)
    said = done(node, "snapshot", "-t", "before", "s")
    assert said == ("Requested creating snapshot(s) for [s] with snapshot name [before] and options {skipFlush=false}\n"
                    "Snapshot directory: before\n")
    change_all(session)
    done(node, "flush")
    done(node, "compact")
    node.kill()
    node.start()
    session = node.connect()
    assert counts(session) == CHANGED
    assert counts(session, "AS OF SNAPSHOT before") == WHOLE
    assert counts(session, "as of snapshot 'before'") == WHOLE
    past = "SELECT * FROM s.t AS OF SNAPSHOT before WHERE k = %s"
    assert session.execute(past, (4,)).one() == (4, 4, "first 4")
    assert session.execute(past, (-1,)).one() is None
    assert session.execute("SELECT n FROM s.counts AS OF SNAPSHOT before").one().n == 6
    paged = session.execute(SimpleStatement("SELECT k FROM s.t AS OF SNAPSHOT before", fetch_size=100))
    assert sorted(row.k for row in paged) == list(range(ROWS))

    said = done(node, "restore", "-t", "before", "-kt", "s.t")
    replaced = re.fullmatch(r"Restored s\.t from snapshot before\nThe replaced rows are in snapshot (replaced-\d+-t)\n", said)[1]
    assert counts(session) == WHOLE
    assert session.execute("SELECT v FROM s.t WHERE k = 4").one().v == "first 4"
    assert session.execute("SELECT n FROM s.counts").one().n == 106
    assert counts(session, f"AS OF SNAPSHOT '{replaced}'") == CHANGED
    # Writes to the restored table do not change the snapshot.
    session.execute("UPDATE s.t SET i = 3 WHERE k = 4")
    node.kill()
    node.start()
    session = node.connect()
    assert counts(session) == (ROWS, ROWS // 10 + 1, ROWS)
    assert counts(session, "AS OF SNAPSHOT before") == WHOLE
    assert done(node, "restore", "-t", "before") .startswith("Restored s.counts, s.t from snapshot before\n")
    assert counts(session) == WHOLE
    assert session.execute("SELECT n FROM s.counts").one().n == 6


def test_snapshot_under_load_is_consistent(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.log (writer int, part int, n int, PRIMARY KEY ((writer, part)))")
    parts = 6
    insert = "INSERT INTO s.log (writer, part, n) VALUES ({}, {}, {});"
    begun, acknowledged, ends = [0] * WRITERS, [0] * WRITERS, threading.Event()

    def write(writer):
        # Each batch gives the same number to partitions of several tablets.
        while not ends.is_set():
            begun[writer] += 1
            lines = "".join(insert.format(writer, part, begun[writer]) for part in range(parts))
            session.execute(f"BEGIN BATCH {lines} APPLY BATCH")
            acknowledged[writer] = begun[writer]

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        helenus.wait_until(lambda: min(acknowledged) > 20, what="some batches")
        bounds = []
        for number in range(8):
            least = list(acknowledged)
            done(node, "snapshot", "-t", f"under-load-{number}", "-kt", "s.log")
            bounds.append((least, list(begun)))
    finally:
        ends.set()
        for writer in writers:
            writer.join()
    node.kill()
    node.start()
    session = node.connect()
    for number, (least, most) in enumerate(bounds):
        rows = session.execute(f"SELECT writer, n FROM s.log AS OF SNAPSHOT 'under-load-{number}'").all()
        assert len(rows) == WRITERS * parts
        for writer in range(WRITERS):
            found = {row.n for row in rows if row.writer == writer}
            assert len(found) == 1, "a batch is there in part"
            assert least[writer] <= found.pop() <= most[writer]


def test_deletions_and_collections_come_back(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.p (p int, c int, s text static, l list<int>, m map<text, int>, PRIMARY KEY (p, c))")
    for p in range(20):
        for c in range(10):
            session.execute("INSERT INTO s.p (p, c, s, l, m) VALUES (%s, %s, 'static', [1, 2], {'a': 1})", (p, c))
    session.execute("DELETE FROM s.p WHERE p = 3")
    session.execute("DELETE FROM s.p WHERE p = 4 AND c > 2 AND c < 8")
    session.execute("UPDATE s.p SET l = l + [3], m['b'] = 2 WHERE p = 5 AND c = 5")
    session.execute("DELETE m['a'] FROM s.p WHERE p = 6 AND c = 6")
    rows = lambda as_of="": sorted(map(repr, session.execute(f"SELECT p, c, s, l, m FROM s.p {as_of}")))
    then = rows()
    assert len(then) == 185
    done(node, "snapshot", "-t", "x", "s")
    for p in range(20):
        session.execute("DELETE FROM s.p WHERE p = %s", (p,))
        session.execute("INSERT INTO s.p (p, c) VALUES (%s, 99)", (p,))
    assert rows("AS OF SNAPSHOT x") == then
    done(node, "restore", "-t", "x")
    assert rows() == then
    # An older write stays deleted.
    session.execute("INSERT INTO s.p (p, c) VALUES (3, 1) USING TIMESTAMP 1")
    assert rows() == then
    node.kill()
    node.start()
    session = node.connect()
    assert rows() == then and rows("AS OF SNAPSHOT x") == then


def test_kills_while_snapshots_are_taken(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.n (k int PRIMARY KEY, n int)")
    for round in range(5):
        session = node.connect()
        acknowledged = [0]
        taken, ends = [], threading.Event()

        def write():
            n = 0
            while not ends.is_set():
                n += 1
                try:
                    session.execute("UPDATE s.n SET n = %s WHERE k = %s", (n, round))
                except Exception:
                    return
                acknowledged[0] = n

        def take():
            while not ends.is_set():
                tag = f"kill-{round}-{len(taken)}"
                least = acknowledged[0]
                if nodetool(node, "snapshot", "-t", tag, "s").returncode == 0:
                    taken.append((tag, least))

        threads = [threading.Thread(target=write), threading.Thread(target=take)]
        for thread in threads:
            thread.start()
        helenus.wait_until(lambda: len(taken) > round, what="snapshots")
        node.kill()
        ends.set()
        for thread in threads:
            thread.join()
        node.start()
        session = node.connect()
        for tag, least in taken:
            row = session.execute(f"SELECT n FROM s.n AS OF SNAPSHOT '{tag}' WHERE k = {round}").one()
            assert (row.n if row else 0) >= least
    # Snapshots whose command got no answer can be read too.
    for name, in session.execute("SELECT name FROM system_views.snapshots").all():
        session.execute(f"SELECT count(*) FROM s.n AS OF SNAPSHOT '{name}'")


def test_what_has_expired_since_and_dropped_tables_are_read(node):
    session = node.connect()
    fill(session)
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-5, 1, 'short') USING TTL 8")
    done(node, "snapshot", "-t", "early", "s")
    helenus.wait_until(lambda: session.execute("SELECT v FROM s.t WHERE k = -5").one() is None, what="the row has expired")
    assert session.execute("SELECT v FROM s.t AS OF SNAPSHOT early WHERE k = -5").one().v == "short"
    session.execute("DROP KEYSPACE s")
    assert session.execute("SELECT count(*) FROM s.t AS OF SNAPSHOT early").one()[0] == ROWS + 1
    assert done(node, "restore", "-t", "early") == "Restored s.counts, s.t from snapshot early\n"
    helenus.wait_until(lambda: counts(session) == WHOLE, what="the index and the view")


def test_reading_history_needs_current_permissions(tmp_path):
    node = helenus.Node(tmp_path / "data", args=helenus.SECURED + ["--set", "dynamic_data_masking_enabled=true"]).start()
    try:
        session = helenus.log_in(node, "cassandra", "cassandra")
        session.execute(KEYSPACE.format("s"))
        session.execute("CREATE TABLE s.t (k int PRIMARY KEY, card text MASKED WITH DEFAULT)")
        session.execute("INSERT INTO s.t (k, card) VALUES (1, '1234')")
        session.execute("CREATE ROLE reader WITH PASSWORD = 'reader' AND LOGIN = true")
        done(node, "snapshot", "-t", "x", "s")
        reader = helenus.log_in(node, "reader", "reader")
        past = "SELECT card FROM s.t AS OF SNAPSHOT x"
        with pytest.raises(Unauthorized, match="has no SELECT permission on <table s.t>"):
            reader.execute(past)
        session.execute("GRANT SELECT ON s.t TO reader")
        assert reader.execute(past).one().card == "****"
        assert session.execute(past).one().card == "1234"
    finally:
        node.close()


def test_names_are_checked_and_snapshots_go(node):
    session = node.connect()
    fill(session)
    session.execute(KEYSPACE.format("other"))
    session.execute("CREATE TABLE other.t (k int PRIMARY KEY)")
    assert "Keyspace nope does not exist" in refused(node, "snapshot", "-t", "x", "nope")
    assert "Unknown keyspace/cf pair (s.nope)" in refused(node, "snapshot", "-t", "x", "-kt", "s.nope")
    assert "Snapshot name cannot contain /" in refused(node, "snapshot", "-t", "a/b")
    assert "ttl for snapshot must be at least 60 seconds" in refused(node, "snapshot", "-t", "x", "--ttl", "5s")
    done(node, "snapshot", "-t", "x", "--ttl", "2h")
    assert "Snapshot x already exists." in refused(node, "snapshot", "-t", "x", "s")
    assert re.search(r"\[all keyspaces\] with snapshot name \[\d{13}\]", done(node, "snapshot"))
    done(node, "snapshot", "-t", "one", "--table", "t", "other")
    listed = done(node, "listsnapshots")
    assert re.search(r"^one +other +t +", listed, re.M) and re.search(r"^x +s +t_view +", listed, re.M)
    assert "is of keyspaces other, s: name the one to restore" in refused(node, "restore", "-t", "x")
    assert "is of keyspace other, not of s" in refused(node, "restore", "-t", "one", "s")
    with pytest.raises(InvalidRequest, match="There is no snapshot nope of keyspace s"):
        session.execute("SELECT * FROM s.t AS OF SNAPSHOT nope")
    with pytest.raises(InvalidRequest, match="There is no snapshot nope of keyspace s"):
        session.prepare("SELECT * FROM s.t AS OF SNAPSHOT nope")
    prepared = session.prepare("SELECT i FROM s.t AS OF SNAPSHOT x WHERE k = ?")
    session.execute("UPDATE s.t SET i = -1 WHERE k = 4")
    assert session.execute(prepared, (4,)).one().i == 4
    # Later changes of the schema do not matter.
    session.execute("ALTER TABLE s.t ADD extra int")
    assert session.execute(prepared, (4,)).one().i == 4
    assert session.execute("SELECT * FROM s.t AS OF SNAPSHOT x WHERE k = 4").one() == (4, 4, "first 4")
    done(node, "clearsnapshot", "-t", "x", "--", "s")
    assert not re.search(r"^x +s ", done(node, "listsnapshots"), re.M)
    with pytest.raises(InvalidRequest, match="There is no snapshot x of keyspace s"):
        session.execute("SELECT * FROM s.t AS OF SNAPSHOT x")
    with pytest.raises(InvalidRequest, match="There is no snapshot x of keyspace s"):
        session.execute(prepared, (4,))
    assert session.execute("SELECT count(*) FROM other.t AS OF SNAPSHOT x").one()[0] == 0
    done(node, "clearsnapshot", "--all")
    assert "There are no snapshots" in done(node, "listsnapshots")


def test_files_of_a_cleared_snapshot_are_deleted(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO s.t (k, v) VALUES (?, ?)")

    def fill_again():
        helenus.execute_all(session, insert, [(k, os.urandom(8000)) for k in range(1000)])
        done(node, "flush")
        done(node, "compact")

    files = lambda: {file.name for file in pathlib.Path(node.store).glob("tablets/*/compacted/*")}
    fill_again()
    done(node, "snapshot", "-t", "kept", "s")
    then = files()
    size = lambda: session.execute("SELECT size_on_disk, true_size FROM system_views.snapshots").one()
    # All of its files are those of the table, still.
    assert size().size_on_disk > 7_000_000 and size().true_size == 0
    fill_again()
    helenus.wait_until(lambda: size().true_size == size().size_on_disk, what="the table has other files")
    assert size().size_on_disk > 7_000_000 and then & files()
    done(node, "clearsnapshot", "-t", "kept")
    fill_again()
    helenus.wait_until(lambda: not then & files(), 60, "the files of the snapshot are deleted", 0.5)
