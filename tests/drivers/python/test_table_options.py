"""Table options that act on storage: `caching` and `memtable_flush_period_in_ms`. Those of deletions have tests in `durability/`."""

import urllib.request

import pytest
from cassandra.protocol import ConfigurationException

import helenus

pytestmark = pytest.mark.process

UNCACHED = "caching = {'keys': 'NONE', 'rows_per_partition': 'NONE'}"


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    node = helenus.Node(tmp_path_factory.mktemp("options"), args=["--set", "tablet_count=1"]).start()
    node.connect().execute("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    yield node
    node.close()


@pytest.fixture
def session(node):
    return node.connect("o")


def row_cache(session):
    return session.execute("SELECT * FROM system_views.caches WHERE name = 'rows'").one()


def warnings(session, statement):
    future = session.execute_async(statement)
    future.result()
    return list(future.warnings or [])


def read_often(session, table):
    """Reads and writes one row repeatedly. Returns the row cache's increase in entries, requests and hits."""
    before = row_cache(session)
    for value in range(5):
        session.execute(f"INSERT INTO {table} (k, v) VALUES (1, {value})")
        assert session.execute(f"SELECT v FROM {table} WHERE k = 1").one().v == value
    after = row_cache(session)
    return after.entry_count - before.entry_count, after.request_count - before.request_count, after.hit_count - before.hit_count


def test_a_table_without_caching_stays_out_of_the_row_cache(session):
    assert warnings(session, f"CREATE TABLE uncached (k int PRIMARY KEY, v int) WITH {UNCACHED}") == []
    session.execute("CREATE TABLE cached (k int PRIMARY KEY, v int)")
    entries, _, hits = read_often(session, "cached")
    assert entries == 1 and hits >= 1
    assert read_often(session, "uncached") == (0, 0, 0)
    # Changes of the option take effect.
    assert warnings(session, "ALTER TABLE uncached WITH caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}") == []
    entries, _, hits = read_often(session, "uncached")
    assert entries == 1 and hits >= 1
    session.execute(f"ALTER TABLE uncached WITH {UNCACHED}")
    assert read_often(session, "uncached")[1:] == (0, 0)
    assert session.execute("SELECT v FROM cached WHERE k = 1").one().v == 4


def test_another_caching_has_no_effect(session):
    assert warnings(session, "CREATE TABLE partly (k int PRIMARY KEY, v int) WITH caching = {'keys': 'ALL', 'rows_per_partition': '10'}") == []
    entries, _, hits = read_often(session, "partly")
    assert entries == 1 and hits >= 1


def flush(node):
    with urllib.request.urlopen(urllib.request.Request(f"http://{node.host}:{node.http_port}/node/flush", b""), timeout=120) as answer:
        assert answer.status == 200


class Flushes:
    """Detector of flushes of a node since it was created."""

    def __init__(self, node):
        self.node, self.before = node, self.count(node)

    @staticmethod
    def count(node):
        return node.metrics()["helenus_store_flushes_total"]

    def has_come(self):
        return self.count(self.node) > self.before


def test_a_tablet_with_rows_of_the_table_is_flushed_by_time(node, session):
    assert warnings(session, "CREATE TABLE timed (k int PRIMARY KEY, v blob) WITH memtable_flush_period_in_ms = 500") == []
    session.execute("CREATE TABLE untimed (k int PRIMARY KEY, v blob)")
    flush(node)
    flushes = Flushes(node)
    session.execute("INSERT INTO untimed (k, v) VALUES (1, 0x00)")
    with pytest.raises(TimeoutError):
        helenus.wait_until(flushes.has_come, 3, "a flush of rows that may stay")
    session.execute("INSERT INTO timed (k, v) VALUES (1, 0x00)")
    helenus.wait_until(flushes.has_come, what="a flush")
    flushes = Flushes(node)
    session.execute("DELETE FROM timed WHERE k = 1")
    helenus.wait_until(flushes.has_come, what="a flush of a deletion")
    session.execute("ALTER TABLE timed WITH memtable_flush_period_in_ms = 0")
    flush(node)
    flushes = Flushes(node)
    session.execute("INSERT INTO timed (k, v) VALUES (2, 0x00)")
    with pytest.raises(TimeoutError):
        helenus.wait_until(flushes.has_come, 3, "a flush of rows that may stay")


# Options that drivers' schema builders and a DESCRIBE of Cassandra 5 write.
USUAL = (
    "compaction = {'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', 'max_threshold': '16'} AND speculative_retry = '95p' "
    "AND caching = {'keys': 'ALL', 'rows_per_partition': '10'} AND compression = {'class': 'ZstdCompressor'} AND bloom_filter_fp_chance = 0.2"
)


def test_usual_options_get_no_warning(session):
    assert warnings(session, f"CREATE TABLE usual (k int PRIMARY KEY) WITH {USUAL}") == []
    assert warnings(session, "ALTER TABLE usual WITH read_repair = 'NONE' AND memtable = 'trie'") == []


def test_an_unknown_configuration_of_memtables_is_refused(session):
    session.execute("CREATE TABLE based (k int, c int, PRIMARY KEY (k, c)) WITH memtable = 'skiplist'")
    view = "CREATE MATERIALIZED VIEW viewed AS SELECT * FROM based WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)"
    session.execute(view)
    for statement in ("CREATE TABLE other (k int PRIMARY KEY) WITH", "CREATE TABLE IF NOT EXISTS based (k int PRIMARY KEY) WITH", "ALTER TABLE based WITH",
                      "ALTER MATERIALIZED VIEW viewed WITH", view.replace("viewed", "seen") + " WITH"):
        with pytest.raises(ConfigurationException, match='Memtable configuration "nothing" not found'):
            session.execute(f"{statement} memtable = 'nothing'")
