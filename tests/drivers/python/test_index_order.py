"""ORDER BY a column by its index: the rows that sorting all of them gives, from either end, in pages of any size."""

import datetime
import random

import pytest
from cassandra import InvalidRequest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import SimpleStatement

ROWS = 3_000
START = datetime.datetime(2026, 1, 1)
SAI, SASI = "'sai'", "'org.apache.cassandra.index.sasi.SASIIndex'"
TYPES = {
    "bigint": (SAI, lambda chance: chance.choice([chance.randint(-50, 50), chance.getrandbits(62), -chance.getrandbits(40)])),
    "timestamp": (SAI, lambda chance: START + datetime.timedelta(seconds=chance.randint(-10**8, 10**8))),
    "text": (SASI, lambda chance: "".join(chance.choice("abz\u00e9") for _ in range(chance.randint(1, 5)))),
}


def rows(session, cql, values=(), fetch_size=None):
    return [tuple(row) for row in session.execute(SimpleStatement(cql, fetch_size=fetch_size), values)]


@pytest.mark.parametrize("type_name", TYPES)
def test_orders_are_those_of_sorting(ks, type_name):
    using, value = TYPES[type_name]
    chance = random.Random(type_name)
    ks.execute(f"CREATE TABLE t (k int PRIMARY KEY, v {type_name}, w int)")
    ks.execute(f"CREATE CUSTOM INDEX by_v ON t (v) USING {using}")
    model = {k: value(chance) for k in range(ROWS)}
    insert = ks.prepare("INSERT INTO t (k, v, w) VALUES (?, ?, ?)")
    execute_concurrent_with_args(ks, insert, [(k, v, k % 3) for k, v in model.items()], 16)
    for k in range(0, ROWS, 7):
        model[k] = value(chance)
        ks.execute(insert, (k, model[k], k % 3))
    for k in range(0, ROWS, 11):
        del model[k]
        ks.execute("DELETE FROM t WHERE k = %s", (k,))
    for where, is_kept in (("", lambda k: True), ("WHERE w = 1", lambda k: k % 3 == 1), ("WHERE k = 5", lambda k: k == 5)):
        kept = [v for k, v in model.items() if is_kept(k)]
        for is_descending in (False, True):
            direction = "DESC" if is_descending else "ASC"
            for limit in (1, 40, 2_900):
                query = f"SELECT k, v FROM t {where} ORDER BY v {direction} LIMIT {limit} ALLOW FILTERING"
                found = rows(ks, query)
                assert [v for _, v in found] == sorted(kept, reverse=is_descending)[:limit], query
                assert len({k for k, _ in found}) == len(found) and all(model[k] == v for k, v in found), query
                for size in (7, 1_000):
                    assert rows(ks, query, (), size) == found, (query, size)


def test_a_prepared_order_follows_what_is_written(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    ks.execute("CREATE INDEX ON t (v) USING 'sai'")
    last = ks.prepare("SELECT k FROM t WHERE v <= ? ORDER BY v DESC LIMIT ?")
    for k in range(30):
        ks.execute("INSERT INTO t (k, v) VALUES (%s, %s)", (k % 5, k))
        assert [row.k for row in ks.execute(last, (k, 3))] == [(k - back) % 5 for back in range(min(k + 1, 3))]
    with pytest.raises(InvalidRequest, match="With a LIMIT"):
        ks.execute("SELECT k FROM t ORDER BY v")
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        ks.execute("SELECT k FROM t WHERE k = 1 ORDER BY v LIMIT 1")
