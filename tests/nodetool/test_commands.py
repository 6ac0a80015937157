"""`helenus nodetool` on a node with a folder: every command of Cassandra's nodetool is known."""

import json
import os
import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

import formats
import helenus
from tool import nodetool

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def node():
    node = helenus.Node(env={"HELENUS_RANGE_REQUEST_TIMEOUT": "10s"})
    node.start()
    yield node
    node.close()


# Commands that end the node or turn clients away, which have tests of their own.
ENDING = {"drain", "decommission", "stopdaemon", "disablebinary"}
# Commands that cannot be done and fail, because a script that relies on them must not go on.
REFUSED = {"import", "refresh", "setcachecapacity", "setconcurrentcompactors", "stop"}
# Required arguments of commands.
ARGUMENTS = {
    "assassinate": ["10.9.8.7"],
    "clearsnapshot": ["--all"],
    "describering": ["run"],
    "enablefullquerylog": ["--path", "full_query_log"],
    "getendpoints": ["run", "t", "1"],
    "gettimeout": ["read"],
    "removenode": ["status"],
    "setcompactionthroughput": ["64"],
    "setguardrailsconfig": ["tables_threshold", "-1", "-1"],
    "settimeout": ["read", "5000"],
    "viewbuildstatus": ["run", "v"],
    "tablehistograms": ["run", "t"],
    "toppartitions": ["run", "t", "100"],
    "profileload": ["run", "t", "100"],
}


