"""The schema as the driver reads it, and the CQL it writes back."""

import pytest


@pytest.fixture
def schema(ks):
    ks.execute("CREATE TYPE address (street text, zip int, phones frozen<list<text>>)")
    ks.execute("""CREATE TABLE users (
        org uuid, team int, joined timestamp, name text, motto text static,
        home frozen<address>, tags set<text>, scores map<text, double>, visits list<timestamp>,
        pair tuple<int, text>, embedding vector<float, 3>,
        PRIMARY KEY ((org, team), joined, name))
        WITH CLUSTERING ORDER BY (joined DESC, name ASC)
        AND comment = 'who is who' AND default_time_to_live = 86400 AND gc_grace_seconds = 3600
        AND compaction = {'class': 'LeveledCompactionStrategy'}""")
    ks.execute("CREATE INDEX by_motto ON users (motto)")
    ks.execute("CREATE INDEX by_tag ON users (tags)")
    ks.execute("CREATE INDEX by_score_key ON users (KEYS(scores))")
    ks.cluster.refresh_schema_metadata()
    return ks.cluster.metadata.keyspaces[ks.keyspace]


def test_keyspace(schema):
    assert schema.durable_writes is True
    assert schema.replication_strategy.name == "SimpleStrategy"
    assert schema.replication_strategy.replication_factor == 1
    assert set(schema.tables) == {"users"} and set(schema.user_types) == {"address"}


def test_columns(schema):
    table = schema.tables["users"]
    assert [c.name for c in table.partition_key] == ["org", "team"]
    assert [c.name for c in table.clustering_key] == ["joined", "name"]
    assert [c.is_reversed for c in table.clustering_key] == [True, False]
    types = {name: c.cql_type for name, c in table.columns.items()}
    assert types == {
        "org": "uuid", "team": "int", "joined": "timestamp", "name": "text", "motto": "text",
        "home": "frozen<address>", "tags": "set<text>", "scores": "map<text, double>",
        "visits": "list<timestamp>", "pair": "frozen<tuple<int, text>>", "embedding": "vector<float, 3>",
    }
    assert table.columns["motto"].is_static
    assert table.is_cql_compatible


def test_options(schema):
    options = schema.tables["users"].options
    assert options["comment"] == "who is who"
    assert options["default_time_to_live"] == 86400
    assert options["gc_grace_seconds"] == 3600
    assert options["compaction"]["class"].endswith("LeveledCompactionStrategy")
    assert set(options) >= {"bloom_filter_fp_chance", "caching", "compression", "crc_check_chance",
                            "max_index_interval", "memtable_flush_period_in_ms", "min_index_interval",
                            "speculative_retry"}


def test_indexes_and_types(schema):
    indexes = schema.indexes
    assert set(indexes) == {"by_motto", "by_tag", "by_score_key"}
    assert indexes["by_motto"].kind == "COMPOSITES"
    assert indexes["by_motto"].index_options["target"] == "motto"
    assert indexes["by_tag"].index_options["target"] == "values(tags)"
    assert indexes["by_score_key"].index_options["target"] == "keys(scores)"
    udt = schema.user_types["address"]
    assert udt.field_names == ["street", "zip", "phones"]
    assert udt.field_types == ["text", "int", "frozen<list<text>>"]


def test_exported_cql_makes_the_same_table(ks, schema):
    """The driver's export of the schema can be executed in another keyspace, and has the same export there."""
    other = schema.name + "b"
    script = schema.export_as_string().replace(schema.name, other)
    try:
        for statement in script.split(";"):
            if statement.strip():
                ks.execute(statement)
        copy = ks.cluster.metadata.keyspaces[other]
        assert copy.export_as_string() == script
    finally:
        ks.execute(f"DROP KEYSPACE IF EXISTS {other}")


def test_describe_statement_is_executable(ks, schema):
    """DESCRIBE answered by the server creates the same table after a drop."""
    before = ks.execute("DESCRIBE TABLE users").all()
    assert [r.name for r in before][0] == "users" and before[0].type == "table"
    ks.execute("DROP TABLE users")
    for row in before:
        for statement in row.create_statement.split(";"):
            if statement.strip():
                ks.execute(statement)
    assert ks.execute("DESCRIBE TABLE users").all() == before


def test_alter_is_seen(ks, schema):
    ks.execute("ALTER TABLE users ADD extra int")
    ks.execute("ALTER TYPE address ADD country text")
    ks.execute("ALTER TABLE users DROP pair")
    ks.execute("ALTER TABLE users RENAME name TO label")
    ks.execute("ALTER TABLE users WITH comment = 'changed'")
    ks.execute("DROP INDEX by_tag")
    meta = ks.cluster.metadata.keyspaces[ks.keyspace]
    table = meta.tables["users"]
    assert table.columns["extra"].cql_type == "int"
    assert "pair" not in table.columns and "label" in table.columns
    assert table.options["comment"] == "changed"
    assert "by_tag" not in meta.indexes
    assert meta.user_types["address"].field_names == ["street", "zip", "phones", "country"]


def test_system_schema_tables_answer(session):
    for name in ("keyspaces", "tables", "columns", "types", "functions", "aggregates", "triggers",
                 "indexes", "views"):
        list(session.execute(f"SELECT * FROM system_schema.{name}"))
    list(session.execute("SELECT keyspace_name, table_name, column_name, kind, type FROM system_schema.dropped_columns"))
    for name in ("keyspaces", "tables", "columns"):
        assert list(session.execute(f"SELECT * FROM system_virtual_schema.{name}"))
    names = {r[0] for r in session.execute("SELECT keyspace_name FROM system_schema.keyspaces")}
    assert names >= {"system", "system_schema", "system_auth", "system_distributed", "system_traces"}


def test_table_flags_are_compound(ks, schema):
    row = ks.execute("SELECT flags FROM system_schema.tables WHERE keyspace_name = %s AND table_name = 'users'",
                     (ks.keyspace,)).one()
    assert set(row.flags) == {"compound"}
