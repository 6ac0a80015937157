"""`nodetool getguardrailsconfig` and `setguardrailsconfig`, with the names and formats of Cassandra 5.0.5."""

import re

import pytest
from cassandra import InvalidRequest

import formats
import helenus
from tool import nodetool, two_nodes

pytestmark = pytest.mark.process

# Guardrails of Cassandra's that have nothing to guard here.
WITHOUT_MEANING = {"intersect_filtering_query_enabled", "intersect_filtering_query_warned", "sai_sstable_indexes_per_query_threshold",
                   "data_disk_usage_max_disk_size"}
# Guardrails whose defaults differ: here they are off, like all others.
OFF = {"sai_frozen_term_size_threshold", "sai_string_term_size_threshold", "sai_vector_term_size_threshold", "zero_ttl_on_twcs_warned"}
TABLE = "CREATE TABLE g.{} (p int PRIMARY KEY, v int)"


@pytest.fixture
def node(tmp_path):
    file = tmp_path / "helenus.toml"
    file.write_text("")
    node = helenus.Node(tmp_path / "node", args=["--config", str(file), "--set", "tablet_count=1"])
    node.file = file
    node.start()
    yield node
    node.close()


def shown(node, *words):
    ended = nodetool(node, "getguardrailsconfig", *words)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


def refused(node, *words):
    ended = nodetool(node, *words)
    assert ended.returncode == 1 and ended.stdout == "", ended
    return ended.stderr


def set_guardrail(node, *words):
    ended = nodetool(node, "setguardrailsconfig", *words)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), ended


def rows(text):
    return [tuple(part.strip() for part in line.split(None, 1)) for line in text.splitlines()]


def test_the_guardrails_are_those_of_cassandra_in_its_format(node):
    ours = shown(node)
    theirs = [row for row in rows(formats.recorded("getguardrailsconfig.txt")) if row[0] not in WITHOUT_MEANING]
    assert [name for name, _ in rows(ours)] == [name for name, _ in theirs]
    assert [row for row in rows(ours) if row[0] not in OFF] == [row for row in theirs if row[0] not in OFF]
    assert len({len(line) for line in ours.splitlines()}) == 1, "columns are as wide as their longest value"


def test_categories_and_names(node):
    everything = rows(shown(node))
    flags = rows(shown(node, "--category", "flags"))
    thresholds = rows(shown(node, "-c", "thresholds"))
    values = rows(shown(node, "-c", "values"))
    assert flags + thresholds + values == everything and shown(node, "-c", "others") == ""
    assert ("group_by_enabled", "true") in flags and ("tables_threshold", "[-1, -1]") in thresholds
    assert ("table_properties_warned", "[]") in values
    expanded = rows(shown(node, "-c", "thresholds", "--expand"))
    assert len(expanded) == 2 * len(thresholds) and ("tables_fail_threshold", "-1") in expanded
    assert shown(node, "tables_threshold") == "[-1, -1]\n" and shown(node, "group_by_enabled") == "true\n"
    assert shown(node, "tables_warn_threshold") == "-1\n"
    assert "Guardrail nonsense not found." in refused(node, "getguardrailsconfig", "nonsense")
    assert "has nothing to guard here: an index is a table" in refused(node, "getguardrailsconfig", "sai_sstable_indexes_per_query_threshold")
    assert "Do not specify additional arguments" in refused(node, "getguardrailsconfig", "-c", "flags", "group_by_enabled")
    assert "Specify only one guardrail name" in refused(node, "getguardrailsconfig", "group_by_enabled", "tables_threshold")


