"""Runs `helenus nodetool` against a node."""

import subprocess

import helenus


def nodetool(node, *args, binary=None, env=None):
    command = [binary or str(helenus.binary()), *([] if binary else ["nodetool"]), "-h", node.host, "-p", str(node.http_port), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
