"""Rate limits with three nodes: the owner counts the requests of a partition, whichever node received them."""

import time

import pytest
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.protocol import ConfigurationException

pytestmark = pytest.mark.process

RATE, TIMES = 20, 40


@pytest.fixture(scope="module")
def sessions(cluster):
    """Returns a session for each node, which uses only this node."""
    opened = [node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host])) for node in cluster.nodes]
    opened[0].execute("CREATE KEYSPACE r WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    return opened


def test_a_partition_has_one_rate_at_all_nodes(sessions):
    first = sessions[0]
    first.execute(f"CREATE TABLE r.t (p int PRIMARY KEY, v int) WITH per_partition_rate_limit = {{'max_reads_per_second': {RATE}}}")
    prepared = [session.prepare("SELECT v FROM r.t WHERE p = ?") for session in sessions]
    for p in range(5):
        first.execute(f"INSERT INTO r.t (p, v) VALUES ({p}, {p})")
        done, words = 0, ""
        began = time.monotonic()
        for _ in range(TIMES):
            for session, select in zip(sessions, prepared):
                try:
                    assert session.execute(select, (p,)).one().v == p
                    done += 1
                except ConfigurationException as error:
                    words = str(error)
        # A second's reads at once, and those of the time that it took.
        most = RATE * (1 + time.monotonic() - began) + 1
        assert RATE <= done <= most, f"{done} reads were let through, expected {RATE} to {most:.0f}"
        assert f"rate limit reached for reads in table r.t: {RATE} per second" in words


def test_rate_limit_of_zero_refuses_through_every_node(cluster, sessions):
    sessions[0].execute("CREATE TABLE r.none (p int PRIMARY KEY, v int) WITH per_partition_rate_limit = {'max_writes_per_second': 0}")
    before = refused(cluster)
    for session in sessions:
        for p in range(10):
            with pytest.raises(ConfigurationException, match="for writes in table r.none"):
                session.execute(f"INSERT INTO r.none (p, v) VALUES ({p}, 1)")
            with pytest.raises(ConfigurationException, match="for writes in table r.none"):
                session.execute(f"UPDATE r.none SET v = 1 WHERE p = {p} IF v = 2")
    assert refused(cluster) - before == 60
    assert sessions[1].execute("SELECT * FROM r.none").all() == []


def refused(cluster):
    return sum(node.metrics()['helenus_rate_limited_total{kind="partition"}'] for node in cluster.nodes)
