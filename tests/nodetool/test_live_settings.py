"""Settings that change while a node runs: `nodetool reloadconfig`, SIGHUP, and one by one over HTTP."""

import concurrent.futures
import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

import helenus
from tool import nodetool, set_live

pytestmark = pytest.mark.process


@pytest.fixture
def configured(tmp_path):
    """Yields a node with a settings file, `node.file`."""
    file = tmp_path / "helenus.toml"
    file.write_text('batch_size_fail_bytes = "50MiB"\n')
    node = helenus.Node(tmp_path / "node", args=["--config", str(file), "--set", "tablet_count=1"])
    node.file = file
    node.start()
    yield node
    node.close()


def reloadconfig(node):
    command = [str(helenus.binary()), "nodetool", "-h", node.host, "-p", str(node.http_port), "reloadconfig"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=helenus.clean_environment())


def settings(node):
    return {setting["name"]: setting for setting in json.loads(node.http("/node/settings")[1])}


def make_table(session):
    session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY, v blob)")


BATCH = f"BEGIN BATCH INSERT INTO s.t (k, v) VALUES (1, 0x{'00' * 3000}); INSERT INTO s.t (k, v) VALUES (2, 0x00); APPLY BATCH"


def is_refused(session):
    try:
        session.execute(BATCH)
        return False
    except Exception as error:
        assert "Batch too large" in str(error), error
        return True


def test_reloadconfig_applies_live_settings_and_names_others(configured):
    session = configured.connect()
    make_table(session)
    assert not is_refused(session)
    configured.file.write_text('batch_size_fail_bytes = "1KiB"\nrack = "r2"\n')
    ended = reloadconfig(configured)
    assert ended.returncode == 0, ended
    assert ended.stdout == "Changed: batch_size_fail_bytes\nAfter a restart: rack\n"
    assert is_refused(session)
    shown = session.execute("SELECT value FROM system_views.settings WHERE name = 'batch_size_fail_threshold'").one()
    assert shown.value == "1KiB"
    configured.file.write_text('rack = "r2"\n')
    assert reloadconfig(configured).stdout == "Changed: batch_size_fail_bytes\nAfter a restart: rack\n"
    assert not is_refused(session), "a setting that is no longer in the file has its default"


def test_a_wrong_file_changes_nothing(configured):
    configured.file.write_text('batch_size_fail_bytes = "1KiB"\nbatch_size_warn = 1\n')
    ended = reloadconfig(configured)
    assert ended.returncode == 1 and "there is no setting batch_size_warn" in ended.stderr, ended
    assert settings(configured)["batch_size_fail_bytes"]["value"] == "50MiB"


def test_sighup_reads_the_file_again(configured):
    configured.file.write_text('slow_request_log_timeout = "1ms"\nlog = "debug"\n')
    configured.process.send_signal(signal.SIGHUP)
    changed = lambda: settings(configured)["slow_request_log_timeout"]["value"] == "1ms"
    helenus.wait_until(changed, what="the file is read again")
    levels = json.loads(configured.http("/node/log_level")[1])
    assert [level["level"] for level in levels] == ["debug"]
    configured.file.write_text("wrong")
    configured.process.send_signal(signal.SIGHUP)
    helenus.wait_until(lambda: "the settings stay as they were" in configured.log(), what="the refusal is logged")
    assert configured.alive()


def test_a_setting_is_changed_until_the_settings_are_read_again(configured):
    shown = settings(configured)
    assert shown["batch_size_fail_bytes"] == {"name": "batch_size_fail_bytes", "value": "50MiB", "default": "50MiB", "live": True}
    assert not shown["rack"]["live"]
    assert set_live(configured, "compaction_throughput", "16MiB/s") == (200, "set\n")
    assert settings(configured)["compaction_throughput"]["value"] == "16MiB/s"
    code, why = set_live(configured, "rack", "r2")
    assert code == 400 and "rack can't change while the node runs" in why
    code, why = set_live(configured, "compaction_throughput", "fast")
    assert code == 400 and "bytes per second" in why
    assert reloadconfig(configured).stdout == "Changed: compaction_throughput\n"
    assert settings(configured)["compaction_throughput"]["value"] == "off"


def flush(node):
    with urllib.request.urlopen(urllib.request.Request(f"http://{node.host}:{node.http_port}/node/flush", b""), timeout=120) as answer:
        return answer.status


