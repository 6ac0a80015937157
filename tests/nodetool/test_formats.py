"""The answers of `helenus nodetool` have the labels, columns and keys of those of Cassandra 5.0.5, recorded in `recorded/`."""

import json
import re

import pytest

import formats
import helenus
from tool import nodetool

pytestmark = pytest.mark.process

# Lines of `info` and `compactionstats` for which there is no true figure here.
OMITTED = {"Uncompressed load", "Network Cache", "concurrent compactors", "compactions aborted", "15 minute rate"}
# Facts of gossip that no node has here.
NO_FACTS = {"heartbeat", "NET_VERSION", "SSTABLE_VERSIONS", "INDEX_STATUS"}


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    node = helenus.Node(tmp_path_factory.mktemp("node") / "data", args=["--set", "tablet_count=4"]).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.carts (customer int, item int, PRIMARY KEY (customer, item))")
    yield node
    node.close()


def answer(node, *words):
    ended = nodetool(node, *words)
    assert ended.returncode == 0, ended
    return ended.stdout


@pytest.mark.parametrize("words, file", [(["status"], "status.txt"), (["status", "-r"], "status-r.txt"), (["status", "shop"], "status-keyspace.txt")])
def test_status(node, words, file):
    ours, theirs = answer(node, *words).splitlines(), formats.recorded(file).splitlines()
    assert len(ours) == len(theirs), ours
    assert ours[:4] == theirs[:4], ours
    columns = [re.split(r" {2,}", line.rstrip()) for line in (ours[4], ours[5], theirs[4], theirs[5])]
    assert columns[0] == columns[2] and len(columns[1]) == len(columns[3]), ours
    kinds = [r"UN", r"127\.0\.0\.1", r"[\d.]+ (bytes|[KMG]iB)", r"4", r"100\.0%", r"[0-9a-f-]{36}", r"rack1"]
    assert all(re.fullmatch(kind, value) for kind, value in zip(kinds, columns[1])), columns[1]


@pytest.mark.parametrize("words, file", [(["ring"], "ring.txt"), (["ring", "shop"], "ring-keyspace.txt")])
def test_ring(node, words, file):
    ours, theirs = answer(node, *words).splitlines(), formats.recorded(file).splitlines()
    assert ours[:3] == theirs[:3] and ours[-6:] == theirs[-6:], ours
    assert formats.heads(ours[3]) == formats.heads(theirs[3]), ours[3]
    rows, their_row = ours[5:-6], theirs[5]
    assert len(rows) == 4 and ours[4].strip() == rows[-1].split()[-1] == str(2**63 - 1), ours
    shape = lambda line: [(match.start(), len(line)) for match in re.finditer(r"\S+(?: \S+)*", line)]
    assert all(shape(row) == shape(their_row) for row in rows), (rows[0], their_row)


def test_info(node):
    ours, theirs = formats.labels(answer(node, "info")), formats.labels(formats.recorded("info.txt"))
    assert formats.is_subsequence([label for label in theirs if label not in OMITTED], ours), ours
    assert set(theirs) - set(ours) <= OMITTED
    colons = {line.index(":") for line in answer(node, "info").splitlines()}
    assert colons == {formats.recorded("info.txt").splitlines()[0].index(":")}


