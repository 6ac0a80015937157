"""Changes of a store at random: rows, tables, branches, snapshots and restores, by a seed. What each keyspace shows is remembered as it is read."""

import collections
import json
import time

from tool import done

KEYSPACE = "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
# Kept low, so that rows are changed and deleted again and again.
KEYS, CLUSTERINGS, GROUPS = 12, 4, 3
TABLES_MAX, KEYSPACES_MAX, SNAPSHOTS_MAX = 3, 5, 4

# State at a time: the rows of tables and views by name, and the tables with an index on `g`.
State = collections.namedtuple("State", "time_ms rows indexed")


def now_ms():
    """Returns a time in ms that is later than all earlier writes and earlier than all later ones."""
    time.sleep(0.003)
    found = int(time.time() * 1000)
    time.sleep(0.003)
    return found


def is_ours(keyspace):
    return not keyspace.startswith("system")


def tables(session):
    """Returns the tables of each keyspace, without views."""
    found = {row[0]: [] for row in session.execute("SELECT keyspace_name FROM system_schema.keyspaces") if is_ours(row[0])}
    for keyspace, name in session.execute("SELECT keyspace_name, table_name FROM system_schema.tables"):
        if keyspace in found:
            found[keyspace].append(name)
    return found


def views(session):
    """Returns the names of views, with their tables."""
    rows = session.execute("SELECT keyspace_name, view_name, base_table_name FROM system_schema.views")
    return {f"{row[0]}.{row[1]}": f"{row[0]}.{row[2]}" for row in rows if is_ours(row[0])}


def indexed(session):
    """Returns the tables with an index on `g`."""
    rows = session.execute("SELECT keyspace_name, table_name FROM system_schema.indexes")
    return {f"{row[0]}.{row[1]}" for row in rows if is_ours(row[0])}


def rows_of(session, name, as_of=""):
    return sorted(json.dumps(json.loads(row[0]), sort_keys=True) for row in session.execute(f"SELECT JSON * FROM {name} {as_of}"))


def by_group(session, name, as_of=""):
    """Returns the keys of rows, by the index on `g`."""
    return {g: sorted(tuple(row) for row in session.execute(f"SELECT k, c FROM {name} {as_of} WHERE g = {g}")) for g in range(GROUPS)}


def remember(session):
    names = [f"{keyspace}.{name}" for keyspace, of in tables(session).items() for name in of] + list(views(session))
    return State(now_ms(), {name: rows_of(session, name) for name in names}, indexed(session))


def check(session, state, as_of="", renamed=lambda name: name, only=""):
    """Compares what a moment shows with what is remembered of it, of the keyspace `only` or of all."""
    for name, expected in state.rows.items():
        if not name.startswith(only):
            continue
        there = renamed(name)
        found = rows_of(session, there, as_of)
        assert found == expected, f"{there} {as_of}: {found} instead of {expected}"
        if name in state.indexed:
            keys = [(row["k"], row["c"], row["g"]) for row in map(json.loads, expected)]
            by = {g: sorted((k, c) for k, c, of in keys if of == g) for g in range(GROUPS)}
            assert by_group(session, there, as_of) == by, f"{there} {as_of}: its index"


