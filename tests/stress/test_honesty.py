"""Latency, lag and exit status under servers that stall, refuse or die."""

import time

import pytest

import loader

STALL_S = 2


@pytest.fixture
def proxy(target):
    proxy = loader.Proxy(target)
    yield proxy
    proxy.close()


def stalled_load(proxy, folder, *words):
    """Runs a load of 8 s in whose middle no answers come for two seconds."""
    process = loader.start(proxy, folder, "run", "kv", "--keyspace", "s_stall", "-p", 200, "-d", 8, *words)
    time.sleep(4)
    proxy.stall()
    time.sleep(STALL_S)
    proxy.go_on()
    return loader.finish(process, folder)


def test_a_stall_shows_in_an_open_loops_response_times(proxy, tmp_path):
    ended = stalled_load(proxy, tmp_path, "--rate", 400, "-t", 2, "-c", 8, "-r", 1)
    assert ended.status == loader.WELL, ended.err
    read, pacing = ended.operation("read"), ended.result["pacing"]
    # 800 of 3,200 requests were due during the stall; only 16 could be sent.
    assert read["response"]["max_us"] > 0.95 * STALL_S * 1e6
    assert read["response"]["p99_9_us"] > 0.9 * STALL_S * 1e6
    assert read["response"]["p95_us"] > 0.5 * STALL_S * 1e6, "those that waited to be sent count too"
    assert read["service"]["p95_us"] < 0.5 * read["response"]["p95_us"], "few waited after they were sent"
    assert pacing["lag_max_ms"] > 900 * STALL_S
    assert max(float(row["lag_ms"]) for row in ended.intervals()) > 500
    assert "lag" in ended.err and "open loop at 400/s" in ended.out


def test_a_stall_hides_from_a_closed_loops_percentiles(proxy, tmp_path):
    ended = stalled_load(proxy, tmp_path, "-t", 2, "-c", 8, "-r", 1)
    assert ended.status == loader.WELL, ended.err
    read = ended.operation("read")
    assert read["response"]["max_us"] > 0.95 * STALL_S * 1e6
    assert read["response"]["p99_us"] < 0.25 * read["response"]["max_us"]
    assert "pacing" not in ended.result and "closed loop" in ended.out


def test_a_rate_that_cannot_be_kept_is_said(target, tmp_path):
    ended = loader.load(target, tmp_path, "run", "kv", "--keyspace", "s_rate", "-d", 2, "--rate", "3M", "-c", 64, "-r", 1,
                        "-p", 100, status=loader.RATE_MISSED)
    pacing = ended.result["pacing"]
    assert pacing["target_per_s"] == 3e6 and pacing["achieved_per_s"] < 2.9e6 and pacing["lag_end_ms"] > 100
    assert any("not sent" in note for note in ended.result["notes"])


def test_errors_are_counted_by_the_servers_code(target, tmp_path):
    process = loader.start(target, tmp_path, "run", "kv", "--keyspace", "s_dropped", "-d", 3, "-c", 8, "-p", 100)
    time.sleep(1.5)
    target.connect().execute("DROP KEYSPACE s_dropped")
    ended = loader.finish(process, tmp_path)
    assert ended.status == loader.ERRORS, ended.err
    errors = [error for operation in ended.result["operations"] for error in operation["errors"]]
    assert {(error["code"], error["name"]) for error in errors} <= {(0x2200, "INVALID"), (0x2500, "UNPREPARED")}
    assert all(error["count"] > 0 and error["example"] for error in errors)
    assert "INVALID" in ended.out


@pytest.mark.process
def test_a_server_that_dies_is_an_error_of_ours(node, tmp_path):
    process = loader.start(node, tmp_path, "run", "kv", "-d", 4, "-c", 8, "-p", 100)
    time.sleep(2)
    node.kill()
    ended = loader.finish(process, tmp_path)
    assert ended.status == loader.ERRORS, ended.err
    errors = [error for operation in ended.result["operations"] for error in operation["errors"]]
    assert errors and all("code" not in error for error in errors)