def test_describering(node):
    shape = lambda text: {re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|-?\d+(\.\d+)*", "N", line) for line in text.splitlines()}
    assert shape(answer(node, "describering", "shop")) == shape(formats.recorded("describering.txt"))


def test_getendpoints(node):
    assert re.fullmatch(r"[\d.]+\n", formats.recorded("getendpoints.txt"))
    assert answer(node, "getendpoints", "shop", "carts", "1") == f"{node.host}\n"


def test_gossipinfo(node):
    ours, theirs = answer(node, "gossipinfo"), formats.recorded("gossipinfo.txt")
    assert ours.splitlines()[0] == f"/{node.host}" and theirs.splitlines()[0] == "/127.0.0.77"
    assert formats.labels(ours) == [label for label in formats.labels(theirs) if label not in NO_FACTS]


def test_describecluster(node):
    ours, theirs = answer(node, "describecluster"), formats.recorded("describecluster.txt")
    until = lambda text: [line.split(":")[0] for line in text.split("Keyspaces:")[0].splitlines() if not re.match(r"\t\t|\t\d", line)]
    assert until(ours) == until(theirs), ours
    assert re.search(r"^\tdatacenter1 #Nodes: 1 #Down: 0$", ours, re.M) and re.search(r"^\tLive: 1$", ours, re.M), ours
    shop = "\tshop -> Replication class: SimpleStrategy {replication_factor=1}"
    assert shop in ours.splitlines() and shop in theirs.splitlines(), ours


def test_tpstats(node):
    ours, theirs = answer(node, "tpstats"), formats.recorded("tpstats.txt")
    fixed = lambda text: [re.split(r" {2,}|(?<=[a-z]) (?=[APCB])", text.splitlines()[0].rstrip())] + text[text.index("\nLatencies"):].splitlines()[:3]
    assert fixed(ours) == fixed(theirs), ours
    ours_json, theirs_json = json.loads(answer(node, "tpstats", "-F", "json")), json.loads(formats.recorded("tpstats.json"))
    assert formats.keys(ours_json) == formats.keys(theirs_json)
    pool = formats.keys(next(iter(theirs_json["ThreadPools"].values())))
    assert all(formats.keys(one) == pool for one in ours_json["ThreadPools"].values()), ours_json
    assert formats.yaml_keys(answer(node, "tpstats", "-F", "yaml")) == formats.yaml_keys(formats.recorded("tpstats.yaml"))


def test_compactionstats(node):
    name = lambda line: re.split(r" {2,}| (?=\d)", line)[0]
    names = lambda text: [name(line) for line in text.splitlines() if not line.startswith("sstables")]
    for words, file in ((["compactionstats"], "compactionstats.txt"), (["compactionstats", "-H"], "compactionstats-human.txt")):
        theirs = [name for name in names(formats.recorded(file)) if name not in OMITTED]
        assert names(answer(node, *words)) == theirs


def test_compactionhistory(node):
    ours = answer(node, "compactionhistory")
    assert ours == "There is no compaction history\n" or formats.heads(ours.splitlines()[1]) == formats.heads(formats.recorded("compactionhistory.txt").splitlines()[1]), ours
    ours, theirs = json.loads(answer(node, "compactionhistory", "-F", "json")), json.loads(formats.recorded("compactionhistory.json"))
    assert formats.keys(ours) == formats.keys(theirs)
    assert ours["CompactionHistory"] == [] or formats.keys(ours["CompactionHistory"]) == formats.keys(theirs["CompactionHistory"]), ours
    assert formats.yaml_keys(answer(node, "compactionhistory", "-F", "yaml")) == formats.yaml_keys(formats.recorded("compactionhistory.yaml"))


def test_netstats(node):
    shape = lambda text: [re.sub(r"\b(\d+|n/a)$|(?<=  )(\d+|n/a)", "N", re.sub(r" +", "  ", line)) for line in text.splitlines()]
    assert shape(answer(node, "netstats")) == shape(formats.recorded("netstats.txt"))


@pytest.mark.parametrize("kind", ["read", "range", "write", "counterwrite", "cascontention", "truncate", "misc"])
def test_gettimeout(node, kind):
    shape = lambda text: re.sub(r"\d+", "N", text)
    assert shape(answer(node, "gettimeout", kind)) == shape(formats.recorded(f"gettimeout-{kind}.txt"))


@pytest.mark.parametrize("words, file", [(["statusbinary"], "statusbinary.txt"), (["statusgossip"], "statusgossip.txt"), (["version"], "version.txt")])
def test_the_same(node, words, file):
    assert answer(node, *words) == formats.recorded(file)


@pytest.mark.parametrize("words, file", [([], "getcompactionthroughput.txt"), (["-d"], "getcompactionthroughput-d.txt")])
def test_getcompactionthroughput(node, words, file):
    assert nodetool(node, "setcompactionthroughput", "64").returncode == 0
    assert answer(node, "getcompactionthroughput", *words) == formats.recorded(file)


def test_clientstats(node):
    node.connect().execute("USE shop")
    for words, file in ((["--all"], "clientstats-all.txt"), (["--client-options"], "clientstats-options.txt"), ([], "clientstats.txt")):
        ours, theirs = answer(node, "clientstats", *words).splitlines(), formats.recorded(file).splitlines()
        assert formats.heads(ours[0]) == formats.heads(theirs[0]) if words else ours[0].startswith("Total connected clients: "), ours
        count = next(at for at, line in enumerate(ours) if line.startswith("Total connected clients: "))
        assert formats.heads(ours[count + 2]) == ["User", "Connections"] == formats.heads(theirs[-2]), ours


def test_failuredetector(node):
    assert answer(node, "failuredetector") == formats.recorded("failuredetector.txt")


def test_removenode_status(node):
    assert answer(node, "removenode", "status") == formats.recorded("removenode-status.txt")


def test_viewbuildstatus(node):
    session = node.connect()
    session.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS shop.by_item AS SELECT * FROM shop.carts WHERE item IS NOT NULL AND customer IS NOT NULL PRIMARY KEY (item, customer)")
    helenus.wait_until(lambda: nodetool(node, "viewbuildstatus", "shop", "by_item").stdout == formats.recorded("viewbuildstatus.txt"), what="a view")


def test_getlogginglevels(node):
    assert answer(node, "getlogginglevels").splitlines()[:3] == formats.recorded("getlogginglevels.txt").splitlines()
    assert nodetool(node, "setlogginglevel", "helenus_cluster", "DEBUG").returncode == 0
    ours = next(line for line in answer(node, "getlogginglevels").splitlines() if line.startswith("helenus_cluster "))
    theirs = formats.recorded("getlogginglevels-set.txt").splitlines()[3]
    assert len(ours) == len(theirs) and ours.split()[1] == theirs.split()[1] == "DEBUG", ours
