"""The disk cache of a node on a bucket: data many times larger than the memory caches is read without requests to the bucket."""

import pathlib
import random
import shutil
import tempfile

import pytest
from cassandra.concurrent import execute_concurrent_with_args

import helenus

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

ROWS, VALUE_BYTES = 6000, 3000
# Blocks take a twentieth of the data at most.
SMALL = ["--set", "tablet_count=2", "--set", "block_cache_bytes=1MiB", "--set", "row_cache_bytes=0", "--set", "memtable_bytes=4MiB",
         "--set", "cache_disk_bytes=128MiB"]


@pytest.fixture
def cache(tmp_path):
    """Yields a folder for the cache whose disk has enough free space. It is in memory if the disk of the tests is nearly full."""
    disk = shutil.disk_usage(tmp_path)
    if disk.free > disk.total / 10:
        yield tmp_path / "cache"
        return
    folder = tempfile.mkdtemp(dir="/dev/shm")
    yield pathlib.Path(folder) / "cache"
    shutil.rmtree(folder)


def value(k):
    return random.Random(k).randbytes(VALUE_BYTES)


def write_all(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v blob)")
    insert = session.prepare("INSERT INTO o.t (k, v) VALUES (?, ?)")
    execute_concurrent_with_args(session, insert, [(k, value(k)) for k in range(ROWS)], concurrency=64)


def asked(node):
    """Reads all rows by key. Returns the parts that a read requested from the bucket, and the share of the data that the bucket sent. Requests
    for documents, which a node always makes, are small.
    """
    session = node.connect()
    select = session.prepare("SELECT v FROM o.t WHERE k = ?")
    before = node.metrics()
    results = execute_concurrent_with_args(session, select, [(k,) for k in range(ROWS)], concurrency=32)
    for k, (_, rows) in enumerate(results):
        assert rows.one().v == value(k), k
    after = node.metrics()
    misses, sent = (after[name] - before[name] for name in ("helenus_disk_cache_misses_total", "helenus_bucket_read_bytes_total"))
    return misses / ROWS, sent / (ROWS * VALUE_BYTES)


def is_spared(node):
    parts, share = asked(node)
    print("parts that a read asked for:", parts, "share of the data sent:", share)
    return parts <= 0.01 and share <= 0.02


def restart(node):
    node.close_clients()
    assert node.terminate() == 0
    node.start()


def test_reads_do_not_ask_the_bucket(bucket, nodes, cache):
    node = nodes(bucket, args=[*SMALL, "--cache-dir", str(cache)]).start()
    write_all(node)
    restart(node)
    assert is_spared(node), "what flushes and compactions have written is there"
    node.close_clients()
    assert node.terminate() == 0

    shutil.rmtree(cache)
    node.start()
    parts, share = asked(node)
    assert 0.01 < parts < 1 and share > 0.9, (parts, share)
    # A busy disk does not take all blocks at the first reading.
    helenus.wait_until(lambda: is_spared(node), 120, "all blocks on the disk")
    restart(node)
    assert is_spared(node), "it is warm after a restart"
    metrics = node.metrics()
    assert metrics["helenus_disk_cache_hits_total"] >= ROWS / 2
    assert metrics["helenus_disk_cache_bytes"] <= metrics["helenus_disk_cache_capacity_bytes"]
    assert metrics["helenus_disk_cache_errors_total"] == 0
    assert "foyer" not in node.log()

    # The cache survives a crash too. Damage to the cache while the node is stopped costs only requests.
    for start in (node.start, lambda: None):
        node.close_clients()
        node.kill()
        start()
        assert not node.alive() or is_spared(node)
    for block in (cache / "blocks").iterdir():
        with open(block, "r+b") as file:
            for page in range(0, block.stat().st_size, 4096):
                file.seek(page + 1000)
                byte = file.read(1)
                file.seek(page + 1000)
                file.write(bytes([byte[0] ^ 1]))
    node.start()
    parts, share = asked(node)
    assert parts > 0.01 and share > 0.5, (parts, share)


def test_two_nodes_with_one_folder(bucket, nodes, cache):
    """The second one says so and does without; and so does one whose disk has no place for a cache."""
    shared = ["--cache-dir", str(cache), "--set", "cache_disk_bytes=64MiB"]
    first = nodes(bucket, args=shared).start()
    second = nodes(bucket, args=shared).start()
    assert "helenus_disk_cache_capacity_bytes" in first.metrics()
    assert "helenus_disk_cache_capacity_bytes" not in second.metrics()
    assert "no disk cache" in second.log() and "another process uses this folder" in second.log()
    off = nodes(bucket, args=["--set", "cache_disk_bytes=0"]).start()
    assert "helenus_disk_cache_capacity_bytes" not in off.metrics()
    assert "no disk cache" not in off.log() and not (off.folder / "helenus-cache").exists()
