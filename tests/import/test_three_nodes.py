"""Three nodes of Cassandra, whose replicas differ, move to Helenus while an application writes to both."""

import json
import random

import pytest

import cassandras
import helenus
from cassandra_cluster import CassandraCluster
from dual_writes import KEYSPACE, TABLES, DualWrites
from importing import DIFFERENT, compare, run_import

pytestmark = [pytest.mark.process, pytest.mark.timeout(0)]

HOSTS = ["127.0.0.71", "127.0.0.72", "127.0.0.73"]
SNAPSHOT = "move"
WRITES = 4000
RELEASE = cassandras.release_named("5.0-oa")
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 3}"


@pytest.fixture
def cluster(tmp_path):
    cluster = CassandraCluster(RELEASE, tmp_path, HOSTS)
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.fixture
def node(tmp_path):
    node = helenus.Node(tmp_path / "helenus").start()
    yield node
    node.close()


def make_schema(session):
    session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {REPLICATION}")
    for statement in TABLES:
        session.execute(statement)


def without_a_node(cluster, stopped, load, has_hints):
    """Stops a node, lets the load go on, and starts the node again. Without hints, it lacks the writes of that time."""
    cluster.nodetool("enablehandoff" if has_hints else "disablehandoff")
    stopped.stop()
    cluster.wait_down(stopped)
    load.wait_for(WRITES)
    stopped.start()
    cluster.wait_joined()


def imported(cluster, node, *options):
    """Imports the snapshots of all nodes in one run."""
    more = [word for each in cluster.nodes[1:] for word in ("--from", str(each.data))]
    return run_import(node, cluster.nodes[0].data, *more, "--snapshot", SNAPSHOT, "--keyspace", KEYSPACE, *options)


def test_import_beside_dual_writes_leaves_no_difference(cluster, node, request):
    seed = request.config.getoption("--seed") or random.randrange(1 << 31)
    print(f"seed {seed}")
    for server in (cluster, node):
        make_schema(server.connect())
    load = DualWrites(cluster, node, seed).start()
    try:
        load.wait_for(WRITES)
        without_a_node(cluster, cluster.nodes[2], load, has_hints=False)
        cluster.nodes[0].nodetool("flush", KEYSPACE)
        without_a_node(cluster, cluster.nodes[1], load, has_hints=True)
        # Increments rest until the totals are imported. Afterwards, both clusters count.
        load.count_at()
        cluster.nodetool("snapshot", "-t", SNAPSHOT, KEYSPACE)
        load.wait_for(WRITES)
        imported(cluster, node)
        load.count_at(0, 1)
        load.wait_for(WRITES)
        load.read_at(1)
        load.wait_for(WRITES)
    finally:
        load.end()
    # At this level, each of these nodes answers from its own files. Any other level repairs what it reads.
    compare(cluster.nodes[0], cluster.nodes[2], "--keyspace", KEYSPACE, "--consistency", "one", exit_code=DIFFERENT)
    report = compare(cluster.nodes[0], node, "--keyspace", KEYSPACE)
    assert report["equal"] and all(table["rows_a"] > 0 for table in report["tables"]), json.dumps(report)
    write_to_helenus_alone(cluster, node, seed + 1)
    compare(cluster.nodes[0], node, "--keyspace", KEYSPACE, exit_code=DIFFERENT)


def write_to_helenus_alone(cluster, node, seed):
    load = DualWrites(cluster, node, seed)
    load.read_at(1)
    load.write_at(1)
    load.count_at(1)
    try:
        load.start().wait_for(WRITES)
    finally:
        load.end()
