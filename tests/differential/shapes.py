"""The shapes of tables whose histories are compared: their schema, what is written into them, and what is read.

Statements are templates. `$t` is the table and `$p0`, `$p1`, `$v0` to `$v5` are the history's own keys and indexed values, which the
player fills in. The generator (`histories.py`) replaces the other marks by chance:

    #p  one of the history's two partitions      #c  a clustering value      #v  a value      #k  a key of a map
    #i  an indexed value of the history's own    @ts  USING TIMESTAMP, where the history has explicit ones     @ttl  likewise, and a TTL

Differences that COMPAT.md names are left out; each omission says so.
"""

import dataclasses

# A history's timestamps: from a small range in any order, with ties and late writes; always rising; or the server's.
ANY, RISING, SERVER = "any", "rising", "server"
# Tables whose tombstones are kept for long, where late writes stay deleted, and tables whose tombstones go at once, where nothing is late.
KEPT, PURGED = "kept", "purged"


@dataclasses.dataclass(frozen=True)
class Shape:
    """One kind of table. Templates come with a weight; reads also with `rows` if their order is compared, or `set`. The first read is the
    one that the shape is about: half of the histories do no other."""

    name: str
    schema: tuple
    writes: tuple
    reads: tuple
    # Reads that show all there is, for the end.
    final: tuple
    # Writes from the middle of a history on. Empty if they do not differ.
    late_writes: tuple = ()
    stamps: tuple = (ANY, ANY, RISING, SERVER)
    # True if Cassandra's answers are right. Otherwise Helenus is only compared with itself.
    judged: bool = True
    # True if that only holds as long as Cassandra keeps its tombstones.
    judged_if_kept: bool = False
    batch: str = "BATCH"

    def is_judged(self, life):
        """Returns True if Cassandra's answers are right for a table of that life."""
        return self.judged and (life == KEPT or not self.judged_if_kept)


# Numbers of rows, of times and of what is left of a TTL. What is left is compared by the million seconds (see `player.py`).
FIGURES = "SELECT c, writetime(v) AS at, ttl(v) AS ttl_v, writetime(w) AS at_w, ttl(w) AS ttl_w FROM $t WHERE p = #p"

PLAIN_WRITES = (
    (6, "INSERT INTO $t (p, c, v, w) VALUES (#p, #c, #v, #v) @ttl"),
    (3, "INSERT INTO $t (p, c, v) VALUES (#p, #c, #v) @ttl"),
    (2, "INSERT INTO $t (p, c) VALUES (#p, #c) @ttl"),
    (1, "INSERT INTO $t (p, c, v) VALUES (#p, #c, null) @ts"),
    (4, "UPDATE $t @ttl SET v = #v WHERE p = #p AND c = #c"),
    (2, "UPDATE $t @ttl SET w = #v, v = #v WHERE p = #p AND c = #c"),
    (1, "UPDATE $t @ts SET w = null WHERE p = #p AND c = #c"),
    (2, "DELETE v FROM $t @ts WHERE p = #p AND c = #c"),
    (1, "DELETE v, w FROM $t @ts WHERE p = #p AND c = #c"),
    (3, "DELETE FROM $t @ts WHERE p = #p AND c = #c"),
    (1, "DELETE FROM $t @ts WHERE p = #p AND c IN (#c, #c)"),
    (2, "DELETE FROM $t @ts WHERE p = #p AND c > #c"),
    (1, "DELETE FROM $t @ts WHERE p = #p AND c <= #c"),
    (2, "DELETE FROM $t @ts WHERE p = #p AND c >= #c AND c < 4"),
    (3, "DELETE FROM $t @ts WHERE p = #p"),
)

