"""A load whose writes go to two clusters or one, with the timestamps of the client."""

import random
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy

import helenus

KEYSPACE = "shop"
TABLES = [
    f"CREATE TABLE {KEYSPACE}.customers (id int PRIMARY KEY, name text, email text, tags set<text>, settings map<text, text>)",
    f"CREATE TABLE {KEYSPACE}.orders (customer int, number int, owner text static, total decimal, lines map<int, text>, note text, PRIMARY KEY (customer, number))"
    " WITH CLUSTERING ORDER BY (number DESC)",
    f"CREATE TABLE {KEYSPACE}.sessions (id int, device text, secret blob, PRIMARY KEY (id, device))",
    f"CREATE TABLE {KEYSPACE}.visits (page int, day int, count counter, PRIMARY KEY (page, day))",
]
CUSTOMERS, ORDERS, DEVICES, PAGES = 400, 40, ("phone", "tablet", "desk"), 50
# Values expire during the test, or long after it.
TTLS_S = (3, 20, 86_400)
TRIES_S = 180
# Longer than the timeouts of the servers.
INCREMENT_TIMEOUT_S = 90


def statements():
    """Returns statements by name, each with a function that returns random values of its markers, without the timestamp, and its weight."""
    def customer(chance):
        return chance.randrange(CUSTOMERS)

    def order(chance):
        return customer(chance), chance.randrange(ORDERS)

    def text(chance):
        return f"{chance.choice(('red', 'green', 'blue'))} {chance.randrange(1000)}"

    return [
        (4, "INSERT INTO customers (id, name, email, tags) VALUES (?, ?, ?, ?) USING TIMESTAMP ?", lambda c: (customer(c), text(c), text(c), {text(c), text(c)})),
        (2, "UPDATE customers USING TIMESTAMP ? SET tags = tags + ?, settings[?] = ? WHERE id = ?", lambda c: ({text(c)}, text(c)[:4], text(c), customer(c))),
        (1, "DELETE email, tags FROM customers USING TIMESTAMP ? WHERE id = ?", lambda c: (customer(c),)),
        (1, "DELETE FROM customers USING TIMESTAMP ? WHERE id = ?", lambda c: (customer(c),)),
        (8, "INSERT INTO orders (customer, number, total, lines, note) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?",
         lambda c: (*order(c), c.randrange(10_000), {n: text(c) for n in range(3)}, text(c))),
        (2, "UPDATE orders USING TIMESTAMP ? SET owner = ? WHERE customer = ?", lambda c: (text(c), customer(c))),
        (2, "UPDATE orders USING TIMESTAMP ? SET lines[?] = ?, note = ? WHERE customer = ? AND number = ?", lambda c: (c.randrange(5), text(c), text(c), *order(c))),
        (2, "DELETE FROM orders USING TIMESTAMP ? WHERE customer = ? AND number = ?", order),
        (1, "DELETE FROM orders USING TIMESTAMP ? WHERE customer = ? AND number > ?", order),
        (1, "DELETE FROM orders USING TIMESTAMP ? WHERE customer = ?", lambda c: (customer(c),)),
        (4, "INSERT INTO sessions (id, device, secret) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?",
         lambda c: (customer(c), c.choice(DEVICES), c.randbytes(16), None, c.choice(TTLS_S))),
    ]


