"""The thresholds of tombstones a query may meet: a warning, then a read failure, as in Cassandra."""

import pytest
from cassandra import ReadFailure

import helenus

pytestmark = pytest.mark.process


def test_thresholds(tmp_path):
    node = helenus.Node(tmp_path, args=["--set", "tombstone_warn_threshold=10", "--set", "tombstone_failure_threshold=50"]).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE s.t (k int, c int, a int, b int, PRIMARY KEY (k, c))")
        insert = session.prepare("INSERT INTO s.t (k, c, a, b) VALUES (?, ?, ?, ?)")

        def read(k):
            future = session.execute_async(f"SELECT * FROM s.t WHERE k = {k}")
            return len(list(future.result())), future.warnings

        for c in range(10):
            session.execute(insert, (1, c, None, 1))
        assert read(1) == (10, None)
        # One row with a dead cell more, then two that are deleted: 13 tombstones, of which two are rows.
        session.execute(insert, (1, 10, None, 1))
        session.execute("DELETE FROM s.t WHERE k = 1 AND c = 100")
        session.execute("DELETE FROM s.t WHERE k = 1 AND c = 101")
        count, warnings = read(1)
        assert count == 11 and len(warnings) == 1, warnings
        assert warnings[0].startswith("Read 11 live rows and 13 tombstone cells for query ")
        assert warnings[0].endswith("(see tombstone_warn_threshold)")
        for c in range(26):
            session.execute(insert, (2, c, None, None))
        with pytest.raises(ReadFailure) as failure:
            read(2)
        assert "READ_TOO_MANY_TOMBSTONES" in str(failure.value) and failure.value.failures == 1
    finally:
        node.close()