def test_flushes_keep_to_their_throughput_and_follow_its_change(configured):
    session = configured.connect()
    make_table(session)
    insert = session.prepare("INSERT INTO s.t (k, v) VALUES (?, ?)")
    # A flush takes minutes, unless it follows the change.
    assert set_live(configured, "flush_throughput", "4KiB/s")[0] == 200
    write = lambda: [session.execute(insert, (k, os.urandom(64 << 10))) for k in range(16)]
    write()
    assert flush(configured) == 200
    write()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        second = pool.submit(flush, configured)
        with pytest.raises(concurrent.futures.TimeoutError):
            second.result(timeout=3)
        assert set_live(configured, "flush_throughput", "off")[0] == 200
        assert second.result(timeout=60) == 200


def test_bucket_throughput_limit_does_not_delay_writes(tmp_path):
    node = helenus.Node(tmp_path, store="memory://throttled", args=["--set", "tablet_count=1", "--set", "bucket_throughput=4KiB/s"]).start()
    try:
        session = node.connect()
        make_table(session)
        insert = session.prepare("INSERT INTO s.t (k, v) VALUES (?, ?)")
        began = time.monotonic()
        for k in range(16):
            session.execute(insert, (k, os.urandom(64 << 10)))
        took = time.monotonic() - began
        assert took < 60, f"{took:.0f} s: at 4 KiB/s the log's objects take 256 s"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            flushing = pool.submit(flush, node)
            with pytest.raises(concurrent.futures.TimeoutError):
                flushing.result(timeout=3)
            assert set_live(node, "bucket_throughput", "off")[0] == 200
            assert flushing.result(timeout=60) == 200
    finally:
        node.close()


def test_compaction_throughput_follows_setting(configured):
    session = configured.connect()
    make_table(session)
    insert = session.prepare("INSERT INTO s.t (k, v) VALUES (?, ?)")
    assert set_live(configured, "compaction_throughput", "1KiB/s")[0] == 200
    files = lambda: len(list(configured.store.rglob("compacted/*.sst")))

    def write_files(count):
        for _ in range(count):
            for k in range(16):
                session.execute(insert, (k, os.urandom(8 << 10)))
            assert flush(configured) == 200

    write_files(8)
    # The first is let through at once, and is paid for by the next, which would have to wait for minutes.
    helenus.wait_until(lambda: files() < 8, 60, "the first compaction ends")
    write_files(8)
    before = files()
    assert before >= 8
    with pytest.raises(TimeoutError):
        helenus.wait_until(lambda: files() < before, 4, "the next compaction ends")
    assert set_live(configured, "compaction_throughput", "off")[0] == 200
    helenus.wait_until(lambda: files() < before, 60, "the next compaction ends")


def test_the_start_logs_version_store_settings_and_limits(tmp_path):
    node = helenus.Node(tmp_path, args=["--set", "rack=r7", "--set", "cluster_secret=not-to-be-shown"]).start()
    try:
        log = node.log()
        assert "rack=r7" in log and "cluster_secret=(hidden)" in log and "not-to-be-shown" not in log
        assert f"store=file://{node.store}" in log and "version=" in log and "open_files_max=" in log
    finally:
        node.close()


def test_a_node_on_a_folder_takes_commands_with_its_secret(tmp_path):
    node = helenus.Node(tmp_path, args=["--set", "cluster_secret=of-this-node"]).start()
    try:
        with_secret = lambda secret: nodetool(node, "flush", env={**helenus.clean_environment(), "HELENUS_CLUSTER_SECRET": secret})
        assert with_secret("of-this-node").returncode == 0
        wrong = with_secret("of-another")
        assert wrong.returncode == 1 and "with the cluster's secret" in wrong.stderr, wrong
        # A command from this machine needs none.
        assert nodetool(node, "flush").returncode == 0
    finally:
        node.close()


def test_without_arguments_it_says_what_it_does_and_where(tmp_path):
    port = helenus.free_port()
    environment = {**helenus.clean_environment(), "HELENUS_LISTEN": f"127.0.0.1:{port}", "HELENUS_HTTP": "off"}
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([str(helenus.binary())], stdout=log, stderr=log, cwd=tmp_path, env=environment)
    try:
        helenus.wait_until(lambda: helenus.answers_options("127.0.0.1", port), 60, "it serves")
        first = (tmp_path / "log").read_text().splitlines()[0]
        assert first.startswith(f"No command is given: serving CQL on 127.0.0.1:{port}") and "helenus-data" in first, first
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("store", ["s3:/bucket", "s3:bucket/prefix", "gs:/bucket", "file:/x"])
def test_a_mistyped_url_makes_no_folder(tmp_path, store):
    ended = subprocess.run([str(helenus.binary()), "serve", "--store", store], capture_output=True, text=True, timeout=30, cwd=tmp_path,
                           env=helenus.clean_environment())
    assert ended.returncode == 1 and "://" in ended.stderr, ended
    assert list(tmp_path.iterdir()) == []
