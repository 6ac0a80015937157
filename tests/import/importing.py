"""Runs `helenus import` and `helenus compare`."""

import json
import subprocess

import helenus

TIMEOUT_S = 900
# Exit codes of comparisons.
EQUAL, DIFFERENT = 0, 1


def command(node, data, *options):
    return [str(helenus.binary()), "import", "--from", str(data), "--to", f"{node.host}:{node.port}", *options]


def run_import(node, data, *options, exit_code=0):
    """Imports a folder into a node. Returns the output. The file of the state is beside the node's log."""
    done = subprocess.run(command(node, data, *options), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S,
                          cwd=node.log_path.parent)
    assert done.returncode == exit_code, done.stdout[-5000:]
    return done.stdout


def kill_import(node, data, state, *options):
    """Kills an import once it has stored that it came further. Returns false if it ended before."""
    before = state.read_bytes() if state.exists() else None
    process = subprocess.Popen(command(node, data, "--state", str(state), *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        helenus.wait_until(lambda: process.poll() is not None or state.exists() and state.read_bytes() != before, TIMEOUT_S, "progress", 0.005)
        return process.poll() is None
    finally:
        process.kill()
        process.wait()


def compare(a, b, *options, exit_code=EQUAL):
    """Compares two targets. Returns the report."""
    command = [str(helenus.binary()), "compare", "--a", f"{a.host}:{a.port}", "--b", f"{b.host}:{b.port}", "--pause", "100ms", "--json", *options]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S)
    assert done.returncode == exit_code, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout)
