"""Replication to and from two nodes on a bucket: each owner leaves out of its logs what came by replication."""

import pytest

import helenus
from importing import compare
from minio import Minio
from replicating import KEYSPACE, Replicator

pytestmark = pytest.mark.process

TABLE = "CREATE TABLE k.t (p int, c int, v int, PRIMARY KEY (p, c)) WITH cdc = true"
ROWS = 500


@pytest.fixture
def servers(tmp_path):
    """Returns a node on a folder, and two nodes on a bucket."""
    minio = Minio(tmp_path / "minio").start()
    url = f"s3://{minio.bucket('replicate')}/store"
    nodes = [helenus.Node(tmp_path / "alone").start()]
    try:
        nodes += [helenus.Node(tmp_path / name, store=url, env={**minio.environment(), **helenus.PATIENT}).start() for name in ("one", "two")]
        yield nodes
    finally:
        for node in nodes:
            node.close()
        minio.close()


def test_owners_do_not_capture_replicated_rows(servers, tmp_path):
    alone, one, two = servers
    session, of_cluster = alone.connect(), one.connect()
    for each in (session, of_cluster):
        each.execute(KEYSPACE)
        each.execute(TABLE)
    owned = "helenus_cluster_tablets_owned"
    helenus.wait_until(lambda: all(node.metrics().get(owned, 0) > 0 for node in (one, two)), 60, "tablets on both nodes")
    with Replicator(alone, one, tmp_path) as there, Replicator(one, alone, tmp_path) as back:
        for connected, first in ((session, 0), (of_cluster, 1000)):
            insert = connected.prepare("INSERT INTO k.t (p, c, v) VALUES (?, ?, ?)")
            helenus.execute_all(connected, insert, [(first + number, 1, number) for number in range(ROWS)])
            connected.execute(f"DELETE FROM k.t WHERE p = {first} AND c > 0")
        there.wait_caught_up(session, "k.t")
        back.wait_caught_up(of_cluster, "k.t")
        report = compare(alone, two)
        assert report["equal"] and report["tables"][0]["rows_a"] == 2 * (ROWS - 1)
        # A deleted range has two rows.
        for connected in (session, of_cluster):
            assert connected.execute("SELECT count(*) FROM k.t_scylla_cdc_log").one()[0] == ROWS + 2
