"""Runs `helenus nodetool`, and other commands of helenus, against nodes."""

import contextlib
import subprocess
import urllib.error
import urllib.request

import helenus
from minio import Minio


def run(*words, env=None, timeout_s=120):
    """Runs a command of helenus to its end."""
    command = [str(helenus.binary()), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env={**helenus.clean_environment(), **(env or {})})


def said(*words, **options):
    """Returns the output of a command of helenus, which must succeed."""
    ended = run(*words, **options)
    assert ended.returncode == 0, ended
    return ended.stdout


def at(node):
    """Returns the options of a command that uses a node."""
    return "-h", node.host, "-p", node.http_port


def nodetool(node, *args, binary=None, env=None, timeout_s=60):
    command = [binary or str(helenus.binary()), *([] if binary else ["nodetool"]), "-h", node.host, "-p", str(node.http_port), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env=env)


def done(node, *words):
    """Returns the output of a command of nodetool, which must succeed."""
    ended = nodetool(node, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def refused(node, *words):
    """Returns the error of a command of nodetool, which must fail."""
    ended = nodetool(node, *words)
    assert ended.returncode == 1, ended
    return ended.stderr


def set_live(node, name, value):
    """Returns the status and the answer of a request to set a setting."""
    url = f"http://{node.host}:{node.http_port}/node/settings"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, f"{name} {value}".encode()), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@contextlib.contextmanager
def two_nodes(folder, tablets, settings=()):
    """Yields two nodes of a cluster with this number of tablets and these settings."""
    minio = Minio(folder / "minio").start()
    store = f"s3://{minio.bucket('nodetool')}/store"
    args = helenus.setting_args({"tablet_count": tablets, **dict(settings)})
    made = [helenus.Node(folder / name, store=store, env=minio.environment(), host=host, args=args)
            for name, host in (("first", "127.0.0.1"), ("second", "127.0.0.2"))]
    try:
        for node in made:
            node.start()
        yield made
    finally:
        for node in made:
            node.close()
        minio.close()