PLAIN_READS = (
    (8, "rows", "SELECT * FROM $t WHERE p = #p AND c = #c"),
    (2, "rows", "SELECT v FROM $t WHERE p = #p AND c = #c"),
    (3, "rows", "SELECT * FROM $t WHERE p = #p"),
    (2, "rows", "SELECT c, v FROM $t WHERE p = #p AND c > #c"),
    (2, "rows", "SELECT c, w FROM $t WHERE p = #p AND c >= #c AND c < #c"),
    (2, "rows", "SELECT c, v FROM $t WHERE p = #p ORDER BY c DESC LIMIT 2"),
    (1, "rows", "SELECT c, v FROM $t WHERE p = #p AND c IN (#c, #c)"),
    (1, "rows", "SELECT count(*), sum(v), max(w) FROM $t WHERE p = #p"),
    (1, "rows", "SELECT * FROM $t WHERE token(p) >= token(#p) AND token(p) <= token(#p)"),
    (1, "set", "SELECT * FROM $t WHERE p IN ($p0, $p1)"),
)

ALL_ROWS = tuple(("rows", f"SELECT * FROM $t WHERE p = $p0 AND c = {c}") for c in range(4)) + (
    ("rows", "SELECT * FROM $t WHERE p = $p0"),
    ("rows", "SELECT * FROM $t WHERE p = $p1"),
)

ROWS = Shape(
    "rows",
    ("CREATE TABLE $t (p int, c int, v int, w int, PRIMARY KEY (p, c)) $with",),
    PLAIN_WRITES,
    # The figures are of explicit timestamps alone.
    PLAIN_READS + ((2, "figures", FIGURES),),
    ALL_ROWS + (("figures", FIGURES.replace("#p", "$p0")),),
)

STATICS = Shape(
    "statics",
    ("CREATE TABLE $t (p int, c int, s int static, v int, w int, PRIMARY KEY (p, c)) $with",),
    PLAIN_WRITES + (
        (4, "UPDATE $t @ttl SET s = #v WHERE p = #p"),
        (3, "INSERT INTO $t (p, s) VALUES (#p, #v) @ttl"),
        (3, "INSERT INTO $t (p, c, s, v) VALUES (#p, #c, #v, #v) @ttl"),
        (3, "DELETE s FROM $t @ts WHERE p = #p"),
    ),
    PLAIN_READS + (
        (4, "rows", "SELECT DISTINCT p, s FROM $t WHERE p = #p"),
        (2, "rows", "SELECT s FROM $t WHERE p = #p LIMIT 1"),
    ),
    ALL_ROWS + (("rows", "SELECT DISTINCT p, s FROM $t WHERE p = $p0"),),
)

SINGLE = Shape(
    "single",
    ("CREATE TABLE $t (p int PRIMARY KEY, v int, w int) $with",),
    (
        (6, "INSERT INTO $t (p, v, w) VALUES (#p, #v, #v) @ttl"),
        (2, "INSERT INTO $t (p) VALUES (#p) @ttl"),
        (3, "UPDATE $t @ttl SET v = #v WHERE p = #p"),
        (2, "DELETE v FROM $t @ts WHERE p = #p"),
        (4, "DELETE FROM $t @ts WHERE p = #p"),
        (1, "DELETE FROM $t @ts WHERE p IN ($p0, $p1)"),
    ),
    (
        (6, "rows", "SELECT * FROM $t WHERE p = #p"),
        (2, "figures", "SELECT writetime(v) AS at, ttl(v) AS ttl_v, ttl(w) AS ttl_w FROM $t WHERE p = #p"),
        (2, "set", "SELECT * FROM $t WHERE p IN ($p0, $p1)"),
        (1, "rows", "SELECT count(*) FROM $t WHERE p = #p"),
        (1, "rows", "SELECT * FROM $t WHERE token(p) >= token(#p) AND token(p) <= token(#p)"),
    ),
    (("rows", "SELECT * FROM $t WHERE p = $p0"), ("rows", "SELECT * FROM $t WHERE p = $p1")),
)

