"""A log in a topic of Apache Kafka: what was acknowledged is there after nodes and brokers have died."""

import signal
import threading
import time

import pytest

import helenus

pytestmark = pytest.mark.process

ROWS = 60


def make_table(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE IF NOT EXISTS o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE IF NOT EXISTS o.t (k int PRIMARY KEY, v int)")


def insert_rows(node, first, count=ROWS):
    session = node.connect()
    for k in range(first, first + count):
        session.execute("INSERT INTO o.t (k, v) VALUES (%s, %s)", (k, k))


def rows(node):
    return sorted(row.k for row in node.connect().execute("SELECT k FROM o.t"))


class Writing:
    """Inserts rows from 1000 on until it is stopped, and notes those that were acknowledged."""

    def __init__(self, node):
        self.acknowledged, self.failures, self.stopping = [], 0, False
        self.session = node.connect()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        k = 1000
        while not self.stopping:
            try:
                self.session.execute("INSERT INTO o.t (k, v) VALUES (%s, %s)", (k, k), timeout=10)
                self.acknowledged.append(k)
            except Exception:
                self.failures += 1
                time.sleep(0.05)
            k += 1

    def stop(self):
        self.stopping = True
        self.thread.join()
        return self.acknowledged


def eventually_has(node, keys, timeout_s=60):
    def has():
        try:
            return set(keys) <= set(rows(node))
        except Exception:
            return False
    helenus.wait_until(has, timeout_s, "all acknowledged rows")


def test_a_killed_node_finds_its_writes_again(nodes):
    node = nodes().start()
    make_table(node)
    insert_rows(node, 0)
    for _ in range(2):
        node.kill()
        node.close_clients()
        node.start()
        assert rows(node) == list(range(ROWS))
    assert node.terminate() == 0
    node.close_clients()
    node.start()
    assert rows(node) == list(range(ROWS))


def test_a_long_write_is_split(nodes):
    node = nodes(settings=["write_timeout=10s"]).start()
    session = node.connect()
    make_table(node)
    session.execute("CREATE TABLE o.b (k int PRIMARY KEY, v blob)")
    session.execute("INSERT INTO o.b (k, v) VALUES (1, %s)", (bytes(5 << 20),))
    node.kill()
    node.close_clients()
    node.start()
    assert len(node.connect().execute("SELECT v FROM o.b WHERE k = 1").one().v) == 5 << 20


def test_a_node_that_dies_is_inherited(nodes):
    first, second = nodes().start(), nodes().start()
    make_table(first)
    insert_rows(first, 0)
    first.kill()
    first.close_clients()
    eventually_has(second, range(ROWS))


def test_an_owner_that_was_paused_past_its_lease_acknowledges_nothing_more(nodes):
    first, second = nodes().start(), nodes().start()
    make_table(first)
    insert_rows(first, 0)
    first.process.send_signal(signal.SIGSTOP)
    eventually_has(second, range(ROWS))
    insert_rows(second, ROWS)
    first.process.send_signal(signal.SIGCONT)
    eventually_has(second, range(2 * ROWS))
    helenus.wait_until(lambda: first.alive(), 30, "the first node")
    eventually_has(first, range(2 * ROWS))


def test_a_broker_dies_under_writes(nodes, brokers):
    node = nodes().start()
    make_table(node)
    writing = Writing(node)
    for broker in brokers.all:
        time.sleep(2)
        count = len(writing.acknowledged)
        broker.kill()
        helenus.wait_until(lambda: len(writing.acknowledged) > count + 50, 60, "writes go on")
        broker.start()
        helenus.wait_until(brokers.ready, 60, "the broker is back", 1)
        time.sleep(6)
    acknowledged = writing.stop()
    node.kill()
    node.close_clients()
    node.start()
    eventually_has(node, acknowledged)


def test_without_brokers_writes_fail_in_time_and_reads_go_on(nodes, brokers):
    node = nodes().start()
    make_table(node)
    insert_rows(node, 0)
    for broker in brokers.all:
        broker.pause()
    try:
        began = time.monotonic()
        with pytest.raises(Exception):
            node.connect().execute("INSERT INTO o.t (k, v) VALUES (500, 1)", timeout=30)
        assert time.monotonic() - began < 10
        assert set(range(ROWS)) <= set(rows(node))
    finally:
        for broker in brokers.all:
            broker.resume()

    def writes():
        try:
            node.connect().execute("INSERT INTO o.t (k, v) VALUES (501, 1)", timeout=10)
            return True
        except Exception:
            return False
    helenus.wait_until(writes, 60, "writes go on by themselves", 0.5)
    node.kill()
    node.close_clients()
    node.start()
    eventually_has(node, [*range(ROWS), 501])


def test_a_missing_topic_is_refused_in_words(nodes, brokers):
    node = nodes(log_store=f"kafka://{brokers.addresses}/none")
    node.start(wait=False)
    assert node.process.wait(60) != 0
    assert "there is no topic none" in node.log() and "min.insync.replicas=2" in node.log(), node.log()
