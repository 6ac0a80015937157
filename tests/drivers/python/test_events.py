"""Schema events: what one session does, another one hears."""

import itertools

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


def test_events_of_what_else_has_changed(target, session, keyspace):
    """A statement may change more than what it names: views with their table, tables with their types, all of a keyspace with it."""
    name = keyspace + "e"
    listener = target.connect(schema_event_refresh_window=-1)
    got = []
    connection = listener.cluster.connection_factory(next(iter(listener.cluster.metadata.all_hosts())).endpoint)
    connection.register_watchers({"SCHEMA_CHANGE": got.append})
    mine = lambda: [(e["change_type"], e.get("table") or e.get("type") or "") for e in got if e["keyspace"] == name]

    durable = itertools.cycle(["false", "true"])

    def told(statement, *expected):
        got.clear()
        session.execute(statement.replace("$", name))
        # Events come in order: behind this one there are no more of the statement's.
        session.execute(f"ALTER KEYSPACE {keyspace} WITH durable_writes = {next(durable)}")
        wait_until(lambda: any(e["keyspace"] == keyspace for e in got), what=f"events of {statement}")
        assert sorted(mine()) == sorted(expected), statement

    told("CREATE KEYSPACE $ WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ("CREATED", ""))
    told("CREATE TYPE $.inner (a int)", ("CREATED", "inner"))
    told("CREATE TYPE $.outer (i frozen<inner>)", ("CREATED", "outer"))
    told("CREATE TABLE $.t (k int PRIMARY KEY, v int, l list<frozen<outer>>)", ("CREATED", "t"))
    told("CREATE TABLE $.other (k int PRIMARY KEY)", ("CREATED", "other"))
    told("CREATE MATERIALIZED VIEW $.whole AS SELECT * FROM $.t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
         ("CREATED", "whole"))
    told("ALTER TABLE $.t ADD w int", ("UPDATED", "t"), ("UPDATED", "whole"))
    told("ALTER TABLE $.t RENAME k TO key", ("UPDATED", "t"), ("UPDATED", "whole"))
    told("ALTER TABLE $.t WITH comment = 'c'", ("UPDATED", "t"))
    told("CREATE INDEX i ON $.t (w)", ("UPDATED", "t"))
    told("DROP INDEX $.i", ("UPDATED", "t"))
    told("ALTER MATERIALIZED VIEW $.whole WITH comment = 'c'", ("UPDATED", "whole"))
    told("ALTER TYPE $.inner ADD b int", ("UPDATED", "inner"), ("UPDATED", "outer"), ("UPDATED", "t"), ("UPDATED", "whole"))
    told("DROP MATERIALIZED VIEW $.whole", ("DROPPED", "whole"))
    told("DROP KEYSPACE $", ("DROPPED", ""), ("DROPPED", "t"), ("DROPPED", "other"), ("DROPPED", "inner"), ("DROPPED", "outer"))
    connection.close()
    listener.cluster.shutdown()


def test_views_columns_follow_their_table(ks):
    """The driver reads the view again after the event of a schema change."""
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    ks.execute("CREATE MATERIALIZED VIEW whole AS SELECT * FROM t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)")
    views = lambda: ks.cluster.metadata.keyspaces[ks.keyspace].views
    assert set(views()["whole"].columns) == {"k", "v"}
    ks.execute("ALTER TABLE t ADD w text")
    wait_until(lambda: "w" in views()["whole"].columns, what="the view's new column")
    assert "w" in ks.cluster.metadata.keyspaces[ks.keyspace].tables["t"].views["whole"].columns


def test_schema_version_changes(session, keyspace):
    version = lambda: session.execute("SELECT schema_version FROM system.local").one()[0]
    before = version()
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    after = version()
    assert before != after
    session.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.t (k int PRIMARY KEY)")
    assert version() == after


@pytest.mark.parametrize("version", [3, 4, 5])
def test_types_within_types_and_tables_follow(target, ks, version):
    """A session that made none of the changes reads the nested types and the tables that hold them as they are."""
    other = target.connect(protocol_version=version, schema_event_refresh_window=0)
    keyspace = lambda: other.cluster.metadata.keyspaces[ks.keyspace]
    ks.execute("CREATE TYPE inner (a int)")
    ks.execute("CREATE TYPE outer (i frozen<inner>)")
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, o frozen<outer>)")
    wait_until(lambda: "t" in keyspace().tables, what="the table")
    ks.execute("ALTER TYPE inner ADD b text")
    wait_until(lambda: keyspace().user_types["inner"].field_names == ["a", "b"], what="the new field")
    ks.execute("ALTER TYPE outer RENAME i TO j")
    wait_until(lambda: keyspace().user_types["outer"].field_names == ["j"], what="the new name")
    ks.execute("DROP TABLE t")
    ks.execute("DROP TYPE outer")
    wait_until(lambda: set(keyspace().user_types) == {"inner"}, what="the type's end")
    other.cluster.shutdown()
