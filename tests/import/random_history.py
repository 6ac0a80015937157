"""Random statements on random tables: writes and deletions of everything that has a write time, and changes of the schema."""

import random

import random_tables
from features import NOW_US, YEARS_S

# Different write times, so few that many are equal.
TIMES = 40
STRANGE_TIMES_US = (0, 1)
# Cassandra 5.0 can't read its own files with a partition that was deleted at a negative time.
BEFORE_1970_US = -5
# No release can read cells of a column that was dropped before their write time.
LATEST_US = 9223372036854775806
# Values expire before the snapshot, or long after the comparison.
SOON_S, LATER_S = 1, (3600, 90_000, 9 * YEARS_S)
COMPARISONS = (">", ">=", "<", "<=")


class History:
    """Tables of a keyspace, and the statements on them. A seed determines all."""

    def __init__(self, seed, release, keyspace):
        self.chance, self.release, self.keyspace = random.Random(seed), release, keyspace
        self.users = random_tables.user_types(self.chance, release, keyspace)
        self.tables = [random_tables.Table(self.chance, release, f"t{n}", self.users) for n in range(self.chance.randrange(3, 8))]
        self.phases = self.chance.randrange(2, 5)
        self.added = 0

    def schema(self):
        """Returns the statements that make the keyspace."""
        made = [f"CREATE KEYSPACE {self.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"]
        for user in self.users:
            fields = ", ".join(f"{name} {part.name}" for name, part in zip(user.fields, user.parts))
            made.append(f"CREATE TYPE {self.keyspace}.{user.name} ({fields})")
        return made + [table.statement(self.keyspace) for table in self.tables]

    def statements(self):
        """Returns the statements of a phase."""
        found = []
        for table in self.tables:
            count = self.chance.randrange(800, 1600) if table.is_wide else self.chance.randrange(10, 150)
            found += [Statements(self, table).any() for _ in range(count)]
        self.chance.shuffle(found)
        return found

    def alterations(self):
        """Yields changes of the schema after a phase, as pairs of a statement and a function, which is called if the statement succeeded."""
        for table in self.tables:
            for _ in range(2):
                if self.chance.random() < 0.3:
                    yield self._alteration(table)
        if self.chance.random() < 0.3:
            user, kind, name = self.chance.choice(self.users), random_tables.scalar(self.chance), self._new_name()
            yield f"ALTER TYPE {self.keyspace}.{user.name} ADD {name} {kind.name}", lambda: (user.fields.append(name), user.parts.append(kind))

    def _new_name(self):
        self.added += 1
        return f"added{self.added}"

    def _alteration(self, table):
        alter, choice = f"ALTER TABLE {self.keyspace}.{table.name}", self.chance.random()
        if table.dropped and choice < 0.4:
            columns, column = self.chance.choice(table.dropped)
            static = " static" if columns is table.statics else ""
            return f"{alter} ADD {column[0]} {column[1].name}{static}", lambda: (columns.append(column), table.dropped.remove((columns, column)))
        if choice < 0.8 and table.has_drops and len(table.columns) > 1:
            columns = table.statics if table.statics and self.chance.random() < 0.3 else table.columns
            column = self.chance.choice(columns)
            # A drop without a time of its own is newer than all cells.
            return f"{alter} DROP {column[0]}", lambda: (columns.remove(column), table.dropped.append((columns, column)))
        if choice < 0.9:
            name, kind = self._new_name(), random_tables.column_type(self.chance, self.release, self.users)
            if table.is_counter:
                kind = random_tables.Type("counter", "counter")
            return f"{alter} ADD {name} {kind.name}", lambda: table.columns.append((name, kind))
        number = self.chance.randrange(len(table.partition))
        old, new = table.partition[number], (self._new_name(), table.partition[number][1])
        return f"{alter} RENAME {old[0]} TO {new[0]}", lambda: table.partition.__setitem__(number, new)


