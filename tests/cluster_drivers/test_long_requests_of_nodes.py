"""Long computations of one node for another block neither of them. Single-row requests continue at all three nodes beside each of them; two
nodes forward these requests to the third.
"""

import contextlib
import struct

import pytest

import helenus
from durability.test_long_requests import Beside, Client, insert_many, ROWS, is_at_rest, literal_list
from probe import ERROR

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def table(cluster):
    session = cluster.nodes[0].connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")
    session.execute("CREATE TABLE one (k int PRIMARY KEY, v text)")
    session.execute("INSERT INTO one (k, v) VALUES (1, 'v')")
    session.execute("CREATE TABLE lists (k int PRIMARY KEY, l list<int>)")
    session.execute("CREATE TABLE many (p int, c int, v text, PRIMARY KEY (p, c))")
    insert_many(session)
    for node in cluster.nodes:
        node.close_clients()


@contextlib.contextmanager
def on_all_nodes(cluster):
    """Runs single-row requests at each of the nodes."""
    with contextlib.ExitStack() as stack:
        for node in cluster.nodes:
            # The request may compute on other nodes alone.
            stack.enter_context(Beside(node, has_long=False))
        yield


def test_scans_of_other_nodes(cluster, table):
    """Concurrent scans, each of which involves all nodes."""
    clients = [Client(cluster.nodes[number % 3]) for number in range(4)]
    with on_all_nodes(cluster):
        for client in clients:
            client.send("SELECT count(*) FROM ks.many WHERE v > 'a' ALLOW FILTERING USING TIMEOUT 100s")
        for client in clients:
            opcode, body = client.answer()
            assert opcode != ERROR and struct.unpack(">q", body[-8:])[0] == ROWS, body[:100]


def test_long_updates_of_other_nodes(cluster, table):
    """Keys of all nodes through one of them."""
    client = Client(cluster.nodes[0])
    given = literal_list(range(30_000))
    with on_all_nodes(cluster):
        for k in range(6):
            for statement in (f"l = {given}", f"l = l - {given}"):
                opcode, body = client.query(f"UPDATE ks.lists SET {statement} WHERE k = {k}")
                assert opcode != ERROR, body


def test_work_for_another_node_ends_with_the_client(cluster, table):
    # All rows take longer than the timeout, which is longer than what is waited for.
    body = "int n = 0; for (int i = 0; i < 100000; i++) { n += i; } return n;"
    client = Client(cluster.nodes[0])
    client.query(f"CREATE OR REPLACE FUNCTION ks.long(c int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS $${body}$$")
    at_rest = lambda: all(is_at_rest(node) for node in cluster.nodes)
    at_work = lambda: not any(is_at_rest(node) for node in cluster.nodes)
    helenus.wait_until(at_rest, what="nodes at rest")
    with on_all_nodes(cluster):
        client.send("SELECT max(ks.long(c)) FROM ks.many USING TIMEOUT 100s")
        helenus.wait_until(at_work, what="all nodes at work")
    client.socket.close()
    helenus.wait_until(at_rest, 30, what="nodes at rest again")