class Chance:
    """Changes the store of a node. `session` is replaced when the node is started again."""

    def __init__(self, node, random):
        self.node, self.random = node, random
        self.session = node.connect()
        self.made = 0
        self.snapshots = {}
        self.done = collections.Counter()

    def step(self, times):
        """Makes one random change. `times` are those that may be branched from or restored."""
        changes = [(self.write, 40), (self.make_keyspace, 2), (self.make_table, 3), (self.alter, 3), (self.index, 2), (self.view, 2),
                   (self.truncate, 1), (self.drop_table, 1), (self.branch, 3), (self.drop_keyspace, 2), (self.snapshot, 2), (self.clear, 1),
                   (self.restore_snapshot, 1), (self.flush, 2), (self.compact, 1), (self.restart, 1)]
        if times:
            changes += [(self.branch_of_time, 3), (self.restore_time, 1)]
        change, = self.random.choices([change for change, _ in changes], [weight for _, weight in changes])
        if change(times) is not False:
            self.done[change.__name__] += 1

    def run(self, statement):
        return self.session.execute(statement)

    def name(self, kind):
        self.made += 1
        return f"{kind}{self.made}"

    def any_table(self):
        """Returns the name of a random table. `None` if there are no tables."""
        names = [f"{keyspace}.{name}" for keyspace, of in tables(self.session).items() for name in of]
        return self.random.choice(names) if names else None

    def any_keyspace(self):
        found = list(tables(self.session))
        return self.random.choice(found) if found else None

    def write(self, _):
        table = self.any_table()
        if table is None:
            return self.make_keyspace(_)
        k, c, g, n = (self.random.randrange(of) for of in (KEYS, CLUSTERINGS, GROUPS, 1000))
        insert = f"INSERT INTO {table} (k, c, g, v) VALUES ({k}, {c}, {g}, '{n}')"
        self.run(self.random.choice([
            insert, insert, insert,
            f"UPDATE {table} SET v = '{n}', l = l + [{n}] WHERE k = {k} AND c = {c}",
            f"UPDATE {table} SET m['{n % 3}'] = {n} WHERE k = {k} AND c = {c}",
            f"DELETE FROM {table} WHERE k = {k} AND c = {c}",
            f"DELETE v, m FROM {table} WHERE k = {k} AND c = {c}",
            f"DELETE FROM {table} WHERE k = {k} AND c > {c}",
            f"DELETE FROM {table} WHERE k = {k}",
            f"BEGIN BATCH {insert}; UPDATE {table} SET s = {n} WHERE k = {k}; APPLY BATCH",
            f"INSERT INTO {table} (k, c, g, v) VALUES ({k}, {c}, {g}, 'if') IF NOT EXISTS",
        ]))

    def make_keyspace(self, _):
        if len(tables(self.session)) >= KEYSPACES_MAX:
            return False
        self.run(KEYSPACE.format(self.name("ks")))

    def make_table(self, _):
        keyspace = self.any_keyspace()
        if keyspace is None or len(tables(self.session)[keyspace]) >= TABLES_MAX:
            return False
        self.run(f"CREATE TABLE {keyspace}.{self.name('t')} (k int, c int, s int static, g int, v text, l list<int>, m map<text, int>, PRIMARY KEY (k, c))")

    def alter(self, _):
        table = self.any_table()
        if table is None or table in views(self.session).values():
            return False
        self.run(f"ALTER TABLE {table} ADD {self.name('added')} int")

    def index(self, _):
        table = self.any_table()
        if table is None or table in indexed(self.session):
            return False
        self.run(f"CREATE INDEX {self.name('i')} ON {table} (g)")
        self.built(table)

    def built(self, table):
        """Waits until an index can be read."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.run(f"SELECT k FROM {table} WHERE g = 0")
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def view(self, _):
        table = self.any_table()
        if table is None or table in views(self.session).values():
            return False
        keyspace, view = table.split(".")[0], self.name("v")
        self.run(f"CREATE MATERIALIZED VIEW {keyspace}.{view} AS SELECT k, c, g, v FROM {table} WHERE k IS NOT NULL AND c IS NOT NULL AND g IS NOT NULL"
                 " PRIMARY KEY (g, k, c)")
        expected = lambda: sum(json.loads(row)["g"] is not None for row in rows_of(self.session, table))
        deadline = time.monotonic() + 60
        while len(rows_of(self.session, f"{keyspace}.{view}")) != expected():
            assert time.monotonic() < deadline, "the view is built"
            time.sleep(0.05)

    def truncate(self, _):
        table = self.any_table()
        if table is None:
            return False
        self.run(f"TRUNCATE {table}")

    def drop_table(self, _):
        table = self.any_table()
        if table is None or table in views(self.session).values():
            return False
        self.run(f"DROP TABLE {table}")

    def drop_keyspace(self, _):
        keyspace = self.any_keyspace()
        if keyspace is None:
            return False
        self.run(f"DROP KEYSPACE {keyspace}")

    def branch(self, _):
        keyspace = self.any_keyspace()
        if keyspace is None or len(tables(self.session)) >= KEYSPACES_MAX:
            return False
        self.run(f"CREATE KEYSPACE {self.name('b')} AS COPY OF {keyspace}")

    def branch_of_time(self, times):
        state = self.random.choice(times)
        keyspaces = {name.split(".")[0] for name in state.rows}
        if not keyspaces or len(tables(self.session)) >= KEYSPACES_MAX:
            return False
        keyspace, branch = self.random.choice(sorted(keyspaces)), self.name("b")
        self.run(f"CREATE KEYSPACE {branch} AS COPY OF {keyspace} AS OF {state.time_ms}")
        check(self.session, state, renamed=lambda name: f"{branch}.{name.split('.')[1]}", only=f"{keyspace}.")

    def snapshot(self, _):
        keyspace, tag = self.any_keyspace(), self.name("tag")
        if keyspace is None or not tables(self.session)[keyspace] or len(self.snapshots) >= SNAPSHOTS_MAX:
            return False
        done(self.node, "snapshot", "-t", tag, keyspace)
        self.snapshots[tag] = keyspace, remember(self.session)

    def clear(self, _):
        if not self.snapshots:
            return False
        tag = self.random.choice(sorted(self.snapshots))
        del self.snapshots[tag]
        done(self.node, "clearsnapshot", "-t", tag)

    def restore_snapshot(self, _):
        if not self.snapshots:
            return False
        tag = self.random.choice(sorted(self.snapshots))
        keyspace, state = self.snapshots[tag]
        self.restore(keyspace, state, "-t", tag)

    def restore_time(self, times):
        state = self.random.choice(times)
        keyspaces = {name.split(".")[0] for name in state.rows}
        if not keyspaces:
            return False
        self.restore(self.random.choice(sorted(keyspaces)), state, "--as-of", str(state.time_ms))

    def restore(self, keyspace, state, *words):
        # Tables that were made since may have views or indexes of the same names, which a restore refuses.
        if keyspace in tables(self.session):
            self.run(f"DROP KEYSPACE {keyspace}")
        done(self.node, "restore", *words, keyspace)
        check(self.session, state, only=f"{keyspace}.")

    def flush(self, _):
        done(self.node, "flush")

    def compact(self, _):
        done(self.node, "compact")

    def restart(self, _):
        self.node.close_clients()
        self.random.choice([self.node.kill, self.node.terminate])()
        self.node.start()
        self.session = self.node.connect()
