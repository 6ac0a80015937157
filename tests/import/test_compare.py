"""`helenus compare` finds the differences of two clusters, and no others."""

import shutil
import subprocess

import pytest

import cassandras
import features
import helenus
from importing import DIFFERENT, TIMEOUT_S, compare, run_import
from made import MONDAY, made

pytestmark = pytest.mark.process

RELEASE, OLDER = cassandras.release_named("5.0-oa"), cassandras.release_named("4.0")
FAILED = 2
SHOP = [
    "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE shop.orders (customer text, number int, owner text static, total decimal, tags set<text>, PRIMARY KEY (customer, number))"
    " WITH CLUSTERING ORDER BY (number DESC)",
    *(f"INSERT INTO shop.orders (customer, number, total, tags) VALUES ('c{key}', {number}, {number}.5, {{'x'}}) USING TIMESTAMP 1000"
      for key in range(20) for number in range(5)),
    *(f"INSERT INTO shop.orders (customer, owner) VALUES ('c{key}', 'someone') USING TIMESTAMP 1000" for key in range(25)),
]


def differences(report):
    return [line for table in report["tables"] for line in table["differences"]]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Returns two nodes with the same rows."""
    both = [helenus.Node(tmp_path_factory.mktemp(name)).start() for name in "ab"]
    for node in both:
        session = node.connect()
        for statement in SHOP:
            session.execute(statement)
    yield both
    for node in both:
        node.close()


def test_equal_clusters_have_no_difference(nodes):
    report = compare(*nodes)
    [table] = report["tables"]
    # Five partitions have only a static column.
    assert (report["equal"], table["rows_a"], table["rows_b"]) == (True, 105, 105)


CHANGES = {
    "value": ("UPDATE shop.orders USING TIMESTAMP 1000 SET total = 9.5 WHERE customer = 'c3' AND number = 2",
              "customer = 'c3', number = 2: total is 2.5 written at 1000 us in a, 9.5 written at 1000 us in b"),
    "write time": ("UPDATE shop.orders USING TIMESTAMP 1001 SET total = 2.5 WHERE customer = 'c4' AND number = 2",
                   "customer = 'c4', number = 2: total is 2.5 written at 1000 us in a, 2.5 written at 1001 us in b"),
    "TTL": ("UPDATE shop.orders USING TIMESTAMP 1000 AND TTL 5000 SET total = 2.5 WHERE customer = 'c5' AND number = 2",
            "customer = 'c5', number = 2: total is 2.5 written at 1000 us in a, 2.5 written at 1000 us, expires at "),
    "element": ("UPDATE shop.orders SET tags = tags + {'y'} WHERE customer = 'c6' AND number = 2",
                "customer = 'c6', number = 2: tags is {'x'} in a, {'x', 'y'} in b"),
    "null": ("DELETE total FROM shop.orders WHERE customer = 'c7' AND number = 0",
             "customer = 'c7', number = 0: total is 0.5 written at 1000 us in a, null in b"),
    "missing row": ("DELETE FROM shop.orders WHERE customer = 'c8' AND number = 4", "customer = 'c8', number = 4: only in a"),
    "further row": ("INSERT INTO shop.orders (customer, number) VALUES ('new', 1)", "customer = 'new', number = 1: only in b"),
    "static cell": ("UPDATE shop.orders USING TIMESTAMP 1001 SET owner = 'other' WHERE customer = 'c9'",
                    "customer = 'c9', number = 4: owner is 'someone' written at 1000 us in a, 'other' written at 1001 us in b"),
    "static cell of a partition without rows": ("DELETE owner FROM shop.orders WHERE customer = 'c22'", "customer = 'c22', number = null: only in a"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_difference_is_named(nodes, change):
    a, b = nodes
    statement, expected = CHANGES[change]
    b.connect().execute(statement)
    found = differences(compare(a, b, exit_code=DIFFERENT))
    try:
        assert [line for line in found if line.startswith(expected)], found
        assert len(found) == 1
    finally:
        # A later test compares the same nodes: the same change makes them equal, or the change is undone by a later one.
        for node in nodes:
            session = node.connect()
            session.execute("TRUNCATE shop.orders")
            for again in SHOP[2:]:
                session.execute(again)


def test_writetimes_may_be_left_out(nodes):
    a, b = nodes
    b.connect().execute("UPDATE shop.orders USING TIMESTAMP 1001 SET total = 2.5 WHERE customer = 'c4' AND number = 2")
    compare(a, b, exit_code=DIFFERENT)
    compare(a, b, "--no-writetime")


def test_schemas_are_compared(nodes):
    a, b = nodes
    session = b.connect()
    session.execute("CREATE TABLE shop.more (k int PRIMARY KEY, v int)")
    a.connect().execute("CREATE TABLE shop.other (k int PRIMARY KEY, v int)")
    session.execute("CREATE TABLE shop.other (k bigint PRIMARY KEY, v int)")
    notes = {table["table"]: table["schema"] for table in compare(a, b, "--no-writetime", exit_code=DIFFERENT)["tables"]}
    assert notes == {"more": ["the table is only in b"], "orders": [], "other": ["the partition key is (k int) in a, and (k bigint) in b"]}


def test_samples_repeat_with_their_seed(nodes):
    a, b = nodes
    counts = [compare(a, b, "--table", "shop.orders", "--sample", "20%", "--seed", "5", "--no-writetime")["tables"][0]["rows_a"] for _ in range(2)]
    assert counts[0] == counts[1] and 0 < counts[0] < 105


def test_unknown_tables_and_hosts_are_refused(nodes):
    a, b = nodes
    for options, words in ((["--table", "shop.none"], "--table shop.none: neither cluster has any such table"),
                           (["--a", "127.0.0.1:1"], "side a: no server answers on 127.0.0.1:1")):
        command = [str(helenus.binary()), "compare", "--b", f"{b.host}:{b.port}", *options]
        command += [] if "--a" in options else ["--a", f"{a.host}:{a.port}"]
        done = subprocess.run(command, text=True, capture_output=True, timeout=TIMEOUT_S)
        assert done.returncode == FAILED and words in done.stderr, done.stderr


def test_all_kinds_of_cells_agree(tmp_path):
    """Compares all tables of the import's tests, with every type: a node with itself, and with one that has no rows."""
    full, empty = (helenus.Node(tmp_path / name).start() for name in ("full", "empty"))
    try:
        statements = [statement for some in features.rounds(OLDER) for statement in some]
        alterations = [statement for statement in statements if statement.startswith("ALTER")]
        for node, more in ((full, statements), (empty, alterations)):
            session = node.connect()
            for statement in features.schema(OLDER) + more:
                session.execute(statement)
        compare(full, full, "--keyspace", features.KEYSPACE)
        tables = compare(full, empty, "--keyspace", features.KEYSPACE, "--differences-max", "3", exit_code=DIFFERENT)["tables"]
        assert all((table["rows_a"] == 0) == (table["differing"] == 0) and table["rows_b"] == 0 and len(table["differences"]) <= 3 for table in tables)
        assert sum(table["differing"] for table in tables) > 1000
    finally:
        for node in (full, empty):
            node.close()


@pytest.mark.timeout(0)
def test_an_import_equals_its_cassandra(tmp_path):
    data = made(RELEASE)
    shutil.copytree(data.folder / "node", tmp_path / "cassandra")
    node, cassandra = helenus.Node(tmp_path / "node"), cassandras.CassandraNode(RELEASE, tmp_path / "cassandra")
    try:
        node.start()
        cassandra.start()
        run_import(node, data.data, "--snapshot", MONDAY)
        report = compare(cassandra, node, "--keyspace", features.KEYSPACE)
        assert sum(table["rows_a"] for table in report["tables"]) > 1000
    finally:
        cassandra.close()
        node.close()
