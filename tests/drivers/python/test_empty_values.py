"""Values of no bytes: keys of views, in whatever pages they are read, and elements of bound lists."""

import struct

import pytest
from cassandra import InvalidRequest
from cassandra.query import SimpleStatement

KEYS = ["", "", "", "a", "a", "b"]
# Statements, and how many rows they give.
READS = [
    ("SELECT v, k, c FROM mv", 6),
    ("SELECT DISTINCT v FROM mv", 3),
    ("SELECT v, count(*) AS n FROM mv GROUP BY v", 3),
    ("SELECT v, k, c, max(i) AS n FROM mv GROUP BY v, k, c", 6),
    ("SELECT JSON v, c FROM mv", 6),
    ("SELECT v, c FROM mv WHERE token(v) >= -9223372036854775808", 6),
    ("SELECT v, c FROM mv WHERE i = 1 ALLOW FILTERING", 6),
    ("SELECT v, c FROM mv PER PARTITION LIMIT 2", 5),
    ("SELECT v, c FROM mv LIMIT 5", 5),
    ("SELECT b, c FROM of_blobs", 6),
    ("SELECT i2, v, c FROM of_two", 6),
]


@pytest.fixture
def views(ks):
    ks.execute("CREATE TABLE t (k int, c int, v text, i int, b blob, i2 int, PRIMARY KEY (k, c))")
    for name, key in (("mv", "v"), ("of_blobs", "b"), ("of_ints", "i2")):
        ks.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM t WHERE {key} IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL "
                   f"PRIMARY KEY ({key}, k, c)")
    ks.execute("CREATE MATERIALIZED VIEW of_two AS SELECT * FROM t WHERE i2 IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL "
               "PRIMARY KEY ((i2, k), c)")
    insert = ks.prepare("INSERT INTO t (k, c, v, i, b, i2) VALUES (0, ?, ?, 1, ?, ?)")
    # The driver has no int of no bytes, but binds bytes as they are to a blob's place.
    insert.column_metadata[3] = insert.column_metadata[2]._replace(name="i2")
    for c, key in enumerate(KEYS):
        ks.execute(insert, (c, key, key.encode(), b"" if not key else struct.pack(">i", ord(key))))
    return ks


def paged(session, cql, fetch_size):
    """Returns the rows, read page by page."""
    state, rows = None, []
    for _ in range(20):
        page = session.execute(SimpleStatement(cql, fetch_size=fetch_size), paging_state=state)
        rows += [tuple(row) for row in page.current_rows]
        state = page.paging_state
        if state is None:
            return rows
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("cql, count", [*READS, ("SELECT i2, c FROM of_ints", 6)])
def test_views_with_an_empty_key_are_read_in_pages(views, cql, count):
    whole = paged(views, cql, 1000)
    assert len(whole) == count
    for fetch_size in (1, 2, 3, 4):
        assert paged(views, cql, fetch_size) == whole, fetch_size


def list_of(*elements):
    return struct.pack(">i", len(elements)) + b"".join(struct.pack(">i", len(one)) + one for one in elements)


def bound(session, cql, value):
    """Binds bytes as they are to the only marker."""
    prepared = session.prepare(cql)
    blob = session.prepare("SELECT i FROM t WHERE b = ? ALLOW FILTERING").column_metadata[0]
    prepared.column_metadata[0] = blob
    return session.execute(prepared, [value])


def test_an_element_of_no_bytes_is_refused_in_a_list(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, i int, b blob, l list<int>, lt list<text>, s list<timestamp>)")
    one = struct.pack(">i", 1)
    for cql in ("UPDATE t SET l = ? WHERE k = 1", "UPDATE t SET l = l + ? WHERE k = 1", "UPDATE t SET l = ? + l WHERE k = 1",
                "UPDATE t SET s = ? WHERE k = 1", "UPDATE t SET i = 1 WHERE k = 1 IF l = ?"):
        with pytest.raises(InvalidRequest, match="Null value read when not allowed"):
            bound(ks, cql, list_of(*[b""] if "s =" in cql else [one, b""]))
    bound(ks, "UPDATE t SET lt = ? WHERE k = 1", list_of(b"a", b""))
    assert [(row.l, row.lt) for row in ks.execute("SELECT l, lt FROM t")] == [(None, ["a", ""])]
