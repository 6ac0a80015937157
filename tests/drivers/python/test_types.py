"""Every CQL type, written with literals, simple parameters and prepared values, and read back."""

import datetime
import decimal
import math
import uuid

import pytest
from cassandra.util import Date, Duration, OrderedMapSerializedKey, SortedSet, Time

NOW = datetime.datetime(2024, 2, 29, 12, 34, 56, 789000)
U4, U1 = uuid.UUID("9b7f0b2e-8c66-4f30-9b0a-0d1c2b3a4f5e"), uuid.UUID("f47ac10b-58cc-11ee-8c99-0242ac120002")

SCALARS = [
    ("ascii", "plain", "'plain'"),
    ("bigint", -(2**63), "-9223372036854775808"),
    ("blob", b"\x00\xff\x10", "0x00ff10"),
    ("boolean", True, "true"),
    ("date", Date("2024-02-29"), "'2024-02-29'"),
    ("decimal", decimal.Decimal("-123456789012345678901234567890.000123"),
     "-123456789012345678901234567890.000123"),
    ("double", -1.5e300, "-1.5e300"),
    ("duration", Duration(14, 3, 5_000_000_000), "1y2mo3d5s"),
    ("float", 0.5, "0.5"),
    ("inet", "2001:db8::1", "'2001:db8::1'"),
    ("int", 2**31 - 1, "2147483647"),
    ("smallint", -32768, "-32768"),
    ("text", "Ἑλένη 🏺 'quoted'", "'Ἑλένη 🏺 ''quoted'''"),
    ("time", Time("23:59:59.999999999"), "'23:59:59.999999999'"),
    ("timestamp", NOW, "'2024-02-29T12:34:56.789Z'"),
    ("timeuuid", U1, str(U1)),
    ("tinyint", -128, "-128"),
    ("uuid", U4, str(U4)),
    ("varchar", "same as text", "'same as text'"),
    ("varint", 10**40, "1" + "0" * 40),
]


@pytest.mark.parametrize("name, value, literal", SCALARS, ids=[s[0] for s in SCALARS])
def test_scalar(ks, name, value, literal):
    ks.execute(f"CREATE TABLE t (k int PRIMARY KEY, v {name})")
    insert = ks.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
    ks.execute(f"INSERT INTO t (k, v) VALUES (1, {literal})")
    ks.execute(insert, (2, value))
    ks.execute(insert, (3, None))
    rows = {r.k: r.v for r in ks.execute("SELECT * FROM t")}
    assert rows == {1: value, 2: value, 3: None}


KEYABLE = [s for s in SCALARS if s[0] not in ("duration",)]


@pytest.mark.parametrize("name, value, literal", KEYABLE, ids=[s[0] for s in KEYABLE])
def test_scalar_as_keys_and_in_collections(ks, name, value, literal):
    ks.execute(f"CREATE TABLE t (k {name}, c {name}, s set<{name}>, l list<{name}>, m map<{name}, {name}>, "
               f"fl frozen<list<{name}>>, p tuple<{name}, {name}>, PRIMARY KEY (k, c))")
    insert = ks.prepare("INSERT INTO t (k, c, s, l, m, fl, p) VALUES (?, ?, ?, ?, ?, ?, ?)")
    ks.execute(insert, (value, value, {value}, [value, value], {value: value}, [value], (value, None)))
    row = ks.execute(ks.prepare("SELECT * FROM t WHERE k = ? AND c = ?"), (value, value)).one()
    assert (row.k, row.c, row.l, row.fl, row.p) == (value, value, [value, value], [value], (value, None))
    assert set(row.s) == {value} and dict(row.m) == {value: value}
    assert ks.execute(f"SELECT count(*) FROM t WHERE k = {literal} AND c = {literal}").one()[0] == 1


def test_special_floats(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, f float, d double)")
    ks.execute("INSERT INTO t (k, f, d) VALUES (1, NaN, NaN)")
    ks.execute("INSERT INTO t (k, f, d) VALUES (2, Infinity, -Infinity)")
    ks.execute("INSERT INTO t (k, f, d) VALUES (3, -0.0, -0.0)")
    rows = {r.k: r for r in ks.execute("SELECT * FROM t")}
    assert math.isnan(rows[1].f) and math.isnan(rows[1].d)
    assert (rows[2].f, rows[2].d) == (math.inf, -math.inf)
    assert math.copysign(1, rows[3].f) == -1 and math.copysign(1, rows[3].d) == -1


def test_empty_text_and_blob_are_not_null(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, a ascii, b blob, v text)")
    ks.execute("INSERT INTO t (k, a, b, v) VALUES (1, '', 0x, '')")
    row = ks.execute("SELECT * FROM t").one()
    assert (row.a, row.b, row.v) == ("", b"", "")


