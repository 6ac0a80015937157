"""The dashboard and the alert rules of `monitoring/`: the real promtool takes them, and they name only metrics that running nodes export."""

import json
import pathlib
import re
import subprocess

import pytest

import certificates
import helenus
import toolchains
from minio import Minio

# promtool is built the first time, which takes minutes.
pytestmark = [pytest.mark.process, pytest.mark.timeout(1200)]

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "monitoring"
RULES, DASHBOARD = FOLDER / "helenus-alerts.yml", FOLDER / "helenus-dashboard.json"
REPLICATION_RULES = FOLDER / "helenus-replication-alerts.yml"
METRIC = re.compile(r"\b(?:helenus|process)_[a-z0-9_]+")


@pytest.fixture(scope="module")
def promtool():
    """Returns the command of Prometheus' own checker, which is built the first time."""
    return toolchains.promtool()


def watched(folder):
    """Returns the settings of a node on a folder with everything that is watched."""
    files = certificates.Authority(folder / "authority").certificate("server")
    return {"backup_to": folder / "backups", "point_in_time_window": "1h", "tls_certificate": files["certificate"], "tls_key": files["key"],
            "tls_optional": "true"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Yields the texts of /metrics of a node on a bucket, a read-only node, and a node on a folder, after some requests."""
    minio = Minio(tmp_path_factory.mktemp("minio") / "data").start()
    nodes = []
    try:
        url = f"s3://{minio.bucket('monitoring')}/store"
        places = [
            ("bucket", url, []), ("reader", url, ["--read-only"]), ("folder", None, helenus.setting_args(watched(tmp_path_factory.mktemp("watched")))),
        ]
        for name, store, args in places:
            folder = tmp_path_factory.mktemp(name)
            nodes.append(helenus.Node(folder, store=store, env=minio.environment() if store else {}, args=args).start())
        for node in (nodes[0], nodes[2]):
            session = node.connect()
            session.execute("CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            session.execute("CREATE TABLE m.t (k int PRIMARY KEY, v int)")
            session.execute("INSERT INTO m.t (k, v) VALUES (1, 1)")
            assert session.execute("SELECT v FROM m.t WHERE k = 1").one().v == 1
            session.execute("CREATE TABLE m.captured (k int PRIMARY KEY, v int) WITH cdc = true")
            session.execute("INSERT INTO m.captured (k, v) VALUES (1, 1)")

        def text():
            """Returns the texts. `None` until the second sample of the bucket's requests, which has the rates, and until logs were measured."""
            texts = [node.http("/metrics")[1] for node in nodes]
            return texts if all(name in texts[0] for name in ["helenus_bucket_dollars_per_month", "helenus_cdc_log_age_seconds{"]) else None

        yield helenus.wait_until(text, what="the cost of the bucket, and the age of a log")
    finally:
        for node in nodes:
            node.close()
        minio.close()


def names(text):
    """Returns the names of all series, which for histograms have endings."""
    return {re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", line)[0] for line in text.splitlines() if line and line[0] != "#"}


def expressions(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def check_rules(promtool, path):
    return subprocess.run([promtool, "check", "rules", "--lint=all", "--lint-fatal", str(path)], capture_output=True, text=True, timeout=60)


def test_promtool_takes_the_rules(promtool, tmp_path):
    done = check_rules(promtool, RULES)
    assert done.returncode == 0 and re.search(r"SUCCESS: 2[0-9] rules found", done.stdout), done.stdout + done.stderr


def test_promtool_takes_the_rules_of_replication(promtool):
    done = check_rules(promtool, REPLICATION_RULES)
    assert done.returncode == 0 and "SUCCESS: 4 rules found" in done.stdout, done.stdout + done.stderr


def test_promtool_takes_the_expressions_of_the_dashboard(promtool, tmp_path):
    """As rules, with Grafana's variables replaced."""
    lines = ["groups:", "  - name: dashboard", "    rules:"]
    for number, (_, expression) in enumerate(expressions(json.loads(DASHBOARD.read_text()))):
        expression = expression.replace("$__rate_interval", "1m").replace("$instance", ".*")
        lines += [f"      - record: panel:{number}", f"        expr: {json.dumps(expression)}"]
    rules = tmp_path / "dashboard.yml"
    rules.write_text("\n".join(lines) + "\n")
    done = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_metrics_that_there_are_are_named(exported):
    there = set().union(*map(names, exported))
    rules = RULES.read_text()
    used = "\n".join([*re.findall(r"^ +expr: (.*)$", rules, re.M), DASHBOARD.read_text()])
    named = set(METRIC.findall(used))
    assert len(named) > 40 and named <= there, named - there
    # Prose names histograms without the ending of a series.
    families = {name for text in exported for name in re.findall(r"^# TYPE (\S+) ", text, re.M)}
    assert set(METRIC.findall(rules)) <= there | families


def test_every_metric_says_what_it_means(promtool, exported):
    for text in exported:
        helped = set(re.findall(r"^# HELP (\S+) .+", text, re.M))
        typed = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
        assert typed - helped == set()
        plain = {re.sub(r"_(bucket|sum|count)$", "", name) if name not in typed else name for name in names(text)}
        assert plain <= typed, plain - typed
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        # Exit code 1 means that the text cannot be parsed. Code 3 is for opinions on names.
        assert done.returncode in (0, 3), done.stdout + done.stderr


def test_the_process_is_measured(exported):
    for text in exported:
        figures = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line and line[0] != "#"}
        assert figures["process_resident_memory_bytes"] > 1 << 20 and figures["process_open_fds"] > 3
        assert figures["process_start_time_seconds"] > 1e9 and figures["process_cpu_seconds_total"] >= 0
        assert figures["helenus_ready"] == 1


def test_statements_are_timed_by_kind_and_table(exported):
    for text in (exported[0], exported[2]):
        count = r'^helenus_statement_duration_seconds_count\{kind="%s"\} [1-9]'
        assert re.search(count % "read", text, re.M) and re.search(count % "write", text, re.M)
        assert re.search(r'^helenus_table_statement_duration_seconds_count\{keyspace="m",table="t",kind="write"\} 1$', text, re.M)
