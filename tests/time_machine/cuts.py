"""Moments of a cluster, and what must hold of what they show: acknowledged writes are there, those begun later are not, batches are whole, and
indexes, views and tables agree."""

import time

from writers import BATCHES, COUNTERS, GROUPS, KEYS, KEYSPACE, PARTS


class Cut:
    """Bounds of the writes that a cut may show: at least `least`, acknowledged before it, and at most `most`, begun by its end."""

    def __init__(self, name, least):
        self.name, self.least, self.most = name, least, None
        # Content of the first read, which must never change.
        self.seen = None

    def __str__(self):
        return self.name

    @property
    def as_of(self):
        """Returns the clause of statements that read this cut."""
        return f"AS OF SNAPSHOT {self.name}"

    @property
    def option(self):
        """Returns the options of `nodetool restore` for this cut."""
        return "-t", self.name


class Time(Cut):
    """An earlier time, in milliseconds."""

    def __init__(self, time_ms, least):
        super().__init__(f"time {time_ms}", least)
        self.time_ms = time_ms

    @property
    def as_of(self):
        return f"AS OF {self.time_ms}"

    @property
    def option(self):
        return "--as-of", str(self.time_ms)


def contents(session, as_of, keyspace=KEYSPACE):
    """Returns the content of all tables, by key."""
    run = lambda statement: list(session.execute(statement, timeout=15))
    rows = {row.k: (row.n, row.g) for row in run(f"SELECT k, n, g FROM {keyspace}.rows {as_of}")}
    view = {row.k: (row.n, row.g) for row in run(f"SELECT k, n, g FROM {keyspace}.rows_by_g {as_of}")}
    index = {row.k: (row.n, row.g) for g in range(GROUPS) for row in run(f"SELECT k, n, g FROM {keyspace}.rows {as_of} WHERE g = {g}")}
    batches = {}
    for row in run(f"SELECT b, part, n FROM {keyspace}.batches {as_of}"):
        batches.setdefault(row.b, {})[row.part] = row.n
    counters = {row.k: row.n for row in run(f"SELECT k, n FROM {keyspace}.counters {as_of}")}
    return {"rows": rows, "view": view, "index": index, "batches": batches, "counters": counters}


def check(cut, shown):
    """Checks what a cut shows against its bounds, and against the first read."""
    assert shown["view"] == shown["rows"], f"{cut}: the view {shown['view']} and the table {shown['rows']} differ"
    assert shown["index"] == shown["rows"], f"{cut}: by the index {shown['index']}, and the table {shown['rows']}"
    numbers = {"rows": {k: n for k, (n, _) in shown["rows"].items()}, "counters": shown["counters"], "batches": {}}
    for b, parts in shown["batches"].items():
        assert len(parts) == PARTS and len(set(parts.values())) == 1, f"{cut}: batch {b} is there in part: {parts}"
        numbers["batches"][b] = parts[0]
    for name, count in (("rows", KEYS), ("batches", BATCHES), ("counters", COUNTERS)):
        for k in range(count):
            found, least, most = numbers[name].get(k, 0), cut.least[name][k], cut.most[name][k]
            assert least <= found <= most, f"{cut}: {name} {k} is {found}, and not within {least} and {most}"
    if cut.seen is None:
        cut.seen = shown
    assert cut.seen == shown, f"{cut} has changed from {cut.seen} to {shown}"


class Clock:
    """Seconds since the beginning, for reports."""

    def __init__(self):
        self.began = time.monotonic()

    def __str__(self):
        return f"{time.monotonic() - self.began:7.1f} s"
