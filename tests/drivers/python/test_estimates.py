"""The estimates by which tools part what they read (`system.size_estimates`, `system.table_estimates`)."""

import pytest
from cassandra.concurrent import execute_concurrent_with_args

pytestmark = pytest.mark.process

# More than are read of a table for its estimate.
PARTITIONS = 3000
ROW_BYTES = 200


def estimates(session, table, source="size_estimates", **more):
    """Returns the end, number of partitions and their mean size in bytes for each range, by its first token."""
    conditions = "".join(f" AND {name} = '{value}'" for name, value in more.items())
    rows = session.execute(f"SELECT * FROM system.{source} WHERE keyspace_name = 'k' AND table_name = '{table}'{conditions}")
    return {int(r.range_start): (int(r.range_end), r.partitions_count, r.mean_partition_size) for r in rows}


def test_estimates(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for name in ("many", "few", "none", "wide"):
        session.execute(f"CREATE TABLE k.{name} (p int, c int, v text, PRIMARY KEY (p, c))")
    text = "x" * ROW_BYTES
    insert = "INSERT INTO k.{} (p, c, v) VALUES (?, ?, ?)"
    for name, keys in {"many": ((p, 0) for p in range(PARTITIONS)), "few": ((p, c) for p in range(7) for c in range(3)),
                       "wide": ((0, c) for c in range(25_000))}.items():
        statement = session.prepare(insert.format(name))
        execute_concurrent_with_args(session, statement, ((p, c, text) for p, c in keys), concurrency=200)

    many = estimates(session, "many")
    ends = sorted((start, end) for start, (end, _, _) in many.items())
    assert ends[0][0] == -2**63 and ends[-1][1] == 2**63 - 1
    assert all(end == start for (_, end), (start, _) in zip(ends, ends[1:]))
    assert 0.75 * PARTITIONS < sum(count for _, count, _ in many.values()) < 1.25 * PARTITIONS
    assert all(ROW_BYTES < size < 2 * ROW_BYTES for _, _, size in many.values())

    few = estimates(session, "few")
    assert sum(count for _, count, _ in few.values()) == 7
    assert all(3 * ROW_BYTES < size < 6 * ROW_BYTES for _, _, size in few.values())
    assert {row[1:] for row in estimates(session, "none").values()} == {(0, 0)}
    # The sampling of a partition is bounded, so a larger partition counts with the bound.
    assert all(size < 5 << 20 for _, _, size in estimates(session, "wide").values())

    assert estimates(session, "many", "table_estimates", range_type="primary") == many
    assert estimates(session, "many", "table_estimates", range_type="local_primary") == many
    everything = session.execute("SELECT table_name, partitions_count FROM system.size_estimates").all()
    assert len(everything) == 4 * len(many)