CLUSTERED = Shape(
    "clustered",
    ("CREATE TABLE $t (p int, q int, c int, d int, v int, PRIMARY KEY ((p, q), c, d)) "
     "WITH CLUSTERING ORDER BY (c ASC, d DESC) $and",),
    (
        (8, "INSERT INTO $t (p, q, c, d, v) VALUES (#p, 0, #c, #c, #v) @ttl"),
        (3, "UPDATE $t @ttl SET v = #v WHERE p = #p AND q = 0 AND c = #c AND d = #c"),
        (2, "DELETE FROM $t @ts WHERE p = #p AND q = 0 AND c = #c AND d = #c"),
        (2, "DELETE FROM $t @ts WHERE p = #p AND q = 0 AND c = #c"),
        (2, "DELETE FROM $t @ts WHERE p = #p AND q = 0 AND c = #c AND d > #c"),
        (2, "DELETE FROM $t @ts WHERE p = #p AND q = 0 AND c >= #c"),
        (2, "DELETE FROM $t @ts WHERE p = #p AND q = 0 AND (c, d) > (#c, #c)"),
        (1, "DELETE FROM $t @ts WHERE p = #p AND q = 0 AND c IN (#c, #c)"),
        (1, "DELETE FROM $t @ts WHERE p = #p AND q = 0"),
    ),
    (
        (8, "rows", "SELECT * FROM $t WHERE p = #p AND q = 0 AND c = #c AND d = #c"),
        (3, "rows", "SELECT * FROM $t WHERE p = #p AND q = 0 AND c = #c"),
        (3, "rows", "SELECT * FROM $t WHERE p = #p AND q = 0 AND c > #c"),
        (2, "rows", "SELECT * FROM $t WHERE p = #p AND q = 0 AND c = #c AND d >= #c"),
        (2, "rows", "SELECT * FROM $t WHERE p = #p AND q = 0"),
        (2, "rows", "SELECT c, d, v FROM $t WHERE p = #p AND q = 0 ORDER BY c DESC, d ASC"),
        (1, "rows", "SELECT c, count(*) FROM $t WHERE p = #p AND q = 0 GROUP BY c"),
    ),
    tuple(("rows", f"SELECT * FROM $t WHERE p = $p0 AND q = 0 AND c = {c} AND d = {d}") for c in range(2) for d in range(3))
    + (("rows", "SELECT * FROM $t WHERE p = $p0 AND q = 0"), ("rows", "SELECT * FROM $t WHERE p = $p1 AND q = 0")),
)

# Removing elements from a list reads them first. They have no TTL, because it might pass between write and removal.
AT_ROW = "WHERE p = #p AND c = #c"
COLLECTIONS = Shape(
    "collections",
    ("CREATE TABLE $t (p int, c int, l list<int>, m map<int, int>, e set<int>, f frozen<set<int>>, PRIMARY KEY (p, c)) $with",),
    (
        (4, "INSERT INTO $t (p, c, m, e, f) VALUES (#p, #c, {1: #v, 2: #v}, {#v, #v}, {#v}) @ttl"),
        (2, "INSERT INTO $t (p, c, l) VALUES (#p, #c, [#v, #v]) @ts"),
        (3, f"UPDATE $t @ttl SET m[#k] = #v {AT_ROW}"),
        (2, f"UPDATE $t @ttl SET m = m + {{#k: #v}} {AT_ROW}"),
        (2, f"UPDATE $t @ts SET m = m - {{#k}} {AT_ROW}"),
        (2, f"UPDATE $t @ttl SET m = {{#k: #v}} {AT_ROW}"),
        (2, f"UPDATE $t @ttl SET e = e + {{#v}} {AT_ROW}"),
        (2, f"UPDATE $t @ts SET e = e - {{#v}} {AT_ROW}"),
        (2, f"UPDATE $t @ttl SET e = {{#v, #v}} {AT_ROW}"),
        (2, f"UPDATE $t @ts SET l = [#v] {AT_ROW}"),
        (2, f"UPDATE $t @ts SET l = l + [#v] {AT_ROW}"),
        (1, f"UPDATE $t @ts SET l = [#v] + l {AT_ROW}"),
        (1, f"UPDATE $t @ts SET l = l - [#v] {AT_ROW}"),
        (2, f"DELETE m[#k] FROM $t @ts {AT_ROW}"),
        (2, f"DELETE e, l FROM $t @ts {AT_ROW}"),
        (2, f"DELETE m FROM $t @ts {AT_ROW}"),
        (2, f"DELETE FROM $t @ts {AT_ROW}"),
        (1, "DELETE FROM $t @ts WHERE p = #p AND c >= #c"),
        (2, "DELETE FROM $t @ts WHERE p = #p"),
    ),
    (
        (8, "rows", f"SELECT * FROM $t {AT_ROW}"),
        (2, "rows", f"SELECT m[#k], e FROM $t {AT_ROW}"),
        (3, "rows", "SELECT * FROM $t WHERE p = #p"),
        (1, "rows", "SELECT c, l, f FROM $t WHERE p = #p AND c > #c"),
    ),
    ALL_ROWS,
)

