"""Two clusters that follow each other: equal after concurrent writes to the same keys, also through kills, and nothing is sent in circles."""

import contextlib
import itertools
import random
import threading
import time

import pytest

import helenus
from importing import compare
from replicating import KEYSPACE, SLOW, Replicator

pytestmark = pytest.mark.process

TABLES = [
    "CREATE TABLE k.carts (p int, c int, owner text static, v int, tags set<text>, m map<int, int>, l list<int>, PRIMARY KEY (p, c)) WITH cdc = true",
    "CREATE TABLE k.users (p int PRIMARY KEY, name text, mail text) WITH cdc = true",
]
NAMES = ("k.carts", "k.users")
COLUMNS = ("l", "tags", "m")
THREADS, WRITES = 2, 150
# Processes of each direction, and seconds of writes from one comparison to the next.
PROCESSES, ROUND_S = 2, 60


def statement(chance):
    p, c, v = chance.randrange(4), chance.randrange(4), chance.randrange(1000)
    return chance.choice([
        f"INSERT INTO k.carts (p, c, v, tags) VALUES ({p}, {c}, {v}, {{'t{v % 5}'}})",
        f"INSERT INTO k.carts (p, c, v) VALUES ({p}, {c}, {v}) USING TTL 86400",
        f"UPDATE k.carts SET v = {v}, m[{v % 7}] = {v} WHERE p = {p} AND c = {c}",
        f"UPDATE k.carts SET tags = tags + {{'u{v % 5}'}}, l = l + [{v}] WHERE p = {p} AND c = {c}",
        f"UPDATE k.carts SET l = [{v}, {v}] WHERE p = {p} AND c = {c}",
        f"UPDATE k.carts SET owner = 'o{v}' WHERE p = {p}",
        f"DELETE v, m FROM k.carts WHERE p = {p} AND c = {c}",
        f"DELETE FROM k.carts WHERE p = {p} AND c = {c}",
        f"DELETE FROM k.carts WHERE p = {p} AND c > {c}",
        f"DELETE FROM k.carts WHERE p = {p}",
        f"INSERT INTO k.users (p, name, mail) VALUES ({p}, 'n{v}', 'm{v}')",
        f"UPDATE k.users SET name = 'o{v}' WHERE p = {p}",
        f"DELETE FROM k.users WHERE p = {p}",
    ])


class Writers:
    """Threads that write to both nodes, through kills of the nodes, until each has written `writes` times or they are stopped."""

    def __init__(self, nodes, seed, writes=None):
        self.limit, self.writes, self.errors, self.stopped = writes, 0, [], threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(node, f"{seed} {place} {number}"))
                        for place, node in enumerate(nodes) for number in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def write(self, node, seed):
        try:
            session = helenus.patient(node.connect, "a session")
            chance, written = random.Random(seed), 0
            while written != self.limit and not self.stopped.is_set():
                text = statement(chance)
                helenus.patient(lambda: session.execute(text), text)
                written += 1
                self.writes += 1
        except Exception as error:
            self.errors.append(error)

    def join(self):
        for thread in self.threads:
            thread.join()
        assert not self.errors


def assert_equal(nodes, sessions):
    """Fails if a cell, a write time or the elements of a collection differ."""
    west, east = nodes
    assert compare(west, east, "--keyspace", "k")["equal"]
    for column in COLUMNS:
        rows = [session.execute(f"SELECT p, c, {column} FROM k.carts").all() for session in sessions]
        assert rows[0] == rows[1], column


def captured(session):
    """Returns the number of rows of the logs by table."""
    return {name: session.execute(f"SELECT count(*) FROM {name}_scylla_cdc_log").one()[0] for name in NAMES}


@pytest.fixture
def nodes(tmp_path):
    both = [helenus.Node(tmp_path / name).start() for name in ("west", "east")]
    for node in both:
        session = node.connect()
        for text in [KEYSPACE, *TABLES]:
            session.execute(text)
    yield both
    for node in both:
        node.close()


