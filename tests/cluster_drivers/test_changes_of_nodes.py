"""Captured changes on three nodes: the log has every acknowledged write once, in order by partition, through kills, moves, splits and merges."""

import collections
import itertools
import threading

import pytest
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy

import helenus
from three_nodes import Cluster

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

WRITERS = 6
PARTITIONS_EACH = 8
# Fewer than the nodes are to have.
TABLETS = 4


class Writer:
    """Writes rising numbers to partitions of its own, and notes which of them were acknowledged."""

    def __init__(self, cluster, number):
        self.session = cluster.nodes[0].connect(load_balancing_policy=RoundRobinPolicy(), default_retry_policy=FallthroughRetryPolicy())
        self.session.default_timeout = 20
        self.acknowledged = collections.defaultdict(list)
        self.unknown = set()
        self.ended = threading.Event()
        self.number = number
        self.thread = threading.Thread(target=self.write)

    def write(self):
        insert = self.session.prepare("INSERT INTO changes.t (pk, v) VALUES (?, ?)")
        for v in itertools.count():
            for pk in range(self.number * PARTITIONS_EACH, (self.number + 1) * PARTITIONS_EACH):
                if self.ended.is_set():
                    return
                try:
                    self.session.execute(insert, (pk, v))
                    self.acknowledged[pk].append(v)
                except Exception:  # Whether the write took effect is unknown.
                    self.unknown.add((pk, v))


def generations(session):
    return [row.timestamp for row in session.execute("SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name = 'changes' AND table_name = 't'")]


@pytest.fixture
def cluster(minio, tmp_path):
    """Returns nodes that begin with fewer tablets than three nodes are to have, so that tablets are split, and merged when two nodes leave."""
    settings = [f"tablet_count={TABLETS}", "merge_after=8s"]
    nodes = Cluster(minio, tmp_path, f"s3://{minio.bucket('changes')}/store", args=[word for setting in settings for word in ("--set", setting)])
    yield nodes
    nodes.close()


def test_log_has_what_was_acknowledged(cluster):
    first, second, third = cluster.nodes
    session = first.connect()
    session.default_timeout = 60
    session.execute("CREATE KEYSPACE changes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE changes.t (pk int PRIMARY KEY, v int) WITH cdc = {'enabled': true, 'preimage': true}")
    writers = [Writer(cluster, number) for number in range(WRITERS)]
    for writer in writers:
        writer.thread.start()

    def count():
        return sum(len(found) for writer in writers for found in list(writer.acknowledged.values()))

    def writes(more):
        wanted = count() + more
        helenus.wait_until(lambda: count() >= wanted, 180, f"{more} writes")

    def tablets():
        return len(list(session.execute("SELECT id FROM system_views.tablets")))

    helenus.wait_until(lambda: tablets() > TABLETS, 120, "tablets are split")
    writes(300)
    second.kill()
    writes(300)
    second.start()
    writes(300)
    third.kill()
    third.start()
    writes(300)
    # Three nodes have four tablets each. One node alone keeps eight.
    helenus.wait_until(lambda: tablets() >= 12, 120, "all tablets are split")
    split = tablets()
    for node in (second, third):
        assert node.terminate(120) == 0, node.log(60)
    helenus.wait_until(lambda: tablets() < split, 120, "tablets are merged")
    writes(300)
    for node in (second, third):
        node.start()
    writes(300)
    for writer in writers:
        writer.ended.set()
    for writer in writers:
        writer.thread.join()
    recorded = collections.defaultdict(list)
    rows = session.execute('SELECT "cdc$stream_id" AS stream, "cdc$time" AS time, "cdc$operation" AS operation, pk, v FROM changes.t_scylla_cdc_log')
    images = {}
    for row in rows:
        if row.operation == 0:
            images[row.time] = row.v
        else:
            recorded[row.pk].append((row.time, row.v))
    for writer in writers:
        for pk, written in writer.acknowledged.items():
            in_order = [v for _, v in sorted(recorded[pk], key=lambda entry: entry[0].time)]
            assert len(in_order) == len(set(in_order)), f"partition {pk}: a change is recorded twice: {in_order}"
            unexplained = set(in_order) - set(written) - {v for at, v in writer.unknown if at == pk}
            assert not unexplained and set(written) <= set(in_order), f"partition {pk}: acknowledged {written}, recorded {in_order}"
            assert in_order == sorted(in_order), f"partition {pk}: {in_order}"
            # The image of each change is the value of the one before.
            times = sorted(recorded[pk], key=lambda entry: entry[0].time)
            for (_, before), (time, v) in zip(times, times[1:]):
                assert images[time] == before, f"partition {pk}: before {v} the image has {images[time]}, the log {before}"
    assert len(generations(session)) > 1, "splits and merges begin new generations of streams"