FIELDS = Shape(
    "fields",
    ("CREATE TYPE IF NOT EXISTS pair (a int, b int)",
     "CREATE TABLE $t (p int, c int, u pair, g frozen<pair>, PRIMARY KEY (p, c)) $with"),
    (
        (4, "INSERT INTO $t (p, c, u, g) VALUES (#p, #c, {a: #v, b: #v}, {a: #v, b: #v}) @ttl"),
        (3, f"UPDATE $t @ttl SET u.a = #v {AT_ROW}"),
        (3, f"UPDATE $t @ttl SET u.b = #v {AT_ROW}"),
        (2, f"UPDATE $t @ttl SET u = {{a: #v}} {AT_ROW}"),
        (2, f"DELETE u.a FROM $t @ts {AT_ROW}"),
        (2, f"DELETE u FROM $t @ts {AT_ROW}"),
        (2, f"DELETE FROM $t @ts {AT_ROW}"),
        (2, "DELETE FROM $t @ts WHERE p = #p"),
    ),
    (
        (6, "rows", f"SELECT * FROM $t {AT_ROW}"),
        (2, "rows", f"SELECT u.a, g.b FROM $t {AT_ROW}"),
        (3, "rows", "SELECT * FROM $t WHERE p = #p"),
    ),
    ALL_ROWS,
)

COUNTER_INCREMENTS = (
    (6, f"UPDATE $t SET n = n + #v {AT_ROW}"),
    (2, f"UPDATE $t SET n = n - #v, o = o + 1 {AT_ROW}"),
    (2, f"UPDATE $t SET o = o + #v {AT_ROW}"),
)
ROW_DELETIONS = (
    (3, f"DELETE FROM $t {AT_ROW}"),
    (2, "DELETE FROM $t WHERE p = #p AND c > #c"),
    (3, "DELETE FROM $t WHERE p = #p"),
)
COUNTER_READS = (
    (8, "rows", f"SELECT * FROM $t {AT_ROW}"),
    (3, "rows", "SELECT * FROM $t WHERE p = #p"),
    (2, "rows", "SELECT c, n FROM $t WHERE p = #p AND c >= #c"),
)
COUNTER_SCHEMA = ("CREATE TABLE $t (p int, c int, n counter, o counter, PRIMARY KEY (p, c)) $with",)

# COMPAT.md: a counter that was deleted counts on from nothing, in Cassandra often from what it was. So nothing is counted after deletions.
COUNTERS = Shape(
    "counters", COUNTER_SCHEMA, COUNTER_INCREMENTS, COUNTER_READS, ALL_ROWS,
    late_writes=ROW_DELETIONS + ((2, f"DELETE n FROM $t {AT_ROW}"),), stamps=(SERVER,), batch="COUNTER BATCH",
)
# A counter that was deleted on its own ignores increments while its tombstone is kept, for an undefined time. So only rows are deleted.
RECOUNTED = Shape(
    "recounted", COUNTER_SCHEMA, COUNTER_INCREMENTS + ROW_DELETIONS, COUNTER_READS, ALL_ROWS,
    stamps=(SERVER,), judged=False, batch="",
)

