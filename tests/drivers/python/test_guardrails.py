"""Guardrails: what clients are warned of and refused, with Cassandra's messages, and the warning for table options without effect."""

import pytest
from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from cassandra.query import BatchStatement, SimpleStatement

import helenus

pytestmark = pytest.mark.process

SETTINGS = {
    "tables_warn_threshold": 2,
    "tables_fail_threshold": 4,
    "columns_per_table_fail_threshold": 5,
    "fields_per_udt_fail_threshold": 2,
    "secondary_indexes_per_table_fail_threshold": 1,
    "keyspaces_fail_threshold": 1,
    "vector_dimensions_warn_threshold": 3,
    "page_size_warn_threshold": 100,
    "page_size_fail_threshold": 6000,
    "partition_keys_in_select_fail_threshold": 2,
    "in_select_cartesian_product_warn_threshold": 1,
    "items_per_collection_warn_threshold": 2,
    "items_per_collection_fail_threshold": 3,
    "maximum_timestamp_fail_threshold": "60s",
    "allow_filtering_enabled": "false",
    "group_by_enabled": "false",
    "drop_truncate_table_enabled": "false",
    "user_timestamps_enabled": "false",
    "read_consistency_levels_warned": "ALL",
    "write_consistency_levels_disallowed": "ANY,ALL",
    "table_properties_ignored": "comment",
    "table_properties_disallowed": "cdc",
}
KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    node = helenus.Node(tmp_path_factory.mktemp("guarded"), args=helenus.setting_args(SETTINGS)).start()
    session = node.connect()
    session.default_fetch_size = 50
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE k.t (p int, c int, v int, m map<int, int>, PRIMARY KEY (p, c))")
    yield session
    node.close()


def warnings(session, statement, *values, **options):
    future = session.execute_async(statement, *values, **options)
    future.result()
    return list(future.warnings or [])


def refused(session, statement, *values):
    with pytest.raises(InvalidRequest) as error:
        session.execute(statement, *values)
    return str(error.value)


def test_definitions(guarded):
    assert "keyspaces violated: Cannot have more than 1 keyspaces, aborting the creation of keyspace l" in \
        refused(guarded, KEYSPACE.replace("k WITH", "l WITH"))
    assert "Tables cannot have more than 5 columns, but 6 provided for table w" in \
        refused(guarded, "CREATE TABLE k.w (a int PRIMARY KEY, b int, c int, d int, e int, f int)")
    assert "User types cannot have more than 2 columns, but 3 provided for user type u." in \
        refused(guarded, "CREATE TYPE k.u (a int, b int, c int)")
    assert warnings(guarded, "CREATE TABLE k.a (p int PRIMARY KEY, v vector<float, 4>)") == [
        "Guardrail vector_dimensions violated: Column v has a vector of 4 dimensions, this exceeds the warning threshold of 3."]
    assert warnings(guarded, "CREATE TABLE k.b (p int PRIMARY KEY) WITH comment = 'x'") == [
        "Guardrail table_properties violated: Ignoring provided values [comment] as they are not supported for Table "
        "Properties (ignored values are: [comment])",
        "Guardrail tables violated: Creating table b, current number of tables 3 exceeds warning threshold of 2."]
    assert guarded.cluster.metadata.keyspaces["k"].tables["b"].options["comment"] == ""
    guarded.execute("CREATE TABLE k.c (p int PRIMARY KEY)")
    assert "Cannot have more than 4 tables, aborting the creation of table d" in \
        refused(guarded, "CREATE TABLE k.d (p int PRIMARY KEY)")
    assert "Provided values [cdc] are not allowed for Table Properties" in refused(guarded, "ALTER TABLE k.c WITH cdc = true")
    guarded.execute("CREATE INDEX first ON k.t (v)")
    assert "aborting the creation of secondary index second on table t" in refused(guarded, "CREATE INDEX second ON k.t (c)")
    for statement in ("DROP TABLE k.c", "TRUNCATE k.c"):
        assert refused(guarded, statement).endswith(
            'message="Guardrail drop_truncate_table_enabled violated: DROP and TRUNCATE TABLE functionality is not allowed"')
    guarded.execute("INSERT INTO k.c (p) VALUES (1)")


