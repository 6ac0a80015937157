"""Guardrails of written values, of vectors, lists and indexes, of the disk, and of partitions, which are logged."""

import os
import urllib.request

import pytest
from cassandra import InvalidRequest
from cassandra.query import BatchStatement

import helenus

pytestmark = pytest.mark.process

SETTINGS = {
    "tablet_count": 1,
    "column_value_size_warn_threshold": "20B",
    "column_value_size_fail_threshold": "40B",
    "collection_size_fail_threshold": "100B",
    "sai_string_term_size_fail_threshold": "8B",
    "sai_frozen_term_size_warn_threshold": "16B",
    "sai_vector_term_size_fail_threshold": "12B",
    "non_partition_restricted_index_query_enabled": "false",
    "read_before_write_list_operations_enabled": "false",
    "vector_type_enabled": "true",
    "zero_ttl_on_twcs_warned": "true",
}
KEYSPACE = "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    node = helenus.Node(tmp_path_factory.mktemp("guarded"), args=helenus.setting_args(SETTINGS)).start()
    yield node
    node.close()


@pytest.fixture(scope="module")
def guarded(node):
    session = node.connect()
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE k.t (p int, c int, v text, s text STATIC, l list<text>, m map<text, text>, f frozen<list<text>>, PRIMARY KEY (p, c))")
    session.execute("CREATE TABLE k.indexed (p int PRIMARY KEY, v text, e set<text>, f frozen<list<int>>, w vector<float, 4>)")
    for column in ("v", "e", "FULL(f)", "w"):
        session.execute(f"CREATE INDEX ON k.indexed ({column}) USING 'sai'")
    return session


def warnings(session, statement, *values):
    future = session.execute_async(statement, *values)
    future.result()
    return list(future.warnings or [])


def refused(session, statement, *values):
    with pytest.raises(InvalidRequest) as error:
        session.execute(statement, *values)
    return str(error.value)


def too_large(column, size, act="failure", threshold=40, guardrail="column_value_size"):
    return f"Guardrail {guardrail} violated: Value of column '{column}' has size {size}, this exceeds the {act} threshold of {threshold}."


def test_values_of_columns(guarded):
    insert = guarded.prepare("INSERT INTO k.t (p, c, v) VALUES (1, 1, ?)")
    assert warnings(guarded, insert, ("x" * 20,)) == []
    assert warnings(guarded, insert, ("x" * 21,)) == [too_large("v", 21, "warning", 20)]
    assert too_large("v", 41) in refused(guarded, insert, ("x" * 41,))
    assert too_large("s", 41) in refused(guarded, "UPDATE k.t SET s = %s WHERE p = 1", ("x" * 41,))
    batch = BatchStatement()
    batch.add(insert, ("x" * 41,))
    assert too_large("v", 41) in refused(guarded, batch)
    document = '{"p": 1, "c": 1, "v": "' + "x" * 41 + '"}'
    assert too_large("v", 41) in refused(guarded, "INSERT INTO k.t JSON %s", (document,))
    guarded.execute("INSERT INTO k.t (p, c) VALUES (1, 1)")
    assert guarded.execute("SELECT v FROM k.t WHERE p = 1 AND c = 1").one().v == "x" * 21


def test_elements_of_collections(guarded):
    long = "x" * 41
    for change, column in [("l = l + [%s]", "l"), ("m = m + {%s: 'v'}", "m"), ("m['k'] = %s", "m"), ("m[%s] = 'v'", "m"), ("m = m - {%s}", "m")]:
        assert too_large(column, 41) in refused(guarded, f"UPDATE k.t SET {change} WHERE p = 1 AND c = 1", (long,))
    assert too_large("m", 41) in refused(guarded, "DELETE m[%s] FROM k.t WHERE p = 1 AND c = 1", (long,))
    # A frozen collection is one value: four bytes for the number of elements, and for the length of each.
    assert too_large("f", 47) in refused(guarded, "UPDATE k.t SET f = [%s] WHERE p = 1 AND c = 1", ("x" * 39,))
    document = '{"p": 1, "c": 1, "l": [' + ", ".join(['"xxxxxxxxxxxxxxxx"'] * 6) + "]}"
    assert "Detected collection l of size 120, this exceeds the failure threshold of 100." in refused(guarded, "INSERT INTO k.t JSON %s", (document,))


