"""A table with columns of all types, and statements of all kinds."""

NATIVE = {
    "ascii": "'a'", "bigint": "1", "blob": "0x0102", "boolean": "true", "date": "'2026-01-01'", "decimal": "1.50", "double": "1.5", "duration": "1h2m",
    "float": "1.5", "inet": "'127.0.0.1'", "int": "7", "smallint": "7", "text": "'text'", "time": "'10:00:00.5'", "timestamp": "'2026-01-01 10:00:00+0000'",
    "timeuuid": "50554d6e-29bb-11e5-b345-feff819cdc9f", "tinyint": "7", "uuid": "50554d6e-29bb-41e5-b345-feff819cdc9f", "varint": "12345678901234567890",
}
TYPES = ["CREATE TYPE k.place (street text, number int)"]
_NATIVE_COLUMNS = ", ".join(f"c_{name} {name}" for name in NATIVE)
COLUMNS = (f"p int, q text, c int, d text, st int static, sm map<text, int> static, {_NATIVE_COLUMNS}, l list<int>, s set<text>, m map<int, text>, "
           "fl frozen<list<int>>, fm frozen<map<text, int>>, u k.place, um frozen<k.place>, t tuple<int, text>, v vector<float, 3>, "
           "nested map<text, frozen<set<int>>>, PRIMARY KEY ((p, q), c, d)")
ORDER = "CLUSTERING ORDER BY (c DESC, d ASC)"
KEY = "p, q, c, d"


def row(p, c, d="'d'", q="'q'"):
    return f"p = {p} AND q = {q} AND c = {c} AND d = {d}"


def insert(p, c, columns, d="'d'", using=""):
    names, values = ", ".join(columns), ", ".join(columns.values())
    return f"INSERT INTO k.everything ({KEY}, {names}) VALUES ({p}, 'q', {c}, {d}, {values}){using}"


ALL = {f"c_{name}": value for name, value in NATIVE.items()} | {
    "l": "[1, 2, 3]", "s": "{'a', 'b'}", "m": "{1: 'one', 2: 'two'}", "fl": "[1, 1]", "fm": "{'x': 1}", "u": "{street: 'High', number: 1}",
    "um": "{street: 'Low', number: 2}", "t": "(1, 'one')", "v": "[1.0, 2.0, 3.0]", "nested": "{'n': {1, 2}}"}


def statements(first):
    """Returns statements of all kinds on partitions from `first` on."""
    a, b, e = first, first + 1, first + 2
    return [
        insert(a, 1, ALL),
        insert(a, 2, ALL, using=" USING TTL 86400"),
        insert(a, 3, {"c_int": "1", "c_text": "'x'"}, using=" USING TIMESTAMP 1000"),
        insert(a, 4, {"l": "[1]"}),
        f"INSERT INTO k.everything ({KEY}) VALUES ({a}, 'q', 5, 'only a key')",
        f"UPDATE k.everything SET l = l + [4, 5] WHERE {row(a, 1)}",
        f"UPDATE k.everything SET l = [0] + l WHERE {row(a, 1)}",
        f"UPDATE k.everything SET l[1] = 11 WHERE {row(a, 1)}",
        f"DELETE l[2] FROM k.everything WHERE {row(a, 1)}",
        f"UPDATE k.everything SET s = s + {{'c'}}, m[3] = 'three', u.number = 9 WHERE {row(a, 1)}",
        f"UPDATE k.everything USING TTL 86400 SET m[4] = 'four', s = s + {{'d'}}, c_int = 5 WHERE {row(a, 1)}",
        f"DELETE m[1], u.street FROM k.everything WHERE {row(a, 1)}",
        f"UPDATE k.everything SET s = s - {{'a'}} WHERE {row(a, 1)}",
        f"UPDATE k.everything SET s = {{'z'}}, m = {{9: 'nine'}}, l = [9, 9], u = {{street: 'New'}} WHERE {row(a, 2)}",
        f"DELETE s, m, l, u, c_int, fl FROM k.everything WHERE {row(a, 4)}",
        f"UPDATE k.everything SET c_int = 1 WHERE {row(b, 1)}",
        f"UPDATE k.everything SET c_int = null, c_text = 'kept' WHERE {row(b, 1)}",
        f"UPDATE k.everything SET st = 5, sm = {{'a': 1}} WHERE p = {b} AND q = 'q'",
        f"UPDATE k.everything USING TTL 86400 SET sm['b'] = 2 WHERE p = {b} AND q = 'q'",
        f"UPDATE k.everything SET st = 6 WHERE p = {e} AND q = 'static only'",
        *(insert(b, c, {"c_int": str(c)}, d) for c in range(10, 20) for d in ("'a'", "'b'", "'c'")),
        f"DELETE FROM k.everything WHERE p = {b} AND q = 'q' AND c > 17",
        f"DELETE FROM k.everything WHERE p = {b} AND q = 'q' AND c >= 10 AND c < 12",
        f"DELETE FROM k.everything WHERE p = {b} AND q = 'q' AND c = 13",
        f"DELETE FROM k.everything WHERE p = {b} AND q = 'q' AND c = 14 AND d > 'a'",
        f"DELETE FROM k.everything WHERE p = {b} AND q = 'q' AND c = 15 AND d <= 'b'",
        f"DELETE FROM k.everything WHERE {row(b, 16, repr('b'))}",
        insert(e, 1, ALL),
        f"DELETE FROM k.everything WHERE p = {e} AND q = 'q'",
        insert(e, 2, {"c_text": "'after the deletion'"}),
        f"BEGIN BATCH {insert(e, 3, {'c_int': '1'})}; {insert(e, 4, {'c_int': '2'})}; UPDATE k.everything SET st = 1 WHERE p = {e} AND q = 'q'; APPLY BATCH",
        f"{insert(e, 5, {'c_int': '1'})} IF NOT EXISTS",
        f"UPDATE k.everything SET c_int = 2 WHERE {row(e, 5)} IF c_int = 1",
        f"UPDATE k.everything SET c_int = 3 WHERE {row(e, 5)} IF c_int = 1",
        # A value that has expired soon.
        insert(e, 6, {"c_int": "1"}, using=" USING TTL 1"),
    ]


# Before the copy begins, and after it.
SOONER = statements(1)
LATER = [*statements(11), *statements(1)[5:15], "DELETE FROM k.everything WHERE p = 2 AND q = 'q'"]