# COMPAT.md: an index finds a row whose INSERT had a TTL that has passed if older columns make it one. So INSERTs have none here.
INDEXED_WRITES = (
    (6, "INSERT INTO $t (p, c, v, w) VALUES (#p, #c, #i, #v) @ts"),
    (4, f"UPDATE $t @ttl SET v = #i {AT_ROW}"),
    (2, f"UPDATE $t @ttl SET w = #v {AT_ROW}"),
    (2, f"UPDATE $t @ttl SET e = e + {{#i}} {AT_ROW}"),
    (1, f"UPDATE $t @ts SET e = e - {{#i}} {AT_ROW}"),
    (1, f"UPDATE $t @ts SET e = {{#i}} {AT_ROW}"),
    (1, f"DELETE v FROM $t @ts {AT_ROW}"),
    (1, f"DELETE e FROM $t @ts {AT_ROW}"),
    (2, f"DELETE FROM $t @ts {AT_ROW}"),
    (2, "DELETE FROM $t @ts WHERE p = #p AND c > #c"),
    (2, "DELETE FROM $t @ts WHERE p = #p"),
)
INDEXED_READS = (
    (8, "set", "SELECT p, c, v, w FROM $t WHERE v = #i"),
    (2, "set", "SELECT p, c, v FROM $t WHERE v = #i AND p = #p"),
    (2, "set", "SELECT p, c, w FROM $t WHERE v = #i AND w = #v ALLOW FILTERING"),
    (3, "set", "SELECT p, c, e FROM $t WHERE e CONTAINS #i"),
    (4, "rows", f"SELECT * FROM $t {AT_ROW}"),
    (2, "rows", "SELECT * FROM $t WHERE p = #p"),
)
BY_INDEX = tuple(("set", f"SELECT p, c, v, w FROM $t WHERE v = $v{n}") for n in range(4))
BY_ELEMENT = tuple(("set", f"SELECT p, c, e FROM $t WHERE e CONTAINS $v{n}") for n in range(4))
INDEXED_COLUMNS = "CREATE TABLE $t (p int, c int, v int, w int, e set<int>, PRIMARY KEY (p, c)) $with"

INDEXED = Shape(
    "indexed",
    (INDEXED_COLUMNS, "CREATE INDEX ON $t (v)", "CREATE INDEX ON $t (e)"),
    INDEXED_WRITES, INDEXED_READS, BY_INDEX + BY_ELEMENT + ALL_ROWS,
)
# Bounded on both sides: beyond them lie rows of other histories, which are played at the same time.
RANGE_READS = (
    (4, "set", "SELECT p, c, v, w FROM $t WHERE v > #i AND v <= #i"),
    (4, "set", "SELECT p, c, v FROM $t WHERE v >= #i AND v < #i"),
    (2, "set", "SELECT p, c, v FROM $t WHERE v <= #i AND p = #p"),
    (2, "set", "SELECT p, c FROM $t WHERE v < #i AND e CONTAINS #i"),
)
SAI = Shape(
    "sai",
    (INDEXED_COLUMNS, "CREATE INDEX ON $t (v) USING 'sai'", "CREATE INDEX ON $t (e) USING 'sai'"),
    INDEXED_WRITES, INDEXED_READS + RANGE_READS, BY_INDEX + BY_ELEMENT + ALL_ROWS,
)

