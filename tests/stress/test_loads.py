"""Loads against a real node: results and their files, every workload, populate and verify, comparison, reproduction."""

import json
import signal
import time

import pytest

import loader
from test_commands import WORKLOADS

# The command line of "Impacts of many tables in a Cassandra data model", as its figures and its tool's options give it:
# 8 threads with 50 in flight, 10M partitions, 80% writes, 30 minutes, 1,000 tables.
REPORT_A = "run MultiTableKeyValue --workload.nbTables=1000 -d 30m -p 10M -r 0.2 -t 8 -c 50"

SMALL = {
    "wide-rows": ["--workload.rows=1000"],
    "batch-mutate": ["-p", 200, "--workload.rows=500"],
    "queue": ["-p", 3],
    "create-drop": ["-t", 1, "-c", 1],
}


def small(workload):
    """Returns the arguments of a load that takes a second at most."""
    return [workload, "--keyspace", "s_" + workload.replace("-", "_"), *SMALL.get(workload, ["-p", 60, "-t", 2, "-c", 8])]


def test_a_run_leaves_its_figures_behind(target, tmp_path):
    ended = loader.load(target, tmp_path / "r", "run", "kv", "-d", 3, "-t", 2, "-c", 8, "-p", 500, "-r", 0.2,
                        "--populate", "all", "--keyspace", "s_files", "--hdr", tmp_path / "h", "--csv", tmp_path / "c.csv")
    result = ended.result
    read, write = ended.operation("read"), ended.operation("write")
    assert 0.15 < read["count"] / (read["count"] + write["count"]) < 0.25
    assert result["reads"]["hits"] == read["count"] and result["reads"]["corrupt"] == 0
    assert result["load"] == {"closed": {"threads": 2, "in_flight_per_thread": 8}}
    assert result["duration_s"] > 2.9
    assert result["config"]["partitions"] == 500 and "password" not in result["config"]
    rows = ended.intervals()
    assert len(rows) == 3 and sum(int(row["read_ops"]) for row in rows) == read["count"]
    assert "closed loop" in ended.out and "p99.9" in ended.out
    assert "<html" in (ended.folder / "report.html").read_text()
    assert (tmp_path / "c.csv").read_text() == (ended.folder / "intervals.csv").read_text()
    assert "1.000000000000" in (tmp_path / "h-read.txt").read_text()
    assert "ops/s" in ended.err, "plain lines where there is no terminal"


@pytest.mark.process
def test_the_servers_own_figures_are_recorded(node, tmp_path):
    ended = loader.load(node, tmp_path / "r", "run", "kv", "-d", 3, "-t", 2, "-c", 8, "-p", 500,
                        "--server-pid", node.process.pid, "--metrics", f"http://{node.host}:{node.http_port}/metrics",
                        "--gauge", "helenus_log_syncs_total")
    figures = {figure["name"]: figure["value"] for figure in ended.result["server"]}
    assert figures["CPU time an operation"] > 1
    assert figures["memory at most"] > 10_000_000
    last = ended.intervals()[-1]
    assert float(last["server_helenus_log_syncs_total"]) > 0 and float(last["server_cpu_cores"]) > 0


def test_the_command_line_of_report_a_pastes_and_runs(target, tmp_path):
    process = loader.start(target, tmp_path / "r", *REPORT_A.split(), "--keyspace", "s_report_a", "--drop")
    deadline = time.monotonic() + 60
    intervals = tmp_path / "r" / "intervals.csv"
    while not (intervals.exists() and len(intervals.read_text().splitlines()) > 2):
        assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    ended = loader.finish(process, tmp_path / "r")
    assert ended.status == loader.WELL, ended.err
    result = ended.result
    assert result["workload"] == "many-tables" and result["config"]["workload.tables"] == "1000"
    assert result["load"] == {"closed": {"threads": 8, "in_flight_per_thread": 50}}
    assert ended.operation("write")["count"] > 3 * ended.operation("read")["count"] > 0
    assert any("Interrupted" in note for note in result["notes"])
    names = [figure["name"] for figure in result["server"]]
    assert "making 1000 tables and indexes" in names and "connecting, the schema read" in names
    target.connect().execute("DROP KEYSPACE s_report_a")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_populates_verifies_and_runs(target, tmp_path, workload):
    if workload != "create-drop":
        loader.load(target, tmp_path / "p", "populate", *small(workload))
        verified = loader.load(target, tmp_path / "v", "verify", *small(workload))
        assert verified.result["reads"]["missing"] == verified.result["reads"]["corrupt"] == 0
        assert verified.operation("verify")["count"] > 0
    ended = loader.load(target, tmp_path / "r", "run", *small(workload), "-d", 1)
    assert sum(operation["count"] for operation in ended.result["operations"]) > 10
    assert ended.result.get("reads", {}).get("corrupt", 0) == 0


