"""Tables and statements that write everything an SSTable can contain.

`schema` makes the tables. `rounds` returns lists of statements: after each list, the memtables are flushed. Write times are fixed, so that
every release answers the same.
"""

import random

KEYSPACE = "moved"
# Write times of the statements that give none of their own: as large as those of clients in 2026.
NOW_US = 1_780_000_000_000_000
YEARS_S = 365 * 24 * 3600
WIDE_ROWS = 4000
SPARSE_COLUMNS = 130
DEEP_COLUMNS = 35

TYPES = """ascii bigint blob boolean date decimal double duration float inet int smallint text time timestamp timeuuid tinyint uuid varint""".split()
# Literals of each type: usual, extreme and strange ones.
VALUES = {
    "ascii": ["'plain'", "''"], "bigint": ["9223372036854775807", "-9223372036854775808", "0"], "blob": ["0xcafe", "0x"],
    "boolean": ["true", "false"], "date": ["'2026-11-30'", "'0001-01-01'", "2147483648"], "decimal": ["123456789.987654321", "-1E-30", "0"],
    "double": ["3.5", "-0.0", "NaN", "Infinity"], "duration": ["1y2mo3w4d5h6m7s8ms9us10ns", "-89h4m48s", "0s"], "float": ["1.5", "-Infinity", "0"],
    "inet": ["'127.0.0.1'", "'2001:db8::1'"], "int": ["2147483647", "-2147483648", "0"], "smallint": ["32767", "-32768"],
    "text": ["'größer 漢字 🚢'", "''"], "time": ["'23:59:59.999999999'", "'00:00:00'"],
    "timestamp": ["'2026-11-30T00:00:00.001Z'", "-62135596800000"], "timeuuid": ["50554d6e-29bb-11e5-b345-feff819cdc9f"], "tinyint": ["127", "-128"],
    "uuid": ["ffffffff-ffff-4fff-bfff-ffffffffffff"], "varint": ["123456789012345678901234567890", "-1", "0"],
}
# Types of which a value may have no bytes.
EMPTY_ALLOWED = "bigint boolean decimal double float inet int timestamp timeuuid uuid varint".split()


def umlaut_name(release):
    """Returns the name of a column that is not ASCII. The first ones of 4.0 garble it in answers."""
    return "groesse" if release.name == "4.0-na" else "größe"


def compressions(release):
    """Returns the options of compression by the names of their tables."""
    found = {
        "lz4": "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}", "snappy": "{'class': 'SnappyCompressor', 'chunk_length_in_kb': 4}",
        "deflate": "{'class': 'DeflateCompressor', 'chunk_length_in_kb': 4}", "plain": "{'enabled': false}",
    }
    if release.has(4, 0):
        found |= {"zstd": "{'class': 'ZstdCompressor', 'chunk_length_in_kb': 4}", "noop": "{'class': 'NoopCompressor', 'chunk_length_in_kb': 4}",
                  "lz4_ratio": "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4, 'min_compress_ratio': 1.5}",
                  "zstd_large": "{'class': 'ZstdCompressor', 'chunk_length_in_kb': 256, 'compression_level': 9}"}
    return found