def test_what_is_set_guards_at_once(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE g WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(TABLE.format("a"))
    set_guardrail(node, "tables_threshold", "2", "1")
    assert shown(node, "tables_threshold") == "[2, 1]\n"
    future = session.execute_async(TABLE.format("b"))
    future.result()
    assert "current number of tables 2 exceeds warning threshold of 1." in future.warnings[0]
    with pytest.raises(InvalidRequest, match="Cannot have more than 2 tables"):
        session.execute(TABLE.format("c"))
    set_guardrail(node, "tables_threshold", "-1", "-1")
    session.execute(TABLE.format("c"))

    grouped = session.prepare("SELECT p, count(*) FROM g.a GROUP BY p")
    session.execute(grouped)
    set_guardrail(node, "group_by_enabled", "false")
    with pytest.raises(InvalidRequest, match="GROUP BY functionality is not allowed"):
        session.execute(grouped)
    set_guardrail(node, "group_by_enabled", "true")
    session.execute(grouped)

    set_guardrail(node, "table_properties_disallowed", "comment", "cdc")
    assert shown(node, "table_properties_disallowed") == "[comment, cdc]\n"
    with pytest.raises(InvalidRequest, match="Provided values \\[comment\\] are not allowed"):
        session.execute("ALTER TABLE g.a WITH comment = 'x'")
    set_guardrail(node, "table_properties_disallowed", "[]")
    session.execute("ALTER TABLE g.a WITH comment = 'x'")

    set_guardrail(node, "collection_size_threshold", "1MiB", "null")
    assert shown(node, "collection_size_threshold") == "[1MiB, null]\n"
    row = session.execute("SELECT value FROM system_views.settings WHERE name = 'collection_size_fail_threshold'").one()
    assert row.value == "1MiB"
    assert "a setting was changed" in node.log() and "collection_size_fail_threshold" in node.log()


def test_wrong_values_change_nothing(node):
    set_error = "Error occured when setting the config for setter {} with arguments [{}]: "
    for words, why in [([], "No arguments."),
                       (["nonsense", "1"], "Guardrail nonsense not found."),
                       (["tables_warn_threshold", "1"], "Guardrail tables_warn_threshold not found."),
                       (["data_disk_usage_max_disk_size", "1GiB"], "Guardrail data_disk_usage_max_disk_size has nothing to guard here: "),
                       (["tables_threshold", "1"], "tables_threshold is expecting 2 argument values. Getting 1 instead."),
                       (["tables_threshold", "x", "1"], set_error.format("tables_threshold", "x, 1")),
                       (["tables_threshold", "1", "2"], "The warn threshold 2 for tables_warn_threshold should be lower than the fail threshold 1"),
                       (["group_by_enabled", "maybe"], "Use 'true' or 'false' values for booleans"),
                       (["read_consistency_levels_warned", "MOST"], "there is no consistency level MOST")]:
        assert why in refused(node, "setguardrailsconfig", *words), words
    assert set(re.findall(r"\[[^]]*\]", shown(node, "-c", "thresholds"))) == {"[-1, -1]", "[null, null]"}


def test_the_file_of_settings_wins_when_it_is_read_again(node):
    set_guardrail(node, "tables_threshold", "20", "10")
    node.file.write_text("keyspaces_fail_threshold = 7\n")
    reloaded = nodetool(node, "reloadconfig")
    assert reloaded.stdout == "Changed: keyspaces_fail_threshold, tables_warn_threshold, tables_fail_threshold\n", reloaded
    assert shown(node, "tables_threshold") == "[-1, -1]\n" and shown(node, "keyspaces_threshold") == "[7, -1]\n"
    node.file.write_text("keyspaces_fail_threshold = 7\nkeyspaces_warn_threshold = 8\n")
    assert "should be lower than the fail threshold 7" in refused(node, "reloadconfig")
    assert shown(node, "keyspaces_threshold") == "[7, -1]\n"


def test_cluster_node_takes_guardrails_with_secret(tmp_path):
    with two_nodes(tmp_path, 2) as (first, second):
        set_guardrail(first, "page_size_threshold", "500", "100")
        assert shown(first, "page_size_threshold") == "[500, 100]\n"
        assert shown(second, "page_size_threshold") == "[-1, -1]\n"
        wrong = nodetool(first, "setguardrailsconfig", "page_size_threshold", "1", "1", env={**helenus.clean_environment(), "HELENUS_CLUSTER_SECRET": "not-the-secret"})
        assert wrong.returncode == 1 and "with the cluster's secret" in wrong.stderr, wrong
        assert shown(first, "page_size_threshold") == "[500, 100]\n"
