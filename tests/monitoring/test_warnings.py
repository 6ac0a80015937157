"""Warnings that an operator should see before clients are affected: in /health, as metrics, and at the start if waiting would not help."""

import json
import shutil
import socket

import pytest

import certificates
import helenus

pytestmark = pytest.mark.process


def health(node):
    status, body = node.http("/health/ready")
    return status, json.loads(body)


def warning(node, words):
    return [line for line in health(node)[1].get("warnings", []) if words in line]


def test_failed_backups_show_in_metrics_and_warnings(tmp_path):
    place = tmp_path / "backups"
    settings = {"backup_to": place, "backup_interval": "1s", "backup_keep": 1}
    node = helenus.Node(tmp_path / "node", args=helenus.setting_args(settings)).start()
    try:
        session = node.connect()
        session.execute("CREATE KEYSPACE b WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE b.t (k int PRIMARY KEY)")
        session.execute("INSERT INTO b.t (k) VALUES (1)")
        helenus.wait_until(lambda: node.metrics()["helenus_backup_bytes_total"] > 0, what="a backup with the row")
        assert node.metrics()["helenus_backup_last_success_seconds"] > 1e9 and node.metrics()["helenus_backup_interval_seconds"] == 1
        assert not warning(node, "backup")
        failures = lambda: node.metrics()["helenus_backup_failures_total"]
        before = failures()

        def is_blocked():
            """Puts a file in the place of the folder, so that not even root can write a backup. Returns false if a running backup has made the
            folder again.
            """
            shutil.rmtree(place, ignore_errors=True)
            try:
                place.write_text("in the way")
                return True
            except OSError:
                return False

        helenus.wait_until(is_blocked, what="a file in place of the backups")
        helenus.wait_until(lambda: failures() > before + 1, what="two backups that fail")
        status, _ = health(node)
        assert status == 200 and warning(node, f"the last scheduled backup to {place} has failed")
        lines = [line for line in node.log(10_000).splitlines() if "a scheduled backup has failed" in line]
        assert len(lines) == 1, lines
        place.unlink()
        helenus.wait_until(lambda: not warning(node, "backup"), what="a backup that succeeds")
        assert "scheduled backups are written again" in node.log()
    finally:
        node.close()


@pytest.mark.parametrize("settings, words", [
    ({"backup_to": "FOLDER/file/backups"}, "Not a directory"),
    ({"backup_to": "FOLDER/backups", "backup_key_file": "FOLDER/none"}, "none"),
], ids=["place", "key"])
def test_a_wrong_place_for_backups_is_found_at_the_start(tmp_path, settings, words):
    (tmp_path / "file").write_text("")
    settings = {name: value.replace("FOLDER", str(tmp_path)) for name, value in settings.items()}
    node = helenus.Node(tmp_path / "node", args=helenus.setting_args(settings))
    try:
        node.start(wait=False)
        assert node.process.wait(60) != 0
        refusals = [line for line in node.log().splitlines() if f'backup_to = "{settings["backup_to"]}"' in line and words in line]
        assert refusals, node.log()
    finally:
        node.close()


def test_a_certificate_that_expires_soon_is_a_warning(tmp_path):
    files = certificates.Authority(tmp_path / "authority").certificate("server")
    settings = {"tls_certificate": files["certificate"], "tls_key": files["key"], "tls_optional": "true"}
    node = helenus.Node(tmp_path / "node", args=helenus.setting_args(settings)).start()
    try:
        assert health(node)[0] == 200 and warning(node, "the certificate for clients expires within 2 days")
        assert node.metrics()['helenus_certificate_expiry_seconds{use="clients"}'] > 1e9
    finally:
        node.close()


def test_a_version_that_is_negotiated_is_no_error(tmp_path):
    node = helenus.Node(tmp_path / "node").start()
    try:
        def offer(version):
            with socket.create_connection((node.host, node.port), timeout=10) as client:
                client.sendall(bytes([version, 0, 0, 0, 5, 0, 0, 0, 0]))
                assert b"protocol" in client.recv(4096)

        errors = lambda: node.metrics().get('helenus_request_errors_total{error="protocol"}', 0)
        negotiations = lambda: node.metrics()["helenus_protocol_negotiations_total"]
        assert (errors(), negotiations()) == (0, 0)
        # DataStax Enterprise's newest, and the beta of Cassandra without its flag.
        offer(66)
        offer(6)
        assert (errors(), negotiations()) == (0, 2)
        # The beginning of an HTTP request is no offer.
        offer(ord("G"))
        assert (errors(), negotiations()) == (1, 2)
    finally:
        node.close()
