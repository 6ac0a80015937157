"""Clustering columns of each type, ASC and DESC: order and slices equal a model sorted by Cassandra's order."""

import operator

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from hypothesis import given, settings, strategies as st

from values import BY_NAME, FROZEN, SCALARS, canonical, canonical_as, sort

KINDS = [k for k in SCALARS + FROZEN if k.order]
ROWS_A_PARTITION = 20
OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def distinct(kind, values):
    """Returns one value for each place in the order."""
    return list({repr(kind.order(v)): v for v in values}.values())


def forms(kind, values):
    return [repr(canonical_as(kind, tuple(v) if kind.cql.startswith("frozen<set<") else v)) for v in values]


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_clustering_order(server, examples, kind, direction):
    session, table = server.session, server.name("o")
    session.execute(f"CREATE TABLE {table} (k int, c {kind.cql}, v int, PRIMARY KEY (k, c)) "
                    f"WITH CLUSTERING ORDER BY (c {direction})")
    insert = session.prepare(f"INSERT INTO {table} (k, c, v) VALUES (?, ?, 1)")
    other = "DESC" if direction == "ASC" else "ASC"
    whole = {d: session.prepare(f"SELECT c FROM {table} WHERE k = ? ORDER BY c {d}") for d in (direction, other)}
    plain = session.prepare(f"SELECT c FROM {table} WHERE k = ?")
    one = session.prepare(f"SELECT c FROM {table} WHERE k = ? AND c = ?")
    lower = {op: session.prepare(f"SELECT c FROM {table} WHERE k = ? AND c {op} ?") for op in OPERATORS}
    both = {(l, u): session.prepare(f"SELECT c FROM {table} WHERE k = ? AND c {l} ? AND c {u} ?")
            for l in (">", ">=") for u in ("<", "<=")}
    partition = [0]

    def read(statement, *bounds):
        return forms(kind, [r.c for r in session.execute(statement, (partition[0], *bounds))])

    @settings(max_examples=max(1, examples // ROWS_A_PARTITION))
    @given(st.lists(kind.strategy, min_size=1, max_size=ROWS_A_PARTITION), kind.strategy, st.data())
    def run(values, stranger, data):
        partition[0] += 1
        values = distinct(kind, values)
        execute_concurrent_with_args(session, insert, [(partition[0], v) for v in values])
        model = sort(kind, values, reverse=direction == "DESC")
        assert read(plain) == forms(kind, model)
        assert read(whole[direction]) == forms(kind, model)
        assert read(whole[other]) == forms(kind, model[::-1])
        for bound in (stranger, data.draw(st.sampled_from(values))):
            for op, holds in OPERATORS.items():
                want = [v for v in model if holds(kind.order(v), kind.order(bound))]
                assert read(lower[op], bound) == forms(kind, want), op
        low, high = data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values))
        for (l, u), statement in both.items():
            want = [v for v in model if OPERATORS[l](kind.order(v), kind.order(low))
                    and OPERATORS[u](kind.order(v), kind.order(high))]
            assert read(statement, low, high) == forms(kind, want), (l, u)
        assert read(one, low) == forms(kind, [low])

    run()