def test_collections(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, s set<int>, l list<text>, m map<text, int>)")
    ks.execute("INSERT INTO t (k, s, l, m) VALUES (1, {3, 1, 2}, ['b', 'a', 'b'], {'y': 2, 'x': 1})")
    row = ks.execute("SELECT * FROM t").one()
    assert list(row.s) == [1, 2, 3] and row.l == ["b", "a", "b"] and list(row.m.items()) == [("x", 1), ("y", 2)]
    ks.execute("UPDATE t SET s = s + {9}, l = l + ['z'], m = m + {'w': 0} WHERE k = 1")
    ks.execute("UPDATE t SET s = s - {1}, l = ['first'] + l, m['x'] = 10 WHERE k = 1")
    ks.execute("UPDATE t SET l[1] = 'B', m = m - {'y'} WHERE k = 1")
    ks.execute("DELETE l[2], m['w'] FROM t WHERE k = 1")
    row = ks.execute("SELECT * FROM t").one()
    assert list(row.s) == [2, 3, 9]
    assert row.l == ["first", "B", "b", "z"]
    assert dict(row.m) == {"x": 10}
    ks.execute("UPDATE t SET s = {}, l = [], m = {} WHERE k = 1")
    row = ks.execute("SELECT * FROM t").one()
    assert (row.s, row.l, row.m) == (None, None, None)


def test_nested_and_frozen(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, n map<text, frozen<list<frozen<set<int>>>>>, "
               "f frozen<map<int, frozen<tuple<text, frozen<list<double>>>>>>)")
    n = {"a": [{1, 2}, {3}], "b": [set()]}
    f = {1: ("x", [0.5, 1.5]), -1: (None, [])}
    ks.execute(ks.prepare("INSERT INTO t (k, n, f) VALUES (1, ?, ?)"), (n, f))
    row = ks.execute("SELECT * FROM t").one()
    assert {k: [set(s) for s in v] for k, v in row.n.items()} == n
    assert dict(row.f) == f


def test_udt(ks):
    ks.execute("CREATE TYPE point (x int, y int, label text)")
    ks.execute("CREATE TYPE shape (name text, points frozen<list<frozen<point>>>)")
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, live point, f frozen<shape>, l list<frozen<point>>)")

    class Point:
        def __init__(self, x, y, label):
            self.x, self.y, self.label = x, y, label

        def __eq__(self, o):
            return (self.x, self.y, self.label) == (o.x, o.y, o.label)

    class Shape:
        def __init__(self, name, points):
            self.name, self.points = name, points

    ks.cluster.register_user_type(ks.keyspace, "point", Point)
    ks.cluster.register_user_type(ks.keyspace, "shape", Shape)
    insert = ks.prepare("INSERT INTO t (k, live, f, l) VALUES (?, ?, ?, ?)")
    ks.execute(insert, (1, Point(1, 2, "a"), Shape("s", [Point(3, 4, None)]), [Point(5, None, "c")]))
    row = ks.execute("SELECT * FROM t").one()
    assert row.live == Point(1, 2, "a")
    assert row.f.name == "s" and row.f.points == [Point(3, 4, None)] and row.l == [Point(5, None, "c")]
    ks.execute("UPDATE t SET live.y = 20 WHERE k = 1")
    ks.execute("DELETE live.label FROM t WHERE k = 1")
    assert ks.execute("SELECT live FROM t").one().live == Point(1, 20, None)
    assert ks.execute("SELECT live.y, f.name FROM t").one() == (20, "s")
    ks.execute("ALTER TYPE point ADD z int")
    row = ks.execute("SELECT live.z FROM t").one()
    assert row[0] is None


def test_vector(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v vector<float, 4>, w vector<text, 2>)")
    ks.execute("INSERT INTO t (k, v, w) VALUES (1, [0.5, -1, 2, 1e10], ['a', ''])")
    ks.execute(ks.prepare("INSERT INTO t (k, v, w) VALUES (2, ?, ?)"), ([1.0, 2.0, 3.0, 4.0], ["long" * 50, "b"]))
    rows = {r.k: (list(r.v), list(r.w)) for r in ks.execute("SELECT * FROM t")}
    assert rows[1] == ([0.5, -1.0, 2.0, 1e10], ["a", ""])
    assert rows[2] == ([1.0, 2.0, 3.0, 4.0], ["long" * 50, "b"])


def test_counter(ks):
    ks.execute("CREATE TABLE t (k int, c int, n counter, m counter, PRIMARY KEY (k, c))")
    add = ks.prepare("UPDATE t SET n = n + ?, m = m - ? WHERE k = 1 AND c = ?")
    for i in range(10):
        ks.execute(add, (i, 1, i % 2))
    assert [(r.c, r.n, r.m) for r in ks.execute("SELECT * FROM t")] == [(0, 20, -5), (1, 25, -5)]


def test_ttl_and_writetime(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v text, w text)")
    ks.execute("INSERT INTO t (k, v) VALUES (1, 'x') USING TTL 1000 AND TIMESTAMP 12345")
    row = ks.execute("SELECT ttl(v) AS t, writetime(v) AS w, writetime(w) AS n FROM t").one()
    assert 990 < row.t <= 1000 and row.w == 12345 and row.n is None


def test_json(ks):
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, m map<text, int>, v text)")
    ks.execute("""INSERT INTO t JSON '{"k": 1, "m": {"a": 1}, "v": "x"}'""")
    assert ks.execute("SELECT JSON * FROM t").one()[0] == '{"k": 1, "m": {"a": 1}, "v": "x"}'
