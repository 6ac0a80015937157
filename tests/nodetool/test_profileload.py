"""`nodetool profileload` and `toppartitions`: which partitions are read and written the most while somebody samples."""

import re
import threading

import pytest

import helenus
from tool import nodetool

pytestmark = pytest.mark.process

HOT, LARGE, DELETED, CONTENDED = "hot", "large", "deleted", "contended"
DESCRIPTIONS = {
    "READS": "Frequency of reads by partition",
    "WRITES": "Frequency of writes by partition",
    "LOCAL_READ_TIME": "Longest read query times",
    "READ_ROW_COUNT": "Partitions read with the most rows",
    "READ_TOMBSTONE_COUNT": "Partitions read with the most tombstones",
    "READ_SSTABLE_COUNT": "Partitions read with the most sstables",
    "WRITE_SIZE": "Max mutation size by partition",
    "CAS_CONTENTIONS": "Frequency of CAS contention by partition",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    node = helenus.Node(tmp_path_factory.mktemp("profileload"), args=["--set", "log=info"]).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.carts (customer text, item int, v blob, PRIMARY KEY (customer, item))")
    session.execute("CREATE TABLE shop.visits (country text, day int, n int, PRIMARY KEY ((country, day)))")
    session.execute("CREATE TABLE shop.idle (k int PRIMARY KEY)")
    for item in range(50):
        session.execute("INSERT INTO shop.carts (customer, item, v) VALUES (%s, %s, 0x00)", (LARGE, item))
    # Deleted rows that a partition begins with are remembered, and not met again.
    session.execute("INSERT INTO shop.carts (customer, item, v) VALUES (%s, -1, 0x00)", (DELETED,))
    for item in range(30):
        session.execute("DELETE FROM shop.carts WHERE customer = %s AND item = %s", (DELETED, item))
    yield node
    node.close()


class Load:
    """Rounds of reads and writes until it is closed: one partition is read the most, another one written the most."""

    def __init__(self, node):
        session = self.session = node.connect()
        self.insert = session.prepare("INSERT INTO shop.carts (customer, item, v) VALUES (?, ?, ?)")
        self.one = session.prepare("SELECT v FROM shop.carts WHERE customer = ? AND item = ?")
        self.all = session.prepare("SELECT item FROM shop.carts WHERE customer = ?")
        self.visit = session.prepare("SELECT n FROM shop.visits WHERE country = ? AND day = ?")
        self.change = session.prepare("UPDATE shop.carts SET v = ? WHERE customer = ? AND item = 0 IF v != 0x01")
        self.rounds, self.ended = 0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def round(self):
        execute, number = self.session.execute, self.rounds
        for _ in range(5):
            execute(self.one, (HOT, number))
            execute(self.insert, ("written", number, b"x" * 10))
        execute(self.insert, (f"once{number}", 0, b"y" * 5000))
        execute(self.one, (f"once{number}", 0))
        execute(self.all, (LARGE,))
        execute(self.all, (DELETED,))
        execute(self.visit, ("gr:", 7))
        execute(f"SELECT v FROM shop.carts WHERE customer = 'secret' AND item = {number}")
        waiting = [self.session.execute_async(self.change, (b"z", CONTENDED)) for _ in range(8)]
        for answer in waiting:
            answer.result()

    def run(self):
        while not self.ended.is_set():
            self.round()
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def parts(printed):
    """Returns the rows of each sampler, as lists of words."""
    found = {}
    for part in printed.strip("\n").split("\n\n"):
        heading, *rows = part.splitlines()
        name = next(name for name, words in DESCRIPTIONS.items() if heading == f"{words}:")
        found[name] = [] if "Nothing recorded" in rows[0] else [row.split() for row in rows[1:]]
    return found


def sampled(node, *args):
    """Returns what a command prints that samples a load. It is repeated if a busy machine has made too few requests meanwhile."""
    with Load(node) as load:
        while True:
            before = load.rounds
            ended = nodetool(node, *args)
            assert ended.returncode == 0, ended
            if load.rounds - before > 3:
                return ended.stdout


@pytest.fixture(scope="module")
def printed(node):
    return sampled(node, "toppartitions", "shop", "*", "1500", "-k", "5")


def test_all_samplers_are_shown_in_cassandras_order_and_format(printed):
    headings = [line for line in printed.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [f"{words}:" for words in DESCRIPTIONS.values()]
    reads = printed.split("\n\n")[0].splitlines()
    assert re.fullmatch(r"   Table +Partition +Count \+/- *", reads[1]), printed
    assert len(reads) <= 2 + 5


def test_the_partition_that_is_read_the_most_is_the_first(printed):
    first, second = parts(printed)["READS"][:2]
    assert first[:2] == ["shop.carts", HOT] and int(first[2]) > 2 * int(second[2]), printed


def test_the_partition_that_is_written_the_most_is_the_first(printed):
    writes = {key: int(count) for table, key, count, error in parts(printed)["WRITES"]}
    assert max(writes, key=writes.get) in ("written", CONTENDED), printed
    # Transactions that were written together are counted one by one.
    assert {"written", CONTENDED} <= set(writes), printed
    assert 0.4 < writes["written"] / writes[CONTENDED] < 1, printed


def test_the_greatest_are_shown_once_each(printed):
    found = parts(printed)
    assert found["READ_ROW_COUNT"][0][:3] == ["shop.carts", LARGE, "50"], printed
    assert found["READ_TOMBSTONE_COUNT"] == [["shop.carts", DELETED, "30"]], printed
    largest = found["WRITE_SIZE"][0]
    assert re.match(r"once\d+", largest[1]) and 5000 <= int(largest[2]) < 5200, printed
    assert len({row[1] for row in found["WRITE_SIZE"]}) == len(found["WRITE_SIZE"]), printed


def test_statements_are_shown_without_values(printed):
    lines = printed.split("Longest read query times:\n")[1].split("\n\n")[0].splitlines()
    assert re.fullmatch(r"   Query +Microseconds *", lines[0]), printed
    assert any("SELECT item FROM shop.carts WHERE customer = ?" in line for line in lines), printed
    assert "secret" not in "".join(lines) and "customer = ? AND item = ?" in "".join(lines), printed
    assert all(int(line.split()[-1]) > 0 for line in lines[1:])


def test_transactions_that_meet_are_counted(printed):
    found = parts(printed)
    assert [row[:2] for row in found["CAS_CONTENTIONS"]] == [["shop.carts", CONTENDED]], printed
    assert found["READ_SSTABLE_COUNT"] == []


def test_composite_keys_are_shown_as_for_getendpoints(node):
    found = parts(sampled(node, "profileload", "shop", "visits", "500", "-a", "reads"))
    assert list(found) == ["READS"]
    assert [row[:2] for row in found["READS"]] == [["shop.visits", r"gr\::7"]]
    assert nodetool(node, "getendpoints", "shop", "visits", r"gr\::7").returncode == 0


def test_a_table_without_requests_has_no_samples(node):
    ended = nodetool(node, "toppartitions", "shop", "idle", "100")
    assert ended.stdout.count("   Nothing recorded during sampling period...\n") == len(DESCRIPTIONS)


def test_a_whole_node_is_sampled_unless_a_table_is_named(node):
    found = parts(sampled(node, "profileload", "800", "-a", "READS"))
    assert {"shop.carts", "shop.visits"} <= {row[0] for row in found["READS"]}, found


@pytest.mark.parametrize("arguments, words", [
    (["nowhere", "t", "100"], "Unknown keyspace 'nowhere'"),
    (["shop", "nothing", "100"], "Unknown table 'nothing' in keyspace 'shop'"),
    (["shop", "carts", "-5"], "Duration: -5 must be positive"),
    (["-s", "5000"], "Capacity (-s) cannot exceed 1024."),
    (["-a", "READS,NONE"], "'NONE' sampler is not available from: [READS, WRITES, LOCAL_READ_TIME, "),
])
def test_what_makes_no_sense_is_refused(node, arguments, words):
    ended = nodetool(node, "profileload", *arguments)
    assert ended.returncode == 1 and words in ended.stderr, ended


def listed(node):
    return nodetool(node, "profileload", "--list").stdout.split()


def test_background_sampling_is_logged_until_stopped(node):
    assert listed(node) == ["KEYSPACE", "TABLE"]
    assert nodetool(node, "profileload", "shop", "carts", "200", "-i", "300", "-a", "READS").stdout == ""
    assert listed(node) == ["KEYSPACE", "TABLE", "shop", "carts"]
    refused = nodetool(node, "profileload", "shop", "*", "200", "-i", "300").stdout
    assert refused.startswith("Unable to schedule sampling for keyspace: shop, table: null due to existing samplings."), refused
    with Load(node):
        pattern = r"sampled partitions.* sampler=\"READS\" top=\"shop\.carts hot \(\d+\)"
        helenus.wait_until(lambda: re.search(pattern, node.log(1000).replace("\\", "")), 20, "a line of the log")
    assert nodetool(node, "profileload", "shop", "carts", "--stop").stdout == ""
    helenus.wait_until(lambda: listed(node) == ["KEYSPACE", "TABLE"], 20, "the end of the sampling")
    gone = nodetool(node, "profileload", "shop", "carts", "-t").stdout
    assert gone == "Unable to stop the non-existent scheduled sampling for keyspace: shop, table: carts\n"


def test_samples_need_permission_for_commands(node):
    import http.client

    connection = http.client.HTTPConnection(node.host, node.http_port, timeout=10)
    connection.request("POST", "/node/sampling", "{}", {"host": f"evil.example:{node.http_port}"})
    assert connection.getresponse().status == 403
    connection.close()
