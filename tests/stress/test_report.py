"""The report's page in a real browser: no script error, and every chart has drawn, in light and in dark."""

import json
import os
import re
import shutil
import subprocess

import pytest

import loader
from toolchains import require

SECONDS = 30
SUMMARY = {"mean_us": 300.0, "p50_us": 290, "p90_us": 400, "p95_us": 500, "p99_us": 900, "p99_9_us": 2000,
           "p99_99_us": 3000, "max_us": 4000}
# Counts script errors from the first script on; at the end, charts whose canvas holds more than one colour.
LISTEN = "<script>let errors = []; addEventListener('error', (e) => errors.push(e.message));</script>"
LOOK = """<script>setTimeout(() => {
  const canvases = [...document.querySelectorAll(".plot canvas")];
  const drawn = canvases.filter((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size > 8;
  });
  document.body.innerHTML = "";
  document.title = JSON.stringify({
    errors, charts: document.documentElement.dataset.drawn, canvases: canvases.length, drawn: drawn.length,
    dark: matchMedia("(prefers-color-scheme: dark)").matches, ground: getComputedStyle(document.body).backgroundColor });
}, 500);</script>"""


@pytest.fixture(scope="module")
def chromium():
    """Returns Debian's Chromium, which is installed in CI if it is missing."""
    if shutil.which("chromium") is None and os.environ.get("CI") == "true":
        subprocess.run(["apt-get", "update", "-qq"], timeout=200)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], timeout=280)
    require("report in a browser", "chromium")
    return "chromium"


def write_run(folder):
    operation = {"name": "read", "count": 3000, "rate_per_s": 100.0, "response": SUMMARY, "service": SUMMARY,
                 "errors": [{"code": 4097, "name": "OVERLOADED", "count": 30}]}
    (folder / "run.json").write_text(json.dumps({
        "format": 1, "tool_version": "0.1.0", "workload": "kv", "label": "</script><b>", "kind": "run",
        "command_line": ["helenus-stress"], "config": {}, "load": {"open": {"rate_per_s": 100.0}},
        "endpoint": {"addresses": [], "release_version": "", "cluster_name": "", "driver": ""},
        "started_at": "2025-06-01T12:00:00Z", "duration_s": float(SECONDS), "operations": [operation]}))
    head = "elapsed_s,lag_ms,read_ops,read_errors,read_p50_us,read_p99_us,read_p99_9_us,read_max_us,server_cpu_cores"
    rows = [f"{s},{s % 3},{100 + s % 7},1,290,{900 + s},2000,4000,0.5" for s in range(1, SECONDS + 1)]
    (folder / "intervals.csv").write_text("\n".join([head, *rows]) + "\n")


@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_draws_without_a_script_error(chromium, tmp_path, dark):
    write_run(tmp_path)
    loader.command("report", tmp_path)
    page = (tmp_path / "report.html").read_text()
    page = page.replace("<head>", "<head>" + LISTEN, 1).replace("</body>", LOOK + "</body>")
    (tmp_path / "looked-at.html").write_text(page)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=4000",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--user-data-dir={tmp_path}/profile"]
    dom = subprocess.run([chromium, *flags, "--dump-dom", f"file://{tmp_path}/looked-at.html"], text=True,
                         capture_output=True, timeout=120).stdout
    seen = json.loads(re.search(r"<title>(\{.*?\})</title>", dom, re.S).group(1))
    assert seen["errors"] == []
    assert seen["charts"] == "5", "throughput, latency, errors, lag, CPU"
    assert seen["canvases"] == seen["drawn"] == 5
    assert seen["dark"] == dark
    assert seen["ground"] == ("rgb(14, 17, 22)" if dark else "rgb(245, 246, 248)")
