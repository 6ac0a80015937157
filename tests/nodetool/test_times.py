"""Reads as of a time, branches and restores, for any second of a window."""

import re
import threading
import time

import pytest
from cassandra import InvalidRequest
from cassandra.query import SimpleStatement

import helenus
from indexed_table import KEYSPACE, create
from tool import done, refused, two_nodes

pytestmark = pytest.mark.process

ROWS = 300


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "data", args=["--set", "point_in_time_window=1h"]).start()
    yield node
    node.close()


def now():
    """Returns a time in ms for AS OF that is later than all earlier writes and earlier than all later ones."""
    time.sleep(0.005)
    found = int(time.time() * 1000)
    time.sleep(0.005)
    return found


def begun(node):
    """Returns when times can be read."""
    helenus.wait_until(lambda: "Can be read from : 2" in done(node, "pointintime"), 20, "the first moment is kept", 0.1)


def counts(session, as_of, keyspace="s"):
    """Returns the numbers of rows of the table, by its index, and of its view."""
    count = lambda name, where="": session.execute(f"SELECT count(*) FROM {keyspace}.{name} {as_of} {where}").one()[0]
    return count("t"), count("t", "WHERE i = 3"), count("t_view")


def chunks(node):
    return sorted(node.store.glob("history/log/*/*"))


def restarted(node):
    node.kill()
    node.start()
    return node.connect()


