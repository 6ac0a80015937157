"""Two clusters that follow each other: equal after concurrent writes to the same keys, and nothing is sent in circles."""

import random
import threading

import pytest

import helenus
from importing import compare
from replicating import KEYSPACE, Replicator

pytestmark = pytest.mark.process

TABLES = [
    "CREATE TABLE k.carts (p int, c int, owner text static, v int, tags set<text>, m map<int, int>, l list<int>, PRIMARY KEY (p, c)) WITH cdc = true",
    "CREATE TABLE k.users (p int PRIMARY KEY, name text, mail text) WITH cdc = true",
]
NAMES = ("k.carts", "k.users")
THREADS, WRITES = 2, 150


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


def writers(nodes, seed):
    """Starts threads that write to both nodes. Returns them, and the errors that they meet."""
    errors = []

    def write(node, seed):
        try:
            session, chance = node.connect(), random.Random(seed)
            for _ in range(WRITES):
                session.execute(statement(chance))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(node, f"{seed} {place} {number}"))
               for place, node in enumerate(nodes) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads, errors


def captured(session):
    """Returns the number of rows of the logs by table."""
    return {name: session.execute(f"SELECT count(*) FROM {name}_scylla_cdc_log").one()[0] for name in NAMES}


def test_clusters_converge_and_nothing_circles(tmp_path):
    nodes = [helenus.Node(tmp_path / name).start() for name in ("west", "east")]
    try:
        sessions = [node.connect() for node in nodes]
        for session in sessions:
            for statement_text in [KEYSPACE, *TABLES]:
                session.execute(statement_text)
        west, east = nodes
        with Replicator(west, east, tmp_path, "--keyspace", "k") as there, Replicator(east, west, tmp_path, "--keyspace", "k") as back:
            threads, errors = writers(nodes, random.randrange(1 << 30))
            for thread in threads:
                thread.join()
            assert not errors
            for replicator, session in ((there, sessions[0]), (back, sessions[1])):
                replicator.wait_caught_up(session, *NAMES)
            assert compare(west, east, "--keyspace", "k")["equal"]
            for column in ("l", "tags", "m"):
                rows = [session.execute(f"SELECT p, c, {column} FROM k.carts").all() for session in sessions]
                assert rows[0] == rows[1]
            # Each process has sent the rows of its own cluster's log once: none of them came from the other cluster.
            for replicator, session in ((there, sessions[0]), (back, sessions[1])):
                logged = captured(session)
                assert sum(logged.values()) >= THREADS * WRITES

                def sent():
                    metrics = replicator.metrics()
                    return {name: metrics[f'helenus_replication_rows_sent_total{{table="{name}"}}'] for name in NAMES}

                helenus.wait_until(lambda: sent() == logged, 20, f"{logged} sent")
                assert replicator.end() == 0
    finally:
        for node in nodes:
            node.close()
