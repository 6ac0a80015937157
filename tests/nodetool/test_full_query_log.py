"""The full query log of a node: its commands, its files, and what becomes of requests when it can't be written."""

import pytest

import helenus
from tool import done, refused

pytestmark = pytest.mark.process

DROPPED = "helenus_full_query_log_dropped_total"


@pytest.fixture
def node(tmp_path):
    settings = {"full_query_logging_options_max_log_size": "1MiB", "full_query_logging_options_block": "false"}
    node = helenus.Node(tmp_path / "node", args=helenus.setting_args(settings)).start()
    yield node
    node.close()


def shown(node):
    lines = [line.split(None, 1) for line in done(node, "getfullquerylog").splitlines()]
    return {words[0]: words[1].strip() if len(words) > 1 else "" for words in lines}


def segments(folder):
    return sorted(folder.glob("*.fql"))


def test_commands_switch_the_log_and_show_its_options(node, tmp_path):
    assert done(node, "getfullquerylog").splitlines() == [
        "enabled             false    ",
        "log_dir                      ",
        "archive_command              ",
        "roll_cycle          HOURLY   ",
        "block               false    ",
        "max_log_size        1048576  ",
        "max_queue_weight    268435456",
        "max_archive_retries 10       ",
    ]
    assert "log_dir is not set" in refused(node, "enablefullquerylog")
    assert "not MINUTELY, HOURLY or DAILY" in refused(node, "enablefullquerylog", "--roll-cycle", "weekly")
    assert "allow_nodetool_archive_command" in refused(node, "enablefullquerylog", "--path", "/tmp/x", "--archive-command", "/bin/rm %path")
    assert "log_dir = \"/proc/none\"" in refused(node, "enablefullquerylog", "--path", "/proc/none")

    log = tmp_path / "log"
    assert done(node, "enablefullquerylog", "--path", log, "--roll-cycle", "daily", "--blocking", "true", "--max-log-size", "5000",
                "--max-queue-weight", "4000", "--max-archive-retries", "3") == ""
    assert shown(node) == {"enabled": "true", "log_dir": str(log), "archive_command": "", "roll_cycle": "DAILY", "block": "true",
                           "max_log_size": "5000", "max_queue_weight": "4000", "max_archive_retries": "3"}
    assert "on already" in refused(node, "enablefullquerylog", "--path", log)
    session = node.connect()
    for _ in range(100):
        session.execute("SELECT * FROM system.local")
        assert sum(file.stat().st_size for file in segments(log) if file.exists()) <= 5000
    assert len(segments(log)) > 1

    assert done(node, "disablefullquerylog") == "" and shown(node)["enabled"] == "false"
    before = [file.read_bytes() for file in segments(log)]
    session.execute("SELECT * FROM system.local")
    assert [file.read_bytes() for file in segments(log)] == before != []
    (log / "notes.txt").write_text("mine")
    done(node, "resetfullquerylog")
    assert [file.name for file in log.iterdir()] == ["notes.txt"]
    done(node, "disablefullquerylog")


@pytest.mark.parametrize("blocking", ["true", "false"])
def test_requests_go_on_when_the_folder_is_lost(node, tmp_path, blocking):
    log = tmp_path / "log"
    # Each entry begins a new segment.
    done(node, "enablefullquerylog", "--path", log, "--max-log-size", "1000", "--max-queue-weight", "1", "--blocking", blocking)
    session = node.connect()
    session.execute("SELECT * FROM system.local")
    for file in [*segments(log), log]:
        file.rmdir() if file.is_dir() else file.unlink()
    for _ in range(50):
        session.execute("SELECT * FROM system.local")
    dropped = lambda: next((value for name, value in node.metrics().items() if name.startswith(DROPPED)), 0)
    helenus.wait_until(lambda: dropped() > 0, what="dropped entries are counted")
    assert "the full query log can't be written" in node.log()
    done(node, "disablefullquerylog")