def test_terms_of_indexes(guarded):
    insert = "INSERT INTO k.indexed (p, {}) VALUES (1, {})"
    guarded.execute(insert.format("v", "'xxxxxxxx'"))
    term = lambda column, size: too_large(column, size, threshold=8, guardrail="sai_string_term_size")
    assert term("v", 9) in refused(guarded, insert.format("v", "'xxxxxxxxx'"))
    assert term("e", 9) in refused(guarded, insert.format("e", "{'x', 'xxxxxxxxx'}"))
    guarded.execute("DELETE e['xxxxxxxxx'] FROM k.indexed WHERE p = 1")
    assert warnings(guarded, insert.format("f", "[1, 2]")) == [too_large("f", 20, "warning", 16, "sai_frozen_term_size")]
    assert too_large("w", 16, threshold=12, guardrail="sai_vector_term_size") in refused(guarded, insert.format("w", "[1, 2, 3, 4]"))
    # Values of columns without an index may be longer.
    guarded.execute("INSERT INTO k.t (p, c, v) VALUES (2, 1, 'xxxxxxxxx')")


def test_reads_by_an_index_alone(guarded):
    assert refused(guarded, "SELECT * FROM k.indexed WHERE v = 'x'").endswith(
        'message="Guardrail non_partition_restricted_index_query_enabled violated: Non-partition key restricted query is not allowed. '
        'Executing a query on secondary indexes without partition key restriction might degrade performance"')
    guarded.execute("SELECT * FROM k.indexed WHERE p = 1 AND v = 'x'")
    guarded.execute("SELECT * FROM k.indexed")


def test_lists_that_are_read_before_they_are_written(guarded):
    guarded.execute("UPDATE k.t SET l = ['a', 'b'] WHERE p = 3 AND c = 1")
    violated = "Guardrail read_before_write_list_operations violated: "
    for statement, what in [("UPDATE k.t SET l[0] = 'c' WHERE p = 3 AND c = 1", "Setting of list items by index"),
                            ("DELETE l[0] FROM k.t WHERE p = 3 AND c = 1", "Removal of list items by index"),
                            ("UPDATE k.t SET l = l - ['a'] WHERE p = 3 AND c = 1", "Removal of list items")]:
        assert f"{violated}{what} requiring read before write is not allowed" in refused(guarded, statement)
    guarded.execute("UPDATE k.t SET l = l + ['c'] WHERE p = 3 AND c = 1")
    assert guarded.execute("SELECT l FROM k.t WHERE p = 3 AND c = 1").one().l == ["a", "b", "c"]


def test_windows_of_time_without_a_time_to_live(guarded):
    windows = "compaction = {'class': 'TimeWindowCompactionStrategy'}"
    of_guardrail = lambda told: [warning for warning in told if warning.startswith("Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a "
                                 "table with TimeWindowCompactionStrategy compaction strategy is not recommended. It is suspicious")]
    assert len(of_guardrail(warnings(guarded, f"CREATE TABLE k.windows (p int PRIMARY KEY) WITH {windows}"))) == 1
    assert of_guardrail(warnings(guarded, f"CREATE TABLE k.expiring (p int PRIMARY KEY) WITH {windows} AND default_time_to_live = 60")) == []
    assert len(of_guardrail(warnings(guarded, "ALTER TABLE k.expiring WITH default_time_to_live = 0"))) == 1
    assert of_guardrail(warnings(guarded, "ALTER TABLE k.expiring ADD v int")) == []


def post(node, path, body=""):
    with urllib.request.urlopen(urllib.request.Request(f"http://{node.host}:{node.http_port}{path}", body.encode()), timeout=120) as answer:
        assert answer.status == 200


def set_guardrails(node, **settings):
    post(node, "/node/guardrails", "\n".join(f"{name}={value}" for name, value in settings.items()))


