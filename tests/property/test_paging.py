"""Any page size gives the same rows as no paging, for any query and after any deletions."""

from cassandra.query import SimpleStatement
from hypothesis import given, settings, strategies as st

QUERIES = [
    "SELECT * FROM {t}",
    "SELECT k, a, b, v FROM {t} LIMIT 7",
    "SELECT DISTINCT k FROM {t}",
    "SELECT DISTINCT k, s FROM {t}",
    "SELECT DISTINCT k, s FROM {t} LIMIT 2",
    "SELECT * FROM {t} PER PARTITION LIMIT 2",
    "SELECT * FROM {t} PER PARTITION LIMIT 2 LIMIT 5",
    "SELECT * FROM {t} WHERE k = 1",
    "SELECT * FROM {t} WHERE k = 1 ORDER BY a DESC, b DESC",
    "SELECT * FROM {t} WHERE k IN (0, 1, 2, 3)",
    "SELECT * FROM {t} WHERE k IN (2, 0) AND a > 0",
    "SELECT * FROM {t} WHERE k = 1 AND a IN (0, 2, 3)",
    "SELECT * FROM {t} WHERE k = 1 AND a = 2 AND b IN ('', 'a', 'c')",
    "SELECT * FROM {t} WHERE k = 1 AND (a, b) > (1, 'a')",
    "SELECT * FROM {t} WHERE v = 1 ALLOW FILTERING",
    "SELECT * FROM {t} WHERE s = 1 ALLOW FILTERING",
    "SELECT * FROM {t} WHERE b = 'a' ALLOW FILTERING",
    "SELECT * FROM {t} WHERE b = 'a' LIMIT 3 ALLOW FILTERING",
    "SELECT * FROM {t} WHERE token(k) > 0",
    "SELECT k, a, count(*), max(v) FROM {t} GROUP BY k, a",
    "SELECT k, count(v), sum(v) FROM {t} GROUP BY k LIMIT 3",
    "SELECT k, a, min(b) FROM {t} WHERE k = 1 GROUP BY k, a",
    "SELECT k, a, b FROM {t} GROUP BY k, a PER PARTITION LIMIT 1",
    "SELECT count(*), sum(v) FROM {t}",
    "SELECT * FROM {t} WHERE i = 1",
    "SELECT * FROM {t} WHERE i = 1 LIMIT 3",
]

small, letter = st.integers(0, 4), st.sampled_from(["", "a", "b", "c"])
keys = st.integers(0, 4)
insert = st.tuples(st.just("INSERT INTO {t} (k, a, b, v, i) VALUES (%s, %s, %s, %s, %s)"), st.tuples(keys, small, letter, small, st.integers(0, 1)))
deletion = st.one_of(
    st.tuples(st.just("DELETE FROM {t} WHERE k = %s AND a = %s AND b = %s"), st.tuples(keys, small, letter)),
    st.tuples(st.just("DELETE FROM {t} WHERE k = %s AND a > %s"), st.tuples(keys, small)),
    st.tuples(st.just("DELETE FROM {t} WHERE k = %s AND a = %s AND b >= %s"), st.tuples(keys, small, letter)),
    st.tuples(st.just("DELETE FROM {t} WHERE k = %s"), st.tuples(keys)),
    st.tuples(st.just("DELETE v FROM {t} WHERE k = %s AND a = %s AND b = %s"), st.tuples(keys, small, letter)),
)
static = st.tuples(st.just("UPDATE {t} SET s = %s WHERE k = %s"), st.tuples(st.one_of(small, st.none()), keys))
writes = st.tuples(st.lists(insert, min_size=20, max_size=60), st.lists(st.one_of(insert, deletion, static), max_size=15)).map(
    lambda parts: parts[0] + parts[1])


def test_any_page_size(server, examples):
    session = server.session

    @settings(max_examples=max(2, examples // 20))
    @given(writes, st.lists(st.integers(1, 40), min_size=2, max_size=4, unique=True))
    def run(statements, sizes):
        t = server.name("pg")
        session.execute(f"CREATE TABLE {t} (k int, a int, b text, s int static, v int, i int, PRIMARY KEY (k, a, b))")
        session.execute(f"CREATE INDEX {t}_i ON {t} (i)")
        for cql, values in statements:
            session.execute(cql.format(t=t), values)
        for query in QUERIES:
            cql = query.format(t=t)
            whole = [tuple(r) for r in session.execute(SimpleStatement(cql, fetch_size=None))]
            for size in [1, *sizes]:
                paged = [tuple(r) for r in session.execute(SimpleStatement(cql, fetch_size=size))]
                assert paged == whole, (cql, size)
        session.execute(f"DROP TABLE {t}")

    run()
