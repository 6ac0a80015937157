"""`log_format = "json"`: every line that the process writes is a JSON object."""

import json

import pytest

import helenus

pytestmark = pytest.mark.process


def lines_of(node):
    """Returns all lines, parsed."""
    lines = [json.loads(line) for line in node.log(100_000).splitlines()]
    for line in lines:
        assert {"timestamp", "level", "target", "message"} <= set(line), line
        assert line["level"] in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
    return lines


def with_message(lines, message):
    return [line for line in lines if line["message"] == message]


def test_every_line_is_an_object(tmp_path):
    # The folder of the audit log is not there yet.
    settings = {"log_format": "json", "slow_request_log_timeout": "1ms", "log": "debug", "audit_logging_options_enabled": "true",
                "audit_logging_options_audit_logs_dir": tmp_path / "audit" / "log"}
    args = helenus.setting_args(settings)
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
        assert list((tmp_path / "audit" / "log").glob("audit.*.log"))
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


def test_an_error_in_the_settings_is_an_object_too(tmp_path):
    settings = tmp_path / "helenus.toml"
    settings.write_text('log_format = "json"\nrequest_timeout = "soon"\n')
    node = helenus.Node(tmp_path / "node", args=["--config", str(settings)])
    node.start(wait=False)
    assert node.process.wait(30) != 0
    (why,) = with_message(lines_of(node), "the node has ended")
    assert "request_timeout" in why["error"] and str(settings) in why["error"]


@pytest.mark.parametrize("place", ["store", "link"])
def test_no_log_of_requests_lies_within_the_store(tmp_path, place):
    node = helenus.Node(tmp_path / "node", args=["--set", "audit_logging_options_enabled=true",
                                                 "--set", f"audit_logging_options_audit_logs_dir={tmp_path / 'node' / place / 'audit'}"])
    (tmp_path / "node" / "link").symlink_to("store")
    node.start(wait=False)
    assert node.process.wait(60) != 0
    assert "audit_logs_dir" in node.log() and "lies within that of the store" in node.log()
    assert not (node.store / "audit").exists()


def test_systemd_grants_the_folder_of_the_audit_log(tmp_path):
    node = helenus.Node(tmp_path / "node", args=["--set", "audit_logging_options_enabled=true"], env={"LOGS_DIRECTORY": str(tmp_path / "logs")})
    try:
        node.start()
        helenus.wait_until(lambda: list((tmp_path / "logs" / "audit").glob("audit.*.log")), what="a file of the audit log")
    finally:
        node.close()