class Statements:
    """Random statements on one table."""

    def __init__(self, history, table):
        self.history, self.chance, self.table = history, history.chance, table
        self.name = f"{history.keyspace}.{table.name}"
        self.partition = self.chance.choice(table.partitions)
        self.clustering = [self.chance.choice(values) for values in table.values]

    def any(self):
        """Returns a statement, or a batch of some."""
        if self.chance.random() > 0.06:
            return self._single()
        if self.table.is_counter:
            kind, parts = "COUNTER ", [self._increment() for _ in range(3)]
        else:
            # Statements of a batch may have one time. Conditions are in no batch.
            kind = self.chance.choice(("", "UNLOGGED "))
            parts = [self._again()._plain() for _ in range(self.chance.randrange(2, 5))]
        return f"BEGIN {kind}BATCH {'; '.join(parts)}; APPLY BATCH"

    def _again(self):
        return Statements(self.history, self.table)

    def _single(self):
        if self.table.is_counter:
            return self._increment() if self.chance.random() < 0.93 else self._delete(is_timed=False)
        if self.chance.random() < 0.02:
            key, values = zip(*self._row())
            return f"INSERT INTO {self.name} ({', '.join(key)}) VALUES ({', '.join(values)}) IF NOT EXISTS"
        return self._plain()

    def _plain(self):
        choice = self.chance.random()
        if choice < 0.4:
            return self._insert()
        if choice < 0.6:
            return self._update(self.table.columns, self._row())
        if choice < 0.65 and self.table.statics:
            return self._update(self.table.statics, self._partition())
        if choice < 0.75:
            return self._change()
        return self._delete(is_timed=True)

    def _partition(self):
        return [(name, value) for (name, _), value in zip(self.table.partition, self.partition)]

    def _row(self):
        return self._partition() + [(name, value) for (name, _), value in zip(self.table.clustering, self.clustering)]

    def _where(self, key):
        return " AND ".join(f"{name} = {value}" for name, value in key)

    def _using(self, is_write):
        parts = []
        if self.chance.random() < 0.9:
            strange = STRANGE_TIMES_US + (BEFORE_1970_US,) * is_write + (LATEST_US,) * (not self.table.has_drops)
            time_us = self.chance.choice(strange) if self.chance.random() < 0.01 else NOW_US + self.chance.randrange(TIMES)
            parts.append(f"TIMESTAMP {time_us}")
        if is_write and self.chance.random() < 0.25:
            parts.append(f"TTL {SOON_S if self.chance.random() < 0.2 else self.chance.choice(LATER_S)}")
        return f" USING {' AND '.join(parts)}" if parts else ""

    def _some(self, columns):
        return self.chance.sample(columns, self.chance.randrange(1, min(len(columns), 12) + 1)) if columns else []

    def _value(self, kind):
        return "null" if self.chance.random() < 0.06 else kind.literal(self.chance)

    def _insert(self):
        chosen = self._some(self.table.columns + self.table.statics) if self.chance.random() < 0.9 else []
        given = self._row() + [(name, self._value(kind)) for name, kind in chosen]
        return f"INSERT INTO {self.name} ({', '.join(n for n, _ in given)}) VALUES ({', '.join(v for _, v in given)}){self._using(True)}"

    def _update(self, columns, key):
        changes = ", ".join(f"{name} = {self._value(kind)}" for name, kind in self._some(columns))
        return f"UPDATE {self.name}{self._using(True)} SET {changes} WHERE {self._where(key)}"

    def _increment(self):
        columns, key = (self.table.statics, self._partition()) if self.table.statics and self.chance.random() < 0.2 else (self.table.columns, self._row())
        amount = self.chance.choice((1, 2, 5, 1000, 2**62))
        changes = ", ".join(f"{name} = {name} {self.chance.choice('+-')} {amount}" for name, _ in self._some(columns))
        return f"UPDATE {self.name} SET {changes} WHERE {self._where(key)}"

    def _change(self):
        """Returns a change of elements or fields. Without such a column, returns an insert."""
        many = [(name, kind, is_static) for columns, is_static in ((self.table.columns, False), (self.table.statics, True))
                for name, kind in columns if kind.has_many_cells]
        if not many:
            return self._insert()
        name, kind, is_static = self.chance.choice(many)
        where = self._where(self._partition() if is_static else self._row())
        part = lambda number=0: kind.parts[number].literal(self.chance, True)
        changes = {
            "list": lambda: [f"{name} = {name} + [{part()}, {part()}]", f"{name} = [{part()}] + {name}"],
            "set": lambda: [f"{name} = {name} + {{{part()}, {part()}}}", f"{name} = {name} - {{{part()}}}"],
            "map": lambda: [f"{name}[{part()}] = {part(1)}", f"{name} = {name} + {{{part()}: {part(1)}}}", f"{name} = {name} - {{{part()}}}",
                            f"{name}[{part()}] = null"],
            "user": lambda: [f"{name}.{field} = {self._value(kind)}" for field, kind in zip(kind.fields, kind.parts)],
        }[kind.kind]()
        return f"UPDATE {self.name}{self._using(True)} SET {self.chance.choice(changes)} WHERE {where}"

    def _delete(self, is_timed):
        using = self._using(False) if is_timed else ""
        choice = self.chance.random()
        if choice < 0.35:
            columns, key = self.table.columns, self._row()
            if self.table.statics and self.chance.random() < 0.2:
                columns, key = self.table.statics, self._partition()
            return f"DELETE {', '.join(self._deleted(name, kind) for name, kind in self._some(columns))} FROM {self.name}{using} WHERE {self._where(key)}"
        if choice < 0.6 or not self.table.clustering:
            return f"DELETE FROM {self.name}{using} WHERE {self._where(self._row())}"
        if choice < 0.65:
            return f"DELETE FROM {self.name}{using} WHERE {self._where(self._partition())}"
        return f"DELETE FROM {self.name}{using} WHERE {self._where(self._partition())} AND {self._range()}"

    def _deleted(self, name, kind):
        if not kind.has_many_cells or self.chance.random() < 0.3 or kind.kind == "list":
            return name
        if kind.kind == "user":
            return f"{name}.{self.chance.choice(kind.fields)}"
        return f"{name}[{kind.parts[0].literal(self.chance, True)}]"

    def _range(self):
        """Returns a restriction of clustering columns: a prefix, a slice below a prefix, or a slice of several columns."""
        names, size = [name for name, _ in self.table.clustering], len(self.clustering)
        one, other = self._again().clustering, self._again().clustering
        first = self.chance.randrange(size)
        prefix = [f"{name} = {value}" for name, value in zip(names[:first], one)]
        if self.chance.random() < 0.25 and size > 1:
            several, low = ", ".join(names[: first + 1]), self.chance.choice((">", ">="))
            bounds = [f"({several}) {low} ({', '.join(one[: first + 1])})"]
            if self.chance.random() < 0.5:
                bounds.append(f"({several}) {self.chance.choice(('<', '<='))} ({', '.join(other[: first + 1])})")
            return " AND ".join(bounds)
        choice = self.chance.random()
        if choice < 0.3:
            return " AND ".join(prefix + [f"{names[first]} = {one[first]}"])
        if choice < 0.65:
            return " AND ".join(prefix + [f"{names[first]} {self.chance.choice(COMPARISONS)} {one[first]}"])
        low, high = self.chance.choice((">", ">=")), self.chance.choice(("<", "<="))
        return " AND ".join(prefix + [f"{names[first]} {low} {one[first]}", f"{names[first]} {high} {other[first]}"])
