"""Figures of tables: `system_views`, and `nodetool tablestats`, `tablehistograms` and `proxyhistograms` in Cassandra's formats."""

import datetime
import json
import os
import re
import subprocess

import pytest

import helenus

pytestmark = pytest.mark.process

LARGE, ROWS = 40, 100
# The lines of a table in Cassandra 5.0.5's tablestats.
LABELS = """
SSTable count|Old SSTable count|Max SSTable size|Space used (live)|Space used (total)|Space used by snapshots (total)|Off heap memory used (total)|
SSTable Compression Ratio|Number of partitions (estimate)|Memtable cell count|Memtable data size|Memtable off heap memory used|Memtable switch count|
Speculative retries|Local read count|Local read latency|Local write count|Local write latency|Local read/write ratio|Pending flushes|Percent repaired|
Bytes repaired|Bytes unrepaired|Bytes pending repair|Bloom filter false positives|Bloom filter false ratio|Bloom filter space used|
Bloom filter off heap memory used|Index summary off heap memory used|Compression metadata off heap memory used|Compacted partition minimum bytes|
Compacted partition maximum bytes|Compacted partition mean bytes|Average live cells per slice (last five minutes)|
Maximum live cells per slice (last five minutes)|Average tombstones per slice (last five minutes)|Maximum tombstones per slice (last five minutes)|
Droppable tombstone ratio
""".replace("\n", "").split("|")


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Yields a node with a partition of 4 MB and small ones, which are flushed and read."""
    node = helenus.Node(tmp_path_factory.mktemp("tables")).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.carts (customer int, item int, v blob, PRIMARY KEY (customer, item))")
    session.execute("CREATE TABLE shop.idle (k int PRIMARY KEY)")
    insert = session.prepare("INSERT INTO shop.carts (customer, item, v) VALUES (?, ?, ?)")
    for item in range(LARGE):
        session.execute(insert, (1, item, os.urandom(100_000)))
    for customer in range(ROWS - LARGE):
        session.execute(insert, (customer + 2, 0, b"small"))
    session.execute("DELETE FROM shop.carts WHERE customer = 1 AND item = 3")
    session.execute("UPDATE shop.carts SET v = 0x01 WHERE customer = 2 AND item = 0 IF v = 0x02")
    assert len(list(session.execute("SELECT item FROM shop.carts WHERE customer = 1"))) == LARGE - 1
    list(session.execute("SELECT * FROM shop.carts"))
    assert run(node, "flush").returncode == 0
    yield node
    node.close()


def run(node, *args):
    command = [str(helenus.binary()), "nodetool", "-h", node.host, "-p", str(node.http_port), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def view(node, name):
    rows = node.connect().execute(f"SELECT * FROM system_views.{name}")
    return {row.table_name: row for row in rows if row.keyspace_name == "shop"}


def test_sizes_are_those_of_the_files(node):
    for name in ("disk_usage", "max_partition_size", "max_sstable_size"):
        rows = view(node, name)
        # A block of SSTables is compressed, random bytes are not; rounded up.
        assert rows["carts"].mebibytes in (4, 5), (name, rows)
        assert rows["idle"].mebibytes == 0


def test_latencies_and_what_reads_meet(node):
    for side in ("local", "coordinator"):
        reads, writes, scans = (view(node, f"{side}_{kind}_latency") for kind in ("read", "write", "scan"))
        assert (reads["carts"].count, writes["carts"].count) == (1, ROWS + 2)
        assert scans["carts"].count >= 1 and reads["idle"].count == writes["idle"].count == 0
        assert 0 < reads["carts"].p50th_ms <= reads["carts"].p99th_ms <= reads["carts"].max_ms
    rows, tombstones = view(node, "rows_per_read")["carts"], view(node, "tombstones_per_read")["carts"]
    assert rows.count == tombstones.count >= 2 and rows.max >= LARGE - 1 and tombstones.max >= 1


def test_what_runs_is_seen(node):
    session = node.connect()
    queries = list(session.execute("SELECT * FROM system_views.queries"))
    assert [q.task for q in queries] == ["QUERY SELECT * FROM system_views.queries"] and queries[0].running_micros >= 0
    pools = {pool.name: pool for pool in session.execute("SELECT * FROM system_views.thread_pools")}
    requests = pools["Native-Transport-Requests"]
    assert requests.active_tasks == 1 and requests.active_tasks_limit > 1 and requests.completed_tasks > ROWS
    assert pools["MemtableFlushWriter"].completed_tasks >= 1
    lines = list(session.execute("SELECT * FROM system_views.system_logs"))
    assert any("POST /node/flush" in line.message and line.level == "INFO" for line in lines), lines


def test_partitions_of_batches(node):
    """Batches of one, two and three partitions; those with conditions are not counted."""
    session = node.connect()
    session.execute("CREATE TABLE shop.counts (k int PRIMARY KEY, n counter)")
    session.execute("CREATE TABLE shop.batched (k int PRIMARY KEY)")
    figures = lambda: {row.name: row for row in session.execute("SELECT * FROM system_views.batch_metrics")}
    assert all((row.max, row.p50th, row.p999th) == (0, 0, 0) for row in figures().values())
    insert = "INSERT INTO shop.batched (k) VALUES (%d);"
    session.execute("BEGIN BATCH " + insert % 1 + insert % 1 + insert % 2 + " APPLY BATCH")
    session.execute("BEGIN UNLOGGED BATCH " + insert % 1 + insert % 2 + insert % 3 + " APPLY BATCH")
    session.execute("BEGIN COUNTER BATCH UPDATE shop.counts SET n = n + 1 WHERE k = 1; APPLY BATCH")
    session.execute("BEGIN BATCH INSERT INTO shop.batched (k) VALUES (9) IF NOT EXISTS; APPLY BATCH")
    names = {"partitions_per_logged_batch": 2, "partitions_per_unlogged_batch": 3, "partitions_per_counter_batch": 1}
    assert {name: (row.max, row.p50th, row.p99th, row.p999th) for name, row in figures().items()} == {
        name: (count, count, count, count) for name, count in names.items()
    }
    session.execute("DROP TABLE shop.counts")
    session.execute("DROP TABLE shop.batched")


def test_compactions(node):
    assert run(node, "compact").returncode == 0
    session = node.connect()
    history = list(session.execute("SELECT * FROM system.compaction_history"))
    assert history and len({row.id for row in history}) == len(history)
    for row in history:
        assert row.keyspace_name == "*" and re.fullmatch(r"tablet-\d+", row.columnfamily_name)
        assert row.bytes_in > 0 and row.compaction_properties["compaction_type"] == "Compaction" and row.rows_merged is None
        assert abs((row.compacted_at - datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)).total_seconds()) < 600
    assert any(row.bytes_out > 1_000_000 for row in history), history
    lines = run(node, "compactionhistory").stdout.splitlines()
    assert len(lines) == 2 + len(history) and all(" {} " in line for line in lines[2:]), lines
    # Running compactions end soon, so there may be none.
    for task in session.execute("SELECT * FROM system_views.sstable_tasks"):
        assert (task.kind, task.unit) == ("compaction", "bytes") and 0 <= task.progress <= task.total
    assert not list(session.execute("SELECT * FROM system_views.internode_outbound"))


def test_tablestats(node):
    done = run(node, "tablestats", "shop.carts")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["Total number of tables: 1", "----------------", "Keyspace: shop"]
    assert re.fullmatch(r"\tRead Count: \d+", lines[3]) and re.fullmatch(r"\tRead Latency: [0-9.]+ ms", lines[4])
    assert lines[8] == "\t\tTable: carts" and lines[-2:] == ["", "----------------"]
    figures = dict(line.strip().split(": ", 1) for line in lines[9:-2])
    assert list(figures) == LABELS
    assert int(figures["Space used (live)"]) > (LARGE - 1) * 100_000 and int(figures["Local write count"]) == ROWS + 2
    assert int(figures["Number of partitions (estimate)"]) > 1 and figures["Max SSTable size"].endswith("MiB")
    # The alias, and all tables.
    assert run(node, "cfstats", "shop.idle").stdout.splitlines()[8] == "\t\tTable: idle"
    assert run(node, "tablestats").stdout.startswith("Total number of tables: 2\n")


def test_tablestats_of_a_log_of_changes(tmp_path):
    node = helenus.Node(tmp_path).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v int) WITH cdc = true")

        def age():
            return json.loads(run(node, "tablestats", "-F", "json", "k.t_scylla_cdc_log").stdout)["k"]["tables"]["t_scylla_cdc_log"]["oldest_change_age_seconds"]

        assert age() is None
        assert "\t\tAge of oldest change (seconds): none\n" in run(node, "tablestats", "k.t_scylla_cdc_log").stdout
        for p in range(100):
            session.execute("INSERT INTO k.t (p, v) VALUES (%s, 0)", (p,))
        assert run(node, "flush").returncode == 0
        helenus.wait_until(lambda: age() >= 1, what="a change that is a second old")
        assert "Age of oldest change" not in run(node, "tablestats", "k.t").stdout
        labels = '{keyspace="k",table="t_scylla_cdc_log"}'

        def figures():
            lines = dict(line.rsplit(" ", 1) for line in node.http("/metrics")[1].splitlines() if line.startswith("helenus_cdc_log_"))
            return lines if len(lines) == 2 else None

        found = helenus.wait_until(figures, what="figures of the log")
        assert float(found[f"helenus_cdc_log_bytes{labels}"]) > 0 and float(found[f"helenus_cdc_log_age_seconds{labels}"]) >= 1, found
    finally:
        node.close()


def test_tablestats_in_other_formats(node):
    values = json.loads(run(node, "tablestats", "-F", "json").stdout)
    assert values["total_number_of_tables"] == 2
    carts = values["shop"]["tables"]["carts"]
    assert carts["local_write_count"] == ROWS + 2 and carts["compacted_partition_maximum_bytes"] > (LARGE - 1) * 100_000
    assert re.fullmatch(r"\d+\.\d{3}", carts["local_read_latency_ms"]) and carts["space_used_live"].isdigit()
    lines = run(node, "tablestats", "-F", "yaml").stdout.splitlines()
    assert {"shop:", "  tables:", "    carts:", f"      local_write_count: {ROWS + 2}", "total_number_of_tables: 2"} <= set(lines), lines
    assert any(re.fullmatch(r"      local_read_latency_ms: '\d+\.\d{3}'", line) for line in lines)
    sorted_ = run(node, "tablestats", "-s", "writes", "-t", "1").stdout.splitlines()
    assert sorted_[0] == "Total number of tables: 2 (showing top 1 by writes)" and sorted_[2] == "\tTable: shop.carts"
    assert "MiB" in run(node, "tablestats", "-H", "shop.carts").stdout
    for args, why in ((["-F", "xml"], "arguments for -F are json,yaml only."), (["nope"], "Unknown keyspaces"), (["shop.x"], "Unknown tables")):
        refused = run(node, "tablestats", *args)
        assert refused.returncode == 1 and why in refused.stderr, refused


def test_histograms(node):
    for args in (["shop", "carts"], ["shop.carts"]):
        lines = run(node, "tablehistograms", *args).stdout.splitlines()
        assert lines[0] == "shop/carts histograms"
        assert lines[1] == "Percentile      Read Latency     Write Latency          SSTables    Partition Size        Cell Count"
        assert lines[2] == "                    (micros)          (micros)                             (bytes)                  "
        assert [line.split()[0] for line in lines[3:10]] == ["50%", "75%", "95%", "98%", "99%", "Min", "Max"]
        assert float(lines[3].split()[1]) > 0 and int(lines[9].split()[4]) > (LARGE - 1) * 100_000
    assert "No SSTables exists" in run(node, "tablehistograms", "shop.idle").stdout
    assert run(node, "tablehistograms", "shop.x").returncode == 1
    lines = run(node, "proxyhistograms").stdout.splitlines()
    assert lines[0] == "proxy histograms" and lines[1].split()[:3] == ["Percentile", "Read", "Latency"]
    assert len(lines[1]) == 10 + 6 * 19 and float(lines[3].split()[1]) > 0 and float(lines[3].split()[5]) > 0


def test_reads_that_meet_no_tombstones_have_none(node):
    session = node.connect()
    session.execute("CREATE TABLE shop.clean (k int, c int, PRIMARY KEY (k, c))")
    for c in range(4):
        session.execute("INSERT INTO shop.clean (k, c) VALUES (1, %s)", (c,))
    for _ in range(3):
        assert len(list(session.execute("SELECT c FROM shop.clean WHERE k = 1"))) == 4
    stats = json.loads(run(node, "tablestats", "-F", "json", "shop.clean").stdout)["shop"]["tables"]["clean"]
    assert (stats["average_tombstones_per_slice_last_five_minutes"], stats["maximum_tombstones_per_slice_last_five_minutes"]) == (0, 0)
    assert (stats["average_live_cells_per_slice_last_five_minutes"], stats["maximum_live_cells_per_slice_last_five_minutes"]) == (4, 4)
    assert view(node, "tombstones_per_read")["clean"].max == 0
    session.execute("DROP TABLE shop.clean")