def schema(release):
    """Returns the statements that make the keyspace and its tables."""
    made = [
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}", f"USE {KEYSPACE}",
        "CREATE TYPE place (street text, number int, tags frozen<set<text>>)",
        "CREATE TYPE outer_place (name text, inner frozen<place>, numbers frozen<list<int>>)",
        f"CREATE TABLE kinds (k int PRIMARY KEY, {', '.join(f'v_{kind} {kind}' for kind in TYPES)}, v_counted tuple<int, text, frozen<list<int>>>)",
        "CREATE TABLE keys (a int, b text, c uuid, d text, e bigint, f tuple<int, text>, g timestamp, h decimal, v int, "
        "PRIMARY KEY ((a, b, c), d, e, f, g, h)) WITH CLUSTERING ORDER BY (d DESC, e ASC, f DESC, g DESC, h ASC)",
        "CREATE TABLE frozen_keys (k tuple<int, text>, c1 list<int>, c2 place, c3 map<text, int>, v int, PRIMARY KEY (k, c1, c2, c3)) "
        # 3.11 and the first ones of 4.0 take no literals of user types in descending columns.
        f"WITH CLUSTERING ORDER BY (c1 ASC, c2 {'ASC' if release.name in ('3.11-md', '3.11', '4.0-na') else 'DESC'}, c3 ASC)".replace("tuple<int, text>", "frozen<tuple<int, text>>")
        .replace("list<int>", "frozen<list<int>>").replace("place", "frozen<place>").replace("map<text, int>", "frozen<map<text, int>>"),
        "CREATE TABLE collections (k int, c int, l list<int>, s set<text>, m map<text, int>, ml list<blob>, fl frozen<list<text>>, fs frozen<set<int>>, "
        "fm frozen<map<int, text>>, u place, fu frozen<place>, uu outer_place, deep map<text, frozen<list<frozen<outer_place>>>>, "
        "st set<text> static, mt map<int, text> static, ut place static, v int, PRIMARY KEY (k, c))",
        "CREATE TABLE ends (k int, c int, v text, w text, PRIMARY KEY (k, c)) WITH default_time_to_live = 864000",
        "CREATE TABLE deletions (k int, a int, b text, c int, v text, w set<int>, st text static, PRIMARY KEY (k, a, b, c)) "
        "WITH CLUSTERING ORDER BY (a ASC, b DESC, c ASC)",
        "CREATE TABLE statics (k int, c int, s text static, t int static, v text, PRIMARY KEY (k, c))",
        "CREATE TABLE updates (k int, c int, v text, w text, PRIMARY KEY (k, c))",
        "CREATE TABLE evolving (k int, c int, a text, b int, gone set<text>, v text, PRIMARY KEY (k, c))",
        "CREATE TABLE counters (k int, c text, n counter, m counter, PRIMARY KEY (k, c))",
        "CREATE TABLE static_counters (k int, c int, s counter static, n counter, PRIMARY KEY (k, c))",
        "CREATE TABLE wide (k int, c bigint, v text, w blob, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
        f"CREATE TABLE sparse (k int, c int, {', '.join(f'v{n:03} int' for n in range(SPARSE_COLUMNS))}, PRIMARY KEY (k, c))",
        f"CREATE TABLE deep (k int, {', '.join(f'c{n:02} text' for n in range(DEEP_COLUMNS))}, PRIMARY KEY (k, {', '.join(f'c{n:02}' for n in range(DEEP_COLUMNS))}))",
        f"CREATE TABLE \"QuotedName\" (\"Key\" int PRIMARY KEY, \"a\"\"b\" text, \"{umlaut_name(release)}\" int)",
        "CREATE TABLE based (k int, c int, v int, w text, PRIMARY KEY (k, c))",
        "CREATE MATERIALIZED VIEW viewed AS SELECT * FROM based WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
        "CREATE INDEX based_w ON based (w)",
        "CREATE TABLE random_rows (k int, a text, b int, v int, t text, l list<int>, s set<text>, m map<int, text>, u place, f frozen<set<int>>, "
        "sv int static, sm map<int, text> static, PRIMARY KEY ((k), a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)",
    ]
    made += [f"CREATE TABLE compressed_{name} (k int, c int, v text, b blob, PRIMARY KEY (k, c)) WITH compression = {options}"
             for name, options in compressions(release).items()]
    if not release.has(4, 0):
        made += ["CREATE TABLE compact_dense (k int, c int, d text, v int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
                 "CREATE TABLE compact_keys (k int, c text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
                 "CREATE TABLE compact_static (k int PRIMARY KEY, v text, w int) WITH COMPACT STORAGE"]
    if release.has(5, 0):
        made.append("CREATE TABLE vectors (k int PRIMARY KEY, f vector<float, 3>, t vector<text, 2>, v vector<frozen<list<int>>, 2>, fs frozen<set<int>>)")
    return made


def key_values(rows):
    for n in range(rows):
        yield f"({n % 5}, 'b{n % 3}', 00000000-0000-4000-8000-{n % 2:012}, 'd{n % 7}', {n - 20}, ({n}, 't{n}'), {n * 1000}, {n}.5, {n})"


def insert(table, columns, values, timestamp_us=NOW_US, ttl_s=None):
    ttl = f" AND TTL {ttl_s}" if ttl_s else ""
    return f"INSERT INTO {table} ({columns}) VALUES ({values}) USING TIMESTAMP {timestamp_us}{ttl}"