@pytest.mark.parametrize("directions", [("ASC", "ASC"), ("ASC", "DESC"), ("DESC", "ASC"), ("DESC", "DESC")], ids="-".join)
def test_two_columns(server, examples, directions):
    """Slices over one and both of two clustering columns, in every mixture of directions."""
    session, table = server.session, server.name("p")
    session.execute(f"CREATE TABLE {table} (k int, a int, b text, PRIMARY KEY (k, a, b)) "
                    f"WITH CLUSTERING ORDER BY (a {directions[0]}, b {directions[1]})")
    insert = session.prepare(f"INSERT INTO {table} (k, a, b) VALUES (?, ?, ?)")
    sign = [1 if d == "ASC" else -1 for d in directions]
    text = BY_NAME["text"].order
    small, letters = st.integers(-3, 3), st.sampled_from(["", "a", "aa", "b", "ü", "\U0001f3fa"])
    pairs = st.tuples(small, letters)
    partition = [0]

    def ordered(rows):
        rows = sorted(rows, key=lambda r: text(r[1]), reverse=sign[1] < 0)
        return sorted(rows, key=lambda r: r[0], reverse=sign[0] < 0)

    @settings(max_examples=max(1, examples // 5))
    @given(st.sets(pairs, min_size=1, max_size=20), pairs, pairs)
    def run(rows, low, high):
        partition[0] += 1
        k = partition[0]
        execute_concurrent_with_args(session, insert, [(k, *r) for r in rows])
        model = ordered(rows)
        full = lambda r: (r[0], text(r[1]))

        def check(where, values, holds):
            got = [(r.a, r.b) for r in session.execute(
                session.prepare(f"SELECT a, b FROM {table} WHERE k = ? {where}"), (k, *values))]
            assert got == [r for r in model if holds(r)], where

        check("", (), lambda r: True)
        for name, holds in OPERATORS.items():
            check(f"AND (a, b) {name} (?, ?)", low, lambda r: holds(full(r), full(low)))
            check(f"AND (a) {name} (?)", low[:1], lambda r: holds(r[0], low[0]))
            check(f"AND a = ? AND b {name} ?", low, lambda r: r[0] == low[0] and holds(text(r[1]), text(low[1])))
        check("AND (a, b) >= (?, ?) AND (a, b) < (?, ?)", (*low, *high), lambda r: full(low) <= full(r) < full(high))
        check("AND (a, b) > (?, ?) AND (a) <= (?)", (*low, high[0]), lambda r: full(low) < full(r) and r[0] <= high[0])
        check("AND (a, b) IN ((?, ?), (?, ?))", (*low, *high), lambda r: r in (low, high))
        check("AND a IN (?, ?) AND b = ?", (low[0], high[0], low[1]), lambda r: r[0] in (low[0], high[0]) and r[1] == low[1])
        backwards = " ".join(["ORDER BY a", "DESC" if sign[0] > 0 else "ASC", ", b", "DESC" if sign[1] > 0 else "ASC"])
        got = [(r.a, r.b) for r in session.execute(
            session.prepare(f"SELECT a, b FROM {table} WHERE k = ? AND (a, b) > (?, ?) {backwards}"), (k, *low))]
        assert got == [r for r in model[::-1] if full(r) > full(low)]

    run()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_partition_key(server, examples, kind):
    """Partitions are found by a key of each type, and come in the order of their tokens."""
    session, table = server.session, server.name("q")
    session.execute(f"CREATE TABLE {table} (k {kind.cql} PRIMARY KEY, v int)")
    insert = session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
    select = session.prepare(f"SELECT v FROM {table} WHERE k = ?")
    model = {}

    @settings(max_examples=3)
    @given(st.lists(kind.strategy, min_size=1, max_size=max(5, examples // 5)))
    def run(values):
        # an empty partition key is refused; two forms of one value are two partitions
        for v in values:
            if v in ("", b""):
                continue
            form = repr(canonical(v))
            model[form] = (v, len(model))
            session.execute(insert, model[form])

    run()
    for v, n in model.values():
        assert session.execute(select, (v,)).one().v == n
    rows = [(r.t, r.v) for r in session.execute(f"SELECT token(k) AS t, v FROM {table}")]
    assert sorted(v for _, v in rows) == sorted(n for _, n in model.values())
    assert [t for t, _ in rows] == sorted(t for t, _ in rows)
    middle = rows[len(rows) // 2][0] if rows else 0
    above = session.execute(session.prepare(f"SELECT v FROM {table} WHERE token(k) > ?"), (middle,))
    assert [r.v for r in above] == [v for t, v in rows if t > middle]