def test_populate_writes_every_key_once_and_can_be_resumed(target, tmp_path):
    words = ["kv", "--keyspace", "s_once", "-t", 4, "-p", 300, "-c", 5]
    first = loader.load(target, tmp_path / "a", "populate", *words, "--drop", "--range", "..700")
    assert first.operation("populate")["count"] == 700
    session = target.connect("s_once")
    count = lambda: session.execute("SELECT count(*) FROM keyvalue").one()[0]
    assert count() == 700
    loader.load(target, tmp_path / "v", "verify", *words, "--range", "..700")
    early = loader.load(target, tmp_path / "v", "verify", *words, status=loader.UNVERIFIED)
    assert early.result["reads"]["missing"] == 500
    loader.load(target, tmp_path / "b", "populate", *words, "--range", "700..")
    assert count() == 1200
    loader.load(target, tmp_path / "v", "verify", *words)
    keys = {row.key for row in session.execute("SELECT key FROM keyvalue")}
    assert keys == {f"001.{thread}.{number}" for thread in range(4) for number in range(300)}


def test_verify_tells_missing_from_corrupt(target, tmp_path):
    words = ["kv", "--keyspace", "s_broken", "-t", 2, "-p", 100, "-c", 5]
    loader.load(target, tmp_path / "p", "populate", *words, "--drop")
    session = target.connect("s_broken")
    value = lambda key: session.execute("SELECT value FROM keyvalue WHERE key = %s", (key,)).one().value
    put = lambda key, text: session.execute("UPDATE keyvalue SET value = %s WHERE key = %s", (text, key))
    session.execute("DELETE FROM keyvalue WHERE key = '001.0.5'")
    put("001.1.7", value("001.1.8"))
    broken = value("001.0.9")
    put("001.0.9", broken[:60] + ("a" if broken[60] != "a" else "b") + broken[61:])
    ended = loader.load(target, tmp_path / "v", "verify", *words, status=loader.UNVERIFIED)
    assert ended.result["reads"] == {"hits": 197, "misses": 0, "missing": 1, "corrupt": 2}
    notes = "\n".join(ended.result["notes"])
    assert "Key 5: missing" in notes and "Key 107: corrupt" in notes and "Key 9: corrupt" in notes
    run = loader.load(target, tmp_path / "r", "run", *words, "-d", 1, "-r", 1, status=loader.UNVERIFIED)
    assert run.result["reads"]["corrupt"] > 0 and run.result["reads"]["misses"] > 0


def test_comparison_alternates_rounds_in_new_keyspaces(target, tmp_path):
    host = f"{target.host}:{target.port}"
    out = loader.command("compare", "--a", host, "--b", host, "--label-a", "one", "--label-b", "two", "--rounds", "3",
                         "--out", str(tmp_path), "--", "run", "kv", "-d", "1", "-c", "8", "-p", "100", "-q",
                         "--keyspace", "s_cmp")
    comparison = json.loads((tmp_path / "compare.json").read_text())
    assert [r["first"] for r in comparison["rounds"]] == ["a", "b", "a"]
    rate = next(figure for figure in comparison["figures"] if figure["name"] == "read rate")
    assert len(rate["a"]["rounds"]) == len(rate["b"]["rounds"]) == 3
    assert rate["verdict"] == "within_noise", "three rounds can't tell"
    assert "within the noise" in out and (tmp_path / "report.html").exists()
    for round_ in comparison["rounds"]:
        assert (tmp_path / round_["directory_b"] / "run.json").exists()
    keyspaces = [row.keyspace_name for row in target.connect().execute("SELECT keyspace_name FROM system_schema.keyspaces")]
    assert not [name for name in keyspaces if name.startswith("s_cmp")]


def test_reproduction_prints_published_and_measured(target, tmp_path):
    out = loader.command("repro", "C", "--scale", "0.02", "--host", f"{target.host}:{target.port}", "--out", str(tmp_path))
    assert "a batch, median" in out and "75 ms" in out
    result = json.loads((tmp_path / "batches" / "run.json").read_text())
    assert result["operations"][0]["count"] == 15 and result["operations"][0]["rows"] == 150_000
    assert {"name": "a batch, slowest", "published": "1.5 s"}.items() <= result["published"][3].items()
