"""What a node keeps in memory while data grows."""

import os

import pytest
from cassandra.concurrent import execute_concurrent_with_args

import helenus

MIB = 1 << 20
SMALL = dict(memtable_bytes="32MiB", row_cache_bytes="4MiB", block_cache_bytes="4MiB", compaction_throughput="64KiB/s")
ROW_BYTES = 32 << 10
FILES = 10


@pytest.mark.process
def test_files_that_wait_for_compaction_take_no_memory(tmp_path):
    """Rows of a table with an index are written whole. Each file has some 12 MiB of them."""
    node = helenus.Node(tmp_path / "data", args=helenus.setting_args(SMALL)).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE m.t (k int PRIMARY KEY, i int, v blob)")
        session.execute("CREATE INDEX ON m.t (i)")
        insert = session.prepare("INSERT INTO m.t (k, i, v) VALUES (?, ?, ?)")
        resident = {}
        written = 0
        while (files := int(node.metrics()["helenus_store_level0_files"])) < FILES:
            rows = [(k, k % 10, os.urandom(ROW_BYTES)) for k in range(written, written + 128)]
            execute_concurrent_with_args(session, insert, rows, concurrency=32)
            written += len(rows)
            resident[files] = node.metrics()["process_resident_memory_bytes"]
        first = min(files for files in resident if files > 1)
        grown = max(resident.values()) - resident[first]
        assert grown < 40 * MIB, {files: round(size / MIB) for files, size in resident.items()}
    finally:
        node.close()
