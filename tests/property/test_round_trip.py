"""Written values are read unchanged: random values of every type, before and after restarts."""

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from hypothesis import given, settings, strategies as st

from values import FROZEN, LIVE, SCALARS, canonical, canonical_as

ROWS_A_ROUND = 25
KINDS = SCALARS + FROZEN + LIVE
written = {}  # (table, kind index) to {k: value}, for the check after a restart


def read(session, table):
    return {r.k: r.v for r in session.execute(f"SELECT k, v FROM {table}")}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_written_is_read(server, examples, kind):
    session, table = server.session, server.name("v")
    session.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, v {kind.cql})")
    insert = session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
    select = session.prepare(f"SELECT v FROM {table} WHERE k = ?")
    mine = written.setdefault((table, kind), {})

    @settings(max_examples=max(1, examples // ROWS_A_ROUND))
    @given(st.lists(st.one_of(kind.strategy, st.none()) if len(mine) % 10 == 9 else kind.strategy,
                    min_size=1, max_size=ROWS_A_ROUND))
    def run(values):
        first = len(mine)
        rows = [(first + i, v) for i, v in enumerate(values)]
        execute_concurrent_with_args(session, insert, rows)
        mine.update(rows)
        results = execute_concurrent_with_args(session, select, [(k,) for k, _ in rows])
        for (_, want), (_, result) in zip(rows, results):
            assert canonical_as(kind, plain(kind, result.one().v)) == canonical_as(kind, want)

    run()


def plain(kind, value):
    """Returns the value. Sets become tuples, which the strategies generate."""
    if kind.cql.startswith(("set<", "frozen<set<")) and value is not None:
        return tuple(value)
    return value


@pytest.mark.process
@pytest.mark.parametrize("clean", [False, True], ids=["after kill -9", "after SIGTERM"])
def test_still_there(server, clean):
    assert written
    assert server.restart(clean)
    for (table, kind), mine in written.items():
        got = read(server.session, table)
        assert set(got) == set(mine), table
        for k, want in mine.items():
            assert canonical_as(kind, plain(kind, got[k])) == canonical_as(kind, want), (table, kind.cql, k)


def test_row_of_all_types(server, examples):
    """A table with a column of each scalar type, where random subsets of columns are set, unset, null or deleted."""
    session, table = server.session, server.name("w")
    columns = [f"c_{k.cql}" for k in SCALARS]
    session.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, "
                    + ", ".join(f"{c} {k.cql}" for c, k in zip(columns, SCALARS)) + ")")
    from cassandra.query import UNSET_VALUE
    insert = session.prepare(f"INSERT INTO {table} (k, {', '.join(columns)}) VALUES ({', '.join('?' * (len(columns) + 1))})")
    select = session.prepare(f"SELECT {', '.join(columns)} FROM {table} WHERE k = ?")
    cell = lambda kind: st.one_of(kind.strategy, st.just(None), st.just(UNSET_VALUE))
    model = {}

    @settings(max_examples=max(1, examples // 3))
    @given(st.integers(0, 5), st.tuples(*[cell(k) for k in SCALARS]))
    def run(k, row):
        session.execute(insert, (k, *row))
        old = model.get(k, (None,) * len(columns))
        model[k] = tuple(o if n is UNSET_VALUE else n for o, n in zip(old, row))
        assert canonical(tuple(session.execute(select, (k,)).one())) == canonical(model[k])

    run()


def test_statements_against_a_model(server, examples):
    """Random writes, deletions and reads of a table with a static column agree with a dictionary."""
    session, table = server.session, server.name("m")
    session.execute(f"CREATE TABLE {table} (k int, a int, b text, s int static, v int, t set<int>, PRIMARY KEY (k, a, b))")
    p = session.prepare
    upsert = p(f"INSERT INTO {table} (k, a, b, v) VALUES (?, ?, ?, ?)")
    update = p(f"UPDATE {table} SET t = t + ? WHERE k = ? AND a = ? AND b = ?")
    static = p(f"UPDATE {table} SET s = ? WHERE k = ?")
    row_del = p(f"DELETE FROM {table} WHERE k = ? AND a = ? AND b = ?")
    range_del = p(f"DELETE FROM {table} WHERE k = ? AND a >= ? AND a < ?")
    prefix_del = p(f"DELETE FROM {table} WHERE k = ? AND a = ?")
    partition_del = p(f"DELETE FROM {table} WHERE k = ?")
    cell_del = p(f"DELETE v FROM {table} WHERE k = ? AND a = ? AND b = ?")
    select = p(f"SELECT a, b, s, v, t FROM {table} WHERE k = ?")
    small, letter = st.integers(0, 4), st.sampled_from(["", "a", "b", "ü"])
    step = st.one_of(
        st.tuples(st.just("upsert"), small, letter, st.integers(-5, 5)),
        st.tuples(st.just("update"), small, letter, st.frozensets(small, min_size=1, max_size=3)),
        st.tuples(st.just("static"), st.one_of(st.none(), small)),
        st.tuples(st.just("row"), small, letter),
        st.tuples(st.just("cell"), small, letter),
        st.tuples(st.just("range"), small, small),
        st.tuples(st.just("prefix"), small),
        st.tuples(st.just("partition")))
    partition = [0]

    @settings(max_examples=max(1, examples // 3))
    @given(st.lists(step, min_size=1, max_size=25))
    def run(steps):
        partition[0] += 1
        k = partition[0]
        rows, s = {}, None  # (a, b) to [live, v, set]
        for kind, *x in steps:
            if kind == "upsert":
                session.execute(upsert, (k, x[0], x[1], x[2]))
                row = rows.setdefault((x[0], x[1]), [True, None, set()])
                row[0], row[1] = True, x[2]
            elif kind == "update":
                session.execute(update, (x[2], k, x[0], x[1]))
                rows.setdefault((x[0], x[1]), [False, None, set()])[2] |= x[2]
            elif kind == "static":
                session.execute(static, (x[0], k))
                s = x[0]
            elif kind == "row":
                session.execute(row_del, (k, x[0], x[1]))
                rows.pop((x[0], x[1]), None)
            elif kind == "cell":
                session.execute(cell_del, (k, x[0], x[1]))
                if (x[0], x[1]) in rows:
                    rows[x[0], x[1]][1] = None
            elif kind == "range":
                session.execute(range_del, (k, x[0], x[1]))
                rows = {c: r for c, r in rows.items() if not x[0] <= c[0] < x[1]}
            elif kind == "prefix":
                session.execute(prefix_del, (k, x[0]))
                rows = {c: r for c, r in rows.items() if c[0] != x[0]}
            else:
                session.execute(partition_del, (k,))
                rows, s = {}, None
            rows = {c: r for c, r in rows.items() if r[0] or r[1] is not None or r[2]}
        want = [(a, b, s, r[1], sorted(r[2]) or None) for (a, b), r in sorted(rows.items(), key=lambda i: (i[0][0], i[0][1].encode()))]
        if not want and s is not None:
            want = [(None, None, s, None, None)]
        got = [(r.a, r.b, r.s, r.v, r.t and sorted(r.t)) for r in session.execute(select, (k,))]
        assert got == want

    run()
