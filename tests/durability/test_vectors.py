"""The nearest vectors, by posting lists: recall while lists are split, after overwrites and deletions, with a filter, and after kill -9."""

import heapq
import random

import pytest
from cassandra.concurrent import execute_concurrent_with_args


pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

ROWS = 20_000
DIMENSION = 32
GROUPS = 200
NEAREST = 10


class Mixture:
    """Vectors around the centres of groups."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.centres = [self.gaussian(2.0) for _ in range(GROUPS)]

    def gaussian(self, deviation):
        return [self.random.gauss(0, deviation) for _ in range(DIMENSION)]

    def vector(self):
        centre = self.random.choice(self.centres)
        return [x + y for x, y in zip(centre, self.gaussian(1.0))]


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b))


def recall(session, vectors, mixture, filtered=False, queries=15):
    where = "WHERE few = ?" if filtered else ""
    statement = session.prepare(f"SELECT id FROM ks.t {where} ORDER BY v ANN OF ? LIMIT {NEAREST}")
    found = 0
    for query in range(queries):
        wanted = mixture.vector()
        of_query = {id: vector for id, vector in vectors.items() if not filtered or id % 100 == query}
        truth = set(heapq.nsmallest(NEAREST, of_query, key=lambda id: distance(of_query[id], wanted)))
        given = [row.id for row in session.execute(statement, [query, wanted] if filtered else [wanted])]
        assert len(given) == NEAREST and of_query.keys() >= set(given)
        found += len(truth & set(given))
    return found / (queries * NEAREST)


def test_posting_lists_find_what_is_nearest(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(f"CREATE TABLE ks.t (id int PRIMARY KEY, few int, v vector<float, {DIMENSION}>)")
    session.execute("CREATE INDEX ON ks.t (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}")
    session.execute("CREATE INDEX ON ks.t (few) USING 'sai'")
    insert = session.prepare("INSERT INTO ks.t (id, few, v) VALUES (?, ?, ?)")
    delete = session.prepare("DELETE FROM ks.t WHERE id = ?")
    nearest = session.prepare("SELECT id FROM ks.t ORDER BY v ANN OF ? LIMIT 1")
    mixture = Mixture(1)

    def put(rows):
        args = [(id, id % 100, vector) for id, vector in rows.items()]
        execute_concurrent_with_args(session, insert, args, concurrency=128)

    vectors = {id: mixture.vector() for id in range(ROWS)}
    put(vectors)
    assert recall(session, vectors, mixture) >= 0.95
    changed = {id: mixture.vector() for id in range(0, ROWS, 4)}
    put(changed)
    vectors.update(changed)
    gone = range(0, ROWS, 7)
    execute_concurrent_with_args(session, delete, [(id,) for id in gone], concurrency=128)
    for id in gone:
        del vectors[id]
    assert recall(session, vectors, mixture) >= 0.95
    assert recall(session, vectors, mixture, filtered=True) >= 0.9
    for id in range(ROWS, ROWS + 50):
        vectors[id] = mixture.vector()
        put({id: vectors[id]})
        assert session.execute(nearest, [vectors[id]]).one().id == id

    node.kill()
    node.start()
    session = node.connect()
    assert recall(session, vectors, mixture) >= 0.95
    assert recall(session, vectors, mixture, filtered=True) >= 0.9