def test_every_command_of_cassandras_is_run(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE run WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE run.t (k int PRIMARY KEY, w int)")
    session.execute("CREATE MATERIALIZED VIEW run.v AS SELECT * FROM run.t WHERE w IS NOT NULL AND k IS NOT NULL PRIMARY KEY (w, k)")
    listed = formats.commands()
    assert len(listed) > 140 and {"status", "repair", "help"} <= set(listed), listed
    for command in listed:
        if command in ENDING:
            continue
        ended = nodetool(node, command, *ARGUMENTS.get(command, []))
        assert "no command" not in ended.stderr, (command, ended.stderr)
        if command in REFUSED:
            assert ended.returncode == 1 and f"nodetool {command}: " in ended.stderr, (command, ended)
        elif command == "assassinate":
            assert ended.returncode == 1 and "no node at 10.9.8.7" in ended.stderr, ended
        else:
            assert ended.returncode == 0, (command, ended)


def test_commands_without_effect_succeed_with_a_reason(node):
    ended = nodetool(node, "repair", "-pr", "--full", "shop", "carts")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.fullmatch(r"nodetool repair: nothing to do: .*one copy.*\.\n", ended.stdout), ended.stdout


def test_a_misspelt_command_is_answered_with_the_nearest(node):
    ended = nodetool(node, "statsu")
    assert ended.returncode == 1 and "did you mean status?" in ended.stderr, ended.stderr


def test_the_version_is_that_of_cassandra(node):
    assert nodetool(node, "version").stdout == "ReleaseVersion: 5.0.5\n"


def test_a_link_by_the_name_of_nodetool_is_nodetool(node, tmp_path):
    link = tmp_path / "nodetool"
    link.symlink_to(helenus.binary())
    assert nodetool(node, "version", binary=str(link)).stdout == "ReleaseVersion: 5.0.5\n"


def test_the_address_is_read_from_the_environment(node):
    env = {**os.environ, "HELENUS_HTTP": f"{node.host}:{node.http_port}"}
    command = [str(helenus.binary()), "nodetool", "info"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert ended.returncode == 0 and "Uptime" in ended.stdout, ended


def test_clients_are_listed_and_counted(node):
    node.connect().execute("USE system")
    counted = nodetool(node, "clientstats").stdout
    assert re.match(r"Total connected clients: [1-9]\d*\n\nUser +Connections *\nanonymous +\d+", counted), counted
    listed = nodetool(node, "clientstats", "--all").stdout
    assert listed.split()[:4] == ["Address", "SSL", "Cipher", "Protocol"], listed
    assert re.search(r"^/127\.0\.0\.1:\d+ +false +undefined +undefined +\d +anonymous +system +\d+ +\S.*Python Driver ", listed, re.M), listed


def test_ranges_of_a_ring_follow_each_other(node):
    described = nodetool(node, "describering", "system").stdout
    ranges = re.findall(r"TokenRange\(start_token:(-?\d+), end_token:(-?\d+), endpoints:\[([^]]*)\]", described)
    assert ranges[0][0] == str(-2**63) and ranges[-1][1] == str(2**63 - 1), described
    assert all(left[1] == right[0] for left, right in zip(ranges, ranges[1:])), described
    assert {endpoint for _, _, endpoint in ranges} == {node.host}, described


def test_health_is_live_and_ready(node):
    assert node.http("/health/live")[0] == 200
    assert node.http("/health/ready")[0] == 200
    healthy = nodetool(node, "health")
    assert (healthy.returncode, healthy.stdout) == (0, "up\n")


def test_hits_of_the_row_cache_are_counted(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.carts (k int PRIMARY KEY, v int)")
    session.execute("INSERT INTO shop.carts (k, v) VALUES (1, 1)")
    for _ in range(3):
        session.execute("SELECT v FROM shop.carts WHERE k = 1")
    rows = {row.name: row for row in session.execute("SELECT * FROM system_views.caches")}
    assert set(rows) == {"counters", "keys", "rows"}
    assert rows["rows"].request_count >= 3 and rows["rows"].hit_count >= 1, rows["rows"]
    assert rows["rows"].capacity_bytes > 0 and 0 < rows["rows"].hit_ratio <= 1, rows["rows"]
    assert rows["keys"].request_count == 0, rows["keys"]


def test_a_flush_writes_the_rows_in_memory_to_files(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE flushed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE flushed.t (k int PRIMARY KEY, v blob)")
    for k in range(50):
        session.execute("INSERT INTO flushed.t (k, v) VALUES (%s, %s)", (k, bytes(10_000)))
    load = lambda: re.search(r"^Load +: (.*)$", nodetool(node, "info").stdout, re.M).group(1)
    before = load()
    flushed = nodetool(node, "flush", "flushed", "t")
    assert (flushed.returncode, flushed.stdout, flushed.stderr) == (0, "", "")
    helenus.wait_until(lambda: load() != before, what="data in files")


def test_a_level_of_the_log_is_set_and_put_back(node):
    def level(name):
        shown = nodetool(node, "getlogginglevels").stdout
        return dict(line.split() for line in shown.splitlines()[2:]).get(name)

    assert (level("ROOT"), level("helenus_query")) == ("INFO", None)
    assert nodetool(node, "setlogginglevel", "helenus_query", "DEBUG").returncode == 0
    assert (level("ROOT"), level("helenus_query")) == ("INFO", "DEBUG")
    assert nodetool(node, "setlogginglevel").returncode == 0
    assert level("helenus_query") is None
    refused = nodetool(node, "setlogginglevel", "helenus_query", "LOUD")
    assert refused.returncode == 1 and "LOUD is no level" in refused.stderr, refused


def test_commands_of_a_page_in_a_browser_are_refused(node):
    request = urllib.request.Request(f"http://{node.host}:{node.http_port}/node/flush", data=b"", headers={"Origin": "http://example.org"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=10)


def test_options_of_cassandras_tool_are_taken(node):
    version = nodetool(node, "-u", "cassandra", "-pw", "secret", "version", "-v").stdout.splitlines()
    assert version[0] == "ReleaseVersion: 5.0.5" and version[1].startswith("HelenusVersion: "), version
    assert nodetool(node, "-pwf", "/no/such/file", "-pp", "status").stdout.count(f"{node.host}:{node.port} ") == 1


def test_the_owner_of_a_partition_is_told(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE owned WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE owned.t (a int, b text, v int, PRIMARY KEY ((a, b)))")
    assert nodetool(node, "getendpoints", "owned", "t", "1:x/y").stdout == f"{node.host}\n"
    session.execute("INSERT INTO owned.t (a, b, v) VALUES (1, 'x/y', 1)")
    token = session.execute("SELECT token(a, b) AS t FROM owned.t").one().t
    assert json.loads(node.http("/node/token/owned/t/1%3Ax%2Fy")[1]) == {"token": str(token)}
    for arguments, why in ((["owned", "t", "1"], "has 2 components, and 1 are given"), (["owned", "none", "1"], "Unknown table 'none'"),
                           (["none", "t", "1"], "Unknown keyspace 'none'")):
        refused = nodetool(node, "getendpoints", *arguments)
        assert refused.returncode == 1 and why in refused.stderr, refused


def test_a_keyspace_that_is_not_there_is_refused(node):
    for command in ("status", "ring", "describering"):
        refused = nodetool(node, command, "nowhere")
        assert refused.returncode == 1 and "The keyspace nowhere, does not exist" in refused.stderr, refused
        assert nodetool(node, command, "system_schema").returncode == 0


def test_timeouts_and_the_throughput_of_compactions_are_changed(node):
    assert nodetool(node, "gettimeout", "range").stdout == "Current timeout for type range: 10000 ms\n"
    assert nodetool(node, "settimeout", "range", "12345").returncode == 0
    assert nodetool(node, "gettimeout", "range").stdout == "Current timeout for type range: 12345 ms\n"
    refused = nodetool(node, "gettimeout", "nonsense")
    assert refused.returncode == 1 and formats.recorded("gettimeout-wrong.txt").splitlines()[0].removeprefix("nodetool: ") in refused.stderr
    assert nodetool(node, "setcompactionthroughput", "16").returncode == 0
    assert nodetool(node, "getcompactionthroughput").stdout == "Current compaction throughput: 16 MB/s\n"
    assert nodetool(node, "getcompactionthroughput", "-d").stdout == "Current compaction throughput: 16.0 MiB/s\n"
    assert nodetool(node, "setcompactionthroughput", "0").returncode == 0
    assert nodetool(node, "getcompactionthroughput").stdout == "Current compaction throughput: 0 MB/s\n"


def test_a_compaction_joins_the_files_of_flushes(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE compacted WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE compacted.t (k int PRIMARY KEY, v blob)")
    figures = lambda: json.loads(node.http("/node")[1])["compactions"]
    for part in range(3):
        for k in range(100):
            session.execute("INSERT INTO compacted.t (k, v) VALUES (%s, %s)", (k, bytes(1000 + part)))
        assert nodetool(node, "flush").returncode == 0
    compacted = nodetool(node, "compact", "-st", "1", "--split-output", "compacted", "t")
    assert (compacted.returncode, compacted.stdout, compacted.stderr) == (0, "", ""), compacted

    def joined():
        """Compacts again, because a compaction leaves out a flush that ends while it is chosen. Returns true if no compaction is pending."""
        assert nodetool(node, "compact").returncode == 0
        return figures()["pending"] == 0

    helenus.wait_until(joined, what="no file at level 0")
    assert len(list(session.execute("SELECT k FROM compacted.t"))) == 100


def test_clients_are_turned_away_and_let_in_again(tmp_path):
    node = helenus.Node(tmp_path / "node", args=["--set", "tablet_count=1"]).start()
    try:
        node.connect().execute("SELECT key FROM system.local")
        assert nodetool(node, "statusbinary").stdout == "running\n"
        assert nodetool(node, "disablebinary").returncode == 0
        assert nodetool(node, "statusbinary").stdout == "not running\n"
        assert "Native Transport active: false" in nodetool(node, "info").stdout
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((node.host, node.port), timeout=10)
        status, body = node.http("/health/ready")
        assert status == 503 and "disablebinary" in body, body
        helenus.wait_until(lambda: json.loads(node.http("/node/clients")[1]) == [], what="no client")
        assert nodetool(node, "enablebinary").returncode == 0
        assert nodetool(node, "statusbinary").stdout == "running\n"
        node.close_clients()
        node.connect().execute("SELECT key FROM system.local")
        assert node.http("/health/ready")[0] == 200
    finally:
        node.close()


@pytest.mark.parametrize("command", ["drain", "stopdaemon"])
def test_a_node_that_is_alone_flushes_and_ends(tmp_path, command):
    node = helenus.Node(tmp_path / "node", args=["--set", "tablet_count=1"]).start()
    try:
        refused = nodetool(node, "decommission")
        assert refused.returncode == 1 and "is alone" in refused.stderr, refused
        assert nodetool(node, command).returncode == 0
        assert node.process.wait(30) == 0
    finally:
        node.close()


def test_a_view_that_is_built_is_told(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE viewed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE viewed.t (k int PRIMARY KEY, w int)")
    session.execute("CREATE MATERIALIZED VIEW viewed.v AS SELECT * FROM viewed.t WHERE w IS NOT NULL AND k IS NOT NULL PRIMARY KEY (w, k)")
    for words in (["viewed", "v"], ["viewed.v"]):
        helenus.wait_until(lambda: nodetool(node, "viewbuildstatus", *words).stdout == "viewed.v has finished building\n", what="a view")
    refused = nodetool(node, "viewbuildstatus", "viewed", "none")
    assert refused.returncode == 1 and "no view viewed.none" in refused.stderr, refused
