"""Plays one phase of many histories on a server: each history's statements one after the other, many histories at a time."""

import queue
import string

from cassandra import OperationTimedOut, ReadTimeout, Unavailable, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.util import OrderedMapSerializedKey, SortedSet

from histories import INDEXED_VALUES, LONG_TTL_STEP_S, PARTITIONS
from shapes import SHAPES, table_name

# Histories under way at a time.
WIDTH = 40
# Errors that a busy machine may cause, and that say nothing about data.
PASSING = (OperationTimedOut, ReadTimeout, WriteTimeout, Unavailable, NoHostAvailable, ConnectionException)
READ_ATTEMPTS = 5


def canonical(value):
    """Returns a value in a form that JSON can hold, which is the same for all servers."""
    if isinstance(value, SortedSet) or isinstance(value, (set, frozenset)):
        return ["set", *sorted(canonical(item) for item in value)]
    if isinstance(value, OrderedMapSerializedKey):
        return ["map", *([canonical(key), canonical(item)] for key, item in value.items())]
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    return value


def canonical_rows(names, rows):
    """Returns rows in canonical form, as a row factory. A remaining TTL is divided by the step between TTLs, which is longer than any run."""

    def cell(name, value):
        if name.startswith("ttl_") and value is not None:
            return value // LONG_TTL_STEP_S
        return canonical(value)

    return [[cell(name, value) for name, value in zip(names, row)] for row in rows]


def filled(statement, history, slot):
    """Returns the statement with the history's own keys and values."""
    names = {"t": table_name(SHAPES[history["shape"]], history["life"])}
    names |= {f"p{n}": slot * PARTITIONS + n for n in range(PARTITIONS)}
    names |= {f"v{n}": slot * INDEXED_VALUES + n for n in range(INDEXED_VALUES)}
    return string.Template(statement).substitute(names)



def _answer(kind, result):
    if isinstance(result, PASSING):
        return ["passing", type(result).__name__, str(result)]
    if isinstance(result, Exception):
        return ["error", type(result).__name__]
    rows = list(result or [])
    return ["rows", *(sorted(rows, key=repr) if kind == "set" else rows)]


class Playing:
    """One phase of some histories on one server."""

    def __init__(self, session, jobs):
        self.session, self.jobs = session, jobs
        self.answers = [[] for _ in jobs]
        self.attempts = [0] * len(jobs)
        self.ended = queue.SimpleQueue()

    def run(self):
        """Returns the answers of each history's steps."""
        waiting = iter(range(len(self.jobs)))
        open_jobs = sum(self._begin(waiting) for _ in range(WIDTH))
        while open_jobs:
            number, result = self.ended.get()
            goes_on = self._take(number, result) and self._send(number)
            open_jobs -= not (goes_on or self._begin(waiting))
        return self.answers

    def _begin(self, waiting):
        """Begins the next history that has any steps. Returns false if there is none."""
        return any(self._send(number) for number in waiting)

    def _take(self, number, result):
        """Records an answer. Returns false if the history cannot go on, because it is unknown whether a write took effect."""
        kind, _ = self.jobs[number][len(self.answers[number])]
        is_passing = isinstance(result, PASSING)
        if is_passing and kind != "write" and self.attempts[number] < READ_ATTEMPTS:
            self.attempts[number] += 1
            return True
        self.attempts[number] = 0
        self.answers[number].append(_answer(kind, result))
        return not is_passing

    def _send(self, number):
        """Sends the next step; False if there is none."""
        at = len(self.answers[number])
        if at == len(self.jobs[number]):
            return False
        end = self.ended.put
        future = self.session.execute_async(self.jobs[number][at][1])
        future.add_callbacks(lambda rows: end((number, rows)), lambda error: end((number, error)))
        return True


def play(session, histories, phase, first_slot):
    """Plays one phase. Returns the answers of each history, one per step."""
    session.row_factory = canonical_rows
    session.use_client_timestamp = False
    jobs = [[(kind, filled(statement, history, first_slot + n)) for kind, statement in history["phases"][phase]]
            for n, history in enumerate(histories)]
    return Playing(session, jobs).run()