def test_vectors_and_windows_can_be_refused(node, guarded):
    set_guardrails(node, vector_type_enabled="false", zero_ttl_on_twcs_enabled="false")
    try:
        assert "Guardrail vector_type violated: Column w is not allowed" in refused(guarded, "CREATE TABLE k.v (p int PRIMARY KEY, w vector<float, 2>)")
        assert "Field w is not allowed" in refused(guarded, "CREATE TYPE k.u (w frozen<list<vector<float, 2>>>)")
        assert "compaction strategy is not allowed" in \
            refused(guarded, "CREATE TABLE k.w (p int PRIMARY KEY) WITH compaction = {'class': 'TimeWindowCompactionStrategy'}")
    finally:
        set_guardrails(node, vector_type_enabled="true", zero_ttl_on_twcs_enabled="true")
    guarded.execute("CREATE TABLE k.v (p int PRIMARY KEY, w vector<float, 2>)")


def test_writes_are_refused_while_the_disk_is_too_full(node, guarded):
    disk = os.statvfs(node.store)
    assert disk.f_bavail < disk.f_blocks * 0.98, "the test needs a disk with something on it"
    insert = "INSERT INTO k.t (p, c) VALUES (9, 9)"
    assert warnings(guarded, insert) == []
    set_guardrails(node, data_disk_usage_percentage_warn_threshold=1)
    assert warnings(guarded, insert) == ["Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold"]
    set_guardrails(node, data_disk_usage_percentage_fail_threshold=1)
    full = "Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure threshold"
    assert full in refused(guarded, insert)
    batch = BatchStatement()
    batch.add(insert)
    assert full in refused(guarded, batch)
    guarded.execute("SELECT * FROM k.t WHERE p = 9")
    set_guardrails(node, data_disk_usage_percentage_warn_threshold=-1, data_disk_usage_percentage_fail_threshold=100)
    assert warnings(guarded, insert) == []


def test_large_partitions_are_logged_when_written(node, guarded):
    guarded.execute("CREATE TABLE k.wide (a text, b int, c int, v text, PRIMARY KEY ((a, b), c))")
    set_guardrails(node, partition_size_warn_threshold="1KiB", partition_size_fail_threshold="4KiB", partition_tombstones_fail_threshold=10)
    insert = guarded.prepare("INSERT INTO k.wide (a, b, c, v) VALUES (?, ?, ?, 'xxxxxxxxxx')")
    for partition, rows in ((1, 2), (2, 40), (3, 400)):
        for c in range(rows):
            guarded.execute(insert, ("x", partition, c))
    for c in range(11):
        guarded.execute("DELETE FROM k.wide WHERE a = 'dead' AND b = 1 AND c = %s", (c,))
    post(node, "/node/flush")
    told = [line for line in node.log(2000).splitlines() if "Guardrail partition_" in line]
    about = lambda words: [line for line in told if words in line]
    large = "Guardrail partition_size violated: Partition k.wide:x:{} has size "
    [warning] = about(large.format(2))
    assert "WARN" in warning and "this exceeds the warning threshold of 1024. Too large partitions can cause performance problems." in warning
    [failure] = about(large.format(3))
    assert "ERROR" in failure and "this exceeds the failure threshold of 4096." in failure
    assert about("k.wide:x:1 ") == []
    [dead] = about("Guardrail partition_tombstones violated: ")
    assert "Partition k.wide:dead:1 has 11 tombstones, this exceeds the failure threshold of 10." in dead and "ERROR" in dead


def test_compaction_measures_joined_partitions(node, guarded):
    guarded.execute("CREATE TABLE k.parts (p int, c int, v text, PRIMARY KEY (p, c))")
    set_guardrails(node, partition_size_warn_threshold="1KiB", partition_size_fail_threshold="null", partition_tombstones_fail_threshold=-1)
    insert = guarded.prepare("INSERT INTO k.parts (p, c, v) VALUES (1, ?, 'xxxxxxxxxx')")
    told = lambda: [line for line in node.log(4000).splitlines() if "Partition k.parts:1 has size " in line]
    for file in range(4):
        for c in range(10):
            guarded.execute(insert, (file * 10 + c,))
        post(node, "/node/flush")

    def compacted():
        post(node, "/node/compact")
        return told()

    helenus.wait_until(compacted, 60, "a partition is logged")
    assert "this exceeds the warning threshold of 1024." in told()[0]
