"""`helenus replicate`: a second node has all rows and changes, with their write times."""

import re
import subprocess

import pytest

import helenus
from everything import COLUMNS, LATER, ORDER, SOONER, TYPES
from importing import compare
from replicating import KEYSPACE, Replicator

pytestmark = pytest.mark.process

RULES = helenus.ROOT / "monitoring/helenus-replication-alerts.yml"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    both = [helenus.Node(tmp_path_factory.mktemp(name)).start() for name in ("source", "target")]
    both[0].connect().execute(KEYSPACE)
    yield both
    for node in both:
        node.close()


@pytest.fixture
def sessions(nodes):
    return [node.connect() for node in nodes]


def refused(nodes, tmp_path, *options):
    """Returns the message of a command that ends at once."""
    replicator = Replicator(*nodes, tmp_path, *options).start()
    assert replicator.wait_end() == 1
    return replicator.log()


def test_all_types_and_operations(nodes, sessions, tmp_path):
    source, target = sessions
    for statement in TYPES:
        source.execute(statement)
    source.execute(f"CREATE TABLE k.everything ({COLUMNS}) WITH {ORDER}")
    for statement in SOONER:
        source.execute(statement)
    with Replicator(*nodes, tmp_path, "--table", "k.everything", "--enable-cdc") as replicator:
        replicator.wait_caught_up(source, "k.everything")
        assert compare(*nodes, "--table", "k.everything")["equal"]
        for statement in LATER:
            source.execute(statement)
        replicator.wait_caught_up(source, "k.everything")
        report = compare(*nodes, "--table", "k.everything")
        assert report["equal"] and report["tables"][0]["rows_a"] > 10
        # The elements of a list have the same ids: they can be changed by their position on both sides.
        for selected in ("m, s, st, sm, c_int", "packed_row(l, u, v, c_text)"):
            text = f"SELECT c, d, {selected} FROM k.everything WHERE p = 1 AND q = 'q' AND c IN (1, 3)"
            here, there = source.execute(text).all(), target.execute(text).all()
            assert here == there and len(here) == 2
        # The alert rules name no other metrics.
        exported = {name.split("{")[0] for name in replicator.metrics()}
        assert set(re.findall(r"helenus_replication_[a-z_]+", RULES.read_text())) - {"helenus_replication_"} <= exported
        assert replicator.end() == 0


def test_added_column_is_followed_and_dropped_one_stops(nodes, sessions, tmp_path):
    source, target = sessions
    source.execute("CREATE TABLE k.changing (p int PRIMARY KEY, a int, b int) WITH cdc = true")
    source.execute("INSERT INTO k.changing (p, a, b) VALUES (1, 1, 1)")
    with Replicator(*nodes, tmp_path, "--table", "k.changing") as replicator:
        replicator.wait_caught_up(source, "k.changing")
        source.execute("ALTER TABLE k.changing ADD c text")
        source.execute("INSERT INTO k.changing (p, a, c) VALUES (2, 2, 'two')")
        replicator.wait_caught_up(source, "k.changing")
        assert target.execute("SELECT c FROM k.changing WHERE p = 2").one().c == "two"
        source.execute("INSERT INTO k.changing (p, a, b) VALUES (3, 3, 3)")
        source.execute("ALTER TABLE k.changing DROP b")
        assert replicator.wait_end() == 1
        assert "column b is dropped in the source, and exists on the target" in replicator.log()
    # Earlier changes were sent, without the column.
    assert target.execute("SELECT a FROM k.changing WHERE p = 3").one().a == 3
    target.execute("ALTER TABLE k.changing DROP b")
    source.execute("UPDATE k.changing SET a = 4 WHERE p = 3")
    with Replicator(*nodes, tmp_path, "--table", "k.changing") as replicator:
        replicator.wait_caught_up(source, "k.changing")
    assert compare(*nodes, "--table", "k.changing")["equal"]


def test_changes_that_the_log_has_lost_need_a_new_copy(nodes, sessions, tmp_path):
    source, target = sessions
    source.execute("CREATE TABLE k.late (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true, 'ttl': 60}")
    source.execute("INSERT INTO k.late (p, v) VALUES (1, 1)")
    options = ("--table", "k.late")
    with Replicator(*nodes, tmp_path, *options) as replicator:
        replicator.wait_caught_up(source, "k.late")
        assert replicator.end() == 0
    # As if the process had been away for two minutes.
    for row in source.execute("SELECT * FROM helenus_replication.streams").all():
        if row.table_name == "k.late":
            source.execute("UPDATE helenus_replication.streams SET sent_until_us = %s WHERE name = %s AND table_name = 'k.late' AND stream = %s",
                           [row.sent_until_us - 120_000_000, row.name, row.stream])
    source.execute("INSERT INTO k.late (p, v) VALUES (2, 2)")
    message = refused(nodes, tmp_path, *options)
    assert "the log keeps them for 60 s" in message and "--restart-copy" in message
    [stopped] = {row.stopped for row in source.execute("SELECT table_name, stopped FROM helenus_replication.tables").all() if row.table_name == "k.late"}
    assert "--restart-copy" in stopped
    with Replicator(*nodes, tmp_path, *options, "--restart-copy") as replicator:
        replicator.wait_caught_up(source, "k.late")
    assert compare(*nodes, "--table", "k.late")["equal"]


def test_table_without_cdc_is_refused_with_the_statement(nodes, sessions, tmp_path):
    sessions[0].execute("CREATE TABLE k.plain (p int PRIMARY KEY)")
    assert "ALTER TABLE k.plain WITH cdc = {'enabled': true};" in refused(nodes, tmp_path, "--table", "k.plain")


def test_counters_are_refused_by_name(nodes, sessions, tmp_path):
    sessions[0].execute("CREATE TABLE k.hits (p int PRIMARY KEY, c counter)")
    message = refused(nodes, tmp_path, "--table", "k.hits", "--enable-cdc")
    assert "k.hits: counters have no write times that could be kept" in message


def test_rows_without_cdc_are_not_captured(sessions):
    """The statement that the process sends: an empty blob is enough to see that it is accepted."""
    source, _ = sessions
    source.execute("CREATE TABLE k.silent (p int PRIMARY KEY, v int) WITH cdc = true")
    # A row with the key 1 and the value 5 at position 0.
    source.execute("INSERT INTO k.silent (p, v) VALUES (1, 5)")
    [(packed,)] = source.execute("SELECT packed_row(v) FROM k.silent")
    blob = bytes([1, 1, 4, 0, 0, 0, 9, 5, 0, len(packed)]) + packed + bytes([0, 2])
    for suffix, expected in ((" WITHOUT CDC", 1), ("", 2)):
        source.execute(source.prepare(f"INSERT INTO k.silent (v) ROWS ?{suffix}"), [blob])
        assert source.execute("SELECT v FROM k.silent WHERE p = 9").one().v == 5
        assert len(source.execute("SELECT p FROM k.silent_scylla_cdc_log").all()) == expected


def test_help_names_the_options():
    shown = subprocess.run([str(helenus.binary()), "replicate", "--help"], capture_output=True, text=True, timeout=60).stdout
    for option in ("--from", "--to", "--enable-cdc", "--restart-copy", "--metrics"):
        assert option in shown
