"""Indexes on values of user types: rows that were written before their type got a field are found by index, also those that come back from a snapshot or backup."""

import pytest

import helenus
from tool import at, done, said

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
VALUE = "{a: 1, b: 'x', n: {x: 1, y: 2}}"
SHORT = "{a: 1}"
TABLE = """CREATE TABLE s.t (k int PRIMARY KEY, u frozen<ty>, s set<frozen<ty>>, l list<frozen<ty>>, m map<text, frozen<ty>>, mk map<frozen<ty>, int>,
    fl frozen<list<frozen<ty>>>, tu tuple<int, frozen<ty>>)"""
COLUMNS = ("u", "s", "l", "m", "mk", "fl", "tu")
# Indexed columns: the target of the index, a value of the column, and the restriction that finds it.
INDEXED = {
    "u": ("u", "{}", "u = {}"),
    "s": ("s", "{{{}}}", "s CONTAINS {}"),
    "l": ("l", "[{}]", "l CONTAINS {}"),
    "m": ("m", "{{'p': {}}}", "m CONTAINS {}"),
    "me": ("ENTRIES(m)", None, "m['p'] = {}"),
    "mk": ("KEYS(mk)", "{{{}: 1}}", "mk CONTAINS KEY {}"),
    "fl": ("FULL(fl)", "[{}]", "fl = [{}]"),
    "tu": ("tu", "(1, {})", "tu = (1, {})"),
}


def create_table(session):
    session.execute(KEYSPACE)
    session.execute("CREATE TYPE s.inner (x int, y int)")
    session.execute("CREATE TYPE s.ty (a int, b text, n frozen<inner>)")
    session.execute(TABLE)
    session.execute("CREATE TABLE s.c (k int, c frozen<ty>, PRIMARY KEY (k, c))")


def create_indexes(session, names, using=""):
    for name in names:
        session.execute(f"CREATE INDEX i_{name} ON s.t ({INDEXED[name][0]}) {using}")


def add_fields(session):
    session.execute("ALTER TYPE s.inner ADD z int")
    session.execute("ALTER TYPE s.ty ADD d int")


def insert(session, key, value=VALUE):
    texts = [INDEXED[name][1].format(value) for name in COLUMNS]
    session.execute(f"INSERT INTO s.t (k, {', '.join(COLUMNS)}) VALUES ({key}, {', '.join(texts)})")
    session.execute(f"INSERT INTO s.c (k, c) VALUES ({key}, {value})")


def await_indexes(session, names):
    """Waits until indexes are complete: until then reads do not go by them."""
    wanted = {f"i_{name}" for name in names}
    query = "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = 's'"
    helenus.wait_until(lambda: wanted <= {row.index_name for row in session.execute(query)}, what="the indexes")


def found(session, name, value=VALUE):
    return {row.k for row in session.execute(f"SELECT k FROM s.t WHERE {INDEXED[name][2].format(value)}")}


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "data").start()
    yield node
    node.close()


@pytest.mark.parametrize("using", ["", "USING 'sai'"], ids=["2i", "sai"])
def test_rows_from_before_a_field_are_found(node, using):
    session = node.connect()
    create_table(session)
    # The indexes on `l` and on the clustering column are made after the type has the new field.
    early = [name for name in INDEXED if name != "l"]
    create_indexes(session, early, using)
    insert(session, 1)
    insert(session, 2, SHORT)
    add_fields(session)
    insert(session, 3)
    insert(session, 4, SHORT)
    create_indexes(session, ["l"], using)
    session.execute(f"CREATE INDEX i_c ON s.c (c) {using}")
    names = [*early, "l"]
    await_indexes(session, [*names, "c"])
    for name in names:
        assert found(session, name) == {1, 3}, name
        assert found(session, name, "{a: 1, b: 'x', n: {x: 1, y: 2, z: null}, d: null}") == {1, 3}, name
        assert found(session, name, SHORT) == {2, 4}, name
        assert found(session, name, "{a: 1, d: 7}") == set(), name
    assert {row.k for row in session.execute(f"SELECT k FROM s.c WHERE c = {VALUE}")} == {1, 3}
    # Overwritten and deleted rows are not found any more, in either form of the value.
    insert(session, 1, "{a: 1, d: 7}")
    session.execute("DELETE FROM s.t WHERE k = 4")
    for name in names:
        assert found(session, name) == {3}, name
        assert found(session, name, SHORT) == {2}, name
        assert found(session, name, "{a: 1, d: 7}") == {1}, name


def test_rows_of_a_snapshot_and_of_a_backup_are_found(node, tmp_path):
    session = node.connect()
    create_table(session)
    names = ["u", "s"]
    create_indexes(session, names)
    insert(session, 1)
    done(node, "snapshot", "-t", "before", "s")
    said("backup", *at(node), "--to", tmp_path / "backups")
    add_fields(session)
    insert(session, 3)
    await_indexes(session, names)
    assert found(session, "u") == {1, 3}
    done(node, "restore", "-t", "before", "-kt", "s.t")
    await_indexes(session, names)
    assert [found(session, name) for name in names] == [{1}, {1}]
    insert(session, 3)
    assert [found(session, name) for name in names] == [{1, 3}, {1, 3}]
    said("restore", *at(node), "--from", tmp_path / "backups", "--keyspace", "s", "--table", "t")
    await_indexes(session, names)
    assert [found(session, name) for name in names] == [{1}, {1}]