def test_every_time_shows_what_was_there(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    insert = create(session)
    begun(node)
    moments = []
    for step in range(6):
        for k in range(step * 50, step * 50 + 50):
            session.execute(insert, (k, k % 10, f"value {k}"))
        if step == 3:
            session.execute("DELETE FROM s.t WHERE k IN (3, 13, 23)")
        if step == 4:
            session.execute("UPDATE s.t SET v = 'changed' WHERE k = 7")
        gone = 3 if step >= 3 else 0
        moments.append((now(), (step * 50 + 50 - gone, step * 5 + 5 - gone, step * 50 + 50 - gone), "changed" if step >= 4 else "value 7"))

    def look():
        for at, expected, value in moments:
            assert counts(session, f"AS OF {at}") == expected
            assert session.execute(f"SELECT v FROM s.t AS OF {at} WHERE k = 7").one().v == value

    look()
    session = restarted(node)
    look()
    # The log of before the restart is cut off, and kept.
    done(node, "flush")
    helenus.wait_until(lambda: chunks(node), 20, "the log is cut", 0.2)
    look()
    session = restarted(node)
    look()
    at, expected, _ = moments[2]
    paged = SimpleStatement(f"SELECT k FROM s.t AS OF {at}", fetch_size=7)
    assert sorted(row.k for row in session.execute(paged)) == list(range(expected[0]))
    prepared = session.prepare(f"SELECT v FROM s.t AS OF {at} WHERE k = ?")
    assert [len(session.execute(prepared, (k,)).all()) for k in (0, 149, 150)] == [1, 1, 0]
    written = time.strftime(f"%Y-%m-%d %H:%M:%S.{at % 1000:03}Z", time.gmtime(at / 1000))
    assert counts(session, f"AS OF '{written}'") == expected


def test_remote_schema_change_starts_no_upkeep(tmp_path):
    with two_nodes(tmp_path, 4, {"point_in_time_window": "1h"}) as nodes:
        begun(nodes[0])
        sessions = [node.connect() for node in nodes]
        sessions[0].execute(KEYSPACE.format("s"))
        for number in range(8):
            sessions[number % 2].execute(f"CREATE TABLE s.t{number} (k int PRIMARY KEY)")
        # A node that begins to keep history keeps a point in time within two seconds. The next one is due after 36 s.
        time.sleep(5)
        kept = int(re.search(r"Moments kept +: (\d+)", done(nodes[0], "pointintime"))[1])
        assert kept <= 2, kept


def test_metrics_show_size_and_reach_of_history(tmp_path):
    node = helenus.Node(tmp_path / "data", args=["--set", "point_in_time_window=40s"]).start()
    try:
        session = node.connect()
        session.execute(KEYSPACE.format("s"))
        insert = create(session)
        begun(node)
        for k in range(100):
            session.execute(insert, (k, k, "value"))
        session = restarted(node)
        done(node, "flush")
        helenus.wait_until(lambda: chunks(node), 20, "the log is cut", 0.2)

        def figures():
            lines = (line.split() for line in node.http("/metrics")[1].splitlines() if line.startswith("helenus_past_"))
            found = {name: float(value) for name, value in lines}
            return found if found.get("helenus_past_log_bytes") else None

        found = helenus.wait_until(figures, 30, "what the past takes", 0.2)
        assert found["helenus_past_log_bytes"] >= chunks(node)[0].stat().st_size
        assert found["helenus_past_moments"] >= 1 and 0 < found["helenus_past_reach_seconds"] < 600, found
    finally:
        node.close()


def test_times_that_many_clients_read_at_once_are_opened_once(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    insert = create(session)
    begun(node)
    moments, found = [], {}
    for n in range(24):
        session.execute(insert, (1, 3, f"value {n}"))
        moments.append(now())

    def read(client):
        # Each begins with another time.
        turned = moments[client:] + moments[:client]
        found[client] = [session.execute(f"SELECT v FROM s.t AS OF {at} WHERE k = 1").one().v for at in turned]

    clients = [threading.Thread(target=read, args=(client,)) for client in range(12)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    values = [f"value {n}" for n in range(24)]
    assert found == {client: values[client:] + values[:client] for client in range(12)}
    opened = re.search(r"helenus_past_times_opened_total (\d+)", node.http("/metrics")[1])
    assert int(opened[1]) == len(moments)


def test_history_has_former_columns_and_dropped_tables(node):
    session = node.connect()
    begun(node)
    session.execute(KEYSPACE.format("s"))
    before = now()
    session.execute("CREATE TABLE s.a (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO s.a (k, v) VALUES (1, 1)")
    with_v = now()
    session.execute("ALTER TABLE s.a ADD w int")
    session.execute("INSERT INTO s.a (k, v, w) VALUES (2, 2, 2)")
    with_w = now()
    session.execute("ALTER TABLE s.a DROP v")
    session.execute("DROP TABLE s.a")
    with pytest.raises(InvalidRequest):
        session.execute(f"SELECT * FROM s.a AS OF {now()}")
    session.execute("CREATE TABLE s.a (k text PRIMARY KEY)")
    for _ in range(2):
        assert session.execute(f"SELECT * FROM s.a AS OF {with_v}").all() == [(1, 1)]
        assert sorted(session.execute(f"SELECT k, v, w FROM s.a AS OF {with_w}").all()) == [(1, 1, None), (2, 2, 2)]
        with pytest.raises(InvalidRequest, match="a"):
            session.execute(f"SELECT * FROM s.a AS OF {before}")
        session = restarted(node)
    session.execute("DROP KEYSPACE s")
    assert session.execute(f"SELECT k FROM s.a AS OF {with_v}").all() == [(1,)]
    assert done(node, "restore", "--as-of", str(with_w), "s") == f"Restored s.a as of {with_w}\n"
    assert sorted(session.execute("SELECT k, v, w FROM s.a").all()) == [(1, 1, None), (2, 2, 2)]


def test_as_of_shows_rows_before_truncate(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    insert = create(session)
    begun(node)
    for k in range(ROWS):
        session.execute(insert, (k, k % 10, f"value {k}"))
    before = now()
    session.execute("UPDATE s.t SET v = 'later' WHERE k = 1")
    session.execute("TRUNCATE s.t")
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-1, 3, 'new')")
    whole = (ROWS, ROWS // 10, ROWS)
    assert counts(session, "") == (1, 1, 1) and counts(session, f"AS OF {before}") == whole
    session.execute(f"CREATE KEYSPACE b AS COPY OF s AS OF {before}")
    session.execute(f"CREATE TABLE s.one AS COPY OF s.t AS OF {before}")
    assert counts(session, "", "b") == whole
    assert session.execute("SELECT v FROM b.t WHERE k = 1").one().v == "value 1"
    session.execute("DELETE FROM b.t WHERE k = 3")
    said = done(node, "restore", "--as-of", str(before), "-kt", "s.t")
    assert said.startswith(f"Restored s.t as of {before}\nThe replaced rows are in snapshot replaced-"), said
    for _ in range(3):
        assert counts(session, "") == whole
        assert counts(session, "", "b") == (ROWS - 1, ROWS // 10 - 1, ROWS - 1)
        assert session.execute("SELECT count(*) FROM s.one").one()[0] == ROWS
        assert session.execute("SELECT v FROM s.t WHERE k = 1").one().v == "value 1"
        done(node, "flush")
        done(node, "compact")
        session = restarted(node)
    # The snapshot of the time is not left.
    assert "as-of" not in done(node, "listsnapshots")


def test_a_snapshot_of_a_time_is_one_as_others(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    insert = create(session)
    begun(node)
    session.execute(insert, (1, 3, "then"))
    then = now()
    session.execute(insert, (1, 3, "now"))
    done(node, "snapshot", "--as-of", str(then), "-t", "before", "s")
    assert "already exists" in refused(node, "snapshot", "--as-of", str(then), "-t", "before", "s")
    session = restarted(node)
    read = lambda: session.execute("SELECT v FROM s.t AS OF SNAPSHOT before WHERE k = 1").one().v
    assert read() == "then"
    done(node, "restore", "-t", "before", "s")
    assert session.execute("SELECT v FROM s.t WHERE k = 1").one().v == "then"


def test_counters_lists_and_batches_are_as_they_were(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.c (k int PRIMARY KEY, n counter)")
    session.execute("CREATE TABLE s.l (k int PRIMARY KEY, l list<int>, m map<int, text>)")
    begun(node)
    times = []
    for n in range(1, 6):
        session.execute("UPDATE s.c SET n = n + 1 WHERE k = 1")
        session.execute(f"BEGIN BATCH UPDATE s.l SET l = l + [{n}] WHERE k = 1; UPDATE s.l SET m[{n}] = 'x' WHERE k = 2; APPLY BATCH")
        times.append((now(), n))
    for _ in range(2):
        for at, n in times:
            assert session.execute(f"SELECT n FROM s.c AS OF {at} WHERE k = 1").one().n == n
            assert session.execute(f"SELECT l FROM s.l AS OF {at} WHERE k = 1").one().l == list(range(1, n + 1))
            assert len(session.execute(f"SELECT m FROM s.l AS OF {at} WHERE k = 2").one().m) == n
        session = restarted(node)


def test_times_that_can_not_be_read_are_refused_by_name(node, tmp_path):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.a (k int PRIMARY KEY)")
    begun(node)
    for at, why in (("'2001-01-01'", "oldest time that can be read is 2"), ("'2999-01-01'", "the time is in the future"), ("'yesterday'", "nable to parse")):
        with pytest.raises(InvalidRequest, match=why):
            session.execute(f"SELECT * FROM s.a AS OF {at}")
        with pytest.raises(InvalidRequest, match=why):
            session.execute(f"CREATE KEYSPACE b AS COPY OF s AS OF {at}")
    assert "oldest time that can be read is" in refused(node, "restore", "--as-of", "2001-01-01", "s")
    assert "or a keyspace" in refused(node, "restore", "--as-of", "2001-01-01")
    off = helenus.Node(tmp_path / "off").start()
    try:
        session = off.connect()
        session.execute(KEYSPACE.format("s"))
        session.execute("CREATE TABLE s.a (k int PRIMARY KEY)")
        with pytest.raises(InvalidRequest, match="point_in_time_window"):
            session.execute("SELECT * FROM s.a AS OF '2026-11-23'")
        assert "point_in_time_window" in done(off, "pointintime")
    finally:
        off.close()


def test_history_beyond_window_or_without_setting_is_removed(tmp_path):
    node = helenus.Node(tmp_path / "data", args=["--set", "point_in_time_window=12s"]).start()
    try:
        session = node.connect()
        session.execute(KEYSPACE.format("s"))
        insert = create(session)
        begun(node)
        first, n, read = now(), 0, []
        bases = lambda: sorted(int(file.name) for file in node.store.glob("history/bases/*"))

        def step():
            nonlocal n
            for n in range(n, n + 20):
                session.execute(insert, (n % 50, 3, f"value {n}"))
            read.append((now(), n))
            done(node, "flush")
            for at, expected in read[-4:]:
                assert session.execute(f"SELECT v FROM s.t AS OF {at} WHERE k = {expected % 50}").one().v == f"value {expected}"
            return bases()[0] > first

        helenus.wait_until(step, 60, "what is older than the window is removed", 0.5)
        with pytest.raises(InvalidRequest, match="oldest time that can be read is 2"):
            session.execute(f"SELECT * FROM s.t AS OF {first}")
        assert len(bases()) <= 5
        node.close_clients()
        node.terminate()
        node.args = []
        node.start()
        helenus.wait_until(lambda: not [file for file in node.store.glob("history/**/*") if file.is_file()], 20, "all is removed", 0.2)
    finally:
        node.close()
