"""Ten times what a node can do: it refuses, its memory stays bounded, and nothing that it acknowledged is lost."""

import json
import re

import pytest

import helenus
import loader

OVERLOADED = 0x1001


def step(folder, name):
    return json.loads((folder / name / "run.json").read_text())


def server(result, name):
    return next(figure["value"] for figure in result["server"] if figure["name"] == name)


@pytest.mark.process
def test_ten_times_the_sustainable_rate(tmp_path):
    caches = ["row_cache_bytes=16MiB", "block_cache_bytes=32MiB", "memtable_bytes=32MiB"]
    # Loader and node share the cores. A loader that gets no turn measures how long its own answers wait for it: 4 s where they are there
    # after 0.5 s, the faster the node the longer, since ten times as much is more. So the node gives way to it.
    node = helenus.Node(tmp_path / "node", args=[f"--set={cache}" for cache in caches], niceness=15).start()
    try:
        ended = loader.load(node, tmp_path / "out", "repro", "overload", "-d", 4, "--server-pid", node.process.pid,
                            "--metrics", f"http://{node.host}:{node.http_port}/metrics", timeout_s=180)
        sustainable = sum(of["rate_per_s"] for of in step(ended.folder, "sustainable")["operations"])

        surge = step(ended.folder, "surge")
        assert surge["pacing"]["target_per_s"] == pytest.approx(10 * sustainable, rel=0.01)
        errors = [error for of in surge["operations"] for error in of.get("errors", [])]
        assert {error.get("code") for error in errors} == {OVERLOADED}, errors
        assert sum(error["count"] for error in errors) > sustainable
        done = {of["name"]: of for of in surge["operations"]}
        assert sum(of["count"] for of in done.values()) / surge["duration_s"] > 0.2 * sustainable
        # Served soon, or not at all: if all waited for their turn, most would wait for longer than the surge lasts.
        assert all(of["service"]["p99_us"] < surge["duration_s"] * 1e6 for of in done.values()), done
        assert server(surge, "memory at most") < 2 * server(surge, "memory at the start"), surge["server"]

        figures = {figure["name"]: figure["measured"] for figure in step(ended.folder, "after")["published"]}
        back = re.fullmatch(r"within (\d+) s", figures["their median at most twice that before"])
        assert back and int(back[1]) <= 20, figures

        verified = step(ended.folder, "verify")["reads"]
        acknowledged = sum(of["count"] for name in ["before", "surge", "after"]
                           for of in step(ended.folder, name)["operations"] if of["name"] == "write")
        assert verified["missing"] == verified["corrupt"] == 0
        assert verified["hits"] >= acknowledged > 0

        status, page = node.http("/metrics")
        shed = re.search(r"^helenus_requests_shed_total (\d+)", page, re.MULTILINE)
        assert status == 200 and int(shed[1]) >= sum(error["count"] for error in errors)
    finally:
        node.close()