def kinds():
    """Returns rows with every type: usual and extreme values, empty ones and nulls."""
    rows = []
    for n in range(max(map(len, VALUES.values()))):
        chosen = {f"v_{kind}": values[n % len(values)] for kind, values in VALUES.items()}
        rows.append(insert("kinds", f"k, v_counted, {', '.join(chosen)}", f"{n}, ({n}, 'x', [{n}]), {', '.join(chosen.values())}"))
    empty = {f"v_{kind}": f"blobAs{kind.capitalize()}(0x)" for kind in EMPTY_ALLOWED}
    rows.append(insert("kinds", f"k, v_text, v_blob, {', '.join(empty)}", f"10, '', 0x, {', '.join(empty.values())}"))
    rows.append(insert("kinds", "k, v_int, v_counted", "11, null, (null, 'a', null)"))
    rows.append(insert("kinds", "k", "12", timestamp_us=-5))
    rows.append(insert("kinds", "k, v_int", "13, 1", timestamp_us=0))
    rows.append(insert("kinds", "k, v_int", "14, 1", timestamp_us=9223372036854775806))
    return rows


def collections():
    rows = [
        insert("collections", "k, c, l, s, m, ml, fl, fs, fm, u, fu, uu, deep, st, mt, ut, v",
               "1, 1, [3, 1, 2], {'b', 'a', ''}, {'x': 1, 'y': 2}, [0x, 0x01], ['p', ''], {2, 1}, {1: 'one'}, {street: 'long', number: 7, tags: {'t'}}, "
               "{street: 'short', number: null}, {name: 'n', inner: {street: 's'}, numbers: [1]}, "
               "{'d': [{name: 'm', inner: {number: 5, tags: {'q', 'r'}}, numbers: []}]}, {'s1', 's2'}, {1: 'a', 2: 'b'}, {street: 'static'}, 5"),
        insert("collections", "k, c, l, s, m, u", "1, 2, [], {}, {}, null"),
        insert("collections", "k, c, l, s, m, u", "1, 3, null, {'only'}, {'z': 26}, {number: 3}", ttl_s=5 * YEARS_S // 10),
        f"UPDATE collections USING TIMESTAMP {NOW_US + 10} SET l = l + [4, 5], s = s + {{'c'}}, m['w'] = 9, u.number = 8, uu.name = 'changed' WHERE k = 1 AND c = 1",
        f"UPDATE collections USING TIMESTAMP {NOW_US + 11} SET l = [0] + l, s = s - {{'a'}}, m = m - {{'x'}} WHERE k = 1 AND c = 1",
        f"DELETE m['y'], u.street FROM collections USING TIMESTAMP {NOW_US + 12} WHERE k = 1 AND c = 1",
        f"UPDATE collections USING TIMESTAMP {NOW_US + 5} AND TTL {YEARS_S} SET m = m + {{'ttl': 1}}, s = s + {{'ttl'}}, l = l + [9] WHERE k = 2 AND c = 1",
        f"UPDATE collections USING TIMESTAMP {NOW_US} SET st = st + {{'s3'}}, mt[7] = 'seven', ut.number = 4 WHERE k = 2",
        f"DELETE mt[2], st FROM collections USING TIMESTAMP {NOW_US + 20} WHERE k = 1",
    ]
    later = [
        f"DELETE l, s, m, u FROM collections USING TIMESTAMP {NOW_US + 30} WHERE k = 1 AND c = 3",
        f"UPDATE collections USING TIMESTAMP {NOW_US + 40} SET s = {{'new'}}, m = {{'new': 1}}, u = {{street: 'new'}} WHERE k = 1 AND c = 3",
        f"DELETE fl, fu FROM collections USING TIMESTAMP {NOW_US + 40} WHERE k = 1 AND c = 1",
    ]
    return rows, later


def deletions():
    first = [insert("deletions", "k, a, b, c, v, w", f"{k}, {a}, '{b}', {c}, 'v{k}{a}{b}{c}', {{{c}, {a}}}", NOW_US + a)
             for k in range(8) for a in range(4) for b in "pqr" for c in range(3)]
    first += [insert("deletions", "k, st", f"{k}, 'static {k}'") for k in range(6)]
    delete = lambda where, later=100: f"DELETE FROM deletions USING TIMESTAMP {NOW_US + later} WHERE {where}"
    second = [
        delete("k = 0"), delete("k = 20"), delete("k = 1 AND a = 1"), delete("k = 1 AND a = 2 AND b = 'q'"), delete("k = 1 AND a = 3 AND b = 'q' AND c = 1"),
        delete("k = 2 AND a > 1"), delete("k = 2 AND a < 1", 101), delete("k = 2 AND a = 1 AND b > 'p' AND b <= 'r'"), delete("k = 2 AND a = 1 AND b = 'p' AND c >= 1"),
        # Overlapping ranges, of which the newer one is first, last and in the middle.
        delete("k = 3 AND a >= 0 AND a < 3", 100), delete("k = 3 AND a > 1 AND a <= 3", 110), delete("k = 3 AND a = 2", 120), delete("k = 3 AND a >= 0", 90),
        # Ranges that meet: the end of one is the start of the next.
        delete("k = 4 AND a < 2", 100), delete("k = 4 AND a >= 2", 101), delete("k = 4 AND a = 2 AND b <= 'q'", 102), delete("k = 4 AND (a, b) > (2, 'q')", 103),
        delete("k = 4 AND (a, b, c) > (0, 'q', 1) AND (a, b, c) <= (1, 'q', 2)", 104),
        delete("k = 5 AND a IN (1, 2)"), delete("k = 5 AND a = 0 AND b IN ('p', 'r')"),
        # A deletion without anything below it.
        delete("k = 30 AND a = 5 AND b > 'x'"), delete("k = 31 AND a = 1 AND b = '' AND c = 0"), delete("k = 32 AND a > 3 AND a <= 1000000"),
        f"DELETE v FROM deletions USING TIMESTAMP {NOW_US + 100} WHERE k = 6 AND a = 0 AND b = 'p' AND c = 0",
        f"DELETE w FROM deletions USING TIMESTAMP {NOW_US + 100} WHERE k = 6 AND a = 0 AND b = 'p' AND c = 1",
        f"DELETE st FROM deletions USING TIMESTAMP {NOW_US + 100} WHERE k = 3",
        f"BEGIN BATCH USING TIMESTAMP {NOW_US + 100} DELETE FROM deletions WHERE k = 7 AND a = 0; "
        "INSERT INTO deletions (k, a, b, c, v) VALUES (7, 0, 'p', 0, 'same time'); APPLY BATCH",
    ]
    third = [
        insert("deletions", "k, a, b, c, v", "0, 1, 'p', 1, 'after the partition'", NOW_US + 200), insert("deletions", "k, st", "0, 'after'", NOW_US + 200),
        insert("deletions", "k, a, b, c, v", "3, 2, 'q', 1, 'after the ranges'", NOW_US + 200),
        insert("deletions", "k, a, b, c, v", "3, 2, 'q', 2, 'below the ranges'", NOW_US + 50),
        insert("deletions", "k, a, b, c, v", "1, 3, 'q', 1, 'after the row'", NOW_US + 200, 10 * YEARS_S // 10),
        delete("k = 6", 50),
    ]
    return first, second, third


def ends(release):
    """Returns rows that expire: soon, in years, and each part at another time."""
    rows = [
        insert("ends", "k, c, v, w", "1, 1, 'default', 'x'"), insert("ends", "k, c, v, w", "1, 2, 'none', 'x'").replace("USING", "USING TTL 0 AND"),
        insert("ends", "k, c, v", "1, 3, 'soon'", ttl_s=1), insert("ends", "k, c, v, w", "1, 4, 'years', 'x'", ttl_s=10 * YEARS_S),
        f"UPDATE ends USING TTL 100000 AND TIMESTAMP {NOW_US} SET v = 'cell' WHERE k = 1 AND c = 5",
        f"UPDATE ends USING TTL 200000 AND TIMESTAMP {NOW_US + 1} SET w = 'other' WHERE k = 1 AND c = 5",
        insert("ends", "k, c", "1, 6", ttl_s=300000), f"UPDATE ends USING TIMESTAMP {NOW_US + 1} AND TTL 0 SET v = 'stays' WHERE k = 1 AND c = 6",
    ]
    if release.name in ("5.0-oa", "5.0-da"):
        rows.append(insert("ends", "k, c, v", "1, 7, 'after 2038'", ttl_s=20 * YEARS_S))
    return rows


def sparse():
    rows = [insert("sparse", "k, c", "0, 0")]
    for c, step in ((1, 1), (2, 2), (3, 3), (4, 50), (5, 129)):
        columns = range(0, SPARSE_COLUMNS, step)
        rows.append(insert("sparse", f"k, c, {', '.join(f'v{n:03}' for n in columns)}", f"0, {c}, {', '.join(str(n) for n in columns)}"))
    rows.append(insert("sparse", "k, c, v000, v064, v129", "0, 6, null, 64, null"))
    return rows


def deep():
    values = lambda changed, value: ", ".join(value if n in changed else f"'c{n}'" for n in range(DEEP_COLUMNS))
    columns = f"k, {', '.join(f'c{n:02}' for n in range(DEEP_COLUMNS))}"
    where = lambda last: " AND ".join(f"c{n:02} = 'c{n}'" for n in range(last))
    return [insert("deep", columns, f"0, {values((), '')}"), insert("deep", columns, f"0, {values((0, 31, 32, 34), chr(39) * 2)}"),
            insert("deep", columns, f"0, {values(range(DEEP_COLUMNS), chr(39) * 2)}"),
            f"DELETE FROM deep USING TIMESTAMP {NOW_US + 1} WHERE k = 0 AND {where(33)}", f"DELETE FROM deep USING TIMESTAMP {NOW_US + 2} WHERE k = 1 AND {where(32)}"]


def wide(chance):
    rows = [insert("wide", "k, c, v, w", f"1, {c * 1000}, '{'wide row ' * (c % 9)}{c}', 0x{chance.randbytes(c % 60).hex()}", NOW_US + c % 1000)
            for c in range(WIDE_ROWS)]
    rows += [f"DELETE FROM wide USING TIMESTAMP {NOW_US + 2000} WHERE k = 1 AND c >= {low} AND c < {high}"
             for low, high in ((100_000, 700_000), (650_000, 660_500), (2_000_000, 2_000_001))]
    return rows


def compressed(release, chance):
    rows = []
    for name in compressions(release):
        for c in range(60):
            # One in four rows is random, and these rows lie together, so that some chunks do not shrink.
            content = chance.randbytes(400).hex() if c < 15 else "00" * (c * 3)
            rows.append(insert(f"compressed_{name}", "k, c, v, b", f"{c // 20}, {c}, '{'text ' * (c % 30)}', 0x{content}"))
    return rows


def counters():
    first = [f"UPDATE counters SET n = n + {c + 1}, m = m - {c} WHERE k = {k} AND c = 'c{c}'" for k in range(3) for c in range(4)]
    first += [f"UPDATE static_counters SET s = s + 5 WHERE k = {k}" for k in range(3)]
    first += [f"UPDATE static_counters SET n = n + {c} WHERE k = 1 AND c = {c}" for c in range(3)]
    second = ["UPDATE counters SET n = n - 100 WHERE k = 0 AND c = 'c0'", "UPDATE counters SET m = m + 9223372036854775807 WHERE k = 0 AND c = 'c1'",
              "DELETE n FROM counters WHERE k = 1 AND c = 'c1'", "DELETE FROM counters WHERE k = 1 AND c = 'c2'", "DELETE FROM counters WHERE k = 2",
              "UPDATE static_counters SET s = s - 7 WHERE k = 1", "DELETE s FROM static_counters WHERE k = 2"]
    return first, second


def keys():
    columns = "a, b, c, d, e, f, g, h, v"
    rows = [f"INSERT INTO keys ({columns}) VALUES {values} USING TIMESTAMP {NOW_US}" for values in key_values(60)]
    rows.append(insert("keys", columns, "0, '', 00000000-0000-4000-8000-000000000000, '', 0, (null, ''), 0, 0, 1"))
    rows.append(insert("keys", columns, "0, 'b0', 00000000-0000-4000-8000-000000000000, '', blobAsBigint(0x), (1, null), blobAsTimestamp(0x), blobAsDecimal(0x), 1"))
    rows += [f"DELETE FROM keys USING TIMESTAMP {NOW_US + 1} WHERE a = 0 AND b = 'b0' AND c = 00000000-0000-4000-8000-000000000000 AND d = 'd0' AND e {words}"
             for words in ("< -15", "= -20 AND f >= (0, 'a')", "= 10 AND f = (30, 't30') AND g > 5")]
    rows += [insert("frozen_keys", "k, c1, c2, c3, v", f"({n % 2}, 'x'), [{n}, {n}], {{street: 's{n}', number: {n}, tags: {{'a', 'b'}}}}, {{'m': {n}}}, {n}") for n in range(6)]
    rows += [insert("frozen_keys", "k, c1, c2, c3, v", "(0, ''), [], {street: null}, {}, 0"), f"DELETE FROM frozen_keys USING TIMESTAMP {NOW_US + 1} WHERE k = (1, 'x') AND c1 > [2]"]
    return rows


def rounds(release, seed=1):
    """Returns the statements, in lists: memtables are flushed after each list."""
    chance = random.Random(seed)
    collections_first, collections_later = collections()
    deletions_first, deletions_second, deletions_third = deletions()
    counters_first, counters_second = counters()
    first = kinds() + keys() + collections_first + deletions_first + ends(release) + sparse() + deep() + wide(chance) + compressed(release, chance) + counters_first
    first += [insert("statics", "k, s, t", f"{k}, 'only static', {k}") for k in range(4)] + [insert("statics", "k, c, v", f"{k}, 1, 'row'") for k in range(2, 6)]
    first += [f"UPDATE updates USING TIMESTAMP {NOW_US} SET v = 'u{c}' WHERE k = 1 AND c = {c}" for c in range(4)] + [insert("updates", "k, c", f"1, {c}") for c in range(3, 6)]
    first += [insert("evolving", "k, c, a, b, gone, v", f"{k}, {c}, 'before', {c}, {{'old'}}, 'v'") for k in range(2) for c in range(3)]
    first += [insert('"QuotedName"', f'"Key", "a""b", "{umlaut_name(release)}"', f"{k}, 'quoted', {k}") for k in range(3)]
    first += [insert("based", "k, c, v, w", f"{k}, {c}, {k * c}, 'w{c}'", NOW_US) for k in range(3) for c in range(3)]
    second = collections_later + deletions_second + counters_second
    second += [f"UPDATE statics USING TIMESTAMP {NOW_US + 1} AND TTL {YEARS_S} SET s = 'expires' WHERE k = 1", f"DELETE s, t FROM statics USING TIMESTAMP {NOW_US + 1} WHERE k = 2",
               f"UPDATE updates USING TIMESTAMP {NOW_US + 1} SET v = null, w = 'w' WHERE k = 1 AND c = 1", f"DELETE FROM updates USING TIMESTAMP {NOW_US + 2} WHERE k = 1 AND c = 5"]
    second += ["ALTER TABLE evolving DROP a", "ALTER TABLE evolving DROP gone", "ALTER TABLE evolving ADD added map<int, text>", "ALTER TYPE place ADD country text"]
    second += [insert("evolving", "k, c, b, added, v", f"2, {c}, {c}, {{1: 'one'}}, 'after the drop'") for c in range(3)]
    second += [f"UPDATE based USING TIMESTAMP {NOW_US + 10} SET v = {100 + k} WHERE k = {k} AND c = 1" for k in range(3)]
    second += [f"DELETE v FROM based USING TIMESTAMP {NOW_US + 10} WHERE k = 1 AND c = 2", f"DELETE FROM based USING TIMESTAMP {NOW_US + 10} WHERE k = 2 AND c = 2",
               insert("based", "k, c, v, w", "1, 0, 0, 'ends'", NOW_US + 11, 1000000)]
    third = deletions_third + ["ALTER TABLE evolving ADD a text", "ALTER TABLE evolving ADD gone set<text>"]
    third += [f"INSERT INTO evolving (k, c, a, gone) VALUES ({k}, 1, 'again', {{'new'}})" for k in range(4)]
    third += [insert("collections", "k, c, u, fu", "3, 1, {street: 's', country: 'c'}, {number: 1, country: 'd'}")]
    if not release.has(4, 0):
        first += [insert("compact_dense", "k, c, d, v", f"{k}, {c}, '{d}', {c}") for k in range(2) for c in range(3) for d in ("", "x")]
        first += [insert("compact_dense", "k, c, v", f"{k}, 7, 7") for k in range(2)] + [insert("compact_keys", "k, c", f"{k}, 'c{k}'") for k in range(3)]
        first += [insert("compact_static", "k, v, w", f"{k}, 'v', {k}") for k in range(3)]
        second += [f"DELETE FROM compact_dense USING TIMESTAMP {NOW_US + 1} WHERE k = 0 AND c = 1", f"DELETE FROM compact_keys USING TIMESTAMP {NOW_US + 1} WHERE k = 0",
                   f"DELETE v FROM compact_static USING TIMESTAMP {NOW_US + 1} WHERE k = 1"]
    if release.has(5, 0):
        first += [insert("vectors", "k, f, t, v, fs", f"{k}, [1.5, {k}, -2], ['a', 'long {'x' * k * 100}'], [[1, 2], []], {{{k}}}") for k in range(4)]
        second += [f"DELETE f FROM vectors USING TIMESTAMP {NOW_US + 1} WHERE k = 1", f"UPDATE vectors USING TIMESTAMP {NOW_US + 1} AND TTL {YEARS_S} SET f = [0, 0, 0] WHERE k = 2"]
    return [first, second, third, *random_rounds(chance, 4, 250)]


def random_rounds(chance, rounds, statements):
    """Returns statements on few keys at few times, so that much is overwritten and deleted."""
    return [[random_statement(chance) for _ in range(statements)] for _ in range(rounds)]


def random_statement(chance):
    number = lambda: chance.choice([0, 1, 2, 3, -7, 2147483647])
    text = lambda: chance.choice(["''", "'a'", "'b'", "'é'", f"'{'long ' * 30}'"])
    listed = lambda item: ", ".join(item() for _ in range(chance.randrange(4)))
    digits = lambda: str(chance.randrange(5))
    place = lambda: chance.choice(["{street: 'x', number: 1}", "{number: 2}", "null", "{street: 'y', tags: {'t', 'u'}}"])
    values = {
        "v": lambda: str(number()), "t": text, "l": lambda: f"[{listed(digits)}]", "s": lambda: f"{{{listed(text)}}}",
        "m": lambda: f"{{{', '.join(f'{key}: {text()}' for key in range(chance.randrange(3)))}}}", "u": place, "f": lambda: f"{{{listed(digits)}}}",
    }
    statics = {"sv": values["v"], "sm": values["m"]}
    k, a, b = chance.randrange(6), chance.choice(["a", "b", "c", ""]), chance.randrange(4)
    row, when = f"k = {k} AND a = '{a}' AND b = {b}", NOW_US + chance.randrange(40)
    using = f"USING TIMESTAMP {when}" + (f" AND TTL {chance.choice([1000, 90000, 9 * YEARS_S])}" if chance.random() < 0.25 else "")
    some = lambda of: chance.sample(sorted(of), chance.randrange(1, len(of) + 1))
    kind = chance.randrange(14)
    if kind < 4:
        columns = some(values)
        return f"INSERT INTO random_rows (k, a, b, {', '.join(columns)}) VALUES ({k}, '{a}', {b}, {', '.join(values[c]() for c in columns)}) {using}"
    if kind < 6:
        return f"UPDATE random_rows {using} SET {', '.join(f'{c} = {values[c]()}' for c in some(values))} WHERE {row}"
    if kind == 6:
        return f"UPDATE random_rows {using} SET {', '.join(f'{c} = {statics[c]()}' for c in some(statics))} WHERE k = {k}"
    if kind == 7:
        change = chance.choice([f"l = l + [{digits()}]", f"s = s + {{{text()}}}", f"m[{digits()}] = {text()}", f"u.number = {digits()}", f"s = s - {{{text()}}}",
                                f"l = [{digits()}] + l"])
        return f"UPDATE random_rows {using} SET {change} WHERE {row}"
    delete = f"FROM random_rows USING TIMESTAMP {when}"
    if kind == 8:
        return f"DELETE {', '.join(some(values))} {delete} WHERE {row}"
    if kind == 9:
        return f"DELETE {chance.choice(['m[1]', 'u.street', 's', 'f'])} {delete} WHERE {row}" if chance.random() < 0.7 else f"DELETE sv, sm[1] {delete} WHERE k = {k}"
    if kind == 10:
        return f"DELETE {delete} WHERE {row}"
    if kind == 11:
        return f"DELETE {delete} WHERE k = {k} AND a = '{a}' AND b {chance.choice(['>', '>=', '<', '<='])} {b}"
    if kind == 12:
        return f"DELETE {delete} WHERE k = {k} AND a {chance.choice(['>', '>=', '<', '<=', '='])} '{a}'"
    return f"DELETE {delete} WHERE k = {k}" if chance.random() < 0.3 else f"DELETE {delete} WHERE k = {k} AND a >= 'a' AND a < 'c'"
