"""Dynamic data masking: who sees what masks hide, and who may search for it. The outcomes are those of Cassandra 5.0.5."""

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.query import tuple_factory

import helenus
from helenus import SECURED, log_in

pytestmark = pytest.mark.process

MASKING = ["--set", "dynamic_data_masking_enabled=true"]
TABLE = (
    "CREATE TABLE m.t (k int, c int MASKED WITH DEFAULT, s text STATIC MASKED WITH mask_replace('static'), "
    "v text MASKED WITH mask_inner(1, null), l list<int> MASKED WITH DEFAULT, PRIMARY KEY (k, c))"
)


@pytest.fixture
def root(tmp_path):
    server = helenus.Node(tmp_path, args=SECURED + MASKING).start()
    session = log_in(server, "cassandra", "cassandra")
    session.row_factory = tuple_factory
    session.server = server
    for statement in (
        "CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE ROLE u WITH PASSWORD = 'u' AND LOGIN = true",
        "GRANT SELECT ON KEYSPACE m TO u",
        "GRANT MODIFY ON KEYSPACE m TO u",
        TABLE,
        "INSERT INTO m.t (k, c, s, v, l) VALUES (1, 1, 'stat', 'hello', [1, 2])",
    ):
        session.execute(statement)
    yield session
    session.cluster.shutdown()
    server.close()


@pytest.fixture
def user(root):
    session = log_in(root.server, "u", "u")
    session.row_factory = tuple_factory
    yield session
    session.cluster.shutdown()


def rows(session, statement):
    return list(session.execute(statement))


def test_who_may_not_unmask_sees_masks(root, user):
    prepared = user.prepare("SELECT k, c, s, v FROM m.t WHERE k = ?")
    assert list(user.execute(prepared, [1])) == [(1, 0, "static", "h****")]
    assert rows(user, "SELECT JSON v FROM m.t") == [('{"v": "h****"}',)]
    assert rows(user, "SELECT collection_count(l) FROM m.t") == [(0,)]
    assert rows(user, "UPDATE m.t SET v = 'x' WHERE k = 1 AND c = 1 IF v = 'nope'") == [(False, "hello")]
    assert rows(root, "SELECT c, s, v FROM m.t") == [(1, "stat", "hello")]
    root.execute("GRANT UNMASK ON m.t TO u")
    assert list(user.execute(prepared, [1])) == [(1, 1, "stat", "hello")]
    root.execute("REVOKE UNMASK ON m.t FROM u")
    root.execute("ALTER TABLE m.t ALTER v DROP MASKED")
    assert list(user.execute(prepared, [1])) == [(1, 0, "static", "hello")]


def test_masked_columns_are_searched_with_a_permission(root, user):
    search = "SELECT k FROM m.t WHERE v = 'hello' AND s = 'stat' ALLOW FILTERING"
    with pytest.raises(Unauthorized) as refused:
        user.execute(search)
    assert (
        "User u has no UNMASK nor SELECT_MASKED permission on table m.t, cannot query masked columns [s, v]"
        in str(refused.value)
    )
    root.execute("GRANT SELECT_MASKED ON ALL KEYSPACES TO u")
    assert rows(user, search) == [(1,)]
    assert rows(user, "SELECT v FROM m.t WHERE k = 1 AND c = 1") == [("h****",)]


def test_rows_are_ordered_by_a_masked_column_with_a_permission(root, user):
    root.execute("CREATE TABLE m.o (k int PRIMARY KEY, n int MASKED WITH DEFAULT)")
    root.execute("CREATE INDEX ON m.o (n) USING 'sai'")
    root.execute("GRANT SELECT ON m.o TO u")
    for k in range(5):
        root.execute(f"INSERT INTO m.o (k, n) VALUES ({k}, {k * 3 % 5})")
    order = "SELECT k FROM m.o ORDER BY n DESC LIMIT 3"
    with pytest.raises(Unauthorized, match=r"cannot query masked columns \[n\]"):
        user.execute(order)
    root.execute("GRANT SELECT_MASKED ON m.o TO u")
    assert rows(user, order) == [(3,), (1,), (4,)]
    root.execute("DROP TABLE m.o")


def test_masks_are_described_and_kept(root):
    described = root.execute("DESCRIBE TABLE m.t").one()[3]
    assert "s text static MASKED WITH system.mask_replace('static')," in described
    assert "v text MASKED WITH system.mask_inner(1, null)," in described
    masks = rows(root, "SELECT column_name, function_argument_nulls, function_argument_types, "
                       "function_argument_values, function_keyspace, function_name FROM system_schema.column_masks")
    assert masks == [
        ("c", [], [], [], "system", "mask_default"),
        ("l", [], [], [], "system", "mask_default"),
        ("s", [False], ["text"], ["static"], "system", "mask_replace"),
        ("v", [False, True], ["int", "int"], ["1", ""], "system", "mask_inner"),
    ]


@pytest.mark.parametrize(
    "column, words",
    [
        ("int MASKED WITH mask_missing(1, null)", "Unable to find masking function for v, no declared function matches "
                                                  "the signature mask_missing(1, NULL)"),
        ("int MASKED WITH tojson()", "Not-masking function tojson() cannot be used for masking table columns"),
        ("int MASKED WITH max()", "Aggregate function max() cannot be used for masking table columns"),
        ("int MASKED WITH mask_hash()", "Masking function mask_hash() return type is blob."),
        ("int MASKED WITH mask_default(1)", "Invalid number of arguments for function system.mask_default(any)"),
    ],
)
def test_what_masks_nothing_is_refused(root, column, words):
    with pytest.raises(InvalidRequest) as refused:
        root.execute(f"CREATE TABLE m.bad (k int PRIMARY KEY, v {column})")
    assert words in str(refused.value)
