"""Runs `helenus import`."""

import subprocess

import helenus

TIMEOUT_S = 900


def run_import(node, data, *options, exit_code=0):
    """Imports a folder into a node. Returns the output. The file of the state is beside the node's log."""
    done = subprocess.run([str(helenus.binary()), "import", "--from", str(data), "--to", f"{node.host}:{node.port}", *options],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, cwd=node.log_path.parent)
    assert done.returncode == exit_code, done.stdout[-5000:]
    return done.stdout
