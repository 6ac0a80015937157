"""A log in a topic of Apache Kafka: what was acknowledged is there after nodes and brokers have died."""

import threading
import time

import pytest
from cassandra import OperationTimedOut

import helenus
from kafka import java

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


def survives_a_kill(node, acknowledged):
    node.kill()
    node.close_clients()
    node.start()
    eventually_has(node, acknowledged)


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


def test_owner_paused_beyond_lease_acknowledges_nothing(nodes):
    first, second = nodes().start(), nodes().start()
    make_table(first)
    insert_rows(first, 0)
    first.pause()
    eventually_has(second, range(ROWS))
    insert_rows(second, ROWS)
    first.resume()
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
    survives_a_kill(node, writing.stop())


def test_without_brokers_writes_fail_in_time_and_reads_go_on(nodes, brokers):
    node = nodes().start()
    make_table(node)
    insert_rows(node, 0)
    for broker in brokers.all:
        broker.pause()
    try:
        write_fails_in_time(node)
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


def test_a_missing_topic_is_made_as_it_must_be(nodes, brokers):
    node = nodes(log_store=f"kafka://{brokers.addresses}/made", settings=["log_store_partitions=7"]).start()
    make_table(node)
    insert_rows(node, 0)
    settings, described = brokers.settings("made")
    assert "PartitionCount: 7" in described and "ReplicationFactor: 3" in described
    wanted = {"min.insync.replicas": "2", "retention.ms": "-1", "retention.bytes": "-1",
              "unclean.leader.election.enable": "false", "cleanup.policy": "delete"}
    assert {name: settings.get(name) for name in wanted} == wanted, described
    assert rows(node) == list(range(ROWS))
    assert "Establishing new connection" not in node.log()


def refusal(node):
    node.start(wait=False)
    assert node.process.wait(60) != 0
    return node.log()


def test_a_weak_topic_is_refused_in_words(nodes, brokers):
    brokers.topics("--create", "--topic", "weak", "--partitions", 2, "--replication-factor", 1,
                   "--config", "retention.ms=3600000", "--config", "unclean.leader.election.enable=true")
    text = refusal(nodes(log_store=f"kafka://{brokers.addresses}/weak"))
    for words in ("replication factor is 1, and must be 3", "min.insync.replicas is 1, and must be 2",
                  "retention.ms is 3600000, and must be -1", "unclean.leader.election.enable is true, and must be false",
                  "--entity-name weak --add-config min.insync.replicas=2,retention.ms=-1,unclean.leader.election.enable=false"):
        assert words in text, text
    # One replica may be allowed, a retention may not.
    text = refusal(nodes(log_store=f"kafka://{brokers.addresses}/weak", settings=["log_store_replicas_min=1"]))
    assert "retention.ms is 3600000" in text and "replication factor is" not in text, text
    java("kafka.admin.ConfigCommand", "--bootstrap-server", brokers.addresses, "--alter", "--entity-type", "topics",
         "--entity-name", "weak", "--add-config", "retention.ms=-1")
    node = nodes(log_store=f"kafka://{brokers.addresses}/weak", settings=["log_store_replicas_min=1"]).start()
    make_table(node)


def write_fails_in_time(node):
    """Returns the error message of a failed write. The node must answer before the client's timeout."""
    with pytest.raises(Exception) as failure:
        node.connect().execute("INSERT INTO o.t (k, v) VALUES (500, 1)", timeout=30)
    assert not isinstance(failure.value, OperationTimedOut), "expected the node's answer, got none in 30 s"
    return str(failure.value)


def goes_on(writing, what):
    count = len(writing.acknowledged)
    helenus.wait_until(lambda: len(writing.acknowledged) > count + 20, 40, what)


@pytest.mark.parametrize("how", ["SIGSTOP", "network"])
def test_a_broker_that_is_silent_is_left(nodes, brokers, how):
    node = nodes().start()
    make_table(node)
    insert_rows(node, 0)
    silent = brokers.leader_of(node.topic)
    if how == "network":
        brokers.cut(silent)
    else:
        silent.pause()
    try:
        print(write_fails_in_time(node))
        writing = Writing(node)
        goes_on(writing, "another broker has taken over")
    finally:
        brokers.links.mend()
        silent.resume()
    goes_on(writing, "the broker is back")
    helenus.wait_until(brokers.ready, 60, "the broker is back", 1)
    survives_a_kill(node, writing.stop())


def test_writer_fenced_during_produce_acknowledges_nothing(nodes, brokers):
    first = nodes().start()
    make_table(first)
    insert_rows(first, 0)
    session = first.connect()
    second = nodes().start()
    # All later records of the first node arrive after the fence.
    brokers.links.cut(pid=first.process.pid)
    try:
        asked = [(k, session.execute_async("INSERT INTO o.t (k, v) VALUES (%s, %s)", (k, k), timeout=40)) for k in range(2000, 2040)]
        time.sleep(0.3)
        first.pause()
        eventually_has(second, range(ROWS))
        before = brokers.ends(first.topic)
    finally:
        brokers.links.mend()
    time.sleep(2)
    log = max(before, key=before.get)
    assert brokers.ends(first.topic)[log] > before[log], "no record came behind the fence"
    first.resume()
    acknowledged, refused = [], []
    for k, future in asked:
        try:
            future.result()
            acknowledged.append(k)
        except Exception:
            refused.append(k)
    assert refused, "all were acknowledged, by a log that was fenced before it had them"
    eventually_has(second, acknowledged)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_tls_and_log_in(minio, secured_broker, tmp_path, mechanism):
    broker = secured_broker
    store = f"s3://{minio.bucket('secured-' + mechanism.lower())}/store"

    def node(name, **changed):
        settings = {"log_store_tls": "true", "log_store_tls_authority": broker.authority, "log_store_user": "helenus",
                    "log_store_password": broker.PASSWORD, "log_store_sasl_mechanism": mechanism, "log_store_replicas_min": 1, **changed}
        log_store = f"kafka://127.0.0.1:{broker.secured_port}/log-{mechanism}"
        args = ["--log-store", log_store, *helenus.setting_args(settings)]
        return helenus.Node(tmp_path / name, store=store, env=minio.environment(), args=args)

    good, wrong = node("good"), node("wrong", log_store_password="guessed")
    try:
        good.start()
        make_table(good)
        insert_rows(good, 0)
        good.kill()
        good.close_clients()
        good.start()
        assert rows(good) == list(range(ROWS))
        assert "the topic cannot be read" in refusal(wrong)
    finally:
        good.close()
        wrong.close()
