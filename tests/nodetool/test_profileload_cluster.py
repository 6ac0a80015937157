"""`nodetool profileload` on several nodes: the owner of a partition samples it, whichever node received the request."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import helenus
from tool import nodetool, two_nodes

pytestmark = pytest.mark.process

PARTITIONS = [f"p{number}" for number in range(16)]


@pytest.fixture
def nodes(tmp_path):
    """Yields two nodes of a cluster, both of which own tablets."""
    with two_nodes(tmp_path, tablets=8) as made:
        owners = lambda: {tablet["owner"] for tablet in json.loads(made[0].http("/cluster")[1])["tablets"] if tablet["state"] == "stable"}
        helenus.wait_until(lambda: len(owners() - {None}) == 2, 60, "tablets of both nodes", 0.1)
        yield made


def owner(node, key):
    return nodetool(node, "getendpoints", "shop", "carts", key).stdout.strip()


def sampled(node):
    """Returns the partitions that `profileload` prints for reads and for writes."""
    printed = nodetool(node, "profileload", "shop", "carts", "3000", "-a", "READS,WRITES", "-k", "20").stdout
    reads, writes = printed.strip("\n").split("\n\n")
    return [{row.split()[1] for row in part.splitlines()[2:]} for part in (reads, writes)]


def test_the_owner_of_a_partition_samples_it(nodes):
    first, second = nodes
    session = first.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.carts (k text PRIMARY KEY, v int)")
    insert = session.prepare("INSERT INTO shop.carts (k, v) VALUES (?, 1)")
    select = session.prepare("SELECT v FROM shop.carts WHERE k = ?")
    ended = threading.Event()

    def load():
        while not ended.is_set():
            for answer in [session.execute_async(statement, (key,)) for key in PARTITIONS for statement in (insert, select)]:
                answer.result()

    thread = threading.Thread(target=load)
    thread.start()
    try:
        with ThreadPoolExecutor() as pool:
            found = dict(zip((node.host for node in nodes), pool.map(sampled, nodes)))
    finally:
        ended.set()
        thread.join()
    owners = {key: owner(first, key) for key in PARTITIONS}
    assert set(owners.values()) == {"127.0.0.1", "127.0.0.2"}, owners
    for host in ("127.0.0.1", "127.0.0.2"):
        own = {key for key in PARTITIONS if owners[key] == host}
        assert found[host] == [own, own], (host, found, owners)
