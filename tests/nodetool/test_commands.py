"""`helenus nodetool` on a node with a folder: every command of Cassandra's nodetool is known."""

import os
import re
import subprocess
import urllib.error
import urllib.request

import pytest

import helenus

pytestmark = pytest.mark.process

# The commands that `nodetool help` of Cassandra 5.0.5 lists.
CASSANDRA = """
abortbootstrap assassinate bootstrap cidrfilteringstats cleanup clearsnapshot clientstats compact compactionhistory compactionstats datapaths
decommission describecluster describering disableauditlog disableautocompaction disablebackup disablebinary disablefullquerylog disablegossip
disablehandoff disablehintsfordc disableoldprotocolversions drain dropcidrgroup enableauditlog enableautocompaction enablebackup enablebinary
enablefullquerylog enablegossip enablehandoff enablehintsfordc enableoldprotocolversions failuredetector flush forcecompact garbagecollect
gcstats getauditlog getauthcacheconfig getbatchlogreplaythrottle getcidrgroupsofip getcolumnindexsize getcompactionthreshold
getcompactionthroughput getconcurrency getconcurrentcompactors getconcurrentviewbuilders getdefaultrf getendpoints getfullquerylog
getinterdcstreamthroughput getlogginglevels getmaxhintwindow getseeds getsnapshotthrottle getsstables getstreamthroughput gettimeout
gettraceprobability gossipinfo help import info invalidatecidrpermissionscache invalidatecountercache invalidatecredentialscache
invalidatejmxpermissionscache invalidatekeycache invalidatenetworkpermissionscache invalidatepermissionscache invalidaterolescache
invalidaterowcache join listcidrgroups listpendinghints listsnapshots move netstats pausehandoff profileload proxyhistograms rangekeysample
rebuild rebuild_index recompress_sstables refresh refreshsizeestimates reloadcidrgroupscache reloadlocalschema reloadseeds reloadssl
reloadtriggers relocatesstables removenode repair repair_admin replaybatchlog resetfullquerylog resetlocalschema resumehandoff ring scrub
setauthcacheconfig setbatchlogreplaythrottle setcachecapacity setcachekeystosave setcolumnindexsize setcompactionthreshold
setcompactionthroughput setconcurrency setconcurrentcompactors setconcurrentviewbuilders setdefaultrf sethintedhandoffthrottlekb
setinterdcstreamthroughput setlogginglevel setmaxhintwindow setsnapshotthrottle setstreamthroughput settimeout settraceprobability sjk snapshot
sstablerepairedset status statusautocompaction statusbackup statusbinary statusgossip statushandoff stop stopdaemon tablehistograms tablestats
toppartitions tpstats truncatehints updatecidrgroup upgradesstables verify version viewbuildstatus
""".split()


@pytest.fixture(scope="module")
def node():
    node = helenus.Node()
    node.start()
    yield node
    node.close()


def nodetool(node, *args, binary=None, env=None):
    command = [binary or str(helenus.binary()), *([] if binary else ["nodetool"]), "-h", node.host, "-p", str(node.http_port), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)


def test_every_command_of_cassandras_is_known(node):
    for command in CASSANDRA:
        if command in ("drain", "decommission"):
            continue
        arguments = ["shop"] if command == "describering" else []
        ended = nodetool(node, command, *arguments)
        assert "no command" not in ended.stderr, (command, ended.stderr)
        assert ended.returncode == 0 or "is not there yet" in ended.stderr, (command, ended)


def test_what_has_nothing_to_do_here_succeeds_with_a_reason_whatever_its_arguments(node):
    ended = nodetool(node, "repair", "-pr", "--full", "shop", "carts")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.fullmatch(r"nodetool repair: nothing to do: .*one copy.*\.\n", ended.stdout), ended.stdout


def test_a_misspelt_command_is_answered_with_the_nearest(node):
    ended = nodetool(node, "statsu")
    assert ended.returncode == 1 and "did you mean status?" in ended.stderr, ended.stderr


def test_status_ring_and_describecluster_of_a_node_with_a_folder(node):
    status = nodetool(node, "status").stdout.splitlines()
    lines = [line for line in status if line.split()[:1] == ["UN"]]
    assert len(lines) == 1 and f"{node.host}:{node.port}" in lines[0] and "100.0%" in lines[0], status
    ring = nodetool(node, "ring").stdout
    assert str(2**63 - 1) in ring, ring
    described = nodetool(node, "describecluster").stdout
    assert re.search(r"Nodes +1 \(1 up\)", described), described


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
    assert set(rows) == {"chunks", "counters", "keys", "rows"}
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
