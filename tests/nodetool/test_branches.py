"""Keyspaces and tables that are made as copies of others, and share their files."""

import threading

import pytest
from cassandra import AlreadyExists, InvalidRequest, Unauthorized
from cassandra.query import SimpleStatement

import helenus
from indexed_table import KEYSPACE, create
from tool import done

pytestmark = pytest.mark.process

ROWS = 1000


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "data").start()
    yield node
    node.close()


def fill(session, insert, rows=range(ROWS)):
    helenus.execute_all(session, insert, [(k, k % 10, f"value {k}") for k in rows])


def counts(session, keyspace):
    """Returns the numbers of rows of the table, by its index, and of its view."""
    count = lambda name, where="": session.execute(f"SELECT count(*) FROM {keyspace}.{name} {where}").one()[0]
    return count("t"), count("t", "WHERE i = 3"), count("t_view")


def restarted(node):
    node.kill()
    node.start()
    return node.connect()


def files(node):
    return {file.name for file in node.store.glob("tablets/*/compacted/*")}


WHOLE = (ROWS, ROWS // 10, ROWS)


def test_a_branch_and_its_origin_go_their_own_ways(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    insert = create(session)
    fill(session, insert)
    session.execute("DELETE FROM s.t WHERE k = 3")
    session.execute("CREATE KEYSPACE b AS COPY OF s")
    left = (ROWS - 1, ROWS // 10 - 1, ROWS - 1)
    assert counts(session, "b") == left
    # In the branch.
    session.execute("INSERT INTO b.t (k, i, v) VALUES (3, 3, 'again')")
    session.execute("INSERT INTO b.t (k, i, v) VALUES (-1, 3, 'new')")
    session.execute("DELETE FROM b.t WHERE k = 13")
    session.execute("UPDATE b.t SET i = 3, v = 'other' WHERE k = 5")
    # In the origin.
    session.execute("DELETE FROM s.t WHERE k IN (23, 33, 43)")
    session.execute("INSERT INTO s.t (k, i, v) VALUES (-2, 4, 'of the origin')")
    for compacts in (False, True, True):
        if compacts:
            done(node, "flush")
            done(node, "compact")
        assert counts(session, "b") == (ROWS, ROWS // 10 + 1, ROWS)
        assert counts(session, "s") == (ROWS - 3, ROWS // 10 - 4, ROWS - 3)
        value = lambda keyspace, k: getattr(session.execute(f"SELECT v FROM {keyspace}.t WHERE k = {k}").one(), "v", None)
        assert [value("b", k) for k in (3, -1, 13, 5, 23, -2, 7)] == ["again", "new", None, "other", "value 23", None, "value 7"]
        assert [value("s", k) for k in (3, -1, 13, 5, 23, -2, 7)] == [None, None, "value 13", "value 5", None, "of the origin", "value 7"]
        by_view = session.execute("SELECT k FROM b.t_view WHERE i = 3").all()
        by_index = session.execute("SELECT k FROM b.t WHERE i = 3").all()
        assert sorted(by_view) == sorted(by_index) and (5,) in by_index and (13,) not in by_index
        session = restarted(node)
    # A page ends in rows of the one and of the other.
    paged = SimpleStatement("SELECT k FROM b.t", fetch_size=7)
    assert sorted(row.k for row in session.execute(paged)) == [-1, *[k for k in range(ROWS) if k != 13]]


def test_branch_outlives_origin_and_releases_its_tablets(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session, create(session))
    done(node, "snapshot", "-t", "before", "s")
    session.execute("TRUNCATE s.t")
    session.execute("CREATE KEYSPACE b AS COPY OF s AS OF SNAPSHOT before")
    then = files(node)
    # Files of a cut that a branch uses are not released with the snapshot, or with the origin.
    done(node, "clearsnapshot", "--all")
    session.execute("DROP KEYSPACE s")
    done(node, "clearsnapshot", "--all")
    session.execute("INSERT INTO b.t (k, i, v) VALUES (-1, 3, 'new')")
    done(node, "flush")
    done(node, "compact")
    session = restarted(node)
    assert counts(session, "b") == (ROWS + 1, ROWS // 10 + 1, ROWS + 1)
    assert then & files(node)
    session.execute(KEYSPACE.format("other"))
    session.execute("CREATE TABLE other.numbers (k int PRIMARY KEY)")
    insert = session.prepare("INSERT INTO other.numbers (k) VALUES (?)")
    session.execute("DROP KEYSPACE b")
    done(node, "clearsnapshot", "--all")

    def are_dropped():
        # Writes have the tablets look for unused files.
        for k in range(50):
            session.execute(insert, (k,))
        done(node, "flush")
        done(node, "compact")
        return not then & files(node)

    helenus.wait_until(are_dropped, 60, "the files of the branch to be deleted", 0.5)


def test_a_branch_is_made_while_writes_go_on(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.pairs (k int PRIMARY KEY, v int)")
    pair = session.prepare("BEGIN BATCH INSERT INTO s.pairs (k, v) VALUES (?, 0); INSERT INTO s.pairs (k, v) VALUES (?, 1) APPLY BATCH")
    acknowledged, ends = [0], threading.Event()

    def write():
        for k in range(1, 1 << 30):
            session.execute(pair, (k, -k))
            acknowledged[0] = k
            if ends.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for at in range(3):
            helenus.wait_until(lambda: acknowledged[0] > 50 * (at + 1), what="writes")
            least = acknowledged[0]
            session.execute(f"CREATE KEYSPACE b{at} AS COPY OF s")
            keys = {row.k for row in session.execute(f"SELECT k FROM b{at}.pairs")}
            last = max(keys)
            assert last >= least
            assert keys == {*range(1, last + 1), *range(-last, 0)}, "batches are whole"
    finally:
        ends.set()
        writer.join()


def test_all_that_a_keyspace_has_comes_along(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.set_keyspace("s")
    for statement in (
        "CREATE TYPE point (x int, y int)",
        "CREATE FUNCTION twice (n int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 2 * n;'",
        "CREATE FUNCTION plus (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a + b;'",
        "CREATE AGGREGATE total (int) SFUNC plus STYPE int INITCOND 0",
        "CREATE TABLE things (p int, c int, s text static, at frozen<point>, tags set<text>, names list<text>, ages map<text, int>, PRIMARY KEY (p, c))",
        "CREATE TABLE hits (k int PRIMARY KEY, n counter)",
        "CREATE TABLE near (k int PRIMARY KEY, v vector<float, 3>)",
        "CREATE CUSTOM INDEX near_v ON near (v) USING 'StorageAttachedIndex'",
        "UPDATE hits SET n = n + 5 WHERE k = 1",
    ):
        session.execute(statement)
    for p in range(3):
        session.execute(f"INSERT INTO things (p, s) VALUES ({p}, 'static {p}')")
        for c in range(20):
            session.execute(f"INSERT INTO things (p, c, at, tags, names, ages) VALUES ({p}, {c}, {{x: {c}, y: {p}}}, {{'a', 'b'}}, ['one', 'two'], {{'a': {c}}})")
    for k in range(50):
        session.execute(f"INSERT INTO near (k, v) VALUES ({k}, [{k}, 1, 0])")
    session.execute("DELETE FROM things WHERE p = 0 AND c >= 5 AND c < 8")
    session.execute("CREATE KEYSPACE b AS COPY OF s WITH durable_writes = false")
    session = node.connect("b")
    assert session.execute("SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = 'b'").one() == (False,)
    assert session.execute("SELECT twice(c) AS c, at.x AS x, ages['a'] AS age FROM things WHERE p = 0 AND c = 9").one() == (18, 9, 9)
    assert session.execute("SELECT total(c) AS n FROM things WHERE p = 0").one().n == sum(range(20)) - 18
    # Deletions of ranges and of partitions, above what the origin has.
    session.execute("DELETE FROM things WHERE p = 0 AND c > 15")
    session.execute("DELETE FROM things WHERE p = 1")
    session.execute("INSERT INTO things (p, c, tags) VALUES (1, 4, {'new'})")
    session.execute("UPDATE things SET tags = tags + {'c'}, names = names + ['three'], ages['a'] = 100, ages['b'] = 1 WHERE p = 2 AND c = 2")
    session.execute("DELETE ages['a'] FROM things WHERE p = 2 AND c = 3")
    session.execute("UPDATE hits SET n = n + 2 WHERE k = 1")
    assert session.execute("UPDATE things SET tags = {'set'} WHERE p = 2 AND c = 5 IF ages['a'] = 5").one().applied
    assert not session.execute("INSERT INTO things (p, c) VALUES (2, 5) IF NOT EXISTS").one().applied
    assert session.execute("INSERT INTO things (p, c) VALUES (0, 6) IF NOT EXISTS").one().applied
    session.execute("DELETE FROM near WHERE k = 7")
    for _ in range(2):
        clusterings = lambda p, order="": [row.c for row in session.execute(f"SELECT c FROM things WHERE p = {p} {order}")]
        expected = [c for c in range(16) if c not in (5, 7)]
        assert clusterings(0) == expected
        assert clusterings(0, "ORDER BY c DESC") == expected[::-1]
        assert clusterings(0, "AND c > 2 AND c < 9") == [3, 4, 6, 8]
        assert clusterings(1) == [4]
        assert session.execute("SELECT s FROM things WHERE p = 1 LIMIT 1").one().s is None
        assert session.execute("SELECT count(*) FROM things").one()[0] == len(expected) + 1 + 20
        row = session.execute("SELECT tags, names, ages FROM things WHERE p = 2 AND c = 2").one()
        assert (set(row.tags), row.names, dict(row.ages)) == ({"a", "b", "c"}, ["one", "two", "three"], {"a": 100, "b": 1})
        assert session.execute("SELECT ages FROM things WHERE p = 2 AND c = 3").one().ages is None
        assert session.execute("SELECT DISTINCT p, s FROM things").all() == session.execute("SELECT p, s FROM things PER PARTITION LIMIT 1").all()
        assert session.execute("SELECT n FROM hits WHERE k = 1").one().n == 7
        assert session.execute("SELECT n FROM s.hits WHERE k = 1").one().n == 5
        nearest = session.execute("SELECT k FROM near ORDER BY v ANN OF [7, 1, 0] LIMIT 3").all()
        assert sorted(row.k for row in nearest) in ([6, 8, 5], [5, 6, 8], [6, 8, 9])
        assert session.execute("SELECT count(*) FROM s.things").one()[0] == 57
        done(node, "flush")
        done(node, "compact")
        session = restarted(node)
        session.set_keyspace("b")
    # The types are the branch's own.
    session.execute("ALTER TYPE b.point ADD z int")
    session.execute("INSERT INTO b.things (p, c, at) VALUES (9, 9, {x: 1, y: 2, z: 3})")
    text = lambda keyspace: session.execute(f"DESCRIBE KEYSPACE {keyspace}").all()[0].create_statement
    assert "COPY" not in text("b")


def test_a_table_is_copied_within_its_keyspace_and_into_others(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute(KEYSPACE.format("other"))
    session.execute("CREATE TYPE s.point (x int, y int)")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY, i int, p frozen<point>)")
    session.execute("CREATE INDEX ON s.t (i)")
    for k in range(100):
        session.execute(f"INSERT INTO s.t (k, i, p) VALUES ({k}, {k % 10}, {{x: {k}, y: 0}})")
    session.execute("CREATE TABLE s.copy AS COPY OF s.t")
    session.execute("CREATE TABLE other.t AS COPY OF s.t")
    session.execute("CREATE TABLE IF NOT EXISTS other.t AS COPY OF s.nothing")
    session.execute("UPDATE s.copy SET i = 11 WHERE k = 3")
    session.execute("DROP TABLE s.t")
    for table, count in (("s.copy", 9), ("other.t", 10)):
        assert session.execute(f"SELECT count(*) FROM {table} WHERE i = 3").one()[0] == count
        assert session.execute(f"SELECT p.x AS x FROM {table} WHERE k = 42").one().x == 42
    helenus.wait_until(lambda: "copy" in session.cluster.metadata.keyspaces["s"].tables, what="the event")
    indexes = {name: list(session.cluster.metadata.keyspaces[name].indexes) for name in ("s", "other")}
    assert indexes == {"s": ["copy_i_idx"], "other": ["t_i_idx"]}
    # The snapshot of a DROP can be copied too.
    tag = session.execute("SELECT name FROM system_views.snapshots").one().name
    session.execute(f"CREATE TABLE s.t AS COPY OF s.t AS OF SNAPSHOT '{tag}'")
    done(node, "clearsnapshot", "--all")
    done(node, "compact")
    assert session.execute("SELECT count(*) FROM s.t").one()[0] == 100


def test_a_branch_of_a_branch_and_snapshots_of_branches(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session, create(session))
    session.execute("CREATE KEYSPACE b AS COPY OF s")
    session.execute("DELETE FROM b.t WHERE k = 3")
    session.execute("CREATE KEYSPACE c AS COPY OF b")
    session.execute("INSERT INTO b.t (k, i, v) VALUES (3, 3, 'later')")
    session.execute("DELETE FROM c.t WHERE k = 13")
    done(node, "snapshot", "-t", "kept", "c")
    session.execute("DELETE FROM c.t WHERE k = 23")
    session.execute("DROP KEYSPACE s")
    session.execute("TRUNCATE b.t")
    assert counts(session, "b") == (0, 0, 0)
    session.execute("INSERT INTO b.t (k, i, v) VALUES (3, 3, 'in the new one')")
    for _ in range(2):
        of = lambda taken: (ROWS - taken, ROWS // 10 - taken, ROWS - taken)
        assert counts(session, "c") == of(3)
        assert session.execute("SELECT count(*) FROM c.t AS OF SNAPSHOT kept").one()[0] == ROWS - 2
        assert counts(session, "b") == (1, 1, 1)
        done(node, "flush")
        done(node, "compact")
        session = restarted(node)
    # The snapshot of a TRUNCATE is restored, with the rows of its origin.
    done(node, "restore", "-kt", "b.t")
    assert counts(session, "b") == WHOLE
    assert session.execute("SELECT v FROM b.t WHERE k = 3").one().v == "later"
    done(node, "restore", "-t", "kept")
    assert counts(session, "c") == (ROWS - 2, ROWS // 10 - 2, ROWS - 2)
    session.execute("CREATE KEYSPACE d AS COPY OF c")
    session.execute("DROP KEYSPACE c")
    done(node, "clearsnapshot", "--all")
    session = restarted(node)
    assert counts(session, "d") == (ROWS - 2, ROWS // 10 - 2, ROWS - 2)


def test_late_writes_stay_under_what_the_origin_had_deleted(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY, v int)")
    now = int(session.execute("SELECT toUnixTimestamp(now()) AS ms FROM system.local").one().ms) * 1000
    session.execute(f"INSERT INTO s.t (k, v) VALUES (1, 1) USING TIMESTAMP {now - 60_000_000}")
    session.execute(f"DELETE FROM s.t USING TIMESTAMP {now - 30_000_000} WHERE k = 1")
    done(node, "flush")
    done(node, "compact")
    session.execute("CREATE KEYSPACE b AS COPY OF s")
    session.execute(f"INSERT INTO b.t (k, v) VALUES (1, 2) USING TIMESTAMP {now - 40_000_000}")
    assert session.execute("SELECT * FROM b.t").all() == []
    session.execute(f"INSERT INTO b.t (k, v) VALUES (1, 3) USING TIMESTAMP {now - 20_000_000}")
    assert session.execute("SELECT v FROM b.t").all() == [(3,)]


def test_statements_that_are_refused(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    create(session)
    for statement, error, says in (
        ("CREATE KEYSPACE b AS COPY OF nothing", InvalidRequest, "keyspace nothing does not exist"),
        ("CREATE KEYSPACE b AS COPY OF system_schema", InvalidRequest, "one of the server"),
        ("CREATE KEYSPACE b AS COPY OF system_views", InvalidRequest, "one of the server"),
        ("CREATE KEYSPACE system AS COPY OF s", InvalidRequest, "not user-modifiable"),
        ("CREATE KEYSPACE s AS COPY OF s", AlreadyExists, "s"),
        ("CREATE KEYSPACE b AS COPY OF s AS OF SNAPSHOT nothing", InvalidRequest, "no snapshot nothing of keyspace s"),
        ("CREATE KEYSPACE b AS COPY OF s WITH nothing = 1", Exception, "nothing"),
        ("CREATE TABLE s.u AS COPY OF s.nothing", InvalidRequest, "table nothing does not exist"),
        ("CREATE TABLE s.u AS COPY OF s.t_view", InvalidRequest, "copy its base table, t,"),
        ("CREATE TABLE s.t AS COPY OF s.t", AlreadyExists, "t"),
        ("CREATE TABLE nothing.t AS COPY OF s.t", InvalidRequest, "nothing"),
        ("CREATE TABLE system.t AS COPY OF s.t", Unauthorized, "system"),
        ("CREATE TABLE t AS COPY OF s.t", InvalidRequest, "No keyspace"),
    ):
        with pytest.raises(error, match=says):
            session.execute(statement)
    session.execute("CREATE KEYSPACE IF NOT EXISTS s AS COPY OF nothing")
    assert [row.keyspace_name for row in session.execute("SELECT keyspace_name FROM system_schema.keyspaces") if not row.keyspace_name.startswith("system")] == ["s"]


def test_tables_that_are_put_back_adopt_their_rows(node):
    session = node.connect()
    session.execute(KEYSPACE.format("s"))
    fill(session, create(session))
    session.execute("DELETE FROM s.t WHERE k = 3")
    done(node, "snapshot", "-t", "before", "s")
    session.execute("UPDATE s.t SET i = 77 WHERE k = 5")
    done(node, "restore", "-t", "before")
    # Before, while and after the rows are copied, and after a kill in between.
    left = (ROWS - 1, ROWS // 10 - 1, ROWS - 1)
    assert counts(session, "s") == left
    session.execute("DELETE FROM s.t WHERE k = 13")
    session.execute("INSERT INTO s.t (k, i, v) VALUES (3, 3, 'again')")
    session = restarted(node)
    assert counts(session, "s") == left
    copied = lambda: {name for name in ("s.t", "s.t_view") if f'have been copied table="{name}"' in node.log(10_000)}
    helenus.wait_until(lambda: len(copied()) == 2, what="the copy")
    done(node, "clearsnapshot", "--all")
    done(node, "compact")
    session = restarted(node)
    assert counts(session, "s") == left
    assert session.execute("SELECT v FROM s.t WHERE k = 3").one().v == "again"
    assert session.execute("SELECT * FROM s.t WHERE k = 13").one() is None



def test_copying_needs_and_grants_permissions(tmp_path):
    node = helenus.Node(tmp_path / "data", args=helenus.SECURED + ["--set", "dynamic_data_masking_enabled=true"]).start()
    try:
        session = helenus.log_in(node, "cassandra", "cassandra")
        session.execute(KEYSPACE.format("s"))
        session.execute("CREATE TABLE s.t (k int PRIMARY KEY, card text MASKED WITH DEFAULT)")
        session.execute("INSERT INTO s.t (k, card) VALUES (1, '1234')")
        session.execute("CREATE ROLE maker WITH PASSWORD = 'maker' AND LOGIN = true")
        maker = helenus.log_in(node, "maker", "maker")
        for statement, missing in (
            ("CREATE KEYSPACE b AS COPY OF s", ("CREATE ON ALL KEYSPACES", "SELECT ON KEYSPACE s", "UNMASK ON KEYSPACE s")),
            ("CREATE TABLE b.u AS COPY OF s.t", ()),
        ):
            for permission in missing:
                with pytest.raises(Unauthorized, match=f"has no {permission.split()[0]} permission"):
                    maker.execute(statement)
                session.execute(f"GRANT {permission} TO maker")
            maker.execute(statement)
        assert maker.execute("SELECT card FROM b.t").one().card == "1234"
        maker.execute("INSERT INTO b.u (k) VALUES (2)")
        maker.execute("DROP KEYSPACE b")
        with pytest.raises(Unauthorized):
            maker.execute("INSERT INTO s.t (k) VALUES (2)")
    finally:
        node.close()