def test_clusters_converge_and_nothing_circles(nodes, tmp_path):
    west, east = nodes
    sessions = [node.connect() for node in nodes]
    with Replicator(west, east, tmp_path, "--keyspace", "k") as there, Replicator(east, west, tmp_path, "--keyspace", "k") as back:
        Writers(nodes, random.randrange(1 << 30), WRITES).join()
        for replicator, session in ((there, sessions[0]), (back, sessions[1])):
            replicator.wait_caught_up(session, *NAMES)
        assert_equal(nodes, sessions)
        # Each process has sent the rows of its own cluster's log once: none of them came from the other cluster.
        for replicator, session in ((there, sessions[0]), (back, sessions[1])):
            logged = captured(session)
            assert sum(logged.values()) >= THREADS * WRITES

            def sent():
                metrics = replicator.metrics()
                return {name: metrics[f'helenus_replication_rows_sent_total{{table="{name}"}}'] for name in NAMES}

            helenus.wait_until(lambda: sent() == logged, 20, f"{logged} sent")
            assert replicator.end() == 0


class Faults:
    """Kills of nodes and processes, one after another, until it is stopped."""

    def __init__(self, nodes, directions, chance):
        self.nodes, self.directions, self.chance = nodes, directions, chance
        self.counts, self.errors, self.stopped = {}, [], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            # Time without a fault lets the processes take over leases, and advance the stored times.
            while not self.stopped.wait(self.chance.uniform(0.5, 6)):
                fault = self.chance.choice([self.kill_node, self.stop_node, self.pause_node, self.kill_process, self.kill_process, self.end_process])
                fault()
                self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
        except Exception as error:
            self.errors.append(error)

    def kill_node(self):
        node = self.chance.choice(self.nodes)
        node.kill()
        self.stopped.wait(self.chance.uniform(0, 3))
        node.start()

    def stop_node(self):
        self.chance.choice(self.nodes).restart(clean=True)

    def pause_node(self):
        node = self.chance.choice(self.nodes)
        node.pause()
        self.stopped.wait(self.chance.uniform(0, 3))
        node.resume()

    def process(self):
        return self.chance.choice([*itertools.chain(*self.directions)])

    def kill_process(self):
        process = self.process()
        process.kill()
        self.stopped.wait(self.chance.uniform(0, 5))
        process.start()

    def end_process(self):
        process = self.process()
        if process.process.poll() is None:
            process.end()
        process.start()

    def join(self):
        self.stopped.set()
        self.thread.join()
        assert not self.errors
        for process in itertools.chain(*self.directions):
            # A process that does not reach a cluster when it begins ends with an error. A supervisor starts it again.
            if process.process.poll() is not None:
                process.start()


@pytest.mark.timeout(0)
def test_clusters_converge_through_kills(nodes, tmp_path, request):
    seed = request.config.getoption("--seed") or random.randrange(1 << 30)
    chance = random.Random(seed)
    west, east = nodes
    end = time.monotonic() + 60 * request.config.getoption("--minutes")
    writes, counts = 0, {}
    with contextlib.ExitStack() as stack:
        directions = [[stack.enter_context(Replicator(*pair, tmp_path, "--keyspace", "k", times=SLOW)) for _ in range(PROCESSES)]
                      for pair in ((west, east), (east, west))]
        while time.monotonic() < end:
            writers, faults = Writers(nodes, chance.random()), Faults(nodes, directions, chance)
            time.sleep(ROUND_S)
            faults.join()
            writers.stopped.set()
            writers.join()
            sessions = [node.connect() for node in nodes]
            for direction, session in zip(directions, sessions):
                direction[0].wait_caught_up(session, *NAMES)
            assert_equal(nodes, sessions)
            writes += writers.writes
            counts = {name: counts.get(name, 0) + faults.counts.get(name, 0) for name in {*counts, *faults.counts}}
            print(f"seed {seed}: equal after {writes} writes and {sum(counts.values())} faults: {counts}", flush=True)
