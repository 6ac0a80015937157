"""Schema events: what one session does, another one hears."""

import pytest
from cassandra.protocol import RegisterMessage, EventMessage
from helenus import wait_until


def test_second_session_sees_schema(target, keyspace):
    first, second = target.connect(), target.connect()
    tables = lambda: second.cluster.metadata.keyspaces[keyspace].tables
    wait_until(lambda: keyspace in second.cluster.metadata.keyspaces, what="keyspace event")
    first.execute(f"CREATE TABLE {keyspace}.seen (k int PRIMARY KEY)")
    wait_until(lambda: "seen" in tables(), what="table event")
    first.execute(f"ALTER TABLE {keyspace}.seen ADD v text")
    wait_until(lambda: "v" in tables()["seen"].columns, what="alter event")
    first.execute(f"CREATE INDEX seen_v ON {keyspace}.seen (v)")
    wait_until(lambda: "seen_v" in tables()["seen"].indexes, what="index event")
    first.execute(f"CREATE TYPE {keyspace}.kind (a int)")
    wait_until(lambda: "kind" in second.cluster.metadata.keyspaces[keyspace].user_types, what="type event")
    first.execute(f"DROP TYPE {keyspace}.kind")
    wait_until(lambda: "kind" not in second.cluster.metadata.keyspaces[keyspace].user_types, what="drop type event")
    first.execute(f"DROP TABLE {keyspace}.seen")
    wait_until(lambda: "seen" not in tables(), what="drop event")
    first.cluster.shutdown()
    second.cluster.shutdown()


@pytest.mark.parametrize("version", [3, 4, 5])
def test_raw_events(target, keyspace, version):
    """The events themselves, in order, on a connection that registered."""
    listener, actor = target.connect(protocol_version=version, schema_event_refresh_window=-1), target.connect()
    got = []
    connection = listener.cluster.connection_factory(
        next(iter(listener.cluster.metadata.all_hosts())).endpoint)
    connection.register_watchers({"SCHEMA_CHANGE": got.append})
    actor.execute(f"CREATE TABLE {keyspace}.e (k int PRIMARY KEY)")
    actor.execute(f"ALTER TABLE {keyspace}.e ADD v int")
    actor.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.e (k int PRIMARY KEY)")
    actor.execute(f"CREATE TYPE {keyspace}.ty (a int)")
    actor.execute(f"DROP TABLE {keyspace}.e")
    actor.execute(f"ALTER KEYSPACE {keyspace} WITH durable_writes = false")
    mine = lambda: [e for e in got if e["keyspace"] == keyspace]
    wait_until(lambda: len(mine()) >= 5, what="five events")
    assert [(e["change_type"], e["target_type"], e.get("table") or e.get("type")) for e in mine()] == [
        ("CREATED", "TABLE", "e"), ("UPDATED", "TABLE", "e"), ("CREATED", "TYPE", "ty"),
        ("DROPPED", "TABLE", "e"), ("UPDATED", "KEYSPACE", None)]
    connection.close()
    listener.cluster.shutdown()
    actor.cluster.shutdown()


def test_schema_version_changes(session, keyspace):
    version = lambda: session.execute("SELECT schema_version FROM system.local").one()[0]
    before = version()
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    after = version()
    assert before != after
    session.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.t (k int PRIMARY KEY)")
    assert version() == after
