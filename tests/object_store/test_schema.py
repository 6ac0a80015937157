"""Schema changes that come from several nodes at once: all of them are there, on all nodes, in one history."""

import time

import pytest
from cassandra.concurrent import execute_concurrent

import helenus

pytestmark = pytest.mark.process

TABLES = 1000


def table_names(session):
    return {row.table_name for row in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'o'")}


def test_a_thousand_tables_from_three_nodes(bucket, nodes):
    trio = [nodes(bucket, args=["--name", f"node{n}"]).start() for n in range(3)]
    sessions = [node.connect(schema_metadata_enabled=False, max_schema_agreement_wait=0) for node in trio]
    sessions[0].execute("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    began = time.monotonic()
    asked = [session.execute_async(f"CREATE TABLE o.t{n} (k int PRIMARY KEY, v text)", timeout=120)
             for n, session in zip(range(TABLES), sessions * TABLES)]
    for future in asked:
        future.result()
    took_s = time.monotonic() - began
    print(f"{TABLES} tables from three nodes in {took_s:.1f} s")
    expected = {f"t{n}" for n in range(TABLES)}
    # A change is answered when all nodes serve by it.
    assert [table_names(session) ^ expected for session in sessions] == [set()] * 3
    versions = [session.execute("SELECT schema_version FROM system.local").one()[0] for session in sessions]
    peers = [row[0] for session in sessions for row in session.execute("SELECT schema_version FROM system.peers_v2")]
    assert len({*versions, *peers}) == 1, (versions, peers)
    # The tables are apart: ids and rows.
    ids = [row.id for row in sessions[0].execute("SELECT id FROM system_schema.tables WHERE keyspace_name = 'o'")]
    assert len(set(ids)) == TABLES
    write = [(f"INSERT INTO o.t{n} (k, v) VALUES (1, 't{n}')", ()) for n in range(0, TABLES, 50)]
    execute_concurrent(sessions[1], write)
    for n in range(0, TABLES, 50):
        assert sessions[2].execute(f"SELECT v FROM o.t{n}").one().v == f"t{n}"
    # A node that was away reads the same.
    trio[2].kill()
    trio[2].close_clients()
    sessions[0].execute("DROP TABLE o.t0")
    trio[2].start()
    back = trio[2].connect(schema_metadata_enabled=False)
    assert table_names(back) == expected - {"t0"}
    assert took_s < 120


def test_one_name_is_created_once(bucket, nodes):
    """The first statement creates the table. All others, on any node, get the error that it exists."""
    trio = [nodes(bucket, args=["--name", f"node{n}"]).start() for n in range(3)]
    sessions = [node.connect(schema_metadata_enabled=False, max_schema_agreement_wait=0) for node in trio]
    sessions[0].execute("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for n in range(20):
        asked = [session.execute_async(f"CREATE TABLE o.t{n} (k int PRIMARY KEY)") for session in sessions * 2]
        outcomes = []
        for future in asked:
            try:
                future.result()
                outcomes.append("created")
            except Exception as error:
                outcomes.append(type(error).__name__)
        assert sorted(outcomes) == ["AlreadyExists"] * 5 + ["created"], outcomes
