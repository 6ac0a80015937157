"""The requests to the bucket and their cost, in /metrics and `nodetool info`; a store in a folder has neither."""

import math
import re
import subprocess
import time

import pytest

import helenus

pytestmark = pytest.mark.process

KINDS = ("get", "put", "list", "delete")
PUT_PRICE, GET_PRICE, READ_PRICE = 50.0, 7.0, 1000.0
PRICES = {"bucket_put_dollars_per_1000": PUT_PRICE, "bucket_get_dollars_per_1000": GET_PRICE, "bucket_read_dollars_per_gb": READ_PRICE}
PUTS = 'helenus_bucket_requests_total{kind="put"}'
DOLLARS = "helenus_bucket_dollars_per_month"
READ_BYTES = "helenus_bucket_read_bytes_per_second"
LINE = re.compile(r"([^:]*[^: ]) *: (.*)")


def rate(kind):
    return f'helenus_bucket_requests_per_second{{kind="{kind}"}}'


def info(node, *args):
    """Returns the lines of `nodetool info`, by label."""
    command = [str(helenus.binary()), "nodetool", "--http", f"{node.host}:{node.http_port}", "info", *args]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert all(line[23:25] == ": " for line in lines), lines
    return dict(LINE.fullmatch(line).groups() for line in lines)


def cost_metrics(node):
    """Returns the metrics of the last sample. The dollars are NaN until a node is five minutes old."""
    found = {name: value for name, value in node.metrics().items() if name.startswith("helenus_bucket_") and "_per_" in name}
    assert not found or math.isnan(found.pop(DOLLARS))
    return found


def same_sample(node):
    """Returns the metrics of the cost and `nodetool info`, from the same sample of the counters."""
    for _ in range(20):
        before, report, after = cost_metrics(node), info(node), cost_metrics(node)
        if before and before == after:
            return after, report
        time.sleep(0.5)
    raise AssertionError("no two readings within one sample")


def table(node):
    session = node.connect()
    session.execute("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v int)")
    return session


def write_steadily(session, per_second, duration_s):
    """Writes rows one after the other at that rate; their number. Each write is a PUT at least."""
    insert = session.prepare("INSERT INTO o.t (k, v) VALUES (?, ?)")
    began, written = time.monotonic(), 0
    while time.monotonic() < began + duration_s:
        session.execute(insert, (written, written))
        written += 1
        time.sleep(max(0.0, began + written / per_second - time.monotonic()))
    return written


def test_the_cost_of_a_bucket_under_a_known_load(bucket, nodes):
    started = time.monotonic()
    node = nodes(bucket, args=helenus.setting_args(PRICES)).start()
    session = table(node)
    began = time.monotonic()
    written = write_steadily(session, 20, 10)
    load_s = time.monotonic() - began

    # In the first minute the rate is that of the time since the start, which holds all writes and is longer than they took.
    def puts_per_second():
        return node.metrics().get(rate("put"), 0)

    helenus.wait_until(lambda: puts_per_second() * (time.monotonic() - started) >= written, 20, "all writes in the rate")
    assert puts_per_second() <= node.metrics()[PUTS] / load_s

    metrics, report = same_sample(node)
    for kind in KINDS:
        assert float(report[f"Bucket {kind.upper()}/s"]) == pytest.approx(metrics[rate(kind)], abs=0.0051)
    # A month is made of the rate of a node that has settled, not of one that opens tablets.
    assert report["Bucket USD/month"] == "-" and metrics[READ_BYTES] >= 0
    help_text = next(line for line in node.http("/metrics")[1].splitlines() if line.startswith(f"# HELP {DOLLARS} "))
    assert "30 days at the rates of the last minute" in help_text and all(name in help_text for name in PRICES)

    assert report["Gossip active"] == report["Native Transport active"] == "true"
    local = session.execute("SELECT host_id, gossip_generation, tokens FROM system.local").one()
    assert report["ID"] == str(local.host_id)
    assert report["Generation No"] == str(local.gossip_generation)
    assert report["Token"] == f"(invoke with -T/--tokens to see all {len(local.tokens)} tokens)"


def test_a_folder_has_no_bucket_to_pay_for(tmp_path):
    node = helenus.Node(tmp_path, args=helenus.setting_args({"data_center": "here", "rack": "r7", "tablet_count": 1})).start()
    try:
        session = table(node)
        for k in range(100):
            session.execute("INSERT INTO o.t (k, v) VALUES (%s, 1)", (k,))
        session.execute("SELECT v FROM o.t WHERE k = 1")
        time.sleep(6)  # A sample of a bucket would have been taken.
        assert not [name for name in node.metrics() if name.startswith("helenus_bucket_")]
        report = info(node)
        assert not [label for label in report if label.startswith("Bucket")]
        local = session.execute("SELECT host_id, gossip_generation FROM system.local").one()
        assert report["ID"] == str(local.host_id)
        assert report["Generation No"] == str(local.gossip_generation)
        assert (report["Gossip active"], report["Native Transport active"]) == ("true", "true")
        assert (report["Data Center"], report["Rack"], report["Exceptions"]) == ("here", "r7", "0")
        assert 6 <= int(report["Uptime (seconds)"]) < 600
        used, bound = map(float, report["Heap Memory (MB)"].split(" / "))
        assert 1 < used < bound
        assert re.fullmatch(r"[\d.]+ (bytes|KiB|MiB)", report["Load"])
        rows = re.match(r"entries (\d+), size .*, capacity .*, (\d+) hits, (\d+) requests, ", report["Row Cache"])
        # Rows enter the cache when they are read.
        assert int(rows[1]) >= 1 and int(rows[3]) >= int(rows[2])
        assert report["Token"] == "9223372036854775807"
        assert info(node, "--tokens").keys() == report.keys()
    finally:
        node.close()