class DualWrites:
    """Threads that write to Cassandra, and then the same to Helenus. Both must succeed. In `…_at`, 0 is Cassandra and 1 is Helenus.

    Each thread also writes a customer of its own, and reads it back. No other thread writes that row, so the result must be what was written."""

    def __init__(self, cassandra, node, seed, threads=4):
        options = {"protocol_version": 4}
        self.sessions = [cassandra.connect(**options), node.connect(**options)]
        for session in self.sessions:
            session.set_keyspace(KEYSPACE)
            session.default_timeout = 10
        self.statements = [(weight, values, [self._prepared(session, text) for session in self.sessions], text) for weight, text, values in statements()]
        self.increments = [self._prepared(session, "UPDATE visits SET count = count + ? WHERE page = ? AND day = ?") for session in self.sessions]
        self.reads = [self._prepared(session, "SELECT name FROM customers WHERE id = ?") for session in self.sessions]
        self.written, self.read = [0, 1], 0
        self.counted = self.sessions[:1]
        self.counters_lock = threading.Lock()
        self.done, self.repeated, self.errors = 0, 0, []
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.last_us = 0
        self.threads = [threading.Thread(target=self._run, args=(n, random.Random(seed * 1000 + n)), daemon=True) for n in range(threads)]

    def _prepared(self, session, text):
        prepared = session.prepare(text)
        prepared.consistency_level = ConsistencyLevel.QUORUM
        prepared.retry_policy = FallthroughRetryPolicy()
        return prepared

    def start(self):
        for thread in self.threads:
            thread.start()
        return self

    def wait_for(self, count):
        """Returns after this number of further writes."""
        end = self.done + count
        helenus.wait_until(lambda: self.errors or self.done >= end, 600, f"{count} writes")
        assert not self.errors, self.errors[0]

    def count_at(self, *clusters):
        """Sends increments to these clusters from now on: 0 is Cassandra, 1 is Helenus. Returns when increments to others have ended."""
        with self.counters_lock:
            self.counted = [self.sessions[number] for number in clusters]

    def write_at(self, *clusters):
        """Sends writes to these clusters from now on."""
        self.written = list(clusters)

    def read_at(self, cluster):
        """Reads from this cluster from now on."""
        self.read = cluster

    def end(self):
        """Ends the load when the writes in flight have succeeded."""
        self.ended.set()
        for thread in self.threads:
            thread.join()
        assert not self.errors, self.errors[0]

    def timestamp(self):
        """Returns the present time (µs), different for each write."""
        with self.lock:
            self.last_us = max(self.last_us + 1, time.time_ns() // 1000)
            return self.last_us

    def _run(self, number, chance):
        try:
            while not self.ended.is_set():
                kind = chance.random()
                if kind < 0.1:
                    self._increment(chance)
                elif kind < 0.2:
                    self._write_and_read(CUSTOMERS + number, chance)
                else:
                    self._write(chance)
                with self.lock:
                    self.done += 1
        except Exception as error:
            self.errors.append(error)

    def _write(self, chance):
        [(_, values, prepared, text)] = chance.choices(self.statements, [each[0] for each in self.statements])
        self._execute(prepared, with_timestamp(text, values(chance), self.timestamp()))

    def _write_and_read(self, customer, chance):
        _, _, prepared, _ = self.statements[0]
        name, read = f"customer {chance.random()}", self.read
        self._execute(prepared, (customer, name, None, None, self.timestamp()))
        result = self._until_written(lambda: self.sessions[read].execute(self.reads[read], (customer,)))
        assert result.one().name == name, (customer, name, result.one())

    def _execute(self, prepared, bound):
        """Executes a statement at each cluster that gets writes, until it succeeds."""
        for cluster in self.written:
            self._until_written(lambda: self.sessions[cluster].execute(prepared[cluster], bound))

    def _increment(self, chance):
        """Sends an increment, which is not repeated. So its clusters must all be up when there are two."""
        bound = (chance.randrange(1, 10), chance.randrange(PAGES), chance.randrange(7))
        with self.counters_lock:
            for session in self.counted:
                try:
                    session.execute(self.increments[self.sessions.index(session)], bound, timeout=INCREMENT_TIMEOUT_S)
                except Exception:
                    if len(self.counted) > 1:
                        raise

    def _until_written(self, write):
        """Repeats a write until it succeeds. It has one timestamp, so it may be repeated."""
        deadline = time.monotonic() + TRIES_S
        while True:
            try:
                return write()
            except Exception as error:
                if time.monotonic() > deadline:
                    raise
                self.repeated += 1
                # Nodes that stop leave no host for a moment.
                self.ended.wait(0.2 if isinstance(error, NoHostAvailable) else 0.01)


def with_timestamp(text, values, time_us):
    """Returns the values of all markers of a statement, with the timestamp at its place."""
    if None in values:
        return tuple(time_us if value is None else value for value in values)
    place = text[: text.index("USING TIMESTAMP ?")].count("?")
    return (*values[:place], time_us, *values[place:])
