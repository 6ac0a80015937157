"""`log_format = "json"`: every line that the process writes is a JSON object."""

import json

import pytest

import helenus

pytestmark = pytest.mark.process


def lines_of(node):
    """All lines, parsed."""
    lines = [json.loads(line) for line in node.log(100_000).splitlines()]
    for line in lines:
        assert {"timestamp", "level", "target", "message"} <= set(line), line
        assert line["level"] in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
    return lines


def with_message(lines, message):
    return [line for line in lines if line["message"] == message]


def test_every_line_is_an_object(tmp_path):
    args = ["--set", "log_format=json", "--set", "slow_request_log_timeout=1ms", "--set", "log=debug"]
    node = helenus.Node(tmp_path / "node", args=args).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE s.t (k int PRIMARY KEY, v text)")
        session.execute("INSERT INTO s.t (k, v) VALUES (1, 'a \"quoted\"\nvalue')")
        with pytest.raises(Exception):
            session.execute("SELECT nothing FROM s.t")
        lines = lines_of(node)
        (ready,) = with_message(lines, "serving CQL")
        assert ready["listen"] == f"{node.host}:{node.port}" and ready["ready_ms"] >= 0
        slow = with_message(lines, "slow request")
        # Changes of the schema take some milliseconds.
        changes = [line for line in slow if line["statement"].startswith("CREATE")]
        assert changes and all(line["level"] == "WARN" and line["total_ms"] >= 1 and line["values"] == 0 for line in changes)
        # Another one on the same store can't begin, and says why in the same way.
        other = helenus.Node(tmp_path / "other", store=node.store, args=args)
        other.start(wait=False)
        assert other.process.wait(30) != 0
        (why,) = with_message(lines_of(other), "the node has ended")
        assert why["level"] == "ERROR" and str(node.store) in why["error"]
        assert node.terminate() == 0
        (stopping,) = with_message(lines_of(node), "stopping")
        assert stopping["reason"] == "SIGTERM"
    finally:
        node.close()


def test_an_unknown_format_is_refused(tmp_path):
    node = helenus.Node(tmp_path / "node", args=["--set", "log_format=xml"])
    node.start(wait=False)
    assert node.process.wait(30) != 0
    assert "log_format" in node.log() and "text or json" in node.log()