VIEW_SCHEMA = (
    "CREATE TABLE $t (p int, c int, v int, w int, PRIMARY KEY (p, c)) $with",
    "CREATE MATERIALIZED VIEW ${t}_v AS SELECT * FROM $t WHERE v IS NOT NULL AND p IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, p, c)",
)
VIEW_WRITES = (
    (6, "INSERT INTO $t (p, c, v, w) VALUES (#p, #c, #i, #v) @ts"),
    (3, f"UPDATE $t @ts SET v = #i {AT_ROW}"),
    (3, f"UPDATE $t @ts SET w = #v {AT_ROW}"),
    (1, f"DELETE v FROM $t @ts {AT_ROW}"),
    (1, f"DELETE w FROM $t @ts {AT_ROW}"),
    (2, f"DELETE FROM $t @ts {AT_ROW}"),
    (2, "DELETE FROM $t @ts WHERE p = #p AND c > #c"),
    (2, "DELETE FROM $t @ts WHERE p = #p"),
)
VIEW_READS = (
    (8, "rows", "SELECT * FROM ${t}_v WHERE v = #i"),
    (2, "rows", "SELECT * FROM ${t}_v WHERE v = #i AND p = #p"),
    (4, "rows", f"SELECT * FROM $t {AT_ROW}"),
    (2, "rows", "SELECT * FROM $t WHERE p = #p"),
)
ALL_VIEWS = tuple(("rows", f"SELECT * FROM ${{t}}_v WHERE v = $v{n}") for n in range(4)) + ALL_ROWS

# Cassandra's views go wrong when base rows are written out of order, so such histories are compared with Helenus alone.
# Purged tombstones make Cassandra's views wrong too: cells of a former row of the view come back, although the base table does not have them.
# COMPAT.md: a view's writetimes are its own, so none is read.
VIEWED = Shape("viewed", VIEW_SCHEMA, VIEW_WRITES, VIEW_READS, ALL_VIEWS, stamps=(RISING, SERVER), judged_if_kept=True)
VIEWED_ANYHOW = Shape("viewed_anyhow", VIEW_SCHEMA, VIEW_WRITES, VIEW_READS, ALL_VIEWS, stamps=(ANY,), judged=False)

CONDITIONAL = Shape(
    "conditional",
    ("CREATE TABLE $t (p int, c int, s int static, v int, PRIMARY KEY (p, c)) $with",),
    (
        (6, "INSERT INTO $t (p, c, v) VALUES (#p, #c, #v) IF NOT EXISTS"),
        (3, f"UPDATE $t SET v = #v {AT_ROW} IF v = #v"),
        (2, f"UPDATE $t SET v = #v {AT_ROW} IF v = null"),
        (2, f"UPDATE $t SET v = #v {AT_ROW} IF EXISTS"),
        (2, f"DELETE FROM $t {AT_ROW} IF EXISTS"),
        (1, f"DELETE v FROM $t {AT_ROW} IF v > #v"),
        (2, "UPDATE $t SET s = #v WHERE p = #p IF s = null"),
        (1, "UPDATE $t SET s = #v WHERE p = #p IF s < #v"),
        (2, "BEGIN BATCH INSERT INTO $t (p, c, v) VALUES ($p0, #c, #v) IF NOT EXISTS; UPDATE $t SET s = #v WHERE p = $p0; APPLY BATCH"),
        (3, "INSERT INTO $t (p, c, v) VALUES (#p, #c, #v)"),
        (3, f"DELETE FROM $t {AT_ROW}"),
        (2, "DELETE FROM $t WHERE p = #p AND c >= #c"),
        (3, "DELETE FROM $t WHERE p = #p"),
    ),
    PLAIN_READS[:1] + (
        (3, "rows", "SELECT * FROM $t WHERE p = #p"),
        (2, "rows", "SELECT DISTINCT p, s FROM $t WHERE p = #p"),
    ),
    ALL_ROWS,
    stamps=(SERVER,), batch="",
)

SHAPES = {shape.name: shape for shape in (
    ROWS, STATICS, SINGLE, CLUSTERED, COLLECTIONS, FIELDS, COUNTERS, RECOUNTED, INDEXED, SAI, VIEWED, VIEWED_ANYHOW, CONDITIONAL)}


def table_name(shape, life):
    return f"{shape.name}_{life}"


def schema(life_options):
    """Returns the statements that create all tables. `life_options` has the table options of each life."""
    statements = []
    for shape in SHAPES.values():
        for life, options in life_options.items():
            name = table_name(shape, life)
            for statement in shape.schema:
                text = statement.replace("${t}", name).replace("$t", name)
                text = text.replace("$with", f"WITH {options}" if options else "")
                statements.append(text.replace("$and", f"AND {options}" if options else "").strip())
    return statements
