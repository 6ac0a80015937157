"""The nearest vectors on three nodes: rows that one node wrote are found through the others, while lists are split and a node dies."""

import heapq
import itertools
import random

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy

import helenus

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

ROWS = 3_000
DIMENSION = 24
NEAREST = 10


def only_coordinator(node):
    session = node.connect(load_balancing_policy=WhiteListRoundRobinPolicy([node.host]), default_retry_policy=FallthroughRetryPolicy())
    session.default_timeout = 30
    return session


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def list_searches(node):
    """Returns the number of searches of posting lists that other nodes did for this one."""
    return node.metrics()['helenus_cluster_remote_total{kind="list_search",outcome="done"}']


def recall(session, vectors, numbers):
    statement = session.prepare(f"SELECT id FROM nearest.t ORDER BY v ANN OF ? LIMIT {NEAREST}")
    found = 0
    for _ in range(10):
        wanted = vectors[numbers.choice(list(vectors))]
        truth = set(heapq.nsmallest(NEAREST, vectors, key=lambda id: distance(vectors[id], wanted)))
        given = [row.id for row in session.execute(statement, [wanted])]
        assert len(given) == NEAREST and vectors.keys() >= set(given)
        found += len(truth & set(given))
    return found / (10 * NEAREST)


def test_each_node_finds_what_the_others_have_written(cluster):
    sessions = [only_coordinator(node) for node in cluster.nodes]
    first = sessions[0]
    first.execute("CREATE KEYSPACE nearest WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    first.execute(f"CREATE TABLE nearest.t (id int PRIMARY KEY, v vector<float, {DIMENSION}>)")
    first.execute("CREATE INDEX ON nearest.t (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}")
    numbers = random.Random(5)
    centres = [[numbers.gauss(0, 2) for _ in range(DIMENSION)] for _ in range(40)]

    def vector():
        return [x + numbers.gauss(0, 1) for x in numbers.choice(centres)]

    vectors = {id: vector() for id in range(ROWS)}
    inserts = [session.prepare("INSERT INTO nearest.t (id, v) VALUES (?, ?)") for session in sessions]
    for at, (session, insert) in enumerate(zip(sessions, inserts)):
        args = [(id, vectors[id]) for id in range(at, ROWS, len(sessions))]
        execute_concurrent_with_args(session, insert, args, concurrency=64)
    for session in sessions:
        assert recall(session, vectors, numbers) >= 0.95

    def searches_elsewhere():
        before = list_searches(cluster.nodes[0])
        assert recall(first, vectors, numbers) >= 0.95
        return list_searches(cluster.nodes[0]) - before >= 10

    # Lists of other nodes are searched there, once entries are not moved between lists of several nodes any more.
    helenus.wait_until(searches_elsewhere, 60, "searches at other nodes")
    # Written by one, found by the next.
    nearest = [session.prepare("SELECT id FROM nearest.t ORDER BY v ANN OF ? LIMIT 1") for session in sessions]
    for id, at in zip(range(ROWS, ROWS + 60), itertools.cycle(range(len(sessions)))):
        vectors[id] = vector()
        sessions[at].execute(inserts[at], [id, vectors[id]])
        asked = (at + 1) % len(sessions)
        assert sessions[asked].execute(nearest[asked], [vectors[id]]).one().id == id

    cluster.nodes[2].kill()
    assert recall(first, vectors, numbers) >= 0.95
    cluster.nodes[2].start()
    assert recall(only_coordinator(cluster.nodes[2]), vectors, numbers) >= 0.95
