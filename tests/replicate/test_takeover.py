"""Processes that share the work: one is killed, and the node too, and nothing is lost."""

import random
import threading

import pytest
from cassandra import InvalidRequest

import helenus
from importing import compare
from replicating import KEYSPACE, Replicator

pytestmark = pytest.mark.process

TABLE = "CREATE TABLE k.t (p int, c int, v int, s text static, m map<int, int>, PRIMARY KEY (p, c)) WITH cdc = true"
ROWS = 5000


class Load:
    """A thread that writes until it is stopped, through kills of the node. Writes are repeated until they succeed."""

    def __init__(self, node):
        self.node, self.stopped, self.writes, self.error = node, threading.Event(), 0, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            session, chance = self.node.connect(), random.Random(1)
            while not self.stopped.is_set():
                p, c, v = chance.randrange(500), chance.randrange(5), chance.randrange(1000)
                text = chance.choice([
                    f"INSERT INTO k.t (p, c, v) VALUES ({p}, {c}, {v})", f"UPDATE k.t SET m[{v % 5}] = {v} WHERE p = {p} AND c = {c}",
                    f"UPDATE k.t SET s = 's{v}' WHERE p = {p}", f"DELETE FROM k.t WHERE p = {p} AND c = {c}", f"DELETE FROM k.t WHERE p = {p} AND c >= {c}"])
                helenus.patient(lambda: session.execute(text), text)
                self.writes += 1
        except Exception as error:
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def wait_for(self, writes):
        """Waits until so many more writes are done."""
        end = self.writes + writes
        helenus.wait_until(lambda: self.error or self.writes >= end, 120, "writes")
        assert self.error is None


@pytest.fixture
def nodes(tmp_path):
    both = [helenus.Node(tmp_path / name).start() for name in ("source", "target")]
    session = both[0].connect()
    session.execute(KEYSPACE)
    session.execute(TABLE)
    insert = session.prepare("INSERT INTO k.t (p, c, v) VALUES (?, ?, ?)")
    helenus.execute_all(session, insert, [(number % 500, number // 500, number) for number in range(ROWS)])
    yield both
    for node in both:
        node.close()


def copied(replicator):
    """Returns the number of rows that a process has copied."""
    return replicator.metrics().get('helenus_replication_rows_copied_total{table="k.t"}', 0)


def owners(session):
    """Returns the number of leases by owner."""
    try:
        found = [row.owner for row in session.execute("SELECT owner FROM helenus_replication.leases")]
    except InvalidRequest:
        # No process has created its tables yet.
        return {}
    return {owner: found.count(owner) for owner in found}


def test_killed_process_and_killed_nodes(nodes, tmp_path):
    source, target = nodes
    session = source.connect()
    with Replicator(source, target, tmp_path) as first, Replicator(source, target, tmp_path) as second, Load(source) as load:
        helenus.wait_until(lambda: sorted(owners(session).values()) == [16, 16], 120, "shared leases")
        load.wait_for(300)
        second.wait_caught_up(session, "k.t")
        left = 'helenus_replication_copy_ranges_left{table="k.t"}'
        helenus.wait_until(lambda: first.metrics()[left] == second.metrics()[left] == 0, 60, "complete copies")
        of_second = copied(second)
        first.kill()
        load.wait_for(300)
        helenus.wait_until(lambda: list(owners(session).values()) == [32], 120, "leases that were taken over")
        second.wait_caught_up(session, "k.t")
        # Ranges of the first process are not copied again.
        assert copied(second) == of_second < ROWS
        source.restart()
        load.wait_for(300)
        target.kill()
        load.wait_for(300)
        target.start()
        load.wait_for(100)
        load.stopped.set()
        load.thread.join()
        assert load.error is None
        second.wait_caught_up(session, "k.t")
        assert compare(source, target)["equal"]


def test_restarted_process_goes_on_and_copies_once(nodes, tmp_path):
    source, target = nodes
    session = source.connect()
    with Replicator(source, target, tmp_path) as first:
        first.wait_caught_up(session, "k.t")
        helenus.wait_until(lambda: copied(first) == ROWS, 60, "counted rows")
    with Load(source) as load:
        load.wait_for(200)
    with Replicator(source, target, tmp_path) as again:
        again.wait_caught_up(session, "k.t")
        helenus.wait_until(lambda: again.metrics()['helenus_replication_rows_sent_total{table="k.t"}'] >= 200, 60, "counted rows")
        assert copied(again) == 0
        assert again.end() == 0
    assert compare(source, target)["equal"]
    # The leases were released, so the next process begins at once.
    assert owners(session) == {}
