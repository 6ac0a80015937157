"""Ranges by index: they have the same rows as filtering, after any writes and deletions, in pages of any size and after a restart.

Each value is written twice: into the indexed column `v`, and into `u`, which has no index and is filtered.
"""

import datetime
import decimal
import random

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import SimpleStatement
from cassandra.util import uuid_from_time

SAI, SASI = "'sai'", "'org.apache.cassandra.index.sasi.SASIIndex'"
NOW = datetime.datetime(2026, 1, 1)


def whole(bits):
    """Returns a generator of whole numbers of up to `bits` bits. Small ones are more frequent."""
    def generate(chance):
        number = chance.getrandbits(chance.randint(1, bits - 1))
        return chance.choice([number, -number - 1, chance.randint(-3, 3)])
    return generate


TYPES = {
    "tinyint": whole(8), "smallint": whole(16), "int": whole(32), "bigint": whole(64), "varint": whole(200),
    "decimal": lambda chance: decimal.Decimal(whole(100)(chance)).scaleb(chance.randint(-12, 6)),
    "float": lambda chance: chance.choice([0.0, -1.5, 1e30, float("inf"), float(chance.randint(-9, 9)) / 4]),
    "double": lambda chance: chance.choice([0.0, -1e-300, float("-inf"), chance.gauss(0, 100)]),
    "timestamp": lambda chance: NOW + datetime.timedelta(milliseconds=chance.randint(-10**12, 10**12)),
    "date": lambda chance: (NOW + datetime.timedelta(days=chance.randint(-20_000, 20_000))).date(),
    "time": lambda chance: chance.randint(0, 86_399_999_999_999),
    "timeuuid": lambda chance: uuid_from_time(NOW + datetime.timedelta(seconds=chance.randint(-9, 9)), chance.getrandbits(20), chance.getrandbits(14)),
    "inet": lambda chance: f"10.0.{chance.randint(0, 3)}.{chance.randint(0, 255)}",
}


def rows(server, cql, values=None, fetch_size=None):
    return [tuple(row) for row in server.session.execute(SimpleStatement(cql, fetch_size=fetch_size), values)]


def by_filter(query):
    """Returns the query with the column without an index."""
    return query.replace("v ", "u ") + " ALLOW FILTERING"


def create(server, key_and_columns, using, v="v", is_before=True, fill=lambda table: None):
    table = server.name("ranges")
    server.session.execute(f"CREATE TABLE {table} ({key_and_columns})")
    statement = f"CREATE CUSTOM INDEX {table}_v ON {table} ({v}) USING {using}"
    if is_before:
        server.session.execute(statement)
    fill(table)
    if not is_before:
        server.session.execute(statement)
        wait_for_index(server, table)
    return table


def wait_for_index(server, table):
    """Waits until the index on existing rows is built."""
    import helenus
    query = f"SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = '{server.keyspace}'"
    helenus.wait_until(lambda: any(name == f"{table}_v" for name, in rows(server, query)), what="the index is built")


def write(session, table, generate, chance, keys, count):
    insert = session.prepare(f"INSERT INTO {table} (k, c, v, u) VALUES (?, ?, ?, ?)")
    update = session.prepare(f"UPDATE {table} SET v = ?, u = ? WHERE k = ? AND c = ?")
    for _ in range(count):
        key, value = (chance.randrange(keys), chance.randrange(4)), generate(chance)
        what = chance.random()
        if what < 0.6:
            session.execute(insert, (*key, value, value))
        elif what < 0.8:
            session.execute(update, (value, value, *key))
        elif what < 0.88:
            session.execute(f"DELETE FROM {table} WHERE k = %s AND c = %s", key)
        elif what < 0.92:
            session.execute(f"DELETE v, u FROM {table} WHERE k = %s AND c = %s", key)
        elif what < 0.96:
            session.execute(f"DELETE FROM {table} WHERE k = %s AND c > %s", key)
        else:
            session.execute(f"DELETE FROM {table} WHERE k = %s", key[:1])