def test_reads(guarded):
    assert "Querying with ALLOW FILTERING is not allowed. ALLOW FILTERING can potentially" in \
        refused(guarded, "SELECT * FROM k.t WHERE c = 1 ALLOW FILTERING")
    guarded.execute("SELECT * FROM system.peers WHERE rack = 'r' ALLOW FILTERING")
    assert "GROUP BY functionality is not allowed" in refused(guarded, "SELECT p, count(*) FROM k.t GROUP BY p")
    prepared = guarded.prepare("SELECT * FROM k.t WHERE p IN ?")
    assert warnings(guarded, prepared, ([1],)) == []
    assert "number of partition keys 3 exceeds fail threshold of 2." in refused(guarded, prepared, ([1, 2, 3],))
    assert warnings(guarded, "SELECT * FROM k.t WHERE p = 1 AND c IN (1, 2)") == [
        "Guardrail in_select_cartesian_product violated: The cartesian product of the IN restrictions on clustering key "
        "produces 2 values, this exceeds warning threshold of 1."]
    large = SimpleStatement("SELECT * FROM k.t", fetch_size=101)
    assert warnings(guarded, large) == ["Guardrail page_size violated: Query for table t with page size 101 exceeds warning threshold of 100."]
    assert "page size 6001 exceeds fail threshold of 6000." in refused(guarded, SimpleStatement("SELECT * FROM k.t", fetch_size=6001))
    assert warnings(guarded, SimpleStatement("SELECT * FROM k.t", consistency_level=ConsistencyLevel.ALL)) == [
        "Guardrail read_consistency_levels violated: Provided values [ALL] are not recommended for read consistency levels "
        "(warned values are: [ALL])"]


def test_writes(guarded):
    insert = "INSERT INTO k.t (p, c, m) VALUES (1, 1, {})"
    assert warnings(guarded, insert.format("{1: 1, 2: 2}")) == []
    assert warnings(guarded, insert.format("{1: 1, 2: 2, 3: 3}")) == [
        "Guardrail items_per_collection violated: Detected collection m with 3 items, this exceeds the warning threshold of 2."]
    assert "with 4 items, this exceeds the failure threshold of 3." in refused(guarded, insert.format("{1: 1, 2: 2, 3: 3, 4: 4}"))
    batch = BatchStatement()
    batch.add("UPDATE k.t SET m = m + {1: 1, 2: 2, 3: 3, 4: 4} WHERE p = 1 AND c = 1")
    assert "with 4 items" in refused(guarded, batch)
    assert "Provided values [ALL] are not allowed for write consistency levels (disallowed values are: [ANY, ALL])" in \
        refused(guarded, SimpleStatement("INSERT INTO k.t (p, c) VALUES (1, 1)", consistency_level=ConsistencyLevel.ALL))
    assert "User provided timestamps (USING TIMESTAMP) is not allowed" in \
        refused(guarded, "INSERT INTO k.t (p, c) VALUES (1, 1) USING TIMESTAMP 1")
    ahead = guarded.cluster.timestamp_generator
    guarded.cluster.timestamp_generator = lambda: ahead() + 120_000_000
    try:
        assert "The modification to table t has a timestamp" in refused(guarded, "INSERT INTO k.t (p, c) VALUES (1, 1)")
    finally:
        guarded.cluster.timestamp_generator = ahead
    guarded.execute("INSERT INTO k.t (p, c) VALUES (1, 1)")


def test_settings_are_shown(guarded):
    shown = {row.name: row.value for row in guarded.execute("SELECT * FROM system_views.settings")}
    assert shown["tables_warn_threshold"] == "2" and shown["keyspaces_warn_threshold"] == "-1"
    assert shown["collection_size_fail_threshold"] is None
    assert shown["group_by_enabled"] == "false" and shown["alter_table_enabled"] == "true"
    assert shown["write_consistency_levels_disallowed"] == "[ANY, ALL]" and shown["table_properties_warned"] == "[]"


def test_superusers_are_exempt(tmp_path):
    settings = {"authenticator": "PasswordAuthenticator", "tables_fail_threshold": 1, "allow_filtering_enabled": "false"}
    node = helenus.Node(tmp_path, args=helenus.setting_args(settings)).start()
    clusters = []

    def log_in(name):
        clusters.append(Cluster([node.host], port=node.port, auth_provider=PlainTextAuthProvider(name, name)))
        return clusters[-1].connect()

    try:
        root = log_in("cassandra")
        root.execute(KEYSPACE)
        for name in ("a", "b"):
            root.execute(f"CREATE TABLE k.{name} (p int PRIMARY KEY, v int)")
        root.execute("SELECT * FROM k.a WHERE v = 1 ALLOW FILTERING")
        root.execute("CREATE ROLE ann WITH PASSWORD = 'ann' AND LOGIN = true")
        ann = log_in("ann")
        assert "Cannot have more than 1 tables" in refused(ann, "CREATE TABLE k.c (p int PRIMARY KEY)")
        assert "ALLOW FILTERING" in refused(ann, "SELECT * FROM k.a WHERE v = 1 ALLOW FILTERING")
    finally:
        for cluster in clusters:
            cluster.shutdown()
        node.close()
