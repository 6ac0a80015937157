"""The page with the last row announces another page only where Cassandra cannot know yet that no row follows."""

import pytest
from cassandra.query import SimpleStatement


@pytest.fixture
def tables(ks):
    ks.execute("CREATE TABLE single (k int PRIMARY KEY, v int)")
    ks.execute("CREATE TABLE wide (k int, c int, v int, s int static, PRIMARY KEY (k, c))")
    for k in (1, 2, 3):
        ks.execute(f"INSERT INTO single (k, v) VALUES ({k}, {k})")
    for c in range(5):
        ks.execute(f"INSERT INTO wide (k, c, v) VALUES (1, {c}, {c})")
    ks.execute("INSERT INTO wide (k, s) VALUES (1, 7)")
    ks.execute("INSERT INTO wide (k, s) VALUES (2, 8)")
    return ks


def rows_of_pages(session, cql, fetch_size):
    state, counts = None, []
    while True:
        page = session.execute(SimpleStatement(cql, fetch_size=fetch_size), paging_state=state)
        counts.append(len(page.current_rows))
        state = page.paging_state
        if state is None:
            return counts


@pytest.mark.parametrize("version", [3, 4, 5])
def test_where_pages_end(target, tables, version):
    session = target.connect(tables.keyspace, protocol_version=version)
    for cql, fetch_size, expected in (
        # A partition of one row, and several of them.
        ("SELECT k FROM single WHERE k = 1", 1, [1]),
        ("SELECT v + 1 FROM single WHERE k = 1", 1, [1]),
        ("SELECT k FROM single WHERE k = 1 AND v = 1 ALLOW FILTERING", 1, [1]),
        ("SELECT k FROM single WHERE k IN (1, 2)", 1, [1, 1]),
        ("SELECT k FROM single WHERE k IN (1, 2)", 2, [2]),
        ("SELECT k FROM single WHERE k IN (1, 2, 3)", 2, [2, 1]),
        ("SELECT k FROM single WHERE k IN (1, 2, 9)", 2, [2, 0]),
        # In a range, or in a partition of many rows, it is not known whether another row follows.
        ("SELECT k FROM single", 1, [1, 1, 1, 0]),
        ("SELECT k FROM single", 3, [3, 0]),
        ("SELECT c FROM wide WHERE k = 1", 5, [5, 0]),
        ("SELECT c FROM wide WHERE k = 1 AND c > 2", 2, [2, 0]),
        ("SELECT c FROM wide WHERE k = 1 LIMIT 4", 2, [2, 2]),
        # Static content alone ends its partition.
        ("SELECT s, c FROM wide WHERE k = 2", 1, [1]),
        ("SELECT DISTINCT k, s FROM wide WHERE k = 1", 1, [1]),
        ("SELECT DISTINCT k, s FROM wide WHERE k IN (1, 2)", 1, [1, 1]),
        ("SELECT k, c FROM wide WHERE k IN (1, 2)", 3, [3, 3]),
        ("SELECT DISTINCT k FROM wide", 2, [2, 0]),
        # So does the limit of a partition.
        ("SELECT c FROM wide WHERE k = 1 PER PARTITION LIMIT 2", 1, [1, 1]),
        ("SELECT c FROM wide WHERE k = 1 PER PARTITION LIMIT 2", 2, [2]),
        ("SELECT c FROM wide WHERE k IN (1, 2) PER PARTITION LIMIT 2", 3, [3]),
        # Tables that are the server's own.
        ("SELECT key FROM system.local WHERE key = 'local'", 1, [1]),
        ("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'system'", 1, [1]),
        ("SELECT name FROM system_views.settings WHERE name = 'cluster_name'", 1, [1]),
    ):
        assert rows_of_pages(session, cql, fetch_size) == expected, (cql, fetch_size)
    session.cluster.shutdown()
