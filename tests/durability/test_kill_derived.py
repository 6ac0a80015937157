"""Indexes and views after kill -9 at any moment, also of a node that has just started, with DDL between: each agrees with its
table, and the table with what was acknowledged."""

import random
import threading
import time

import pytest

import helenus

pytestmark = pytest.mark.process

WRITERS = 4
PARTITIONS, ROWS, VALUES, ELEMENTS = 6, 12, 8, 9
ACKS_BEFORE_KILL = (50, 800)
# Small enough that there is a flush every few rounds.
SETTINGS = ["--set", "memtable_bytes=4MiB", "--set", "row_cache_bytes=1MiB", "--set", "block_cache_bytes=1MiB"]


class Table:
    """A table with what is derived from it, and what its rows may be."""

    def __init__(self, session, number):
        self.name, self.session = f"t{number}", session
        name = self.name
        # Every other index is in the order of values.
        self.using = " USING 'sai'" if number % 2 else ""
        # By key: the states that the row may have, each None or (v, tags); more than one if a write was not answered.
        self.rows = {}
        session.execute(f"CREATE TABLE k.{name} (p int, c int, v int, tags set<int>, pad text, PRIMARY KEY (p, c))")
        self.create_index()
        session.execute(f"CREATE INDEX {name}_tags ON k.{name} (tags)")
        session.execute(f"CREATE MATERIALIZED VIEW k.{name}_by_v AS SELECT v, p, c, tags FROM k.{name} "
                        "WHERE v IS NOT NULL AND p IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, p, c)")

    def create_index(self):
        self.session.execute(f"CREATE INDEX IF NOT EXISTS {self.name}_v ON k.{self.name} (v){self.using}")

    def drop_index(self):
        self.session.execute(f"DROP INDEX IF EXISTS k.{self.name}_v")

    def truncate(self):
        self.session.execute(f"TRUNCATE k.{self.name}")
        self.rows = {}

    def states(self, key):
        return self.rows.get(key, {None})

    def check(self, session):
        """Compares the table with what it may hold, and what is derived from it with the table."""
        stored = {(r.p, r.c): (r.v, frozenset(r.tags or ())) for r in session.execute(f"SELECT p, c, v, tags FROM k.{self.name}")}
        for key in self.rows.keys() | stored.keys():
            assert stored.get(key) in self.states(key), (self.name, key)
            self.rows[key] = {stored.get(key)}  # what is there now must stay
        view = {((r.p, r.c), (r.v, frozenset(r.tags or ()))) for r in session.execute(f"SELECT * FROM k.{self.name}_by_v")}
        assert view == {(key, row) for key, row in stored.items() if row[0] is not None}, self.name
        indexes = session.execute("SELECT index_name FROM system_schema.indexes WHERE keyspace_name = 'k'").all()
        if (f"{self.name}_v",) in indexes:
            for v in range(VALUES):
                assert self.found(session, f"v = {v}") == {key for key, row in stored.items() if row[0] == v}, (self.name, v)
                if self.using:
                    above = {key for key, row in stored.items() if row[0] is not None and row[0] > v}
                    assert self.found(session, f"v > {v}") == above, (self.name, v)
        for tag in range(ELEMENTS):
            found = self.found(session, f"tags CONTAINS {tag}")
            assert found == {key for key, row in stored.items() if tag in row[1]}, (self.name, tag)

    def found(self, session, condition):
        return {(r.p, r.c) for r in session.execute(f"SELECT p, c FROM k.{self.name} WHERE {condition}")}


def random_write(dice, table, key):
    """Returns a statement, and its effect on a row."""
    where = "p = {} AND c = {}".format(*key)
    v, tag = dice.randrange(VALUES), dice.randrange(ELEMENTS)
    kind = dice.choice(["insert", "insert", "insert", "delete", "unset", "tag"])
    if kind == "insert":
        pad = "x" * dice.choice([1, 20, 20_000])
        text = f"INSERT INTO k.{table} (p, c, v, tags, pad) VALUES ({key[0]}, {key[1]}, {v}, {{{tag}}}, '{pad}')"
        return text, lambda row: (v, frozenset({tag}))
    if kind == "delete":
        return f"DELETE FROM k.{table} WHERE {where}", lambda row: None
    if kind == "unset":
        return f"UPDATE k.{table} SET v = null WHERE {where}", lambda row: row and (None, row[1])
    # With a value, so that the row is there afterwards whether it was before or not.
    return (f"UPDATE k.{table} SET v = {v}, tags = tags + {{{tag}}} WHERE {where}",
            lambda row: (v, (row[1] if row else frozenset()) | {tag}))


class Writer(threading.Thread):
    """Writes to partitions of its own, one statement or logged batch at a time, until the server dies."""

    def __init__(self, session, tables, number, seed):
        super().__init__(daemon=True)
        self.session, self.tables, self.number = session, tables, number
        self.dice = random.Random(seed)
        self.acks = 0

    def run(self):
        while self.write():
            self.acks += 1

    def write(self):
        targets = set()
        for _ in range(self.dice.choice([1, 1, 1, 6])):
            partition = self.dice.randrange(PARTITIONS) * WRITERS + self.number
            targets.add((self.dice.randrange(len(self.tables)), partition, self.dice.randrange(ROWS)))
        writes = []
        for table, *key in sorted(targets):
            table = self.tables[table]
            text, after = random_write(self.dice, table.name, key)
            writes.append((table, tuple(key), text, after))
        texts = [text for _, _, text, _ in writes]
        batch = f"BEGIN BATCH {'; '.join(texts)}; APPLY BATCH"
        try:
            self.session.execute(texts[0] if len(texts) == 1 else batch)
            is_acknowledged = True
        except Exception:
            is_acknowledged = False
        for table, key, _, after in writes:
            before = table.states(key)
            new = {after(row) for row in before}
            table.rows[key] = new if is_acknowledged else before | new
        return is_acknowledged


def change_schema(dice, session, tables):
    """Makes a random change of the schema, or none. The next writes occur during its effects."""
    table = dice.choice(tables)
    change = dice.choice(["table", "truncate", "create index", "drop index", "none"])
    if change == "table" and len(tables) < 6:
        tables.append(Table(session, len(tables)))
    elif change == "truncate":
        table.truncate()
    elif change == "create index":
        table.create_index()
        seen = "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = 'k'"
        helenus.wait_until(lambda: (f"{table.name}_v",) in session.execute(seen).all(), 60, "the index built")
    elif change == "drop index":
        table.drop_index()


@pytest.mark.timeout(1800)
def test_what_is_derived_survives_kills(tmp_path, request):
    dice = random.Random(request.config.getoption("--seed") or 30)
    node = helenus.Node(tmp_path, args=SETTINGS).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        tables = [Table(session, n) for n in range(2)]
        for _ in range(request.config.getoption("--rounds")):
            for table in tables:
                table.session = session
            change_schema(dice, session, tables)
            writers = [Writer(session, tables, number, dice.random()) for number in range(WRITERS)]
            [w.start() for w in writers]
            goal = dice.randint(*ACKS_BEFORE_KILL)
            helenus.wait_until(lambda: sum(w.acks for w in writers) >= goal, 60, f"{goal} acknowledged writes", 0.001)
            node.kill()
            [w.join(120) for w in writers]
            node.close_clients()
            for _ in range(dice.choice([0, 0, 1, 2])):
                node.start(wait=False)
                time.sleep(dice.random() / 2)  # so that it is killed at any moment of its start
                node.kill()
            node.start()
            session = node.connect()
            for table in tables:
                table.check(session)
    finally:
        node.close()
