"""Memory of a node while its data grows."""

import itertools
import os

import pytest
from cassandra.concurrent import execute_concurrent_with_args

import helenus

SMALL = dict(memtable_bytes="32MiB", row_cache_bytes="4MiB", block_cache_bytes="4MiB", compaction_throughput="64KiB/s")
ROW_BYTES = 32 << 10
# Files at the first look, and at the later ones.
FIRST, LOOKS = 2, (10, 16, 22)


@pytest.mark.process
def test_files_that_wait_for_compaction_take_no_memory(tmp_path):
    """Rows of a table with an index are written whole, some 12 MiB of them to each file. Where files take memory, it grows as they do."""
    node = helenus.Node(tmp_path / "data", args=helenus.setting_args(SMALL)).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE m.t (k int PRIMARY KEY, i int, v blob)")
        session.execute("CREATE INDEX ON m.t (i)")
        insert = session.prepare("INSERT INTO m.t (k, i, v) VALUES (?, ?, ?)")
        keys = itertools.count()

        def look(files):
            """Writes until there are `files` files. Returns the maximum memory, and the bytes in files."""
            resident = 0
            while (figures := node.metrics())["helenus_store_level0_files"] < files:
                rows = [(k, k % 10, os.urandom(ROW_BYTES)) for k in itertools.islice(keys, 128)]
                execute_concurrent_with_args(session, insert, rows, concurrency=32)
                resident = max(resident, node.metrics()["process_resident_memory_bytes"])
            return resident, figures["helenus_store_data_bytes"]

        resident, in_files = look(FIRST)
        seen = []
        for files in LOOKS:
            # Each look is compared with the one before. At the first one, the memtables have not been as full as they will be.
            resident_before, in_files_before = resident, in_files
            resident, in_files = look(files)
            seen.append((resident - resident_before, in_files - in_files_before))
            if seen[-1][0] < seen[-1][1] / 3:
                return
        raise AssertionError(f"expected memory to grow by less than a third of the bytes in files, got (memory, files): {seen}")
    finally:
        node.close()