def queries(table, generate, chance):
    a, b = generate(chance), generate(chance)
    for operator in ("<", "<=", ">", ">="):
        yield f"SELECT k, c, v FROM {table} WHERE v {operator} %s", [a]
    yield f"SELECT k, c, v FROM {table} WHERE v >= %s AND v < %s", [a, b]
    yield f"SELECT k, c, v FROM {table} WHERE v > %s AND v <= %s LIMIT 7", [b, a]
    yield f"SELECT k, c, v FROM {table} WHERE v = %s", [a]


def check_same(server, table, generate, chance, rounds):
    for _ in range(rounds):
        for query, values in queries(table, generate, chance):
            expected = rows(server, by_filter(query), values)
            for size in (None, 1, 3, 100):
                assert rows(server, query, values, size) == expected, (query, values, size)


@pytest.mark.parametrize("using", [SAI, SASI], ids=["sai", "sasi"])
@pytest.mark.parametrize("type_name", TYPES)
def test_ranges_of_every_type(server, examples, type_name, using):
    generate, chance = TYPES[type_name], random.Random(f"{type_name} {using}")
    table = create(server, f"k int, c int, v {type_name}, u {type_name}, PRIMARY KEY (k, c)", using)
    write(server.session, table, generate, chance, 25, 150)
    check_same(server, table, generate, chance, max(2, examples // 100))
    server.session.execute(f"DROP TABLE {table}")


def test_ranges_after_a_restart_and_of_rows_before_the_index(server):
    generate, chance = TYPES["bigint"], random.Random(1)
    columns = "k int, c int, v bigint, u bigint, PRIMARY KEY (k, c)"
    fill = lambda table: write(server.session, table, generate, chance, 25, 200)
    before = create(server, columns, SAI, fill=fill)
    after = create(server, columns, SAI, is_before=False, fill=fill)
    for table in (before, after):
        check_same(server, table, generate, chance, 2)
    if server.restart(clean=False):
        for table in (before, after):
            check_same(server, table, generate, chance, 2)
            write(server.session, table, generate, chance, 25, 50)
            check_same(server, table, generate, chance, 1)


def test_many_rows_come_in_the_order_of_their_values(server):
    table = create(server, "k int PRIMARY KEY, v int, w int, u int", SAI)
    server.session.execute(f"CREATE INDEX ON {table} (w) USING 'sai'")
    insert = server.session.prepare(f"INSERT INTO {table} (k, v, w, u) VALUES (?, ?, ?, ?)")
    execute_concurrent_with_args(server.session, insert, [(k, k % 500 - 250, k % 3, k % 500 - 250) for k in range(4_000)], 16)
    query = f"SELECT k, v FROM {table} WHERE v >= %s AND v < %s"
    expected = sorted(rows(server, by_filter(query), [-200, 200]))
    assert len(expected) == 3_200
    found = rows(server, query, [-200, 200])
    assert sorted(found) == expected and [v for _, v in found] == sorted(v for _, v in found)
    for size in (7, 100, 999):
        assert rows(server, query, [-200, 200], size) == found
    few = rows(server, by_filter(query), [-100, 100])
    for size in (None, 7, 100, 999):
        assert rows(server, query, [-100, 100], size) == few
    for limit in (1, 10, 300, 1_000):
        found = rows(server, f"{query} LIMIT {limit}", [-200, 200])
        assert len(set(found)) == limit and set(found) <= set(expected)
        assert rows(server, f"{query} LIMIT {limit}", [-200, 200], 9) == found
    # Queries that need the order of the table get it.
    counts = f"SELECT k, count(*) FROM {table} WHERE v >= %s AND v < %s GROUP BY k LIMIT 20"
    assert rows(server, counts, [-200, 200], 3) == rows(server, by_filter(counts), [-200, 200])
    tokens = f"SELECT k, v FROM {table} WHERE token(k) > 0 AND v >= %s AND v < %s"
    assert rows(server, tokens, [-200, 200], 50) == rows(server, by_filter(tokens), [-200, 200])
    assert rows(server, f"SELECT count(*) FROM {table} WHERE v >= %s AND v < %s", [-200, 200]) == [(3_200,)]
    one = f"SELECT k, v FROM {table} WHERE k = 7 AND v < %s"
    assert rows(server, one, [0]) == rows(server, by_filter(one), [0])


def test_several_indexes_in_one_query(server):
    table = create(server, "k int PRIMARY KEY, v int, w int, x int, u int", SAI)
    for column in "wx":
        server.session.execute(f"CREATE INDEX ON {table} ({column}) USING 'sai'")
    insert = server.session.prepare(f"INSERT INTO {table} (k, v, w, x, u) VALUES (?, ?, ?, ?, ?)")
    execute_concurrent_with_args(server.session, insert, [(k, k, k % 2, k % 7, k) for k in range(1_200)], 16)
    for where, values in (("v < %s AND w = 1", [30]), ("v > %s AND w = 0 AND x = 3", [1_100]), ("v > %s AND x > 4", [-1]),
                          ("v > %s AND w = 1 AND x <= 5", [-1]), ("v <= %s AND w >= 1 AND x < 1", [900])):
        query = f"SELECT k, v FROM {table} WHERE {where}"
        expected = rows(server, by_filter(query), values)
        for size in (None, 1_000, 10, 3):
            assert sorted(rows(server, query, values, size)) == sorted(expected), (query, size)


def test_static_and_clustering_columns(server):
    chance = random.Random(3)
    table = create(server, "k int, c int, s int static, t int static, d int, PRIMARY KEY (k, c)", SAI, v="s")
    server.session.execute(f"CREATE INDEX ON {table} (c) USING 'sai'")
    for _ in range(400):
        k, c, s = chance.randrange(40), chance.randrange(300), chance.randrange(50)
        server.session.execute(f"INSERT INTO {table} (k, c, s, t, d) VALUES (%s, %s, %s, %s, %s)", (k, c, s, s, c))
    for k in range(0, 40, 5):
        server.session.execute(f"DELETE s, t FROM {table} WHERE k = %s", (k,))
    query = f"SELECT k, c, s FROM {table} WHERE s > %s AND s <= %s"
    expected = rows(server, query.replace("s >", "t >").replace("s <=", "t <=") + " ALLOW FILTERING", [10, 40])
    for size in (None, 1, 7):
        assert rows(server, query, [10, 40], size) == expected, size
    query = f"SELECT k, c FROM {table} WHERE c >= %s AND c < %s"
    expected = rows(server, query.replace("c >=", "d >=").replace("c <", "d <") + " ALLOW FILTERING", [20, 90])
    for size in (None, 1, 7):
        assert rows(server, query, [20, 90], size) == expected, size


def test_beginnings_of_text(server):
    chance = random.Random(4)
    table = create(server, "k int PRIMARY KEY, v text, u text", SASI)
    model = {}
    for k in range(300):
        model[k] = "".join(chance.choice("ab\u00e9z") for _ in range(chance.randint(1, 6)))
        server.session.execute(f"INSERT INTO {table} (k, v) VALUES (%s, %s)", (k, model[k]))
    for k in range(0, 300, 3):
        model[k] = chance.choice("ab") + str(k)
        server.session.execute(f"UPDATE {table} SET v = %s WHERE k = %s", (model[k], k))
    for prefix in ("a", "ab", "\u00e9", "zz", "b1", "no"):
        found = rows(server, f"SELECT k, v FROM {table} WHERE v LIKE %s", [prefix + "%"], chance.choice([None, 5]))
        assert sorted(found) == sorted((k, v) for k, v in model.items() if v.startswith(prefix)), prefix
    value = model[1]
    for operator in ("=", "LIKE"):
        found = rows(server, f"SELECT k FROM {table} WHERE v {operator} %s", [value])
        assert sorted(found) == [(k,) for k, v in model.items() if v == value]
