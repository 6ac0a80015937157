"""Entries of an index whose rows have expired, or lie in a deleted range, go when reads come across them: on one node and on two."""

import pytest

import helenus

pytestmark = pytest.mark.process

ROWS = 200


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_an_index_over_rows_that_expire_shrinks(request, nodes, tmp_path, place):
    url = f"file://{tmp_path}/store" if place == "folder" else request.getfixturevalue("bucket")
    cluster = [nodes(url).start() for _ in range(1 if place == "folder" else 2)]
    sessions = [node.connect() for node in cluster]
    session = sessions[0]
    session.execute("CREATE KEYSPACE e WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE e.t (k int, c int, v int, PRIMARY KEY (k, c))")
    session.execute("CREATE INDEX ON e.t (v)")
    insert = session.prepare("INSERT INTO e.t (k, c, v) VALUES (?, ?, 7) USING TTL ?")
    for k in range(ROWS):
        session.execute(insert, (k % 20, k, 0 if k % 20 == 3 else 1))
    session.execute("DELETE FROM e.t WHERE k = 3 AND c > 100")
    left = sorted(k for k in range(ROWS) if k % 20 == 3 and k <= 100)
    gone = ROWS - len(left)

    def expired():
        return len(list(session.execute("SELECT k FROM e.t"))) == len(left)

    helenus.wait_until(expired, 20, "the rows expire", 0.1)

    def figure(name):
        return sum(node.metrics()[name] for node in cluster)

    def all_expired():
        """Returns true if a read finds the rows, and no index entry of an expired row."""
        before = figure("helenus_index_entries_stale_total")
        for session in sessions:
            assert sorted(row.c for row in session.execute("SELECT c FROM e.t WHERE v = 7")) == left
        return figure("helenus_index_entries_stale_total") == before

    helenus.wait_until(all_expired, 30, "the entries go", 0.02)
    assert figure("helenus_index_entries_removed_total") >= gone
    # A row that is written again is found again.
    session.execute(insert, (1, 1, 0))
    assert sorted(row.c for row in sessions[-1].execute("SELECT c FROM e.t WHERE v = 7")) == [1, *left]
